//! The loader `csv`: tables of text with something between their cells.

use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchOptions,
    StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use compflow_api::{
    Batches, Component, Description, Error, Flags, LoadRequest, Loader, Result, Services, Stream, plural,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::select::{Selection, Where, check_where};
use crate::source::{decoded, in_stream, most_at_once, path, rows_of_batch, too_long};
use crate::text_file::{Text, open_text};

/// Bytes of the first line that show what stands between cells.
const FIRST: u64 = 1 << 20;
/// Bytes that an empty cell takes, with its column.
const CELL: usize = 64;

/// Reads a CSV or TSV file, plain or compressed with gzip or Zstandard.
///
/// What the cells of a column are shows from all of them: whole numbers, numbers, true and false, or text. Embeddings are a
/// column for every dimension (`embedding = "d*"`), or texts such as "[0.1, 0.2]". The file is read twice, once to see what
/// its columns hold: for large data, Parquet is many times faster.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// Only the rows in which these columns have these values, as in `where = { split = "test", trial = 3 }`. A value
    /// is a string, a number, true or false.
    r#where: Where,
    /// What stands between cells: one character. Without it the one of comma, semicolon, tab and bar that is most often in the
    /// first line.
    delimiter: Option<char>,
    /// Whether the first line names the columns. Without it, it does unless all its cells are numbers; columns are then
    /// called `column_1`, `column_2` and so on.
    header: Option<bool>,
    /// Whether an empty cell of a column of text is an empty text, which as labels that are taken apart is the empty set; it
    /// is nothing otherwise.
    empty_text: bool,
}

pub(crate) struct Csv(Params);
compflow_api::register!(loader Csv);

impl Component for Csv {
    const NAME: &'static str = "csv";
    const SUMMARY: &'static str = "CSV and TSV files, plain or compressed";
    const FLAGS: Flags = Flags::NEEDS_PATH;
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        if let Some(delimiter) = params.delimiter.filter(|delimiter| !delimiter.is_ascii()) {
            return Err(Error::parameter("delimiter", format!("must be an ASCII character, found {delimiter:?}")));
        }
        check_where(&params.r#where)?;
        Ok(Self(params))
    }
}

impl Loader for Csv {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream> {
        let path = path(request)?;
        let table = self.look(path, services)?;
        let selection = Selection::new(&table.schema, request, &self.0.r#where, path)?;
        let (schema, read) = (selection.schema(), selection.read());
        let rows = rows_of_batch(table.bytes, table.rows, table.longest, services.memory);
        let mut records = table.records(path, most_at_once(services.memory))?;
        let (fields, empty_text) = (table.schema.project(&read)?, self.0.empty_text);
        let batches =
            std::iter::from_fn(move || batch(&mut records, &fields, &read, rows, empty_text).transpose());
        let selected = decoded(path.to_owned(), batches, move |batch| selection.apply(batch));
        let batches: Batches = Box::new(RecordBatchIterator::new(selected, schema));
        Ok(batches.into())
    }

