//! From a document to a typed pipeline.

use std::ops::RangeInclusive;
use std::time::Duration;

use compflow_api::{Distance, Normalize, Space};

use super::document::{Document, Node, Table, Value};
use super::keys::{
    CLUSTERER_KEYS, COLUMN_KEYS, COMPOSER_KEYS, DATA_KEYS, EVALUATOR_KEYS, KEYS, LABELS_KEYS, PLUGINS_KEYS,
    SEVERAL_KEYS, SPACE_KEYS, TUNE_KEYS,
};
use super::pins::is_pin;
use super::{Clusterer, Columns, Contents, Data, Named, Pin, Tune, Use};
use crate::causes::Cause;
use crate::problem::{Origin, Problem};

/// What to do about a pipeline that lacks something.
const COMPLETE: &str = "`compflow init FILE` writes a whole pipeline for your data";

/// Reads a document; what is wrong with it is left in `problems`. `default_name` serves a pipeline without `name`.
pub(crate) fn read(document: &Document, default_name: &str, problems: &mut Vec<Problem>) -> Contents {
    let mut reader = Reader { problems };
    let empty = Table::default();
    let root = if let Value::Table(table) = &document.root.value { table } else { &empty };
    reader.known_keys(root, "a pipeline", KEYS);
    let pipeline = Contents {
        name: reader.text(root, "name").map_or_else(|| default_name.to_owned(), |(name, _)| name),
        seed: reader.whole(root, "seed", 0, 0..=i64::MAX),
        degree: reader.whole(root, "degree", 2, 1..=u32::MAX.into()) as usize,
        space: reader.space(root),
        memberships: reader.flag(root, "memberships").unwrap_or(false),
        isolate: reader.flag(root, "isolate"),
        timeout: reader.seconds(root, "timeout"),
        composer: reader.composer(root),
        data: reader.tables(root, "data", |reader, table, origin| reader.data(table, origin)),
        clusterers: reader.tables(root, "clusterer", |reader, table, origin| {
            reader.known_keys(table, "[[clusterer]]", CLUSTERER_KEYS);
            let component = reader.component(table, "use", "[[clusterer]]", origin)?;
            // `library:component` goes by the component's name as well.
            let plain = component.component.rsplit(':').next().unwrap_or_default().to_owned();
            let name = reader.text(table, "name").map_or(plain, |(name, _)| name);
            Some(Clusterer { name, component })
        }),
        evaluators: reader.tables(root, "evaluator", |reader, table, origin| {
            reader.known_keys(table, "[[evaluator]]", EVALUATOR_KEYS);
            reader.component(table, "use", "[[evaluator]]", origin)
        }),
        tune: reader.tune(root),
        pins: reader.pins(root),
    };
    let top = Origin { source: 0, span: 0..0 };
    if !root.0.iter().any(|(key, _)| key.name == "data") {
        problems.push(Problem::new(Cause::Incomplete, &top, "the pipeline has no [[data]]").help(COMPLETE));
    }
    if !root.0.iter().any(|(key, _)| key.name == "clusterer") {
        problems.push(Problem::new(Cause::Incomplete, &top, "the pipeline has no [[clusterer]]").help(COMPLETE));
    }
    if let (Some(node), Some(false)) = (root.get("timeout"), pipeline.isolate) {
        let text = "`timeout` cannot be kept with `isolate = false`";
        let help = "only a process of its own can be ended: leave `isolate` out, or `timeout`";
        problems.push(Problem::new(Cause::WrongValue, &node.origin, text).help(help));
    }
    let unusable = pipeline.name.is_empty()
        || pipeline.name.contains(['/', '\\'])
        || pipeline.name.contains(char::is_control)
        || pipeline.name.starts_with('.');
    if unusable {
        let origin = root.get("name").map_or(&top, |node| &node.origin);
        problems.push(
            Problem::new(
                Cause::WrongValue,
                origin,
                "`name` becomes the name of a folder: no slashes, no control characters, no leading dot",
            )
            .help("choose another, such as \"my-run\""),
        );
    }
    unique(problems, "data", pipeline.data.iter().map(|data| (&data.name, &data.origin)));
    unique(
        problems,
        "clusterer",
        pipeline.clusterers.iter().map(|clusterer| (&clusterer.name, &clusterer.component.origin)),
    );
    pipeline
}

fn unique<'a>(problems: &mut Vec<Problem>, kind: &str, names: impl Iterator<Item = (&'a String, &'a Origin)>) {
    let mut seen = std::collections::HashSet::new();
    for (name, origin) in names {
        if !seen.insert(name) {
            problems.push(
                Problem::new(Cause::UsedTwice, origin, format!("a second [[{kind}]] is named `{name}`"))
                    .help("tables join by this name: give each its own `name`"),
            );
        }
    }
}

