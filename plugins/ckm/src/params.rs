//! The parameters of `ckm`.

use std::fmt;

use compflow_api::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Compositional k-means: `k` singletons such that every example is near one of them or near a composition of at most
/// as many of them as the pipeline's degree.
///
/// By turns, every example takes the nearest of all these centres, and the singletons move so that the sum of squared
/// distances (SSD) falls, by gradients through the composer. The restart with the lowest SSD is the result. The SSD is
/// what counts whatever the pipeline's distance, as both distances have the same nearest centres. If the space
/// normalises, so are examples and all centres, after composing; with degree 1 that is spherical k-means, and without
/// normalisation it is k-means.
///
/// A singleton that is in no example's set starts anew at an example that is far from all centres. Sets that no example
/// has are absent from the result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of singletons.
    #[schemars(range(min = 1))]
    pub k: usize,
    /// How often it starts anew; the lowest SSD wins. 100 unless given, or 1 if `init` is a clusterer. If `init` is a
    /// clusterer, the restarts after the first begin as `plusplus` says.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub restarts: Option<usize>,
    /// Assignments per restart at most. 100 unless given.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_iter: Option<usize>,
    /// A restart ends when its SSD falls by less than this part of it from one assignment to the next; 0 goes on until
    /// it falls no more. 1e-5 unless given.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub tol: Option<f64>,
    /// How singletons move between two assignments. `lbfgs` unless `preset` says otherwise.
    #[serde(default)]
    pub optimizer: Option<Optimizer>,
    /// The learning rate of `adam`. 0.2 unless given.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub lr: Option<f64>,
    /// Steps of `adam` between two assignments. 1 unless given.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub steps: Option<usize>,
    /// Where singletons begin: "plusplus", "random", or the singletons that another clusterer finds, as in
    /// `{ use = "gcr", params = { … } }`. "plusplus" unless `preset` says otherwise.
    #[serde(default)]
    pub init: Option<Init>,
    /// Starts are chosen from this many examples, drawn at random, if there are more. An initial clusterer is
    /// given these.
    #[serde(default = "default_sample")]
    #[schemars(range(min = 1))]
    pub sample: usize,
    /// Whether restarts that will not win are given up early; see the documentation for the rule. Never with `adam`.
    #[serde(default = "default_prune")]
    pub prune: bool,
    /// Whether it starts again near the best restart, to see whether that ends lower: with swapped singletons if the
    /// order of composing matters, and with slightly moved ones if there are few examples. True unless `preset` says
    /// otherwise, and false for `adam`; never with one restart.
    #[serde(default)]
    pub refine: Option<bool>,
    /// Whether the embeddings are read batch by batch in every pass instead of being held in memory. The result is the
    /// same.
    #[serde(default)]
    pub stream: bool,
    /// Values for what is not given.
    #[serde(default)]
    pub preset: Option<Preset>,
}

fn default_sample() -> usize {
    16_384
}

fn default_prune() -> bool {
    true
}

impl Params {
    /// The defaults.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            restarts: None,
            max_iter: None,
            tol: None,
            optimizer: None,
            lr: None,
            steps: None,
            init: None,
            sample: default_sample(),
            prune: default_prune(),
            refine: None,
            stream: false,
            preset: None,
        }
    }
}

/// How singletons move between two assignments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Limited-memory BFGS; the SSD never rises.
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
    Clusterer(ClustererParams),
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

/// A clusterer, as in `{ use = "gcr" }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClustererParams {
    /// Its name.
    pub r#use: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
}

/// Values that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Preset {
    /// `init` = "random", `tol` = 0, `max_iter` = 1000, `refine` = false: random examples, and descent to convergence.
    #[serde(rename = "paper")]
    Paper,
    /// `init` = "random", `optimizer` = "adam", `lr` = 0.2, `steps` = 1, `max_iter` = 100: the authors' procedure, which
    /// belongs in a space that normalises.
    #[serde(rename = "authors-code")]
    AuthorsCode,
}

/// All values, given or not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) k: usize,
    pub(crate) restarts: usize,
    pub(crate) max_iter: usize,
    pub(crate) tol: f64,
    pub(crate) optimizer: Optimizer,
    pub(crate) lr: f64,
    pub(crate) steps: usize,
    pub(crate) init: Init,
    pub(crate) sample: usize,
    pub(crate) prune: bool,
    pub(crate) refine: bool,
    pub(crate) stream: bool,
}

impl TryFrom<Params> for Settings {
    type Error = Error;

