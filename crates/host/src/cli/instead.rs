//! Commands that there are not.

/// What somebody probably wants who names a command that there is not.
pub(crate) fn instead_of(command: &str) -> Option<&'static str> {
    match command {
        "predict" | "transform" | "classify" => {
            Some("`compflow assign RUN DATA --out FILE` gives new examples to the clusters of a finished run")
        }
        "fit" | "train" | "cluster" | "start" => {
            Some("`compflow run PIPELINE` clusters, `compflow init DATA` writes a pipeline for your data")
        }
        "validate" | "lint" | "test" => {
            Some("`compflow check PIPELINE` finds everything that is wrong with a pipeline")
        }
        "score" | "evaluate" | "metrics" => {
            Some("`compflow eval PRED TRUTH` scores sets, `compflow run` those that it finds")
        }
        "list" | "components" | "ls" => Some("`compflow plugins` lists all libraries and their components"),
        "describe" | "show" | "man" => Some("`compflow inspect NAME` describes a component and its parameters"),
        "plot" | "view" | "open" => Some("`compflow report RUN` makes a page of a finished run"),
        "compare" => Some("`compflow diff A B` compares two runs"),
        "new" | "create" => Some("`compflow init DATA` writes a pipeline, `compflow new-plugin` a plugin"),
        _ => None,
    }
}
