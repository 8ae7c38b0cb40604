//! The parameters of `cgm`.

use compflow_api::{Error, Result};
use compflow_kernels::nested::Nested;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

/// The compositional Gaussian mixture: `k` singletons, and every example is normally distributed around one of them or
/// around a composition of at most as many of them as the pipeline's degree, all with the same covariance.
///
/// It begins where `ckm` ends, learns in which directions clusters are wide, how far off the composer is, and how common
/// sets are, and labels by likelihood. Each example has a posterior probability of its set, and with `memberships = true`
/// in the pipeline one of belonging to every singleton.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of singletons, or "auto", which selects it for every trial.
    #[schemars(range(min = 1), example = 5, extend("x-select" = { "from": 2, "to": 10 }))]
    pub k: usize,
    /// The shape of clusters, the same for all.
    #[serde(default)]
    pub covariance: Kind,
    /// How far the covariance is drawn towards a sphere, from 0 to 1; or "auto", by how much its estimate would err.
    #[serde(default)]
    pub shrinkage: Shrinkage,
    /// How far unions may lie from where the composer says, as a variance in units of that of the examples; or "auto", as
    /// the data says, but no further than half of the way to the mean of its examples. 0 trusts the composer.
    #[serde(default)]
    pub residual: Residual,
    /// What is learnt about how common sets are.
    #[serde(default)]
    pub weights: Weights,
    /// Whether an example counts for its likeliest set alone while the mixture is fitted, or for all by their posteriors.
    #[serde(default)]
    pub assignment: Assignment,
    /// Whether examples may belong to no set: those that a broad distribution of all data explains better.
    #[serde(default)]
    pub outliers: bool,
    /// The clusterer whose singletons it begins with, as in `{ use = "gcr", params = { … } }`: `ckm` with the same `k` and
    /// `restarts` unless given.
    #[serde(default)]
    #[schemars(extend("instead_of" = "restarts"))]
    pub init: Option<Nested>,
    /// How often `ckm` starts anew.
    #[serde(default = "default_restarts")]
    #[schemars(range(min = 1))]
    pub restarts: usize,
    /// How often the initial clusterer is asked, each time with another seed: the likeliest of the mixtures that follow is kept.
    #[serde(default = "default_starts")]
    #[schemars(range(min = 1))]
    pub starts: usize,
    /// The initial clusterer is given this many examples, drawn at random, if there are more.
    #[serde(default = "default_sample")]
    #[schemars(range(min = 1))]
    pub sample: usize,
    /// Rounds at most.
    #[serde(default = "default_max_iter")]
    #[schemars(range(min = 1))]
    pub max_iter: usize,
    /// It ends when a round raises the mean log-likelihood of an example by less than this.
    #[serde(default = "default_tol")]
    #[schemars(range(min = 0))]
    pub tol: f64,
    /// Whether the embeddings are read batch by batch in every pass instead of being held in memory. The result is the
    /// same.
    #[serde(default)]
    pub stream: bool,
}

fn default_restarts() -> usize {
    100
}

fn default_starts() -> usize {
    3
}

fn default_sample() -> usize {
    16_384
}

fn default_max_iter() -> usize {
    200
}

fn default_tol() -> f64 {
    1e-6
}

impl Params {
    /// The defaults.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            covariance: Kind::default(),
            shrinkage: Shrinkage::default(),
            residual: Residual::default(),
            weights: Weights::default(),
            assignment: Assignment::default(),
            outliers: false,
            init: None,
            restarts: default_restarts(),
            starts: default_starts(),
            sample: default_sample(),
            max_iter: default_max_iter(),
            tol: default_tol(),
            stream: false,
        }
    }

    /// Refuses what does not go together.
    pub(crate) fn check(&self) -> Result<()> {
        if self.sample < self.k {
            let text = format!("= {} is less than `k` = {}, which must be found in it", self.sample, self.k);
            return Err(Error::parameter("sample", text));
        }
        if let Shrinkage::Value(value) = self.shrinkage
            && !(0.0..=1.0).contains(&value)
        {
            return Err(Error::parameter("shrinkage", format!("must be \"auto\" or from 0 to 1, found {value}")));
        }
        if let Residual::Value(value) = self.residual
            && !(value >= 0.0 && value.is_finite())
        {
            return Err(Error::parameter("residual", format!("must be \"auto\" or at least 0, found {value}")));
        }
        Ok(())
    }

    /// The clusterer to begin with.
    pub(crate) fn init(&self) -> Nested {
        self.init.clone().unwrap_or_else(|| {
            let mut params = Map::new();
            params.insert("k".to_owned(), json!(self.k));
            params.insert("restarts".to_owned(), json!(self.restarts));
            Nested { r#use: "ckm".to_owned(), params }
        })
    }
}

/// The shape of clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Any ellipsoid.
    #[default]
    Tied,
    /// An ellipsoid along the dimensions.
    Diagonal,
    /// A sphere.
    Spherical,
}

/// "auto" and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// By the data.
    #[default]
    Auto,
}

/// How far the covariance is drawn towards a sphere.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Shrinkage {
    /// By the data.
    Auto(Auto),
    /// This part of the way.
    Value(f64),
}

impl Default for Shrinkage {
    fn default() -> Self {
        Self::Auto(Auto::Auto)
    }
}

/// How far unions may lie from where the composer says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Residual {
    /// By the data.
    Auto(Auto),
    /// This variance, in units of that of the examples.
    Value(f64),
}

impl Default for Residual {
    fn default() -> Self {
        Self::Auto(Auto::Auto)
    }
}

/// What is learnt about how common sets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// How common sets of each size are; sets of one size are equally common.
    #[default]
    Sizes,
    /// How common every single set is.
    Sets,
    /// Nothing: all are equally common.
    Equal,
}

/// What an example counts for while the mixture is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Assignment {
    /// Its likeliest set.
    #[default]
    Hard,
    /// All sets, by their posteriors.
    Soft,
}
