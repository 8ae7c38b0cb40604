//! The points about loaders.

use std::io::Write;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use compflow_api::{Code, Description, Error, Flags, ForeignLoader, LoadRequest, Loader, Result, Stream};
use tempfile::{Builder, TempPath};

use crate::conformance::leak;
use crate::conformance::report::{Verdict, point, refused, require, survived};
use crate::conformance::subject::{MEMORY, Subject};

/// What compflow calls the columns that a source may have under the same names.
const NAMES: [&str; 7] = ["embedding", "truth", "trial", "id", "preference", "weight", "seed"];

/// A column that no source has.
const MISSING: (&str, &str) = ("column:missing", "no such column");

pub(crate) fn test(subject: &'static Subject) {
    let needs_path = subject.component.flags().contains(Flags::NEEDS_PATH);
    if needs_path && subject.path.is_none() {
        let why = format!("reads files: give --path {}=FILE", subject.component.name);
        point("loads", || Ok(Verdict::Skip(why)));
    } else {
        let path = subject.path.as_deref().filter(|_| needs_path).map(absolute);
        loads(subject, path.as_deref());
    }
    if needs_path {
        for (name, content) in
            [("no", None), ("an empty", Some(&[][..])), ("a broken", Some(&b"\x00\xffnot this\n\x01"[..]))]
        {
            point(&format!("survives {name} file"), || survives_file(subject, content));
        }
    }
}

fn open(subject: &Subject, loader: &ForeignLoader, request: &LoadRequest<'_>) -> Result<Stream> {
    loader.load(request, &subject.watch().services(7, 1))
}

fn describe(subject: &Subject, loader: &ForeignLoader, request: &LoadRequest<'_>) -> Result<Option<Description>> {
    loader.describe(request, &subject.watch().services(7, 1))
}

fn batches(stream: Stream) -> Result<Vec<RecordBatch>> {
    stream.into_batches(MEMORY)?.collect()
}

/// The columns to ask for: those that the user names, else those that the source says it has, else what every source of
/// its kind has.
fn columns(subject: &Subject, path: Option<&Path>) -> Result<Vec<(String, String)>> {
    if let Some(columns) = &subject.columns {
        return Ok(columns.clone());
    }
    let named = |names: &[&str]| names.iter().map(|&name| (name.to_owned(), name.to_owned())).collect();
    let described = describe(subject, &subject.make()?, &LoadRequest { path, columns: &[] })?;
    let Some(described) = described else {
        // One that makes data up has all that examples may have.
        return Ok(if path.is_some() { named(&NAMES[..1]) } else { named(&NAMES[..4]) });
    };
    let known = described.names()?;
    let found: Vec<&str> = NAMES.into_iter().filter(|name| known.iter().any(|known| known == name)).collect();
    require(found.contains(&NAMES[0]), || {
        let name = subject.component.name;
        format!("has no column `embedding`, but {known:?}: give --columns {name}:embedding=...")
    })?;
    Ok(named(&found))
}

fn loads(subject: &'static Subject, path: Option<&Path>) {
    let mut wanted: Vec<(String, String)> = Vec::new();
    point("says what there is to load", || {
        wanted = columns(subject, path)?;
        Ok(Verdict::Pass)
    });
    if wanted.is_empty() {
        return;
    }
    let wanted: Vec<(&str, &str)> = wanted.iter().map(|(name, source)| (name.as_str(), source.as_str())).collect();
    let request = LoadRequest { path, columns: &wanted };
    let read = |loader: &ForeignLoader| batches(open(subject, loader, &request)?);
    point("yields the wanted columns and no others", || {
        let batches = read(&subject.make()?)?;
        let wanted: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        for batch in &batches {
            let schema = batch.schema();
            let mut found: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            found.sort_by_key(|name| wanted.iter().position(|wanted| wanted == name));
            require(found == wanted, || format!("was asked for {wanted:?} and yields {found:?}"))?;
        }
        require(batches.iter().any(|batch| batch.num_rows() > 0), || "yields no rows".to_owned())?;
        Ok(Verdict::Pass)
    });
    point("describes what it loads", || {
        let loader: ForeignLoader = subject.make()?;
        match describe(subject, &loader, &request)? {
            Some(described) => agrees(&described, &wanted, &read(&loader)?),
            None => Ok(Verdict::Pass),
        }
    });
    point("refuses a column that is not there", || {
        let loader: ForeignLoader = subject.make()?;
        let columns = [&wanted[..], &[MISSING]].concat();
        let request = LoadRequest { path, columns: &columns };
        let what = |method: &str| format!("a column that is not there in `{method}`");
        refused(open(subject, &loader, &request), &what("load"), Code::Column, MISSING.0)?;
        match describe(subject, &loader, &request) {
            Ok(None) => {}
            answer => drop(refused(answer, &what("describe"), Code::Column, MISSING.0)?),
        }
        Ok(Verdict::Pass)
    });
    let same = |first: &[RecordBatch], second: &[RecordBatch]| -> Result<Verdict> {
        require(first == second, || "the results differ".to_owned())?;
        Ok(Verdict::Pass)
    };
    point("gives the same result with its defaults written out", || {
        same(&read(&subject.make()?)?, &read(&subject.make_with(&subject.written_out())?)?)
    });
    point("gives the same result for the same seed", || same(&read(&subject.make()?)?, &read(&subject.make()?)?));
    point("gives the same result with any number of threads", || {
        let loader: ForeignLoader = subject.make()?;
        let many = batches(loader.load(&request, &subject.watch().services(7, 4))?)?;
        same(&read(&loader)?, &many)
    });
    point("yields a stream that outlives it", || {
        let loader: ForeignLoader = subject.make()?;
        let stream = open(subject, &loader, &request)?;
        loader.close()?;
        same(&read(&subject.make()?)?, &batches(stream)?)
    });
    point("loses no memory", || {
        leak::none(|| {
            let loader: ForeignLoader = subject.make()?;
            // One batch, so that streams are also dropped half-way.
            open(subject, &loader, &request)?.into_batches(MEMORY)?.next().transpose()?;
            describe(subject, &loader, &request)?;
            loader.close()
        })
    });
}

