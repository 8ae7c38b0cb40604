//! Made-up examples on rings around the origin.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchIterator};
use compflow_api::{Batches, Component, Error, LoadRequest, Loader, Result, Services, Stream, register};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Examples on `k` rings of the plane, the first of radius 1, the second of radius 2 and so on.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// Number of examples.
    #[schemars(range(min = 1, max = 1_000_000))]
    n: u32,
    /// Number of rings.
    #[schemars(range(min = 1, max = 1000))]
    k: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self { n: 60, k: 2 }
    }
}

struct Rings(Params);
register!(loader Rings);

impl Component for Rings {
    const NAME: &'static str = "rings";
    const SUMMARY: &'static str = "made-up examples on rings";
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl Loader for Rings {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream> {
        let Params { n, k } = self.0;
        let turn = services.seed as f32 % 6.28;
        let rows = || 0..i64::from(n);
        let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
        for &(name, source) in request.columns {
            let array: ArrayRef = match source {
                "embedding" => {
                    let mut built = FixedSizeListBuilder::new(Float32Builder::new(), 2);
                    for row in 0..n {
                        let (radius, angle) = ((row % k + 1) as f32, turn + row as f32);
                        built.values().append_slice(&[radius * angle.cos(), radius * angle.sin()]);
                        built.append(true);
                    }
                    Arc::new(built.finish())
                }
                "truth" => Arc::new(rows().map(|row| row % i64::from(k)).collect::<Int64Array>()),
                "trial" => Arc::new(rows().map(|_| 0).collect::<Int64Array>()),
                "id" => Arc::new(rows().collect::<Int64Array>()),
                other => {
                    let there = ["embedding", "truth", "trial", "id"];
                    return Err(Error::column(name, other, "the rings", there));
                }
            };
            columns.push((name, array));
        }
        let batch = RecordBatch::try_from_iter(columns)?;
        let schema = batch.schema();
        let batches: Batches = Box::new(RecordBatchIterator::new([Ok(batch)], schema));
        Ok(batches.into())
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Column, ForeignLoader, Registration, Table};

    use super::*;

    #[test]
    fn arrow_of_another_version_crosses() {
        let component = Registration::loader::<Rings>().component().unwrap();
        let made = component.create(r#"{"n": 3}"#, &Services::none()).unwrap();
        let loader = ForeignLoader::try_from(made).unwrap();
        let columns = [("truth", "truth"), ("embedding", "embedding")];
        let stream = loader.load(&LoadRequest { path: None, columns: &columns }, &Services::none()).unwrap();
        let tables: Vec<Table> = stream.collect::<Result<_>>().unwrap();
        assert_eq!(tables[0][0], ("truth".to_owned(), Column::Integers(vec![0, 1, 0])));
        assert_eq!(tables[0][1].1.len(), 3);
    }
}
