//! The loader `parquet`: Parquet files, only the wanted columns, row groups in parallel.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::{ArrowError, DataType};
use compflow_api::{Component, Description, Error, Flags, LoadRequest, Loader, Result, Services, Stream};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowFilter,
    RowSelector,
};
use parquet::basic::Type;
use parquet::schema::types::ColumnDescPtr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claims;
use crate::parts::{Part, Parts, stream};
use crate::select::{Selection, Where, check_where};
use crate::source::{damaged, decode, decoded, dim, in_stream, open, path};

/// Reads a Parquet file.
///
/// Only the columns that are used are read, and row groups are decoded in parallel. Embeddings are lists or fixed-size
/// lists of numbers; true sets are lists of integers or strings, or single ones.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// Only the rows in which these columns have these values, as in `where = { split = "test", trial = 3 }`. A value
    /// is a string, a number, true or false.
    r#where: Where,
    /// Only some rows, before `where` looks at them: `rows = { first = 1000, count = 500 }` are those from 1000 to 1499,
    /// counted from 0. Others are not decoded.
    rows: Option<Range>,
}

/// Some rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Range {
    /// The first of them.
    first: u64,
    /// How many.
    count: u64,
}

impl Range {
    /// Refuses rows that a file does not have.
    ///
    /// # Errors
    /// Naming the file and how many it has.
    fn within(self, metadata: &ArrowReaderMetadata, path: &Path) -> Result<Self> {
        let rows = u64::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
        match self.first.checked_add(self.count) {
            Some(end) if end <= rows => Ok(self),
            _ => {
                let text = format!(
                    "asks for {} rows from {} on, and {} has {rows}",
                    self.count,
                    self.first,
                    path.display()
                );
                Err(Error::parameter("rows", text))
            }
        }
    }
}

pub(crate) struct Parquet(Params);
compflow_api::register!(loader Parquet);

impl Component for Parquet {
    const NAME: &'static str = "parquet";
    const SUMMARY: &'static str = "Parquet files";
    const FLAGS: Flags = Flags::NEEDS_PATH;
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        check_where(&params.r#where)?;
        Ok(Self(params))
    }
}

impl Loader for Parquet {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream> {
        let path = path(request)?;
        let metadata = footer(path, services.memory)?;
        let selection = Selection::new(metadata.schema(), request, &self.0.r#where, path)?;
        let schema = selection.schema();
        let range = self.0.rows.map(|range| range.within(&metadata, path)).transpose()?;
        Ok(stream(RowGroups::new(path, metadata, selection, range, services.memory), schema, services.threads)?
            .into())
    }