    fn describe(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Option<Description>> {
        let path = path(request)?;
        let table = self.look(path, services)?;
        Selection::new(&table.schema, request, &self.0.r#where, path)?;
        let rows = Some(table.rows as u64).filter(|_| self.0.r#where.is_empty());
        Description::from_schema(&table.schema, rows, None).map(Some)
    }
}

/// How a file is written, what its columns hold, and how many rows there are.
struct Written {
    delimiter: u8,
    header: bool,
    schema: Schema,
    rows: usize,
    /// Bytes of all rows, and of the longest.
    bytes: u64,
    longest: usize,
}

impl Written {
    /// The rows of the file, without a header.
    fn records(&self, path: &Path, most: usize) -> Result<Records> {
        let mut records = Records::new(open_text(path)?, self.delimiter, most);
        if self.header {
            records.next().map_err(Error::data)?;
        }
        Ok(records)
    }
}

impl Csv {
    /// Reads all of a file, to see what is in it.
    fn look(&self, path: &Path, services: &Services<'_>) -> Result<Written> {
        let mut first = Vec::new();
        let unreadable = |text: String| Error::data(format!("{} cannot be read as CSV: {text}", path.display()));
        open_text(path)?
            .take(FIRST)
            .read_until(b'\n', &mut first)
            .map_err(|error| unreadable(error.to_string()))?;
        let first = String::from_utf8_lossy(&first);
        if first.trim().is_empty() {
            return Err(unreadable("its first line is empty".to_owned()));
        }
        let delimiter = self.0.delimiter.unwrap_or_else(|| usual_delimiter(&first));
        let mut records = Records::new(open_text(path)?, delimiter as u8, most_at_once(services.memory));
        let first = records.next().map_err(unreadable)?.unwrap_or_default();
        let header = self.0.header.unwrap_or_else(|| first.iter().any(|cell| cell.trim().parse::<f64>().is_err()));
        let names: Vec<String> = match header {
            true => first.iter().map(|name| name.trim().to_owned()).collect(),
            false => (1..=first.len()).map(|number| format!("column_{number}")).collect(),
        };
        let mut kinds = vec![Cells::Empty; names.len()];
        let (mut rows, mut bytes, mut longest) = (0, 0, 0);
        let mut next = if header { records.next().map_err(unreadable)? } else { Some(first) };
        while let Some(cells) = next {
            services.check_cancelled()?;
            rows += 1;
            bytes += records.length as u64;
            longest = longest.max(records.length);
            kinds.iter_mut().zip(&cells).for_each(|(kind, cell)| *kind = (*kind).max(Cells::of(cell, *kind)));
            next = records.next().map_err(unreadable)?;
        }
        let fields = names.iter().zip(kinds).map(|(name, kind)| Field::new(name, kind.data_type(), true));
        Ok(Written {
            delimiter: delimiter as u8,
            header,
            schema: Schema::new(fields.collect::<Vec<Field>>()),
            rows,
            bytes,
            longest,
        })
    }
}

/// What the cells of a column are, each kind being also the next: all are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cells {
    Empty,
    Whole,
    Number,
    Flag,
    Text,
}

impl Cells {
    /// What a column is with this cell, if it was `before` without it.
    fn of(cell: &str, before: Self) -> Self {
        let cell = cell.trim();
        let kind = match cell {
            "" => return before,
            _ if cell.parse::<i64>().is_ok() => Self::Whole,
            _ if cell.parse::<f64>().is_ok() => Self::Number,
            _ if flag(cell).is_some() => Self::Flag,
            _ => Self::Text,
        };
        // Numbers and flags in one column are texts.
        match (before, kind) {
            (Self::Flag, Self::Whole | Self::Number) | (Self::Whole | Self::Number, Self::Flag) => Self::Text,
            _ => kind,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Whole => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Flag => DataType::Boolean,
            Self::Empty | Self::Text => DataType::Utf8,
        }
    }
}

fn flag(cell: &str) -> Option<bool> {
    match cell.trim() {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The next rows as a table of the columns `read`; none at the end.
fn batch(
    records: &mut Records,
    fields: &Schema,
    read: &[usize],
    rows: usize,
    empty_text: bool,
) -> Result<Option<RecordBatch>, ArrowError> {
    let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); read.len()];
    let mut count = 0;
    while count < rows {
        let Some(mut cells) = records.next().map_err(in_stream)? else { break };
        for (column, at) in columns.iter_mut().zip(read) {
            let cell = cells.get_mut(*at).map(std::mem::take).unwrap_or_default();
            column.push(Some(cell).filter(|cell| !cell.trim().is_empty()));
        }
        count += 1;
    }
    if count == 0 {
        return Ok(None);
    }
    let arrays = columns.into_iter().zip(fields.fields()).map(|(cells, field)| -> ArrayRef {
        let parsed = |cell: &Option<String>| cell.as_deref().map(str::trim).map(str::to_owned);
        match field.data_type() {
            DataType::Int64 => {
                Arc::new(Int64Array::from_iter(cells.iter().map(|cell| parsed(cell)?.parse().ok())))
            }
            DataType::Float64 => {
                Arc::new(Float64Array::from_iter(cells.iter().map(|cell| parsed(cell)?.parse().ok())))
            }
            DataType::Boolean => {
                Arc::new(BooleanArray::from_iter(cells.iter().map(|cell| flag(cell.as_deref()?))))
            }
            _ if empty_text => Arc::new(StringArray::from_iter_values(
                cells.iter().map(|cell| cell.as_deref().unwrap_or_default()),
            )),
            _ => Arc::new(StringArray::from_iter(cells)),
        }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::new(fields.clone()), arrays.collect(), &options).map(Some)
}

/// The rows of a text. All have as many cells as the first.
struct Records {
    text: Text,
    parser: csv_core::Reader,
    /// Whether what was read so far ends inside quotes, which is how it may go on but not how it may end.
    quotes: Quotes,
    cells: Option<usize>,
    line: u64,
    output: Vec<u8>,
    ends: Vec<usize>,
    /// Bytes that a row may take.
    most: usize,
    /// Bytes of the last one.
    length: usize,
}

impl Records {
    fn new(text: Text, delimiter: u8, most: usize) -> Self {
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        Self {
            text,
            parser,
            quotes: Quotes::new(delimiter),
            cells: None,
            line: 1,
            output: vec![0; 1 << 12],
            ends: vec![0; 64],
            most,
            length: 0,
        }
    }

    /// The cells of the next row; none at the end.
    ///
    /// # Errors
    /// Naming the line that has another number of cells, is no text, or is longer than it may be, or in which a quote begins that
    /// does not end.
    fn next(&mut self) -> Result<Option<Vec<String>>, String> {
        let (mut written, mut ended) = (0, 0);
        loop {
            let input = self.text.fill_buf().map_err(|error| error.to_string())?;
            let (result, taken, out, ends) =
                self.parser.read_record(input, &mut self.output[written..], &mut self.ends[ended..]);
            self.quotes.add(&input[..taken]);
            self.text.consume(taken);
            written += out;
            ended += ends;
            match result {
                csv_core::ReadRecordResult::InputEmpty => {}
                csv_core::ReadRecordResult::OutputFull if self.output.len() >= self.most => {
                    return Err(too_long(format!("line {}", self.line), self.most));
                }
                // A cell takes many times more than what stands between it and the next.
                csv_core::ReadRecordResult::OutputEndsFull if self.ends.len() >= self.most / CELL => {
                    return Err(too_long(format!("line {}, with {ended} cells,", self.line), self.most));
                }
                csv_core::ReadRecordResult::OutputFull => {
                    self.output.resize((2 * self.output.len()).min(self.most), 0);
                }
                csv_core::ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                csv_core::ReadRecordResult::End => return Ok(None),
                csv_core::ReadRecordResult::Record => break,
            }
        }
        if self.quotes.are_open() {
            return Err(format!("line {}: a quote begins in this row, and does not end in the file", self.line));
        }
        self.length = written + ended;
        let line = std::mem::replace(&mut self.line, self.parser.line());
        let expected = *self.cells.get_or_insert(ended);
        if ended != expected {
            return Err(format!("line {line} has {}, and the first has {expected}", plural(ended, "cell")));
        }
        let mut start = 0;
        let cells = self.ends[..ended].iter().map(|&end| {
            let bytes = &self.output[std::mem::replace(&mut start, end)..end];
            String::from_utf8(bytes.to_vec()).map_err(|_| format!("line {line} is not UTF-8 text"))
        });
        cells.collect::<Result<Vec<String>, String>>().map(Some)
    }
}

/// Whether a row is inside quotes: the parser takes the end of a file for that of a cell. Quotes begin a cell or stand for nothing; two
/// of them inside are one.
struct Quotes {
    delimiter: u8,
    state: Quoted,
}

#[derive(PartialEq, Eq)]
enum Quoted {
    /// Where a cell begins.
    Begin,
    Plain,
    Open,
    /// Behind a quote inside, which may be the end or the first of two.
    Perhaps,
}

impl Quotes {
    fn new(delimiter: u8) -> Self {
        Self { delimiter, state: Quoted::Begin }
    }

    fn add(&mut self, bytes: &[u8]) {
        // Most files have none, and then only the last byte counts.
        let from = if bytes.contains(&b'"') || self.are_open() { 0 } else { bytes.len().saturating_sub(1) };
        for byte in &bytes[from..] {
            self.state = match (&self.state, *byte) {
                (Quoted::Open, b'"') => Quoted::Perhaps,
                (Quoted::Open, _) => Quoted::Open,
                (Quoted::Perhaps | Quoted::Begin, b'"') => Quoted::Open,
                (_, byte) if byte == self.delimiter || byte == b'\n' || byte == b'\r' => Quoted::Begin,
                _ => Quoted::Plain,
            };
        }
    }

    fn are_open(&self) -> bool {
        self.state == Quoted::Open
    }
}

/// The character that is most often in a line, of those that stand between cells.
fn usual_delimiter(line: &str) -> char {
    let count = |delimiter: &char| line.matches(*delimiter).count();
    // The last of equals, so that a line without any of them has a comma.
    ['|', ';', '\t', ','].into_iter().max_by_key(count).unwrap_or(',')
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};

    use super::*;
    use crate::testing::{concat, described, load, load_with, refusal};

    const COLUMNS: [(&str, &str); 3] = [("column:x", "x"), ("truth", "who"), ("id", "n")];

    fn written(folder: &tempfile::TempDir, text: &str) -> PathBuf {
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn cells_are_numbers_or_text_by_all_of_a_column_whatever_stands_between_them() {
        let folder = tempfile::tempdir().unwrap();
        for text in [
            "n,x,who\n1,0.5,7\n2,1,\"a, b\"\n",
            "n;x;who\r\n1;0.5;7\r\n2;1;a, b\r\n",
            "n\tx\twho\n1\t0.5\t7\n2\t1\ta, b\n",
        ] {
            let path = written(&folder, text);
            let request = LoadRequest { path: Some(&path), columns: &COLUMNS };
            let found = concat(&load::<Csv>("{}", &request, 1).unwrap());
            assert_eq!(found["column:x"].as_primitive::<Float64Type>().values()[..], [0.5, 1.0]);
            assert_eq!(found["truth"].as_string::<i32>().value(1), "a, b", "one text makes all of them text");
            assert_eq!(found["id"].as_primitive::<Int64Type>().values()[..], [1, 2]);
            assert_eq!(described::<Csv>("{}", &request).unwrap().rows, Some(2));
        }
    }

    #[test]
    fn a_first_line_of_numbers_is_no_header_unless_it_is_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(&folder, "1,2\n3,4\n");
        let request = LoadRequest { path: Some(&path), columns: &[] };
        let names = |params| described::<Csv>(params, &request).unwrap().names().unwrap();
        assert_eq!(names("{}"), ["column_1", "column_2"]);
        assert_eq!(names(r#"{"header": true}"#), ["1", "2"]);
    }

    #[test]
    fn a_name_that_several_columns_have_means_none_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(&folder, "a,b,a\n1,2,3\n");
        let found =
            |column| load::<Csv>("{}", &LoadRequest { path: Some(&path), columns: &[("truth", column)] }, 1);
        let error = found("a").unwrap_err().to_string();
        assert!(error.contains("has 2 columns that are called `a`: give each a name of its own"), "{error}");
        assert!(found("b").is_ok());
    }

    #[test]
    fn a_column_is_what_all_of_its_cells_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(&folder, "a,b,c,d,e,f\n1,1,true,true,,99999999999999999999\n,0.5,False,1,,\"x\ny\"\n");
        let columns = ["a", "b", "c", "d", "e", "f"].map(|name| (name, name));
        let request = LoadRequest { path: Some(&path), columns: &columns };
        let found = concat(&load::<Csv>("{}", &request, 1).unwrap());
        let kinds: Vec<DataType> = found.columns().iter().map(|column| column.data_type().clone()).collect();
        let text = DataType::Utf8;
        assert_eq!(
            kinds,
            [DataType::Int64, DataType::Float64, DataType::Boolean, text.clone(), text.clone(), text]
        );
        assert_eq!(found["f"].as_string::<i32>().value(1), "x\ny", "a quoted cell may have lines");
        assert!(found["a"].is_null(1) && found["e"].is_null(0));
    }

    #[test]
    fn a_quote_that_does_not_end_is_refused_with_the_line_of_its_row() {
        let folder = tempfile::tempdir().unwrap();
        let columns = [("truth", "who")];
        let who = |text: &str| {
            let path = written(&folder, text);
            let request = LoadRequest { path: Some(&path), columns: &columns };
            let found = load::<Csv>("{}", &request, 1).map(|batches| concat(&batches));
            found.map(|batch| batch["truth"].as_string::<i32>().iter().flatten().collect::<Vec<_>>().join("|"))
        };
        for text in
            ["n,who\n1,a\n2,\"b\n3,c\n", "n,who\n1,a\n2,\"b", "n,who\n1,a\n2,\"b\"\"\n", "n,who\n1,a\n2,\""]
        {
            let text = who(text).unwrap_err().to_string();
            assert!(text.ends_with("line 3: a quote begins in this row, and does not end in the file"), "{text}");
        }
        // Whatever else is odd about quotes is as it was.
        assert_eq!(who("n,who\n1,\"a,\n\"\"b\"\n2,\"c\"\"\"").unwrap(), "a,\n\"b|c\"");
        assert_eq!(who("n,who\n1,a\"b\n2,\"c\"d\"\n").unwrap(), "a\"b|cd\"");
    }

    #[test]
    fn rows_can_be_chosen_and_empty_texts_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(&folder, "n,who\n1,a\n2,\n3,b\n");
        let request = LoadRequest { path: Some(&path), columns: &[("truth", "who")] };
        let who = |params| concat(&load::<Csv>(params, &request, 1).unwrap())["truth"].clone();
        assert!(who("{}").is_null(1));
        assert_eq!(who(r#"{"empty_text": true}"#).as_string::<i32>().value(1), "");
        assert_eq!(who(r#"{"where": {"n": 3}}"#).as_string::<i32>().value(0), "b");
    }

    #[test]
    fn a_row_that_takes_more_than_the_memory_allows_is_refused_with_its_line_and_long_ones_come_in_small_batches()
    {
        let folder = tempfile::tempdir().unwrap();
        let services = Services { memory: 1 << 20, ..Services::none() };
        let request = |path| LoadRequest { path: Some(path), columns: &[("id", "b")] };
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(
            &mut gzip,
            format!("a,b\n1,{}\n2,{}\n", "x".repeat(9), "x".repeat(1 << 18)).as_bytes(),
        )
        .unwrap();
        let path = written(&folder, "");
        std::fs::write(&path, gzip.finish().unwrap()).unwrap();
        let refused = |path| load_with::<Csv>("{}", &request(path), &services).unwrap_err().to_string();
        let text = refused(&path);
        assert!(text.contains("t.csv cannot be read as CSV: line 3 takes more than 131072 bytes"), "{text}");
        assert_eq!(load::<Csv>("{}", &request(&path), 1).unwrap()[0].num_rows(), 2);
        let path = written(&folder, &format!("a,b{}\n", ",".repeat(100_000)));
        assert!(refused(&path).contains("cells, takes more than 131072 bytes"), "{}", refused(&path));
        // However rarely long rows come, what is read at once stays small.
        let rows = (0..200).map(|row| format!("{row},{}\n", "x".repeat(if row > 190 { 60_000 } else { 1 })));
        let path = written(&folder, &format!("a,b\n{}", rows.collect::<String>()));
        let batches = load_with::<Csv>("{}", &request(&path), &services).unwrap();
        assert!(batches.iter().all(|batch| batch.num_rows() <= 2) && batches.len() >= 100);
    }

    #[test]
    fn what_is_no_table_is_refused_with_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(&folder, "a,b\n1,2\n3\n");
        let request = LoadRequest { path: Some(&path), columns: &[("embedding", "a")] };
        let text = refusal::<Csv>("{}", &request);
        assert!(
            text.contains("t.csv cannot be read as CSV: ")
                && text.contains("line 3 has 1 cell, and the first has 2"),
            "{text}"
        );
        written(&folder, "");
        assert!(refusal::<Csv>("{}", &request).contains("its first line is empty"));
        assert!(
            refusal::<Csv>(r#"{"delimiter": "→"}"#, &request).contains("`delimiter` must be an ASCII character")
        );
        std::fs::write(&path, b"a,b\n1,\xff\n").unwrap();
        assert!(refusal::<Csv>("{}", &request).contains("line 2 is not UTF-8 text"));
    }
}
