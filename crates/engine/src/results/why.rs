//! What a run would compute, and which changed input is the reason: the record of the last run against that of the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use compflow_api::Kind;
use serde::Serialize;
use serde_json::Value;

use super::record::{LibraryRecord, RunRecord};
use crate::plan::{Plan, PlannedClusterer};
use crate::run::Group;
use crate::run::generation::{RECORD, place};

/// Why the cells of one clusterer on one data set are to be computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    /// The data set.
    pub data: String,
    /// The clusterer as it is called in tables.
    pub clusterer: String,
    /// How many cells there are.
    pub cells: usize,
    /// How many of them are kept; `None` if that is known only after tuning.
    pub kept: Option<usize>,
    /// What has changed since the last run that these cells depend on; none if they are all kept.
    pub reasons: Vec<String>,
}

/// What has changed, and whom it concerns.
#[derive(Debug)]
struct Changes {
    /// Everything.
    all: Vec<String>,
    data: BTreeMap<String, String>,
    clusterers: BTreeMap<String, String>,
    /// By the library's name.
    libraries: BTreeMap<String, String>,
    /// By path.
    inputs: BTreeMap<String, String>,
}

impl Plan {
    /// What a run into a folder would compute, and why.
    pub fn why(&self, out: &Path) -> Vec<Why> {
        let last = match place(out, RECORD).exists() {
            false => Err("nothing was run in this folder before".to_owned()),
            true => RunRecord::read(out).map_err(|error| error.to_string()),
        };
        let groups = self.preview(out).groups;
        let changes = last.map(|last| Changes::new(&last, &self.record()));
        groups.iter().map(|group| self.why_group(group, &changes)).collect()
    }

    /// The record of a run that would start now.
    fn record(&self) -> RunRecord {
        let inputs = self.factory.inputs.all();
        let inputs = inputs.into_iter().map(|(path, hash)| (path.display().to_string(), hash)).collect();
        RunRecord { inputs, ..RunRecord::new(self, false) }
    }

    fn why_group(&self, group: &Group, changes: &Result<Changes, String>) -> Why {
        let reasons = match (group.kept, changes) {
            (Some(kept), _) if kept == group.cells => Vec::new(),
            (_, Err(reason)) => vec![reason.clone()],
            (kept, Ok(changes)) => {
                let mut reasons = changes.concerning(self, group);
                if reasons.is_empty() {
                    reasons.push(match kept {
                        None => "tuning is not finished".to_owned(),
                        Some(_) => "not computed yet: the last run was stopped, or they failed in it".to_owned(),
                    });
                }
                reasons
            }
        };
        let Group { data, clusterer, cells, kept, .. } = group.clone();
        Why { data, clusterer, cells, kept, reasons }
    }

    /// The files of the libraries whose components a clusterer's part of the pipeline names, and of the composer's.
    fn libraries_of(&self, clusterer: &Value) -> Vec<String> {
        let mut used = Vec::new();
        uses(clusterer, Kind::Clusterer, &mut used);
        self.resolved.get("composer").into_iter().for_each(|composer| uses(composer, Kind::Composer, &mut used));
        let registry = &self.factory.registry;
        let entries = used.into_iter().filter_map(|(kind, name)| registry.find(kind, name).ok());
        entries.map(|entry| file_name(&registry.libraries[entry.library].path.display().to_string())).collect()
    }

    /// The clusterer's name in the pipeline: in tables a point of its grids has another.
    fn clusterer_of(&self, label: &str) -> Option<&str> {
        let is_it = |planned: &&PlannedClusterer| {
            planned.name == label || planned.variants.iter().any(|variant| variant.label == label)
        };
        self.clusterers.iter().find(is_it).map(|planned| planned.name.as_str())
    }
}

