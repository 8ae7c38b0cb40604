//! A TOML document in which every value knows where it was written, with `--set` options laid over it.

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys;
use crate::causes::Cause;
use crate::problem::{Origin, Problem, Source};

/// Tables and lists inside one another that a pipeline may have: far more than any has, far fewer than a stack holds.
const MOST_LEVELS: usize = 64;

/// Where a text is nested deeper than that: by brackets, or by a key with many dots, which the parser makes a table of each.
/// Tables of the file that are nested by headers count the dots of the header.
fn too_deep(text: &str) -> Option<usize> {
    let (mut levels, mut dots) = (0_usize, 0_usize);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| rest.starts_with(quotes));
        let length = match (first, quotes) {
            ('#', _) => rest.find('\n').unwrap_or(rest.len()),
            (_, Some(quotes)) => string_length(rest, quotes),
            _ => first.len_utf8(),
        };
        match first {
            '.' => dots += 1,
            '[' | '{' => (levels, dots) = (levels + 1, 0),
            ']' | '}' => (levels, dots) = (levels.saturating_sub(1), 0),
            '\n' | ',' | '=' => dots = 0,
            _ => {}
        }
        if levels.max(dots) >= MOST_LEVELS {
            return Some(text.len() - rest.len());
        }
        rest = rest.get(length..)?;
    }
    None
}

/// How long a string is that begins with these quotes.
fn string_length(text: &str, quotes: &str) -> usize {
    let escapes = quotes.starts_with('"');
    let mut at = quotes.len();
    while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
        match first {
            '\\' if escapes => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            // One that does not end in its line is an error of the parser's.
            '\n' if quotes.len() == 1 => return at,
            _ if text[at..].starts_with(quotes) => return at + quotes.len(),
            _ => at += first.len_utf8(),
        }
    }
    text.len()
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// TOML's values; a date is kept as its text.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Array(Vec<Node>),
    Table(Table),
}

impl Value {
    /// What it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Array(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Keys with their places, in the order written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(pub(crate) Vec<(Key, Node)>);

/// A key and its place.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) origin: Origin,
}