    /// From the footer; the length of embeddings that are lists from the first of them.
    fn describe(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Option<Description>> {
        let path = path(request)?;
        let metadata = footer(path, services.memory)?;
        Selection::new(metadata.schema(), request, &self.0.r#where, path)?;
        let rows = metadata.metadata().file_metadata().num_rows();
        let range = self.0.rows.map(|range| range.within(&metadata, path)).transpose()?;
        let rows = range.map_or(u64::try_from(rows).ok(), |range| Some(range.count));
        let rows = rows.filter(|_| self.0.r#where.is_empty());
        let dim =
            dim(metadata.schema(), request).or_else(|| first_length(path, &metadata, request, services.memory));
        Description::from_schema(metadata.schema(), rows, dim).map(Some)
    }
}

fn footer(path: &Path, memory: u64) -> Result<ArrowReaderMetadata> {
    let file = open(path)?;
    let bad = |text: String| Error::data(format!("{} is not a Parquet file: {text}", path.display()));
    claims::parquet::check_footer(&file, memory).map_err(bad)?;
    let metadata = decode(|| Ok(ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?)).map_err(bad)?;
    let rows = metadata.metadata().file_metadata().num_rows();
    let of_groups =
        metadata.metadata().row_groups().iter().map(|group| group.num_rows()).fold(0, i64::saturating_add);
    match rows == of_groups {
        true => Ok(metadata),
        false => Err(bad(format!("it says that it has {rows} rows, and its row groups have {of_groups}"))),
    }
}

/// The length of the first embedding, if it is a list that can be read; what is wrong with it shows when it is loaded.
fn first_length(
    path: &Path,
    metadata: &ArrowReaderMetadata,
    request: &LoadRequest<'_>,
    memory: u64,
) -> Option<usize> {
    let (column, _) = metadata.schema().fields().find(request.column("embedding")?)?;
    let schema = metadata.parquet_schema();
    let is_text = |(at, leaf): (usize, &ColumnDescPtr)| {
        schema.get_column_root_idx(at) == column && leaf.physical_type() == Type::BYTE_ARRAY
    };
    if schema.columns().iter().enumerate().any(is_text) {
        return None;
    }
    let file = open(path).ok()?;
    let mut reader = decode(|| {
        for group in 0..metadata.metadata().num_row_groups() {
            claims::parquet::rows_at_once(&file, metadata, group, &[column], memory)?;
            if metadata.metadata().row_group(group).num_rows() > 0 {
                break;
            }
        }
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
        let projection = ProjectionMask::roots(schema, [column]);
        Ok(builder.with_projection(projection).with_batch_size(1).with_limit(1).build()?)
    })
    .ok()?;
    let first = decode(|| reader.next().transpose()).ok()??;
    let lists = first.column(0);
    let length = match lists.data_type() {
        DataType::List(_) if first.num_rows() > 0 => lists.as_list::<i32>().value(0).len(),
        DataType::LargeList(_) if first.num_rows() > 0 => lists.as_list::<i64>().value(0).len(),
        _ => return None,
    };
    Some(length).filter(|length| *length > 0)
}

/// The row groups of a file.
struct RowGroups {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    selection: Arc<Selection>,
    /// Those that are wanted, and which of their rows: how many are skipped and how many follow.
    groups: Vec<(usize, usize, usize)>,
    /// Bytes that a batch may take.
    memory: u64,
}

impl RowGroups {
    fn new(
        path: &Path,
        metadata: ArrowReaderMetadata,
        selection: Selection,
        range: Option<Range>,
        memory: u64,
    ) -> Self {
        let range = range.unwrap_or(Range { first: 0, count: u64::MAX });
        let (mut groups, mut first) = (Vec::new(), 0u64);
        for (number, group) in metadata.metadata().row_groups().iter().enumerate() {
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            let behind = first.saturating_add(rows);
            let start = range.first.clamp(first, behind);
            let end = range.first.saturating_add(range.count).clamp(first, behind);
            if start < end {
                groups.push((number, (start - first) as usize, (end - start) as usize));
            }
            first = behind;
        }
        Self { groups, path: path.to_owned(), metadata, selection: selection.into(), memory }
    }
}

impl Parts for RowGroups {
    fn count(&self) -> usize {
        self.groups.len()
    }

    fn open(&self, part: usize) -> Result<Part, ArrowError> {
        let path = self.path.clone();
        // Opened anew, because duplicates of a file share their position, and row groups are read at the same time.
        let file = open(&path).map_err(in_stream)?;
        let roots =
            |columns: &[usize]| ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied());
        let (emitted, tested) = (self.selection.emitted(), self.selection.tested());
        let (group, skipped, taken) = self.groups[part];
        let read: Vec<usize> = emitted.iter().chain(&tested).copied().collect();
        let at_once = decode(|| claims::parquet::rows_at_once(&file, &self.metadata, group, &read, self.memory));
        let at_once = at_once.map_err(|text| damaged(&path, text))?;
        if !tested.is_empty() {
            claims::parquet::check_tested(taken, self.memory).map_err(|text| damaged(&path, text))?;
        }
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_row_groups(vec![group])
            .with_row_selection(vec![RowSelector::skip(skipped), RowSelector::select(taken)].into())
            .with_batch_size(at_once)
            .with_projection(roots(&emitted));
        if !tested.is_empty() {
            let (selection, mask) = (self.selection.clone(), roots(&tested));
            let predicate = ArrowPredicateFn::new(mask, move |batch| selection.mask(&batch, &tested));
            builder = builder.with_row_filter(RowFilter::new(vec![Box::new(predicate)]));
        }
        // Conditions are evaluated here already.
        let reader = decode(|| Ok(builder.build()?)).map_err(|text| damaged(&path, text))?;
        let selection = self.selection.clone();
        Ok(Box::new(decoded(path, reader, move |batch| selection.rename(batch, &emitted))))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;
    use crate::testing::{ask, concat, described, fruits, load, refusal, request};

    /// Writes the fruits in row groups of four.
    fn written(folder: &Path) -> PathBuf {
        let path = folder.join("fruits.parquet");
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(4)).build();
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), fruits().schema(), Some(properties)).unwrap();
        writer.write(&fruits()).unwrap();
        writer.close().unwrap();
        path
    }

    #[test]
    fn the_wanted_columns_come_out_renamed_with_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        for threads in [1, 2, 8] {
            let found = load::<Parquet>("{}", &request(&path), threads).unwrap();
            assert_eq!(concat(&found), ask(&fruits(), &request(&path)), "{threads}");
        }
    }

