//! `--only`: a part of a pipeline.

use super::{Contents, Data};
use crate::causes::Cause;
use crate::problem::Problem;

/// Keeps the clusterers and data that `--only` names; what settles grids stays.
pub(super) fn select(pipeline: &mut Contents, only: &[String], problems: &mut Vec<Problem>) {
    let clusterers: Vec<String> = pipeline.clusterers.iter().map(|clusterer| clusterer.name.clone()).collect();
    let data: Vec<String> = pipeline.data.iter().map(|data| data.name.clone()).collect();
    for name in only {
        if !clusterers.contains(name) && !data.contains(name) {
            let text = format!("--only: there is no clusterer or data named `{name}`");
            let known = clusterers.iter().chain(&data).map(String::as_str);
            problems.push(Problem::without_place(Cause::Option, text).suggest(name, known));
        }
    }
    if only.iter().any(|name| clusterers.contains(name)) {
        pipeline.clusterers.retain(|clusterer| only.contains(&clusterer.name));
    }
    if only.iter().any(|name| data.contains(name)) {
        pipeline.data.retain(|data| data.tunes || only.contains(&data.name));
    }
    let tunes = |data: &Data| pipeline.tune.as_ref().is_some_and(|tune| tune.data.0 == data.name);
    if !only.is_empty() && pipeline.data.iter().all(|data| data.tunes) {
        problems.push(Problem::without_place(
            Cause::Option,
            "--only leaves nothing to run: all that is left of the data only tunes",
        ));
    }
    for data in pipeline.data.iter().filter(|data| data.tunes && !tunes(data)) {
        let text = format!("the [[data]] named `{}` is for tuning, and no [tune] uses it", data.name);
        problems.push(Problem::new(Cause::Option, &data.origin, text));
    }
}
