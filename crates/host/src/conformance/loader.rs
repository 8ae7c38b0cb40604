//! The points about loaders.

use std::path::{Path, PathBuf};

use compflow_api::{Batches, Error, Flags, ForeignLoader, LoadRequest, Loader, Result};

use crate::conformance::leak;
use crate::conformance::report::{Verdict, point, require, survived};
use crate::conformance::subject::Subject;

pub(crate) fn test(subject: &'static Subject) {
    let needs_path = subject.component.flags().contains(Flags::NEEDS_PATH);
    if needs_path && subject.path.is_none() {
        let why = format!("reads files: give --path {}=FILE", subject.component.name);
        point("loads", || Ok(Verdict::Skip(why)));
    } else {
        loads(subject, needs_path);
    }
    if needs_path {
        for (name, content) in
            [("no", None), ("an empty", Some(&[][..])), ("a broken", Some(&b"\x00\xffnot this\n\x01"[..]))]
        {
            point(&format!("survives {name} file"), || survives_file(subject, content));
        }
    }
}

fn open(subject: &Subject, loader: &ForeignLoader, request: &LoadRequest<'_>) -> Result<Batches> {
    loader.load(request, &subject.watch().services(7, 1))
}

/// A loader of files is asked for the one column that every source has; one that makes data up for all.
fn request(path: Option<&Path>) -> LoadRequest<'_> {
    let made_up = |name: &'static str| path.is_none().then_some(name);
    LoadRequest {
        path,
        embedding: Some("embedding"),
        truth: made_up("truth"),
        trial: made_up("trial"),
        id: made_up("id"),
        preference: None,
    }
}

fn loads(subject: &'static Subject, needs_path: bool) {
    let path: Option<PathBuf> = subject.path.as_deref().filter(|_| needs_path).map(absolute);
    let request = request(path.as_deref());
    let read = |loader: &ForeignLoader| -> Result<Vec<arrow_array::RecordBatch>> {
        open(subject, loader, &request)?.map(|batch| batch.map_err(Error::new)).collect()
    };
    point("yields the wanted columns and no others", || {
        let batches = read(&subject.make()?)?;
        let wanted: Vec<&str> = request.columns().map(|(name, _)| name).collect();
        for batch in &batches {
            let schema = batch.schema();
            let mut found: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            found.sort_by_key(|name| wanted.iter().position(|wanted| wanted == name));
            require(found == wanted, || format!("was asked for {wanted:?} and yields {found:?}"))?;
        }
        require(batches.iter().any(|batch| batch.num_rows() > 0), || "yields no rows".to_owned())?;
        Ok(Verdict::Pass)
    });
    let same = |first: &[arrow_array::RecordBatch], second: &[arrow_array::RecordBatch]| -> Result<Verdict> {
        require(first == second, || "the results differ".to_owned())?;
        Ok(Verdict::Pass)
    };
    point("gives the same result with its defaults written out", || {
        same(&read(&subject.make()?)?, &read(&subject.make_with(&subject.written_out())?)?)
    });
    point("gives the same result for the same seed", || same(&read(&subject.make()?)?, &read(&subject.make()?)?));
    point("gives the same result with any number of threads", || {
        let loader: ForeignLoader = subject.make()?;
        let many = loader.load(&request, &subject.watch().services(7, 4))?;
        let many: Vec<_> = many.map(|batch| batch.map_err(Error::new)).collect::<Result<_>>()?;
        same(&read(&loader)?, &many)
    });
    point("yields a stream that outlives it", || {
        let loader: ForeignLoader = subject.make()?;
        let batches = open(subject, &loader, &request)?;
        loader.close()?;
        let batches: Vec<_> = batches.map(|batch| batch.map_err(Error::new)).collect::<Result<_>>()?;
        same(&read(&subject.make()?)?, &batches)
    });
    point("loses no memory", || {
        leak::none(|| {
            let loader: ForeignLoader = subject.make()?;
            // One batch, so that streams are also dropped half-way.
            if let Some(batch) = open(subject, &loader, &request)?.next() {
                batch.map_err(Error::new)?;
            }
            loader.close()
        })
    });
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A file with this content, or none at all.
fn survives_file(subject: &Subject, content: Option<&[u8]>) -> Result<Verdict> {
    let suffix = subject
        .path
        .as_deref()
        .and_then(Path::extension)
        .map_or_else(String::new, |e| format!(".{}", e.display()));
    let path = std::env::temp_dir().join(format!("compflow-test-{}{suffix}", std::process::id()));
    if let Some(content) = content {
        std::fs::write(&path, content)?;
    }
    let read = || -> Result<usize> {
        let loader: ForeignLoader = subject.make()?;
        let batches = open(subject, &loader, &request(Some(&path)))?;
        batches.map(|batch| batch.map(|batch| batch.num_rows()).map_err(Error::new)).sum()
    };
    let outcome = read();
    let _ = std::fs::remove_file(&path);
    survived(&outcome)?;
    require(content.is_some() || outcome.is_err(), || "reads a file that is not there".to_owned())?;
    Ok(Verdict::Pass)
}
