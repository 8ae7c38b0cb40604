//! The parameters of `ckm`.

use compflow_api::{Error, Result};
use compflow_kernels::nested::Nested;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Compositional k-means: `k` singletons such that every example is near one of them or near a composition of at most
/// as many of them as the pipeline's degree.
///
/// By turns, every example takes the nearest of all these centres, and the singletons move so that the sum of squared
/// distances (SSD) falls, by gradients through the composer. The restart with the lowest SSD is the result. The SSD is
/// what counts whatever the pipeline's distance, as both distances have the same nearest centres. If the space
/// normalises, so are examples and all centres, after composing; with degree 1 that is spherical k-means, and without
/// normalisation it is k-means.
///
/// Sets that no example has are absent from the result. If the data has weights, an example counts as if it were there so
/// many times.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of singletons, or "auto", which selects it for every trial.
    #[schemars(range(min = 1), example = 5, extend("x-select" = { "from": 2, "to": 10 }))]
    pub k: usize,
    /// How often it starts anew; the lowest SSD wins. If 2ᵏ is more than that, swaps (see `refine`) take the place of most
    /// restarts: half of them with every further singleton. If `init` is a clusterer, the restarts after the first begin
    /// as `plusplus` says.
    #[serde(default = "default_restarts")]
    #[schemars(range(min = 1))]
    pub restarts: usize,
    /// Assignments per restart at most.
    #[serde(default = "default_max_iter")]
    #[schemars(range(min = 1))]
    pub max_iter: usize,
    /// A restart ends when its SSD falls by less than this part of it from one assignment to the next; 0 goes on until
    /// it falls no more.
    #[serde(default = "default_tol")]
    #[schemars(range(min = 0))]
    pub tol: f64,
    /// How singletons move between two assignments.
    #[serde(default)]
    pub optimizer: Optimizer,
    /// The learning rate of `adam`, for which it is 0.2 unless given.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0, "instead_of" = "optimizer"))]
    pub lr: Option<f64>,
    /// Steps of `adam` between two assignments, for which it is 1 unless given.
    #[serde(default)]
    #[schemars(range(min = 1), extend("instead_of" = "optimizer"))]
    pub steps: Option<usize>,
    /// Where singletons begin: "plusplus", "random", or the singletons that another clusterer finds, as in
    /// `{ use = "gcr", params = { … } }`.
    #[serde(default)]
    pub init: Init,
    /// Starts are chosen from this many examples, drawn at random, if there are more. An initial clusterer is
    /// given these.
    #[serde(default = "default_sample")]
    #[schemars(range(min = 1))]
    pub sample: usize,
    /// Whether restarts that will not win are given up early; see the documentation for the rule. Never with `adam`.
    #[serde(default = "default_true")]
    pub prune: bool,
    /// Whether singletons that are in no example's set start anew at an example that is far from all centres. Never with
    /// `adam`.
    #[serde(default = "default_true")]
    pub reseed: bool,
    /// Whether the best restart is improved: where 2ᵏ is more than `restarts` by swaps, in which a newcomer takes the place of a
    /// singleton, and if there are few examples by starting again with slightly moved singletons. Never with `adam`, and never with one restart.
    #[serde(default = "default_true")]
    pub refine: bool,
    /// Whether the embeddings are read batch by batch in every pass instead of being held in memory. The result is the
    /// same.
    #[serde(default)]
    pub stream: bool,
    /// Values for what is not given.
    #[serde(default)]
    pub preset: Option<Preset>,
}

fn default_restarts() -> usize {
    100
}

fn default_max_iter() -> usize {
    100
}

fn default_tol() -> f64 {
    1e-5
}

fn default_sample() -> usize {
    16_384
}

fn default_true() -> bool {
    true
}

impl Params {
    /// The defaults.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            restarts: default_restarts(),
            max_iter: default_max_iter(),
            tol: default_tol(),
            optimizer: Optimizer::default(),
            lr: None,
            steps: None,
            init: Init::default(),
            sample: default_sample(),
            prune: true,
            reseed: true,
            refine: true,
            stream: false,
            preset: None,
        }
    }

    /// Refuses what does not go together.
    pub(crate) fn check(&self) -> Result<()> {
        if self.optimizer != Optimizer::Adam {
            for (name, given) in [("lr", self.lr.is_some()), ("steps", self.steps.is_some())] {
                if given {
                    return Err(Error::parameter(name, "is for `optimizer` = \"adam\" only"));
                }
            }
        }
        if self.sample < self.k {
            let text = format!("= {} is less than `k` = {}, which must be chosen from it", self.sample, self.k);
            return Err(Error::parameter("sample", text));
        }
        Ok(())
    }
}

/// How singletons move between two assignments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Limited-memory BFGS; the SSD never rises.
    #[default]
    Lbfgs,
    /// Adam on √SSD, as in the authors' code; the SSD may rise, and the lowest of a restart counts.
    Adam,
}

/// Where singletons begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Init {
    /// At examples.
    Start(Start),
    /// At what another clusterer finds.
    Clusterer(Nested),
}

impl Default for Init {
    fn default() -> Self {
        Self::Start(Start::PlusPlus)
    }
}

/// Examples to begin at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// One after the other, each far from all compositions of those before it.
    PlusPlus,
    /// Any.
    Random,
}

/// Values that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// As in the paper: random examples, and descent to convergence.
    #[schemars(extend("values" = { "init": "random", "tol": 0.0, "max_iter": 1000, "reseed": false, "refine": false }))]
    Paper,
    /// As in the authors' code, which belongs in a space that normalises: every restart ends after `max_iter` steps,
    /// wherever it is then.
    #[schemars(extend("values" = { "init": "random", "optimizer": "adam", "lr": 0.2, "steps": 1, "refine": false }))]
    AuthorsCode,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::read;

    #[test]
    fn presets_give_way_to_what_is_given() {
        let paper = read(r#"{"k": 5, "preset": "paper"}"#);
        assert_eq!((paper.restarts, paper.max_iter, paper.tol, paper.refine), (100, 1000, 0.0, false));
        assert_eq!((paper.optimizer, paper.init), (Optimizer::Lbfgs, Init::Start(Start::Random)));
        assert_eq!(read(r#"{"k": 5, "preset": "paper", "max_iter": 7}"#).max_iter, 7);
        let authors = read(r#"{"k": 6, "preset": "authors-code"}"#);
        assert_eq!((authors.optimizer, authors.lr, authors.steps), (Optimizer::Adam, Some(0.2), Some(1)));
        assert_eq!((authors.max_iter, authors.tol, authors.refine), (100, 1e-5, false));
        let given = read(r#"{"k": 6, "preset": "authors-code", "lr": 0.1, "init": "plusplus"}"#);
        assert_eq!((given.lr, given.init), (Some(0.1), Init::default()));
        let other = read(r#"{"k": 6, "preset": "authors-code", "optimizer": "lbfgs"}"#);
        assert_eq!((other.optimizer, other.lr, other.check()), (Optimizer::Lbfgs, None, Ok(())));
        let plain = read(r#"{"k": 6}"#);
        assert_eq!((plain.refine, plain.optimizer, plain.init), (true, Optimizer::Lbfgs, Init::default()));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let refused = |params: Params| params.check().unwrap_err().to_string();
        assert_eq!(refused(Params { lr: Some(0.1), ..Params::new(3) }), "`lr` is for `optimizer` = \"adam\" only");
        assert_eq!(
            refused(Params { sample: 2, ..Params::new(3) }),
            "`sample` = 2 is less than `k` = 3, which must be chosen from it"
        );
    }
}
