//! `plugin_name`: a loader for compflow.

#![deny(unsafe_code)]

use compflow_api::{
    Column, Component, Error, Flags, LoadRequest, Loader, NoParams, Result, Services, Stream, Table, export_library,
    register,
};

export_library!();

struct PluginType;
register!(loader PluginType);

impl Component for PluginType {
    const NAME: &'static str = "plugin_name";
    const SUMMARY: &'static str = "lines of text: a label, then the numbers of an embedding";
    const DOCUMENTATION: &'static str = "Reads lines such as `3 0.5 -1.25`: a whole number, the label, and the numbers \
                                         of the embedding. The columns are called `embedding` and `label`.";
    const FLAGS: Flags = Flags::NEEDS_PATH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

/// What the lines say, in their order.
#[derive(Debug, PartialEq)]
struct Lines {
    labels: Vec<i64>,
    /// Length of an embedding.
    dim: usize,
    /// Embedding after embedding.
    values: Vec<f32>,
}

fn parse(text: &str) -> Result<Lines> {
    let mut lines = Lines { labels: Vec::new(), dim: 0, values: Vec::new() };
    for (at, line) in text.lines().enumerate() {
        let wrong = |what: String| Error::data(format!("line {}: {what}", at + 1));
        let mut words = line.split_whitespace();
        let Some(label) = words.next() else { continue };
        let before = lines.values.len();
        for word in words {
            lines.values.push(word.parse().map_err(|_| wrong(format!("`{word}` is not a number")))?);
        }
        let dim = lines.values.len() - before;
        if lines.labels.is_empty() {
            lines.dim = dim;
        }
        if dim != lines.dim || dim == 0 {
            return Err(wrong(format!("has {dim} numbers, and the first line has {}", lines.dim)));
        }
        lines.labels.push(label.parse().map_err(|_| wrong(format!("`{label}` is not a whole number")))?);
    }
    if lines.labels.is_empty() {
        return Err(Error::data("there are no lines"));
    }
    Ok(lines)
}

impl Loader for PluginType {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        let path = request.path.ok_or_else(|| Error::new("needs a path"))?;
        let about = |error: Error| error.context(path.display());
        let text = std::fs::read_to_string(path).map_err(|error| about(Error::data(error)))?;
        let lines = parse(&text).map_err(about)?;
        // The wanted columns under compflow's names, and no others.
        let mut table = Table::new();
        for &(name, source) in request.columns {
            let column = match source {
                "embedding" => Column::Vectors { width: lines.dim, values: lines.values.clone() },
                "label" => Column::Integers(lines.labels.clone()),
                other => return Err(Error::column(name, other, path.display(), ["embedding", "label"])),
            };
            table.push((name.to_owned(), column));
        }
        Stream::of(table) // `Stream::from_tables` reads on as tables are asked for
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{ForeignLoader, Registration};

    use super::*;

    #[test]
    fn lines_are_labels_and_embeddings() {
        let lines = Lines { labels: vec![1, -3], dim: 2, values: vec![0.5, 2.0, 1.0, 0.0] };
        assert_eq!(parse("1 0.5 2\n\n-3 1 0\n").unwrap(), lines);
        let refused = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(refused("1 0.5\n1 0.5 2"), "line 2: has 2 numbers, and the first line has 1");
        assert_eq!(refused("one 2"), "line 1: `one` is not a whole number");
    }

    /// As the host would use it, across the boundary.
    #[test]
    fn wanted_columns_are_loaded_and_others_refused() {
        let component = Registration::loader::<PluginType>().component().unwrap();
        let loader = ForeignLoader::try_from(component.create("{}", &Services::none()).unwrap()).unwrap();
        let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/points.txt"));
        let load = |columns: &[(&str, &str)]| {
            loader.load(&LoadRequest { path: Some(path), columns }, &Services::none())
        };
        let tables: Vec<Table> = load(&[("truth", "label")]).unwrap().collect::<Result<_>>().unwrap();
        assert_eq!(tables, [[("truth".to_owned(), Column::Integers(vec![0, 0, 0, 0, 1, 1, 1, 1]))]]);
        let refused = load(&[("id", "lable")]).unwrap_err();
        assert!(refused.to_string().contains("did you mean `label`?"), "{refused}");
    }
}
