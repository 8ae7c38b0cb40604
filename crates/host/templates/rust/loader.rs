//! `plugin_name`: a loader for compflow.

#![deny(unsafe_code)]

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Int64Array, RecordBatch, RecordBatchIterator};
use compflow_api::{
    Batches, Component, Error, Flags, LoadRequest, Loader, NoParams, Result, Services, export_library, register,
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

/// Labels and embeddings, in the order of the lines.
fn parse(text: &str) -> Result<(Vec<i64>, Vec<Vec<f32>>)> {
    let (mut labels, mut rows) = (Vec::new(), Vec::<Vec<f32>>::new());
    for (at, line) in text.lines().enumerate() {
        let wrong = |what: String| Error::new(format!("line {}: {what}", at + 1));
        let mut words = line.split_whitespace();
        let Some(label) = words.next() else { continue };
        labels.push(label.parse().map_err(|_| wrong(format!("`{label}` is not a whole number")))?);
        let numbers = words.map(|word| word.parse().map_err(|_| wrong(format!("`{word}` is not a number"))));
        rows.push(numbers.collect::<Result<_>>()?);
        let (length, first) = (rows[rows.len() - 1].len(), rows[0].len());
        if length != first || length == 0 {
            return Err(wrong(format!("has {length} numbers, and the first line has {first}")));
        }
    }
    if rows.is_empty() {
        return Err(Error::new("there are no lines"));
    }
    Ok((labels, rows))
}

impl Loader for PluginType {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Batches> {
        let path = request.path.ok_or_else(|| Error::new("needs a path"))?;
        let text = std::fs::read_to_string(path).map_err(|error| Error::new(format!("{}: {error}", path.display())))?;
        let (labels, rows) = parse(&text)?;
        // The wanted columns under compflow's names, and no others.
        let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
        for (name, source) in request.columns() {
            columns.push(match source {
                "embedding" => {
                    let values = rows.iter().map(|row| Some(row.iter().copied().map(Some)));
                    let width = rows[0].len() as i32;
                    let array = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(values, width);
                    (name, Arc::new(array))
                }
                "label" => (name, Arc::new(Int64Array::from(labels.clone()))),
                other => return Err(Error::new(format!("no column `{other}`; there are `embedding` and `label`"))),
            });
        }
        let batch = RecordBatch::try_from_iter(columns)?;
        let schema = batch.schema();
        Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_labels_and_embeddings() {
        assert_eq!(parse("1 0.5 2\n\n-3 1 0\n").unwrap(), (vec![1, -3], vec![vec![0.5, 2.0], vec![1.0, 0.0]]));
        let refused = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(refused("1 0.5\n1 0.5 2"), "line 2: has 2 numbers, and the first line has 1");
        assert_eq!(refused("one 2"), "line 1: `one` is not a whole number");
    }
}
