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
    /// Where it stands among the similarities of all pairs: `"median"`, or a percentile such as `"p10"`; `"column"`, what
    /// the data says of each example; or `"auto"`, whatever the method finds suitable.
    Percentile(String),
    /// Whatever leads to a number of clusters.
    Target(Target),
    /// A similarity for every example that is clustered.
    PerExample(PerExample),
    /// A share of the median similarity for every example that is clustered.
    MedianPerExample(MedianPerExample),
}

/// The number of clusters to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Number of clusters.
    #[schemars(range(min = 1))]
    pub k: usize,
}

/// A preference that grows with the data. It is paid once per exemplar while similarities are summed up over all
/// examples, so this is what remains right for more of the same examples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerExample {
    /// What is multiplied with the number of examples.
    pub per_example: f64,
}

/// A preference that grows with the data and does not depend on its scale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MedianPerExample {
    /// What is multiplied with the median similarity and with the number of examples.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub median_per_example: f64,
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
    /// This similarity times the number of examples.
    PerExample(f64),
    /// This times the median similarity times the number of examples.
    MedianPerExample(f64),
    /// Of every example what the data says.
    Column,
    /// Found by the method.
    Auto,
}

impl Rule {
    /// What is to be said of one above all similarities: it was hardly meant so.
    pub fn too_high(self) -> Option<String> {
        let (Self::Value(value) | Self::PerExample(value)) = self else { return None };
        let meant = match value >= 1.0 && value.fract() == 0.0 {
            true => format!("; `preference = {{ k = {value} }}` asks for {value}"),
            false => String::new(),
        };
        (value > 0.0).then(|| {
            format!(
                "the preference is {value}: similarities are minus distances, and above 0 every example is an exemplar{meant}"
            )
        })
    }
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
            let text = format!(
                "must be \"auto\", a finite number, \"median\", a percentile from \"p0\" to \"p100\", \"column\", \
                 {{ k = … }}, {{ per_example = … }} or {{ median_per_example = … }} above 0, found {found}"
            );
            Error::parameter("preference", text)
        };
        match self {
            Self::Value(value) if value.is_finite() => Ok(Rule::Value(*value)),
            Self::Value(value) => Err(wrong(value)),
            Self::Target(target) => Ok(Rule::Clusters(target.k)),
            Self::PerExample(PerExample { per_example }) if per_example.is_finite() => {
                Ok(Rule::PerExample(*per_example))
            }
            Self::PerExample(PerExample { per_example }) => Err(wrong(per_example)),
            Self::MedianPerExample(MedianPerExample { median_per_example: share })
                if share.is_finite() && *share > 0.0 =>
            {
                Ok(Rule::MedianPerExample(*share))
            }
            Self::MedianPerExample(MedianPerExample { median_per_example }) => Err(wrong(median_per_example)),
            Self::Percentile(text) if text == "column" => Ok(Rule::Column),
            Self::Percentile(text) if text == "auto" => Ok(Rule::Auto),
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

/// Preferences tried for a number of clusters. Halving the range of their logarithms so often leaves less than a
/// millionth of it.
pub const TRIALS: usize = 20;
/// Highest damping that a search for a number of clusters goes up to by itself.
pub const SEARCH_DAMPING: f64 = 0.95;

/// A search for the preference that gives a number of clusters, by halving the range of its logarithm. Fewer clusters
/// come from lower preferences, though not strictly. Low preferences oscillate under little damping, so that is raised
/// on the way, and what oscillates all the same was too low.
#[derive(Debug)]
pub struct Search {
    k: usize,
    /// Logarithms of costs that give too many clusters, and too few.
    many: f64,
    few: f64,
    preference: f64,
    damping: f64,
}

impl Search {
    /// Looks for `k` clusters of examples whose smallest distance above 0 is `smallest`, and of which the sum of all
    /// distances from one is at least `least`.
    pub fn new(k: usize, smallest: f64, least: f64, damping: f64) -> Self {
        // At a cost beyond the distances of all from one, nobody becomes a second exemplar; at a cost well below any
        // distance, everybody does.
        let (many, few) = (libm::log2(smallest) - 4.0, libm::log2(least));
        Self { k, many, few, preference: -libm::exp2(f64::midpoint(many, few)), damping }
    }

    /// What to try next.
    pub fn preference(&self) -> f64 {
        self.preference
    }

    /// The damping to try it with.
    pub fn damping(&self) -> f64 {
        self.damping
    }

    /// Learns what came of it; whether there is anything left to look for.
    pub fn learn(&mut self, found: usize, converged: bool) -> bool {
        if converged && found == self.k {
            return false;
        }
        if !converged && self.damping < SEARCH_DAMPING {
            self.damping = f64::midpoint(self.damping, 1.0).min(SEARCH_DAMPING);
            return true;
        }
        match converged && found > self.k {
            true => self.many = libm::log2(-self.preference),
            false => self.few = libm::log2(-self.preference),
        }
        self.preference = -f64::midpoint(self.many, self.few).exp2();
        true
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
        let per_example = -2.0 / 150.0;
        assert_eq!(Preference::PerExample(PerExample { per_example }).rule(), Ok(Rule::PerExample(per_example)));
        let of_median =
            |share| Preference::MedianPerExample(MedianPerExample { median_per_example: share }).rule();
        assert_eq!(of_median(0.02), Ok(Rule::MedianPerExample(0.02)));
        assert!(of_median(0.0).unwrap_err().to_string().ends_with("above 0, found 0"));
        assert_eq!(rule("column"), Ok(Rule::Column));
        assert_eq!(rule("auto"), Ok(Rule::Auto));
        for (text, percent) in [("p0", 0.0), ("p10", 10.0), ("p99.5", 99.5), ("p100", 100.0)] {
            assert_eq!(rule(text), Ok(Rule::Percentile(percent)));
        }
    }

    #[test]
    fn a_search_halves_and_damps() {
        // As many clusters as the cost goes into 100; what is cheap oscillates unless damped.
        let mut search = Search::new(7, 1.0, 1000.0, 0.5);
        for _ in 0..TRIALS {
            let found = (100.0 / -search.preference()) as usize;
            if !search.learn(found, search.damping() > 0.7) {
                assert_eq!((found, search.damping()), (7, 0.75));
                return;
            }
        }
        panic!("{search:?}");
    }

    #[test]
    fn other_texts_are_refused_with_what_would_do() {
        assert_eq!(
            rule("p101").unwrap_err().to_string(),
            "`preference` must be \"auto\", a finite number, \"median\", a percentile from \"p0\" to \"p100\", \"column\", \
             { k = … }, { per_example = … } or { median_per_example = … } above 0, found \"p101\""
        );
        for text in ["", "p", "p-1", "p1e1", "pnan", "10", "Median", "p 10", "p1.2.3"] {
            assert!(rule(text).unwrap_err().to_string().ends_with(&format!("found {text:?}")), "{text}");
        }
        let refused = Preference::Value(f64::INFINITY).rule().unwrap_err().to_string();
        assert!(refused.ends_with("found inf"), "{refused}");
    }
}