impl Table {
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.0.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    fn entry(&mut self, key: Key, default: Node) -> &mut Node {
        let at = self.0.iter().position(|(known, _)| known.name == key.name).unwrap_or_else(|| {
            self.0.push((key, default));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

impl Node {
    /// The same as JSON; places where JSON has no such value become problems.
    pub(crate) fn to_json(&self, problems: &mut Vec<Problem>) -> Json {
        match &self.value {
            Value::Text(text) => Json::from(text.as_str()),
            Value::Integer(number) => Json::from(*number),
            Value::Float(number) => serde_json::Number::from_f64(*number).map_or_else(
                || {
                    problems.push(Problem::new(
                        Cause::WrongValue,
                        &self.origin,
                        format!("{number} is not a finite number"),
                    ));
                    Json::Null
                },
                Json::Number,
            ),
            Value::Boolean(value) => Json::from(*value),
            Value::Array(items) => items.iter().map(|item| item.to_json(problems)).collect(),
            Value::Table(table) => {
                table.0.iter().map(|(key, node)| (key.name.clone(), node.to_json(problems))).collect()
            }
        }
    }

    /// A value from JSON, which has no places.
    pub(crate) fn from_json(json: &Json) -> Self {
        let origin = Origin { source: 0, span: 0..0 };
        let value = match json {
            Json::Null => Value::Text(String::new()),
            Json::Bool(value) => Value::Boolean(*value),
            Json::Number(number) => {
                number.as_i64().map_or_else(|| Value::Float(number.as_f64().unwrap_or(f64::NAN)), Value::Integer)
            }
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::Array(items.iter().map(Self::from_json).collect()),
            Json::Object(table) => Value::Table(Table(
                table
                    .iter()
                    .map(|(name, value)| {
                        (Key { name: name.clone(), origin: origin.clone() }, Self::from_json(value))
                    })
                    .collect(),
            )),
        };
        Self { value, origin }
    }

    /// The place of a dotted path such as `base.params.k` or `weights[2]`: of the key it ends in, or as near to it
    /// as there is something.
    pub(crate) fn locate(&self, path: &str) -> Origin {
        let mut node = self;
        let mut place = self.origin.clone();
        for step in path.split(['.', '[']) {
            let next = match (&node.value, step.trim_end_matches(']')) {
                (Value::Table(table), name) => table.0.iter().find(|(key, _)| key.name == name),
                (Value::Array(items), index) => {
                    let Some(item) = index.parse().ok().and_then(|index: usize| items.get(index)) else { break };
                    place = item.origin.clone();
                    node = item;
                    continue;
                }
                _ => None,
            };
            let Some((key, value)) = next else { break };
            place = Origin {
                source: key.origin.source,
                span: key.origin.span.start..value.origin.span.end.max(key.origin.span.end),
            };
            if value.origin.source != key.origin.source {
                place = value.origin.clone();
            }
            node = value;
        }
        place
    }
}

/// A parsed document and the texts it came from.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) root: Node,
    /// The file, then the `--set` options.
    pub(crate) sources: Vec<Source>,
}

impl Document {
    /// Parses a file and lays `--set` options over it; what is wrong with either is left in `problems`.
    pub(crate) fn parse(file: Source, sets: &[String], problems: &mut Vec<Problem>) -> Self {
        if let Some(at) = too_deep(&file.text) {
            let text = format!("tables are nested more than {MOST_LEVELS} deep");
            problems.push(Problem::new(Cause::Syntax, &Origin { source: 0, span: at..at }, text));
            let empty = Node { value: Value::Table(Table::default()), origin: Origin { source: 0, span: 0..0 } };
            return Self { root: empty, sources: vec![file] };
        }
        let (table, errors) = DeTable::parse_recoverable(&file.text);
        for error in errors {
            let end = file.text.len();
            let span = error.span().map_or(0..0, |span| span.start.min(end)..span.end.min(end));
            let text = error.message().lines().collect::<Vec<_>>().join("; ");
            problems.push(Problem::new(Cause::Syntax, &Origin { source: 0, span }, text));
        }
        let value = convert_table(table.get_ref(), 0, 0, problems);
        let root = Node { value, origin: Origin { source: 0, span: 0..0 } };
        Self { root, sources: vec![file] }.with(sets, problems)
    }

    /// Likewise, of what is no file, so that nothing in it has a place.
    pub(crate) fn from_json(json: &Json, sets: &[String], problems: &mut Vec<Problem>) -> Self {
        let nowhere = Source { name: "pipeline".to_owned(), text: String::new() };
        Self { root: Node::from_json(json), sources: vec![nowhere] }.with(sets, problems)
    }

    /// Lays `--set` options over it.
    fn with(mut self, sets: &[String], problems: &mut Vec<Problem>) -> Self {
        for set in sets {
            let source = self.sources.len();
            self.sources.push(Source { name: "--set".to_owned(), text: set.clone() });
            self.set(set, source, problems);
        }
        self
    }

    /// Lays one `path.to.key=value` over the document.
    fn set(&mut self, set: &str, source: usize, problems: &mut Vec<Problem>) {
        let whole = Origin { source, span: 0..set.len() };
        let Some((keys, at)) = split_path(set, source) else {
            problems.push(Problem::new(
                Cause::Option,
                &whole,
                "`--set` takes KEY=VALUE, for example clusterer.CAP.damping=0.9",
            ));
            return;
        };
        let text = &set[at..];
        if keys.len() > MOST_LEVELS || too_deep(text).is_some() {
            problems.push(Problem::new(
                Cause::Option,
                &whole,
                format!("tables are nested more than {MOST_LEVELS} deep"),
            ));
            return;
        }
        let (parsed, errors) = DeValue::parse_recoverable(text);
        // A word without quotes is a string: shells eat quotes.
        let value = if errors.is_empty() {
            convert(&parsed, source, at, problems)
        } else {
            Node { value: Value::Text(text.to_owned()), origin: Origin { source, span: at..set.len() } }
        };
        if let Err(problem) = place(&mut self.root, &keys, value) {
            problems.push(problem);
        }
    }
}

/// The keys before the first `=`, and the place behind it. Names with a dot or an equals sign stand in quotes.
fn split_path(set: &str, source: usize) -> Option<(Vec<Key>, usize)> {
    let mut keys = Vec::new();
    let (mut start, mut quoted) = (0, false);
    for (at, character) in set.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '.' | '=' if !quoted => {
                let name = set[start..at].trim_matches('"').to_owned();
                keys.push(Key { name, origin: Origin { source, span: start..at } });
                start = at + 1;
                if character == '=' {
                    return Some((keys, start));
                }
            }
            _ => {}
        }
    }
    None
}

/// The keys that a table of this kind has itself; any other key in a `--set` is one of its parameters.
fn own_keys(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "data" => Some(keys::DATA_KEYS),
        "clusterer" => Some(keys::CLUSTERER_KEYS),
        "evaluator" => Some(keys::EVALUATOR_KEYS),
        "composer" => Some(keys::COMPOSER_KEYS),
        _ => None,
    }
}

