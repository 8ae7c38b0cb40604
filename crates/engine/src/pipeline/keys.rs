//! The keys of a pipeline file, table by table.

/// The top level.
pub const KEYS: &[&str] = &[
    "name",
    "seed",
    "degree",
    "space",
    "memberships",
    "isolate",
    "timeout",
    "composer",
    "data",
    "clusterer",
    "evaluator",
    "tune",
    "plugins",
];
/// `[[data]]`.
pub const DATA_KEYS: &[&str] = &["name", "loader", "path", "columns", "labels", "role", "params"];
/// `[composer]`.
pub const COMPOSER_KEYS: &[&str] = &["use", "params"];
/// `[[clusterer]]`.
pub const CLUSTERER_KEYS: &[&str] = &["name", "use", "params"];
/// `[[evaluator]]`.
pub const EVALUATOR_KEYS: &[&str] = &["use", "params"];
/// `columns` of `[[data]]`.
pub const COLUMN_KEYS: &[&str] =
    &["embedding", "truth", "trial", "id", "preference", "weight", "seed", "file", "start", "end"];
/// Those of `columns` that may be made of several: a number each, or 0 and 1 for each label.
pub const SEVERAL_KEYS: &[&str] = &["embedding", "truth", "seed"];
/// `labels` of `[[data]]`.
pub const LABELS_KEYS: &[&str] = &["split"];
/// Those of `columns` that say where in a recording an example is; components ask for them by these names.
pub const SEGMENT_KEYS: &[&str] = &["file", "start", "end"];
/// `space`.
pub const SPACE_KEYS: &[&str] = &["normalize", "distance"];
/// `[tune]`.
pub const TUNE_KEYS: &[&str] = &["data", "metric"];
/// `[plugins]`.
pub const PLUGINS_KEYS: &[&str] = &["require"];