/// What was described is what came: rows, length of the embeddings, and columns.
fn agrees(described: &Description, wanted: &[(&str, &str)], batches: &[RecordBatch]) -> Result<Verdict> {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if let Some(said) = described.rows {
        require(said == rows as u64, || format!("says {said} rows and yields {rows}"))?;
    }
    let dims = batches.iter().filter_map(|batch| width(batch.column_by_name("embedding")?.as_ref()));
    if let (Some(said), Some(dim)) = (described.dim, dims.into_iter().next()) {
        require(said == dim, || format!("says embeddings of {said} numbers and yields some of {dim}"))?;
    }
    let names = described.names()?;
    match wanted.iter().find(|(_, source)| !names.iter().any(|name| name == source)) {
        Some((_, source)) => Err(Error::new(format!("yields the column `{source}` and says there are {names:?}"))),
        None => Ok(Verdict::Pass),
    }
}

/// How long the lists of a column are, by its first.
fn width(lists: &dyn Array) -> Option<usize> {
    if lists.is_empty() {
        return None;
    }
    let fixed = lists.as_fixed_size_list_opt().map(|lists| lists.value_length() as usize);
    let listed = lists.as_list_opt::<i32>().map(|lists| lists.value_length(0) as usize);
    fixed.or(listed).or(lists.as_list_opt::<i64>().map(|lists| lists.value_length(0) as usize))
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A path for a moment, of a file with this content or of none. Nobody can have guessed it, and put a link there.
fn passing(suffix: &str, content: Option<&[u8]>) -> Result<TempPath> {
    let mut file = Builder::new().prefix("compflow-test-").suffix(suffix).tempfile()?;
    match content {
        Some(content) => file.write_all(content)?,
        None => std::fs::remove_file(file.path())?,
    }
    Ok(file.into_temp_path())
}

/// A file with this content, or none at all.
fn survives_file(subject: &Subject, content: Option<&[u8]>) -> Result<Verdict> {
    let suffix = subject
        .path
        .as_deref()
        .and_then(Path::extension)
        .map_or_else(String::new, |e| format!(".{}", e.display()));
    let path = passing(&suffix, content)?;
    let named = subject.columns.as_deref().unwrap_or_default();
    let mut columns: Vec<(&str, &str)> = named.iter().map(|(name, source)| (&**name, &**source)).collect();
    if columns.is_empty() {
        columns.push((NAMES[0], NAMES[0]));
    }
    let request = LoadRequest { path: Some(&path), columns: &columns };
    let read = || -> Result<usize> {
        let batches = batches(open(subject, &subject.make()?, &request)?)?;
        Ok(batches.iter().map(RecordBatch::num_rows).sum())
    };
    let (outcome, described) = (read(), subject.make().and_then(|loader| describe(subject, &loader, &request)));
    survived(&outcome)?;
    survived(&described)?;
    require(content.is_some() || outcome.is_err(), || "reads a file that is not there".to_owned())?;
    Ok(Verdict::Pass)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_for_a_moment_have_names_that_nobody_guesses_and_are_nobody_elses() {
        let paths = [0, 1].map(|_| passing(".csv", Some(b"x")).unwrap());
        assert_ne!(*paths[0], *paths[1]);
        for path in &paths {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with("compflow-test-") && name.ends_with(".csv"), "{name}");
            assert_eq!(std::fs::read(path).unwrap(), b"x");
            #[cfg(unix)]
            assert_eq!(std::os::unix::fs::MetadataExt::mode(&path.metadata().unwrap()) & 0o777, 0o600);
        }
        assert!(!passing(".csv", None).unwrap().exists());
    }
}