/// Puts `value` at the path `keys` below `root`.
fn place(root: &mut Node, keys: &[Key], value: Node) -> Result<(), Problem> {
    let [first, rest @ ..] = keys else { return Ok(()) };
    let Some(own) = own_keys(&first.name).filter(|_| !rest.is_empty()) else { return put(root, keys, value) };
    let node = table_at(root, first)?;
    let Value::Array(items) = &mut node.value else { return put_own(node, rest, own, value) };
    // Tables of an array are addressed by their name, or by the component they use.
    let [wanted, behind @ ..] = rest else { return Ok(()) };
    let names: Vec<String> = items.iter().filter_map(item_name).collect();
    let Some(at) = items.iter().position(|item| item_name(item).as_ref() == Some(&wanted.name)) else {
        let text = format!("there is no [[{}]] named `{}`", first.name, wanted.name);
        return Err(Problem::new(Cause::Option, &wanted.origin, text)
            .suggest(&wanted.name, names.iter().map(String::as_str)));
    };
    if behind.is_empty() {
        return Err(Problem::new(Cause::Option, &wanted.origin, "`--set` needs a key behind the name"));
    }
    put_own(&mut items[at], behind, own, value)
}

/// Puts `value` into a component's table: under one of its `own` keys, or else under its parameters.
fn put_own(node: &mut Node, keys: &[Key], own: &[&str], value: Node) -> Result<(), Problem> {
    if own.contains(&keys[0].name.as_str()) {
        return put(node, keys, value);
    }
    let params = Key { name: "params".to_owned(), origin: keys[0].origin.clone() };
    put(table_at(node, &params)?, keys, value)
}

/// Puts `value` at the path `keys` below a table, making tables on the way.
fn put(node: &mut Node, keys: &[Key], value: Node) -> Result<(), Problem> {
    let [first, rest @ ..] = keys else {
        *node = value;
        return Ok(());
    };
    put(table_at(node, first)?, rest, value)
}

fn item_name(item: &Node) -> Option<String> {
    let Value::Table(table) = &item.value else { return None };
    let name = table.get("name").or_else(|| table.get("use"))?;
    if let Value::Text(text) = &name.value { Some(text.clone()) } else { None }
}

/// What stands under a key of a table; an empty table if nothing did.
fn table_at<'n>(node: &'n mut Node, key: &Key) -> Result<&'n mut Node, Problem> {
    let kind = node.value.kind();
    let Value::Table(table) = &mut node.value else {
        return Err(Problem::new(
            Cause::Option,
            &key.origin,
            format!("`{}` cannot be set inside {kind}", key.name),
        ));
    };
    let empty = Node { value: Value::Table(Table::default()), origin: key.origin.clone() };
    Ok(table.entry(key.clone(), empty))
}

fn convert_table(table: &DeTable<'_>, source: usize, offset: usize, problems: &mut Vec<Problem>) -> Value {
    let mut entries: Vec<(Key, Node)> = table
        .iter()
        .map(|(key, node)| {
            let span = key.span().start + offset..key.span().end + offset;
            let key = Key { name: key.get_ref().to_string(), origin: Origin { source, span } };
            (key, convert(node, source, offset, problems))
        })
        .collect();
    entries.sort_by_key(|(key, _)| key.origin.span.start);
    Value::Table(Table(entries))
}

