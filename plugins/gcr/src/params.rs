//! The parameters of `gcr`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::Base;
use crate::greedy::OnConflict;
use crate::threshold::{Auto, Threshold};

/// Greedy compositional reassignment: another clusterer finds clusters, and those that lie where the composition of
/// others is predicted are called that composition.
///
/// Every set that the base assigns examples to is a preliminary cluster, so the base may itself return sets of several.
/// The composer is given the means of their examples, not normalised; distances are taken in the pipeline's space. A
/// cluster nearer than `threshold` to a composition of two to `degree` others may become that composition, and one much
/// nearer than that to another cluster may become part of it; no cluster is both a composition and a member of one.
/// `method` says which of these reassignments are made: by default those that together cost least.
///
/// The column `base` keeps what the base found. If these are single clusters, they have the numbers that they have in
/// the result, and those that were reassigned the numbers after them; larger sets are kept as they are. Examples that the
/// base assigns to none stay there. The base's own columns, numbers and found parameters are kept beside these, and what
/// it needs of the data is needed. Centroids are the means and their compositions. The objective, of which the trace has
/// the value before and after each reassignment, is the sum over examples of the distance from their cluster's mean to
/// what it became, or of the threshold if it stayed alone. Iterations and convergence are those of the base. If the base
/// finds fewer than three clusters, its clustering is the result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The clusterer that finds the preliminary clusters: any but this one.
    #[schemars(example = serde_json::json!({ "use": "ac", "params": { "k": 15 } }))]
    pub base: Base,
    /// A cluster nearer than this to a composition of others may be that composition: a distance in the pipeline's
    /// space, or `"auto"`, which finds it among the distances of the clusters, and finds no unions if clusters without any
    /// would come as near.
    pub threshold: Threshold,
    /// Most members of a composition: the pipeline's degree unless given, and at most that.
    #[schemars(range(min = 1))]
    pub degree: Option<usize>,
    /// How the clusters to be reassigned are chosen: `"search"` unless given, and `"greedy"` if `on_conflict` is given.
    pub method: Option<Method>,
    /// Two clusters nearer to each other than this part of the threshold may be one that the base has split; 0 leaves all
    /// apart. For `method = "search"`, and for `threshold = "auto"`, which does not take what is split for unions; a part of
    /// Euclidean distances, whatever the pipeline's distance.
    #[schemars(range(min = 0, max = 1))]
    pub merge: f64,
    /// What happens when the next cluster would be both a composition and a member of one, with `method = "greedy"`:
    /// `"skip"` unless given.
    pub on_conflict: Option<OnConflict>,
    /// The most reassignments that `method = "exhaustive"` chooses from.
    #[schemars(range(min = 1))]
    pub max_maps: u64,
    /// Values for what is not given.
    pub preset: Option<Preset>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            base: Base::default(),
            threshold: Threshold::Auto(Auto::Auto),
            degree: None,
            method: None,
            merge: 0.7,
            on_conflict: None,
            max_maps: 1_000_000_000,
            preset: None,
        }
    }
}

/// How the clusters to be reassigned are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Those that together cost least, by a search over which clusters are singletons.
    #[default]
    Search,
    /// The paper's listing: one after the other, the one nearest to a composition first.
    Greedy,
    /// The reassignment with the lowest objective of all in which no two clusters become the same composition; for few
    /// clusters only.
    Exhaustive,
}

/// Parameters of published experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// What the paper says, with the values that were found for degree 2.
    #[schemars(extend("values" = {
        "base": { "use": "ac", "params": { "k": 17 } }, "threshold": 0.4, "on_conflict": "stop"
    }))]
    Paper,
    /// As the authors' code does: base and distances in the space of squared distances between normalised vectors
    /// whatever the pipeline's, and a distance equal to the threshold is near enough.
    #[schemars(extend("values" = {
        "base": { "use": "ac", "params": { "k": 17 } }, "threshold": 0.4, "on_conflict": "stop"
    }))]
    AuthorsCode,
}
