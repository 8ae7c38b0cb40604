//! What was run: pipeline, seeds, versions, inputs; and what went wrong.

use compflow_engine::Results;
use compflow_engine::results::RunRecord;
use maud::{Markup, html};
use serde_json::Value;

use super::ReportData;

/// More failures than this are counted only.
const MOST: usize = 12;

/// Cells that failed, said before anything else; nothing if there are none.
pub(crate) fn failures(results: &Results) -> Markup {
    let failed: Vec<_> = results.runs.iter().filter_map(|run| Some((run, run.error.as_ref()?))).collect();
    html! {
        @if !failed.is_empty() || results.record.interrupted || results.record.finished.is_none() {
            section.warning {
                @if results.record.interrupted { p { "The run was interrupted; what it had finished is shown." } }
                @else if results.record.finished.is_none() { p { "The run has not finished; what it had finished is shown." } }
                @if !failed.is_empty() {
                    p { b { (failed.len()) " of " (results.runs.len()) " cells failed" } }
                    ul {
                        @for (run, error) in failed.iter().take(MOST) {
                            li { b { (run.clusterer) } " on " (run.data) ", trial " (run.trial) ": " (error) }
                        }
                        @if failed.len() > MOST { li { "and " (failed.len() - MOST) " more" } }
                    }
                }
            }
        }
    }
}

/// The section at the end.
pub(crate) fn section(report: &ReportData) -> Markup {
    let record = &report.results.record;
    html! {
        section #run {
            h2 { "What was run" }
            dl {
                dt { "Pipeline" } dd { code { (record.file) } }
                dt { "Seed" } dd { (record.seed) }
                @if !record.only.is_empty() { dt { "Only" } dd { (record.only.join(", ")) } }
                dt { "Started" } dd { (moment(record.started)) @if let Some(finished) = record.finished { ", took " (super::svg::seconds(finished - record.started)) } }
                dt { "Cells" } dd { (record.cells) ", " (record.failed) " failed" }
                dt { "compflow" } dd { (record.compflow) " (plugin interface " (record.abi_version) ")" }
                dt { "Machine" } dd { (record.host.os) " on " (record.host.arch) ", " (record.host.cores) " cores; " (record.jobs) " jobs of " (record.threads) " threads" }
                dt { "Libraries" } dd { (libraries(record)) }
                dt { "Inputs" } dd { (inputs(record)) }
            }
            @if !record.tuned.is_empty() {
                h3 { "Settled by tuning" }
                table.tuned { tbody {
                    @for (clusterer, params) in &record.tuned {
                        tr { th scope="row" { (clusterer) } td { code { (settings(params)) } } }
                    }
                } }
            }
            details {
                summary { "The pipeline with everything laid over it" }
                pre { (pipeline(&record.pipeline)) }
            }
        }
    }
}

fn libraries(record: &RunRecord) -> Markup {
    html! {
        ul { @for library in &record.libraries {
            li { (library.name) " " (library.version) " " code.muted title=(library.blake3) { (start(&library.blake3)) } }
        } }
    }
}

fn inputs(record: &RunRecord) -> Markup {
    html! {
        @let data = record.data.values().flat_map(|data| data.files.iter().map(|file| (file, &data.blake3)));
        ul { @for (path, hash) in data.chain(&record.inputs) {
            @let name = std::path::Path::new(path).file_name().map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned());
            li { span title=(path) { (name) } " " code.muted title=(hash) { (start(hash)) } }
        } }
    }
}

/// The first digits of a hash are enough to tell it from another.
fn start(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Parameters that have a value.
fn settings(params: &Value) -> String {
    let entries = params.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    entries.map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

fn pipeline(pipeline: &Value) -> String {
    toml::to_string(pipeline).unwrap_or_else(|_| format!("{pipeline:#}"))
}

/// Seconds since 1970 as a date and a time in UTC.
pub(crate) fn moment(seconds: f64) -> String {
    let minutes = (seconds / 60.0).floor() as i64;
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    // Years start in March, so that the leap day is the last; an era is 400 years.
    let day = days + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * era + i64::from(month <= 2);
    format!("{year}-{month:02}-{date:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(moment(0.0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_782_400.0), "2000-02-29 00:00 UTC");
        assert_eq!(moment(1_794_806_239.6), "2026-11-16 05:17 UTC");
    }

    #[test]
    fn only_parameters_with_a_value_are_listed() {
        assert_eq!(settings(&serde_json::json!({"k": 3, "tol": null, "preset": "a"})), "k = 3, preset = \"a\"");
    }

    #[test]
    fn the_pipeline_is_toml_again() {
        let text = pipeline(&serde_json::json!({"name": "x", "data": [{"name": "d"}]}));
        assert_eq!(text, "name = \"x\"\n\n[[data]]\nname = \"d\"\n");
    }
}
