//! Components that make others: what these say about their parameters is about parameters of the ones that made them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, PoisonError};

use compflow_api::{Code, Error, Flags, ForeignClusterer, Host, Instance, Kind, Level, Result, Services};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A clusterer and its parameters, as in `{ use = "gcr" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nested {
    /// The name of a clusterer.
    pub r#use: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
}

impl Nested {
    /// Makes the clusterer, of any library, as the parameter `parameter` says.
    ///
    /// # Errors
    /// If there is none of that name or it refuses its parameters: about `parameter` or what is below it.
    pub fn create(&self, parameter: &str, services: &Services<'_>) -> Result<ForeignClusterer> {
        let made = services.clusterer(&self.r#use, &Value::Object(self.params.clone()).to_string());
        made.map_err(|error| explain(error, parameter, &self.r#use))
    }

    /// Makes a clusterer that finds a start: one that nobody gives the truth.
    ///
    /// # Errors
    /// Those of [`create`](Self::create), and that it cannot do without the truth.
    pub fn create_start(&self, parameter: &str, services: &Services<'_>) -> Result<ForeignClusterer> {
        let made = self.create(parameter, services)?;
        if made.flags()?.contains(Flags::NEEDS_TRUTH) {
            let text =
                format!("must not be `{}`, which is given the truth: a start has to do without it", self.r#use);
            return Err(Error::parameter(parameter, text));
        }
        Ok(made)
    }
}

/// A host that is told the same thing once: for a component that is asked several times.
pub struct Once<'a> {
    host: &'a dyn Host,
    said: Mutex<HashSet<String>>,
}

impl<'a> Once<'a> {
    /// In front of another.
    pub fn new(host: &'a dyn Host) -> Self {
        Self { host, said: Mutex::default() }
    }
}

impl Host for Once<'_> {
    fn log(&self, level: Level, text: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(text.to_owned()) {
            self.host.log(level, text);
        }
    }

    fn progress(&self, done: u64, total: u64) {
        self.host.progress(done, total);
    }

    fn cancel(&self) -> &AtomicU32 {
        self.host.cancel()
    }

    fn version(&self) -> &str {
        self.host.version()
    }

    fn input(&self, path: &str) -> Result<PathBuf> {
        self.host.input(path)
    }

    fn content(&self, path: &str) -> Result<(PathBuf, Vec<u8>)> {
        self.host.content(path)
    }

    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        self.host.create(kind, name, params)
    }
}

/// What the component `name`, made from the parameter `parameter` with its `use` and `params`, said when it was made.
#[must_use]
fn explain(error: Error, parameter: &str, name: &str) -> Error {
    let Error::Failed(mut problems) = error.below(&format!("{parameter}.params")) else { return Error::Cancelled };
    for problem in &mut problems {
        if problem.code == Code::Parameter && problem.parameter.is_some() {
            problem.text = format!("of `{name}` {}", problem.text);
        } else {
            problem.text = format!("`{name}`: {}", problem.what());
            problem.code = Code::Parameter;
            problem.parameter = Some(parameter.to_owned());
        }
    }
    Error::Failed(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_about_the_parameter_or_what_is_below_it() {
        let explained = |error: Error| {
            let error = explain(error, "base", "ac");
            let problem = &error.problems()[0];
            (problem.code, problem.parameter.clone().unwrap_or_default(), error.to_string())
        };
        let error = Error::parameter("kk", "is not a parameter").help("did you mean `k`?");
        let text = "`base.params.kk` of `ac` is not a parameter; did you mean `k`?";
        assert_eq!(explained(error), (Code::Parameter, "base.params.kk".to_owned(), text.to_owned()));
        let text = "`base` `ac`: there is none";
        assert_eq!(explained(Error::new("there is none")), (Code::Parameter, "base".to_owned(), text.to_owned()));
        assert_eq!(explain(Error::Cancelled, "base", "ac"), Error::Cancelled);
    }
}