    #[test]
    fn conditions_leave_out_rows_and_their_columns_do_not_come_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let request = LoadRequest { path: Some(&path), columns: &[("embedding", "vector")] };
        for threads in [1, 3] {
            let found = load::<Parquet>(r#"{"where": {"fold": 1, "kind": "pear"}}"#, &request, threads).unwrap();
            let all = ask(&fruits(), &request);
            assert_eq!(concat(&found), concat(&[all.slice(4, 1), all.slice(7, 1)]));
        }
    }

    #[test]
    fn some_rows_are_those_whatever_row_groups_they_are_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let request = request(&path);
        let all = ask(&fruits(), &request);
        for (first, count) in [(0, 10), (0, 3), (2, 5), (4, 4), (7, 3), (9, 1)] {
            let params = format!(r#"{{"rows": {{"first": {first}, "count": {count}}}}}"#);
            for threads in [1, 3] {
                let found = load::<Parquet>(&params, &request, threads).unwrap();
                assert_eq!(concat(&found), all.slice(first, count), "{params}");
            }
            assert_eq!(described::<Parquet>(&params, &request).unwrap().rows, Some(count as u64));
        }
        let params = r#"{"rows": {"first": 3, "count": 5}, "where": {"fold": 1, "kind": "pear"}}"#;
        let columns = [("embedding", "vector")];
        let request = LoadRequest { columns: &columns, ..request };
        let all = ask(&fruits(), &request);
        assert_eq!(
            concat(&load::<Parquet>(params, &request, 1).unwrap()),
            concat(&[all.slice(4, 1), all.slice(7, 1)])
        );
        let text = refusal::<Parquet>(r#"{"rows": {"first": 8, "count": 3}}"#, &request);
        assert_eq!(text, format!("`rows` asks for 3 rows from 8 on, and {} has 10", path.display()));
    }

    #[test]
    fn a_column_may_be_tested_and_emitted_under_several_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let columns = [("trial", "fold"), ("id", "fold"), ("column:fold", "fold"), ("column:kind", "kind")];
        let request = LoadRequest { path: Some(&path), columns: &columns };
        let found = concat(&load::<Parquet>(r#"{"where": {"fold": 2}}"#, &request, 2).unwrap());
        assert_eq!(found, ask(&fruits(), &request).slice(8, 2));
        assert_eq!(found.num_columns(), 4);
    }

    #[test]
    fn a_missing_column_is_named_with_what_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let request = LoadRequest { path: Some(&path), columns: &[("embedding", "vectors")] };
        assert_eq!(
            refusal::<Parquet>("{}", &request),
            format!(
                "`embedding` names the column `vectors`, which is not in {}; did you mean `vector`? there are `fold`, \
                 `kind`, `vector`, `sets`",
                path.display()
            )
        );
        assert_eq!(
            described::<Parquet>("{}", &request).unwrap_err(),
            load::<Parquet>("{}", &request, 1).unwrap_err()
        );
    }

    #[test]
    fn the_footer_says_what_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let found = described::<Parquet>("{}", &request(&path)).unwrap();
        assert_eq!((found.rows, found.dim), (Some(10), Some(2)));
        assert_eq!(found.names().unwrap(), ["fold", "kind", "vector", "sets"]);
        // Lists, of which the first has one member; and rows that nobody has counted.
        let columns = [("embedding", "sets")];
        let request = LoadRequest { path: Some(&path), columns: &columns };
        let found = described::<Parquet>(r#"{"where": {"fold": 1}}"#, &request).unwrap();
        assert_eq!((found.rows, found.dim), (None, Some(1)));
    }

    #[test]
    fn a_condition_that_is_no_scalar_is_refused_at_once() {
        assert_eq!(
            refusal::<Parquet>(r#"{"where": {"fold": [1]}}"#, &LoadRequest::default()),
            "`where.fold` must be a string, a number, true or false, found [1]"
        );
    }

    #[test]
    fn a_file_that_is_no_parquet_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.parquet");
        std::fs::write(&path, "some text that is long enough to have a footer").unwrap();
        let text = refusal::<Parquet>("{}", &request(&path));
        assert!(text.starts_with(&format!("{} is not a Parquet file: ", path.display())), "{text}");
        let text = refusal::<Parquet>("{}", &LoadRequest::default());
        assert_eq!(text, "no `path`: this loader reads a file");
    }

    #[test]
    fn a_damaged_page_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4..200].fill(0xff);
        std::fs::write(&path, bytes).unwrap();
        for threads in [1, 2] {
            let text = load::<Parquet>("{}", &request(&path), threads).unwrap_err().to_string();
            assert!(text.contains(&format!("{} is damaged: ", path.display())), "{text}");
        }
    }
}