struct Reader<'a> {
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn known_keys(&mut self, table: &Table, what: &str, known: &[&str]) {
        for (key, _) in &table.0 {
            if !known.contains(&key.name.as_str()) {
                let text = format!("`{}` is not a key of {what}", key.name);
                let problem = Problem::new(Cause::UnknownKey, &key.origin, text);
                let near = compflow_api::nearest(&key.name, known.iter().copied());
                self.problems.push(if near.is_none() && known.contains(&"params") {
                    problem.help(format!("parameters go into `params = {{ {} = … }}`", key.name))
                } else {
                    problem.suggest(&key.name, known.iter().copied())
                });
            }
        }
    }

    fn must_be(&mut self, key: &str, wanted: &str, node: &Node) {
        let text = format!("`{key}` must be {wanted}, found {}", node.value.kind());
        self.problems.push(Problem::new(Cause::WrongValue, &node.origin, text));
    }

    fn text(&mut self, table: &Table, key: &str) -> Option<(String, Origin)> {
        let node = table.get(key)?;
        if let Value::Text(text) = &node.value {
            return Some((text.clone(), node.origin.clone()));
        }
        self.must_be(key, "a string", node);
        None
    }

    /// A column, or a list of columns where several can be meant.
    fn named(&mut self, table: &Table, key: &str) -> Option<(Named, Origin)> {
        let node = table.get(key)?;
        let Value::Array(items) = &node.value else {
            return self.text(table, key).map(|(name, origin)| (Named::One(name), origin));
        };
        let names = items.iter().map(|item| match &item.value {
            Value::Text(name) => Some(name.clone()),
            _ => None,
        });
        match names.collect::<Option<Vec<String>>>() {
            Some(names) if SEVERAL_KEYS.contains(&key) && !names.is_empty() => {
                Some((Named::Several(names), node.origin.clone()))
            }
            _ if SEVERAL_KEYS.contains(&key) => {
                self.must_be(key, "the name of a column, or a list of names", node);
                None
            }
            _ => {
                self.must_be(key, "the name of one column", node);
                None
            }
        }
    }

    fn whole(&mut self, table: &Table, key: &str, default: u64, within: RangeInclusive<i64>) -> u64 {
        let Some(node) = table.get(key) else { return default };
        match node.value {
            Value::Integer(number) if within.contains(&number) => number as u64,
            Value::Integer(number) => {
                let bound = match number < *within.start() {
                    true => format!("at least {}", within.start()),
                    false => format!("at most {}", within.end()),
                };
                let text = format!("`{key}` must be {bound}, found {number}");
                self.problems.push(Problem::new(Cause::WrongValue, &node.origin, text));
                default
            }
            _ => {
                self.must_be(key, "a whole number", node);
                default
            }
        }
    }

    fn flag(&mut self, table: &Table, key: &str) -> Option<bool> {
        let node = table.get(key)?;
        if let Value::Boolean(value) = node.value {
            return Some(value);
        }
        self.must_be(key, "true or false", node);
        None
    }

    fn seconds(&mut self, table: &Table, key: &str) -> Option<Duration> {
        let node = table.get(key)?;
        let seconds = match node.value {
            Value::Integer(seconds) => seconds as f64,
            Value::Float(seconds) => seconds,
            _ => {
                self.must_be(key, "a number of seconds", node);
                return None;
            }
        };
        let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
        if duration.is_none() {
            let text = format!("`{key}` must be a number of seconds above 0, found {seconds}");
            self.problems.push(Problem::new(Cause::WrongValue, &node.origin, text));
        }
        duration
    }

    fn table<'a>(&mut self, table: &'a Table, key: &str) -> Option<(&'a Table, &'a Origin)> {
        let node = table.get(key)?;
        if let Value::Table(inner) = &node.value {
            return Some((inner, &node.origin));
        }
        self.must_be(key, "a table", node);
        None
    }

    fn tables<T>(
        &mut self,
        root: &Table,
        key: &str,
        mut read: impl FnMut(&mut Self, &Table, &Origin) -> Option<T>,
    ) -> Vec<T> {
        let mut tables = Vec::new();
        match root.get(key).map(|node| (&node.value, node)) {
            None => {}
            Some((Value::Array(items), _)) => {
                for item in items {
                    match &item.value {
                        Value::Table(table) => tables.extend(read(self, table, &item.origin)),
                        _ => self.must_be(key, "tables", item),
                    }
                }
            }
            Some((_, node)) => {
                let text = format!("`{key}` must be a list of tables, found {}", node.value.kind());
                let problem = Problem::new(Cause::WrongValue, &node.origin, text).help(format!("write [[{key}]]"));
                self.problems.push(problem);
            }
        }
        tables
    }

    fn choice<T: serde::de::DeserializeOwned + Default>(
        &mut self,
        table: &Table,
        key: &str,
        choices: &[&str],
    ) -> T {
        let Some((text, origin)) = self.text(table, key) else { return T::default() };
        serde_json::from_value(serde_json::Value::from(text.as_str())).unwrap_or_else(|_| {
            let problem = Problem::new(Cause::WrongValue, &origin, format!("`{key}` cannot be `{text}`"));
            self.problems.push(problem.suggest(&text, choices.iter().copied()));
            T::default()
        })
    }

    fn space(&mut self, root: &Table) -> Space {
        let Some((table, _)) = self.table(root, "space") else { return Space::default() };
        self.known_keys(table, "`space`", SPACE_KEYS);
        Space {
            normalize: self.choice::<Normalize>(table, "normalize", &["none", "l2"]),
            distance: self.choice::<Distance>(table, "distance", &["sqeuclidean", "euclidean"]),
        }
    }

    fn component(&mut self, table: &Table, key: &str, what: &str, origin: &Origin) -> Option<Use> {
        let params = match table.get("params") {
            Some(node) if matches!(node.value, Value::Table(_)) => node.clone(),
            Some(node) => {
                self.must_be("params", "a table", node);
                return None;
            }
            None => Node { value: Value::Table(Table::default()), origin: origin.clone() },
        };
        if table.get(key).is_none() {
            let text = format!("{what} needs `{key}`, the name of a component");
            self.problems.push(Problem::new(Cause::Incomplete, origin, text));
        }
        let (component, origin) = self.text(table, key)?;
        Some(Use { component, origin, params })
    }

    fn composer(&mut self, root: &Table) -> Option<Use> {
        let (table, origin) = self.table(root, "composer")?;
        self.known_keys(table, "[composer]", COMPOSER_KEYS);
        self.component(table, "use", "[composer]", origin)
    }

    fn data(&mut self, table: &Table, origin: &Origin) -> Option<Data> {
        self.known_keys(table, "[[data]]", DATA_KEYS);
        let loader = self.component(table, "loader", "[[data]]", origin);
        let path = self.text(table, "path");
        let name = self.text(table, "name");
        let columns = self.table(table, "columns").map(|(columns, _)| {
            self.known_keys(columns, "`columns`", COLUMN_KEYS);
            let named = COLUMN_KEYS.iter().filter_map(|key| Some((*key, self.named(columns, key)?)));
            Columns(named.collect())
        });
        let split = self.table(table, "labels").and_then(|(labels, origin)| {
            self.known_keys(labels, "`labels`", LABELS_KEYS);
            if labels.get("split").is_none() {
                let text = "`labels` needs `split`: what stands between the labels of one text";
                self.problems.push(Problem::new(Cause::Incomplete, origin, text));
            }
            let (split, origin) = self.text(labels, "split")?;
            if split.is_empty() {
                let text = "`split` must not be empty: it is what stands between labels, such as \",\"";
                self.problems.push(Problem::new(Cause::WrongValue, &origin, text));
            }
            Some(split).filter(|split| !split.is_empty())
        });
        let tunes = match self.text(table, "role") {
            None => false,
            Some((role, _)) if role == "test" => false,
            Some((role, _)) if role == "tune" => true,
            Some((role, origin)) => {
                let problem = Problem::new(Cause::WrongValue, &origin, format!("`role` cannot be `{role}`"));
                self.problems.push(problem.suggest(&role, ["test", "tune"]));
                false
            }
        };
        let Some((name, origin)) = name else {
            if table.get("name").is_none() {
                self.problems.push(Problem::new(Cause::Incomplete, origin, "[[data]] needs a `name`"));
            }
            return None;
        };
        Some(Data { name, loader: loader?, path, columns, split, tunes, origin })
    }

    fn tune(&mut self, root: &Table) -> Option<Tune> {
        let (table, origin) = self.table(root, "tune")?;
        self.known_keys(table, "[tune]", TUNE_KEYS);
        for key in TUNE_KEYS {
            if table.get(key).is_none() {
                self.problems.push(Problem::new(Cause::Incomplete, origin, format!("[tune] needs `{key}`")));
            }
        }
        Some(Tune { data: self.text(table, "data")?, metric: self.text(table, "metric")? })
    }

    fn pins(&mut self, root: &Table) -> Vec<Pin> {
        let Some((table, _)) = self.table(root, "plugins") else { return Vec::new() };
        self.known_keys(table, "[plugins]", PLUGINS_KEYS);
        let Some((require, _)) = self.table(table, "require") else { return Vec::new() };
        let mut pins = Vec::new();
        for (key, _) in &require.0 {
            // What no library can have keeps it from being opened all the same.
            let found = self.text(require, &key.name);
            if let Some((hash, origin)) = &found
                && !is_pin(hash)
            {
                let text = format!("`{}` must be required as \"blake3:\" and 64 hexadecimal digits", key.name);
                let help = "`compflow plugins --json` says which";
                self.problems.push(Problem::new(Cause::WrongValue, origin, text).help(help));
            }
            let (hash, origin) = found.unwrap_or_else(|| (String::new(), key.origin.clone()));
            pins.push(Pin { library: key.name.clone(), hash, origin });
        }
        pins
    }
}