impl Changes {
    fn new(last: &RunRecord, next: &RunRecord) -> Self {
        let mut all = Vec::new();
        if last.compflow != next.compflow {
            all.push(format!("compflow was {}, and is {}", last.compflow, next.compflow));
        }
        if last.seed != next.seed {
            all.push(format!("the seed was {}, and is {}", last.seed, next.seed));
        }
        for key in ["degree", "space", "memberships", "composer"] {
            all.extend(difference(key, last.pipeline.get(key), next.pipeline.get(key)));
        }
        let hashes = |record: &RunRecord| -> BTreeMap<String, String> {
            record.data.iter().map(|(name, data)| (name.clone(), data.blake3.clone())).collect()
        };
        let libraries = |record: &RunRecord| -> BTreeMap<String, String> {
            let named = |library: &LibraryRecord| (file_name(&library.path), library.blake3.clone());
            record.libraries.iter().map(named).collect()
        };
        let inputs = |record: &RunRecord| record.inputs.clone();
        let (before, after) = (clusterers(&last.pipeline), clusterers(&next.pipeline));
        let changed = after.iter().filter_map(|(name, now)| {
            let text = match before.get(name) {
                None => Some("the clusterer was not in the last run".to_owned()),
                Some(before) => difference("", Some(before), Some(now))
                    .map(|text| text.replace(".params.", "").replace(" .", " ")),
            };
            Some((name.clone(), text?))
        });
        Self {
            all,
            data: changed_hashes(&hashes(last), &hashes(next), "data"),
            clusterers: changed.collect(),
            libraries: changed_hashes(&libraries(last), &libraries(next), "library"),
            inputs: changed_hashes(&inputs(last), &inputs(next), "file"),
        }
    }

    /// What these cells depend on.
    fn concerning(&self, plan: &Plan, group: &Group) -> Vec<String> {
        let mut reasons = self.all.clone();
        reasons.extend(self.data.get(&group.data).cloned());
        let name = plan.clusterer_of(&group.clusterer).unwrap_or_default();
        reasons.extend(self.clusterers.get(name).cloned());
        let all = clusterers(&plan.resolved);
        let section = all.get(name).cloned().unwrap_or_default();
        let composer = plan.resolved.get("composer").map(Value::to_string).unwrap_or_default();
        let params = section.to_string() + &composer;
        let read = self.inputs.iter().filter(|(path, _)| params.contains(&file_name(path)));
        reasons.extend(read.map(|(_, text)| text.clone()));
        let used = plan.libraries_of(&section);
        reasons.extend(used.iter().filter_map(|library| self.libraries.get(library).cloned()));
        if reasons.is_empty() {
            // A component may make others that its parameters do not name.
            reasons.extend(self.libraries.values().chain(self.inputs.values()).cloned());
        }
        reasons
    }
}

/// The clusterers of a pipeline by name.
fn clusterers(pipeline: &Value) -> BTreeMap<String, Value> {
    let listed = pipeline.get("clusterer").and_then(Value::as_array).into_iter().flatten();
    listed
        .filter_map(|one| {
            let name = one.get("name").or_else(|| one.get("use"))?.as_str()?;
            Some((name.to_owned(), one.clone()))
        })
        .collect()
}

/// The names of components that stand in a part of a pipeline.
fn uses<'v>(value: &'v Value, kind: Kind, names: &mut Vec<(Kind, &'v str)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(name) if key == "use" => names.push((kind, name)),
                    _ => uses(value, kind, names),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| uses(value, kind, names)),
        _ => {}
    }
}

/// What has another hash than before, with what to say of it.
fn changed_hashes(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
    what: &str,
) -> BTreeMap<String, String> {
    let text = |name: &String, hash: &String| match before.get(name) {
        Some(known) if known == hash => None,
        Some(_) => Some(format!("{what} {name} has changed")),
        None => Some(format!("{what} {name} was not there")),
    };
    after.iter().filter_map(|(name, hash)| Some((name.clone(), text(name, hash)?))).collect()
}

/// In which values two parts of a pipeline differ.
fn difference(key: &str, before: Option<&Value>, after: Option<&Value>) -> Option<String> {
    let mut changes = Vec::new();
    compare(key, before.unwrap_or(&Value::Null), after.unwrap_or(&Value::Null), &mut changes);
    (!changes.is_empty()).then(|| changes.join(", "))
}

fn compare(key: &str, before: &Value, after: &Value, changes: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in keys {
                let [old, new] = [old, new].map(|fields| fields.get(name).unwrap_or(&Value::Null));
                compare(&format!("{key}.{name}"), old, new, changes);
            }
        }
        (old, new) if old == new => {}
        (Value::Null, new) => changes.push(format!("{key} is now {new}")),
        (old, Value::Null) => changes.push(format!("{key} is no longer {old}")),
        (old, new) => changes.push(format!("{key} was {old}, and is {new}")),
    }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}