fn convert(node: &Spanned<DeValue<'_>>, source: usize, offset: usize, problems: &mut Vec<Problem>) -> Node {
    let origin = Origin { source, span: node.span().start + offset..node.span().end + offset };
    let value = match node.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).unwrap_or_else(|_| {
                problems.push(Problem::new(Cause::WrongValue, &origin, format!("{number} is too large a number")));
                0
            }))
        }
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| convert(item, source, offset, problems)).collect())
        }
        DeValue::Table(table) => convert_table(table, source, offset, problems),
    };
    Node { value, origin }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, sets: &[&str]) -> (Json, Vec<String>) {
        let mut problems = Vec::new();
        let file = Source { name: "p.toml".to_owned(), text: text.to_owned() };
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let document = Document::parse(file, &sets, &mut problems);
        let json = document.root.to_json(&mut problems);
        (json, problems.into_iter().map(|problem| problem.text).collect())
    }

    #[test]
    fn values_of_every_type_come_through() {
        let (json, problems) = parse("a = 1\nb = -0x1\nc = [1.5, true]\nd = { e = 'x' }\nf = 1979-05-27", &[]);
        assert!(problems.len() == 1, "{problems:?}");
        assert_eq!(json["c"], serde_json::json!([1.5, true]));
        assert_eq!(json["d"]["e"], "x");
        assert_eq!(json["f"], "1979-05-27");
    }

    #[test]
    fn nesting_has_a_limit_and_strings_and_comments_do_not_count() {
        let problem = ["tables are nested more than 64 deep"];
        for deep in [
            format!("a = {}", "[".repeat(20_000)),
            format!("a{} = 1", ".a".repeat(20_000)),
            format!("[a{}]", ".\"a\"".repeat(20_000)),
            format!("a = {{ b{} = 1 }}", " . c".repeat(20_000)),
            "a = {a=".repeat(20_000),
        ] {
            assert_eq!(parse(&deep, &[]).1, problem);
        }
        for deep in [format!("a{}=1", ".a".repeat(20_000)), format!("a={}", "{a=".repeat(20_000))] {
            assert_eq!(parse("", &[&deep]).1, problem);
        }
        let brackets = "[.".repeat(100);
        let fine =
            format!("# {brackets}\na = \"\\\"{brackets}\"\nb = '{brackets}'\nc = \"\"\"\"\n{brackets}\"\"\"");
        assert_eq!(parse(&fine, &[]).1, Vec::<String>::new());
    }

    #[test]
    fn several_syntax_errors_are_found_at_once() {
        let (_, problems) = parse("a = \nb = 1\nc = [\n", &[]);
        assert!(problems.len() >= 2, "{problems:?}");
    }

    #[test]
    fn a_set_reaches_parameters_and_own_keys() {
        let text = "seed = 1\n[[clusterer]]\nname = 'CAP'\nuse = 'cap'\n[[data]]\nname='d'\npath='x'\n[composer]\nuse='max'";
        let (json, problems) = parse(
            text,
            &[
                "clusterer.CAP.damping=0.9",
                "clusterer.CAP.use=ckm",
                "data.d.path=/y.parquet",
                "data.d.n=5",
                "seed=7",
                "composer.weights=w.safetensors",
                "clusterer.CAP.base.params.k=3",
            ],
        );
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(json["seed"], 7);
        assert_eq!(json["composer"]["params"]["weights"], "w.safetensors");
        assert_eq!(json["clusterer"][0]["use"], "ckm");
        let params = serde_json::json!({ "damping": 0.9, "base": { "params": { "k": 3 } } });
        assert_eq!(json["clusterer"][0]["params"], params);
        assert_eq!(json["data"][0]["path"], "/y.parquet");
        assert_eq!(json["data"][0]["params"]["n"], 5);
    }

    #[test]
    fn a_name_with_a_dot_stands_in_quotes() {
        let (json, problems) = parse("[[data]]\nname = 'a.b=c'", &["data.\"a.b=c\".path=x=y"]);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(json["data"][0]["path"], "x=y");
    }

    #[test]
    fn a_set_that_misses_is_a_problem() {
        let text = "seed = 1\n[[clusterer]]\nname = 'CAP'";
        let (_, problems) = parse(text, &["clusterer.CPA.damping=1", "seed.x=1", "seed", "clusterer.CAP=1"]);
        assert_eq!(
            problems,
            [
                "there is no [[clusterer]] named `CPA`",
                "`x` cannot be set inside a whole number",
                "`--set` takes KEY=VALUE, for example clusterer.CAP.damping=0.9",
                "`clusterer.CAP` needs a key behind the name",
            ]
            .map(|text| text.replace("`clusterer.CAP` needs", "`--set` needs"))
        );
    }
}
