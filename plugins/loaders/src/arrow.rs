//! The loader `arrow`: Arrow IPC, the file format ("Feather") and the stream format.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use arrow_array::RecordBatchIterator;
use arrow_ipc::reader::{FileReader, StreamReader};
use compflow_api::{Batches, Component, Description, Error, Flags, LoadRequest, Loader, Result, Services, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claims::{self, ipc::CONTINUATION};
use crate::select::{Selection, Where, check_where};
use crate::source::{decode, decoded, dim, open, path};

/// What an IPC file begins with.
const FILE_MAGIC: [u8; 6] = *b"ARROW1";

/// Reads an Arrow IPC file (Feather version 2) or an Arrow IPC stream, compressed or not.
///
/// Which of the two it is shows from its content. Embeddings are lists or fixed-size lists of numbers; true sets are
/// lists of integers or strings, or single ones.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// Only the rows in which these columns have these values, as in `where = { split = "test", trial = 3 }`. A value
    /// is a string, a number, true or false.
    r#where: Where,
}

pub(crate) struct Arrow(Params);
compflow_api::register!(loader Arrow);

impl Component for Arrow {
    const NAME: &'static str = "arrow";
    const SUMMARY: &'static str = "Arrow IPC files and streams";
    const FLAGS: Flags = Flags::NEEDS_PATH;
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        check_where(&params.r#where)?;
        Ok(Self(params))
    }
}

impl Loader for Arrow {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream> {
        let path = path(request)?.to_owned();
        // Columns are chosen when a file is opened, and known only after it was.
        let selection = Selection::new(&read(&path, None, services)?.schema(), request, &self.0.r#where, &path)?;
        let (batches, schema) = (read(&path, Some(selection.read()), services)?, selection.schema());
        let selected = decoded(path, batches, move |batch| selection.apply(batch));
        let batches: Batches = Box::new(RecordBatchIterator::new(selected, schema));
        Ok(batches.into())
    }

    /// From the schema at the beginning: how many rows there are shows only batch by batch.
    fn describe(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Option<Description>> {
        let path = path(request)?;
        let schema = read(path, None, services)?.schema();
        Selection::new(&schema, request, &self.0.r#where, path)?;
        Description::from_schema(&schema, None, dim(&schema, request)).map(Some)
    }
}

/// Opens a file in whichever format it has, for all columns or some.
fn read(path: &Path, columns: Option<Vec<usize>>, services: &Services<'_>) -> Result<Batches> {
    let mut file = open(path)?;
    let start = first_bytes(&file)?;
    let is_file = start == FILE_MAGIC;
    let begins_as_one = is_file || start.starts_with(&CONTINUATION);
    let what = if is_file { "Arrow IPC file" } else { "Arrow IPC file or stream" };
    claims::ipc::check(&mut file, is_file, services.memory).map_err(|text| {
        let verdict = if begins_as_one { "is damaged".to_owned() } else { format!("is not an {what}") };
        Error::data(format!("{} {verdict}: {text}", path.display()))
    })?;
    decode(|| {
        let batches: Batches = if is_file {
            Box::new(FileReader::try_new_buffered(file, columns)?)
        } else {
            Box::new(StreamReader::try_new_buffered(file, columns)?)
        };
        Ok(batches)
    })
    .map_err(|text| Error::data(format!("{} is not an {what}: {text}", path.display())))
}

fn first_bytes(mut file: &File) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    file.take(FILE_MAGIC.len() as u64).read_to_end(&mut start)?;
    file.rewind()?;
    Ok(start)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};

    use super::*;
    use crate::testing::{ask, concat, described, fruits, load, refusal, request};

    /// The fruits in three batches, in one of the formats.
    fn written(folder: &Path, stream: bool, compression: Option<CompressionType>) -> PathBuf {
        let path = folder.join("fruits.arrow");
        let (file, schema) = (File::create(&path).unwrap(), fruits().schema());
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let batches = [fruits().slice(0, 4), fruits().slice(4, 4), fruits().slice(8, 2)];
        if stream {
            let mut writer = StreamWriter::try_new_with_options(file, &schema, options).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        } else {
            let mut writer = FileWriter::try_new_with_options(file, &schema, options).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        path
    }

    #[test]
    fn files_and_streams_are_read_compressed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        for stream in [false, true] {
            for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
                let path = written(folder.path(), stream, compression);
                let found = load::<Arrow>("{}", &request(&path), 1).unwrap();
                assert_eq!(found.len(), 3);
                assert_eq!(concat(&found), ask(&fruits(), &request(&path)), "{stream} {compression:?}");
            }
        }
    }

    #[test]
    fn conditions_leave_out_rows_and_their_columns_do_not_come_out() {
        let folder = tempfile::tempdir().unwrap();
        for stream in [false, true] {
            let path = written(folder.path(), stream, None);
            let request = LoadRequest { path: Some(&path), columns: &[("embedding", "vector")] };
            let found = load::<Arrow>(r#"{"where": {"fold": 1, "kind": "pear"}}"#, &request, 1).unwrap();
            let all = ask(&fruits(), &request);
            assert_eq!(concat(&found), concat(&[all.slice(4, 1), all.slice(7, 1)]));
        }
    }

    #[test]
    fn a_missing_column_is_named_with_what_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), true, None);
        let request = LoadRequest { path: Some(&path), columns: &[("truth", "set"), ("weight", "w")] };
        assert_eq!(
            refusal::<Arrow>("{}", &request),
            format!(
                "`truth` names the column `set`, which is not in {0}; did you mean `sets`? {1}\n\
                 `weight` names the column `w`, which is not in {0}; {1}",
                path.display(),
                "there are `fold`, `kind`, `vector`, `sets`"
            )
        );
        assert_eq!(described::<Arrow>("{}", &request).unwrap_err(), load::<Arrow>("{}", &request, 1).unwrap_err());
    }

    #[test]
    fn the_schema_says_what_there_is() {
        let folder = tempfile::tempdir().unwrap();
        for stream in [false, true] {
            let path = written(folder.path(), stream, None);
            let found = described::<Arrow>("{}", &request(&path)).unwrap();
            assert_eq!((found.rows, found.dim), (None, Some(2)));
            assert_eq!(found.names().unwrap(), ["fold", "kind", "vector", "sets"]);
        }
    }

    #[test]
    fn a_file_that_is_neither_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broken.arrow");
        let no_arrow = "is not an Arrow IPC file";
        for (content, verdict) in [
            ("", no_arrow),
            ("text", no_arrow),
            ("a longer text, and no table at all", no_arrow),
            ("ARROW1\0\0 and nothing else", "is damaged"),
        ] {
            std::fs::write(&path, content).unwrap();
            let text = refusal::<Arrow>("{}", &request(&path));
            assert!(text.starts_with(&format!("{} {verdict}", path.display())), "{text}");
        }
    }

    #[test]
    fn a_stream_that_breaks_off_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), true, None);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
        let text = load::<Arrow>("{}", &request(&path), 1).unwrap_err().to_string();
        assert!(text.contains(&format!("{} is damaged: ", path.display())), "{text}");
    }
}