    fn try_from(params: Params) -> Result<Self> {
        let (init, optimizer, tol, max_iter) = match params.preset {
            None => (Start::PlusPlus, Optimizer::Lbfgs, 1e-5, 100),
            Some(Preset::Paper) => (Start::Random, Optimizer::Lbfgs, 0.0, 1000),
            Some(Preset::AuthorsCode) => (Start::Random, Optimizer::Adam, 1e-5, 100),
        };
        let optimizer = params.optimizer.unwrap_or(optimizer);
        if optimizer != Optimizer::Adam {
            for (name, given) in [("lr", params.lr.is_some()), ("steps", params.steps.is_some())] {
                if given {
                    return Err(Error::new(format!("`{name}` is for `optimizer` = \"adam\" only")));
                }
            }
        }
        if params.sample < params.k {
            return Err(Error::new(format!(
                "`sample` = {} is less than `k` = {}, which must be chosen from it",
                params.sample, params.k
            )));
        }
        let init = params.init.unwrap_or(Init::Start(init));
        let restarts = if matches!(init, Init::Clusterer(_)) { 1 } else { 100 };
        Ok(Self {
            k: params.k,
            restarts: params.restarts.unwrap_or(restarts),
            max_iter: params.max_iter.unwrap_or(max_iter),
            tol: params.tol.unwrap_or(tol),
            optimizer,
            lr: params.lr.unwrap_or(0.2),
            steps: params.steps.unwrap_or(1),
            init,
            sample: params.sample,
            prune: params.prune,
            refine: params.refine.unwrap_or(params.preset.is_none() && optimizer == Optimizer::Lbfgs),
            stream: params.stream,
        })
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { k, restarts, max_iter, tol, lr, steps, sample, prune, refine, stream, .. } = self;
        write!(f, "k = {k}, restarts = {restarts}, max_iter = {max_iter}, tol = {tol:e}, ")?;
        match self.optimizer {
            Optimizer::Lbfgs => write!(f, "optimizer = lbfgs, ")?,
            Optimizer::Adam => write!(f, "optimizer = adam, lr = {lr}, steps = {steps}, ")?,
        }
        match &self.init {
            Init::Start(Start::PlusPlus) => write!(f, "init = plusplus, ")?,
            Init::Start(Start::Random) => write!(f, "init = random, ")?,
            Init::Clusterer(clusterer) => write!(f, "init = {}, ", clusterer.r#use)?,
        }
        write!(f, "sample = {sample}, prune = {prune}, refine = {refine}, stream = {stream}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(params: Params) -> Settings {
        Settings::try_from(params).unwrap()
    }

    #[test]
    fn presets_give_way_to_what_is_given() {
        let paper = Params { preset: Some(Preset::Paper), ..Params::new(5) };
        assert_eq!(
            settings(paper.clone()).to_string(),
            "k = 5, restarts = 100, max_iter = 1000, tol = 0e0, optimizer = lbfgs, init = random, sample = 16384, \
             prune = true, refine = false, stream = false"
        );
        assert_eq!(settings(Params { max_iter: Some(7), ..paper }).max_iter, 7);
        let authors = Params { preset: Some(Preset::AuthorsCode), ..Params::new(6) };
        assert_eq!(
            settings(authors.clone()).to_string(),
            "k = 6, restarts = 100, max_iter = 100, tol = 1e-5, optimizer = adam, lr = 0.2, steps = 1, init = random, \
             sample = 16384, prune = true, refine = false, stream = false"
        );
        let given = Params { lr: Some(0.1), init: Some(Init::Start(Start::PlusPlus)), ..authors };
        assert_eq!((settings(given.clone()).lr, settings(given).init), (0.1, Init::Start(Start::PlusPlus)));
    }

    #[test]
    fn a_clusterer_starts_once_unless_told_otherwise() {
        let clusterer = ClustererParams { r#use: "gcr".to_owned(), params: Map::new() };
        let params = Params { init: Some(Init::Clusterer(clusterer)), ..Params::new(3) };
        assert_eq!(settings(params.clone()).restarts, 1);
        assert_eq!(settings(Params { restarts: Some(9), ..params }).restarts, 9);
        assert_eq!(settings(Params::new(3)).restarts, 100);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let refused = |params: Params| Settings::try_from(params).unwrap_err().to_string();
        assert_eq!(refused(Params { lr: Some(0.1), ..Params::new(3) }), "`lr` is for `optimizer` = \"adam\" only");
        assert_eq!(
            refused(Params { sample: 2, ..Params::new(3) }),
            "`sample` = 2 is less than `k` = 3, which must be chosen from it"
        );
    }
}
