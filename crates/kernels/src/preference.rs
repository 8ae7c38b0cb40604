//! The parameter `preference` of methods that choose exemplars: how gladly an example becomes one.

use compflow_api::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How gladly an example becomes an exemplar, in the units of similarities: the higher, the more clusters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Preference {
    /// This similarity.
    Value(f64),
    /// Where it stands among the similarities of all pairs: `"median"`, or a percentile such as `"p10"`.
    Percentile(String),
    /// Whatever leads to a number of clusters.
    Target(Target),
}

/// The number of clusters to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Number of clusters.
    #[schemars(range(min = 1))]
    pub k: usize,
}

/// A preference whose text has been read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// This similarity.
    Value(f64),
    /// This percentile, 0 to 100, of all similarities.
    Percentile(f64),
    /// Search for what gives this many clusters.
    Clusters(usize),
}

impl Default for Preference {
    /// The median similarity.
    fn default() -> Self {
        Self::Percentile("median".to_owned())
    }
}

impl Preference {
    /// Reads the text.
    ///
    /// # Errors
    /// If it is none of those that [`Preference`] lists.
    pub fn rule(&self) -> Result<Rule> {
        let wrong = |found: &dyn std::fmt::Display| {
            Error::new(format!(
                "`preference` must be a finite number, \"median\", a percentile from \"p0\" to \"p100\" or \
                 {{ k = … }}, found {found}"
            ))
        };
        match self {
            Self::Value(value) if value.is_finite() => Ok(Rule::Value(*value)),
            Self::Value(value) => Err(wrong(value)),
            Self::Target(target) => Ok(Rule::Clusters(target.k)),
            Self::Percentile(text) if text == "median" => Ok(Rule::Percentile(50.0)),
            Self::Percentile(text) => text
                .strip_prefix('p')
                // Signs and exponents are read as numbers too, but nobody means them here.
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
                .and_then(|digits| digits.parse().ok())
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(Rule::Percentile)
                .ok_or_else(|| wrong(&format_args!("{text:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Result<Rule> {
        Preference::Percentile(text.to_owned()).rule()
    }

    #[test]
    fn every_form_is_read() {
        assert_eq!(Preference::default().rule(), Ok(Rule::Percentile(50.0)));
        assert_eq!(Preference::Value(-2.5).rule(), Ok(Rule::Value(-2.5)));
        assert_eq!(Preference::Target(Target { k: 5 }).rule(), Ok(Rule::Clusters(5)));
        for (text, percent) in [("p0", 0.0), ("p10", 10.0), ("p99.5", 99.5), ("p100", 100.0)] {
            assert_eq!(rule(text), Ok(Rule::Percentile(percent)));
        }
    }

    #[test]
    fn other_texts_are_refused_with_what_would_do() {
        assert_eq!(
            rule("p101").unwrap_err().to_string(),
            "`preference` must be a finite number, \"median\", a percentile from \"p0\" to \"p100\" or { k = … }, \
             found \"p101\""
        );
        for text in ["", "p", "p-1", "p1e1", "pnan", "10", "Median", "p 10", "p1.2.3"] {
            assert!(rule(text).unwrap_err().to_string().ends_with(&format!("found {text:?}")), "{text}");
        }
        let refused = Preference::Value(f64::INFINITY).rule().unwrap_err().to_string();
        assert!(refused.ends_with("found inf"), "{refused}");
    }
}
