//! Data as it is in memory, and files that components have read, handed on to other processes: a file that they map and cannot write to, so that it is there once,
//! however many of them work on it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use arrow_buffer::ScalarBuffer;
use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Trial};
use crate::files::Inputs;
use crate::plugin::library;

/// Numbers begin at multiples of so many bytes.
const ALIGNMENT: usize = 64;

/// A data set but for its embeddings.
#[derive(Debug, Serialize, Deserialize)]
struct Head<T> {
    dim: usize,
    classes: Vec<String>,
    content: String,
    bytes: u64,
    /// Trials, and how many numbers each has.
    trials: Vec<(T, usize)>,
}

/// The smallest place for something that begins at a multiple of the alignment.
fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// A file that was read whole: the path that was asked for, the one where it was, and how many bytes it has.
type FileHead = (PathBuf, PathBuf, usize);

/// Writes data sets, and files that components have read, into a file that has no name, which goes when nobody has it open any
/// more.
///
/// # Errors
/// If there is no room for it.
pub(crate) fn write<'d>(datasets: impl Iterator<Item = &'d Dataset> + Clone, inputs: &Inputs) -> io::Result<File> {
    let contents = inputs.contents();
    let files: Vec<FileHead> = contents
        .iter()
        .map(|(asked, content)| (asked.clone(), content.path.clone(), content.bytes.len()))
        .collect();
    let heads: Vec<Head<&Trial>> = datasets
        .clone()
        .map(|Dataset { dim, classes, trials, content, bytes }| Head {
            dim: *dim,
            classes: classes.clone(),
            content: content.clone(),
            bytes: *bytes,
            trials: trials.iter().map(|trial| (trial, trial.embeddings.len())).collect(),
        })
        .collect();
    let heads = postcard::to_stdvec(&(heads, files)).map_err(io::Error::other)?;
    let file = nameless()?;
    let mut out = BufWriter::new(&file);
    let padding = |length: usize| vec![0; aligned(length) - length];
    out.write_all(&(heads.len() as u64).to_le_bytes())?;
    out.write_all(&heads)?;
    out.write_all(&padding(size_of::<u64>() + heads.len()))?;
    let embeddings =
        datasets.flat_map(|dataset| &dataset.trials).map(|trial| bytemuck::cast_slice(&trial.embeddings));
    for bytes in embeddings.chain(contents.values().map(|content| &*content.bytes)) {
        out.write_all(bytes)?;
        out.write_all(&padding(bytes.len()))?;
    }
    out.flush()?;
    drop(out);
    seal(&file)?;
    Ok(file)
}

/// In memory, where that is possible.
#[cfg(target_os = "linux")]
fn nameless() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("compflow data", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

/// From now on nobody can write to it, whoever has it open.
#[cfg(target_os = "linux")]
fn seal(file: &File) -> io::Result<()> {
    use rustix::fs::{SealFlags, fcntl_add_seals};
    Ok(fcntl_add_seals(file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?)
}

#[cfg(not(target_os = "linux"))]
fn seal(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn nameless() -> io::Result<File> {
    tempfile::tempfile()
}

/// What is in a file that [`write`] made.
///
/// # Errors
/// If it is none.
pub(crate) fn read(file: &File) -> io::Result<(Vec<Dataset>, Inputs)> {
    let broken = || io::Error::other("the data that was handed on is not whole");
    let mapped = library::map(file)?;
    let (length, rest) = mapped.split_first_chunk().ok_or_else(broken)?;
    let length = u64::from_le_bytes(*length) as usize;
    let heads = rest.get(..length).ok_or_else(broken)?;
    let (heads, files): (Vec<Head<Trial>>, Vec<FileHead>) =
        postcard::from_bytes(heads).map_err(io::Error::other)?;
    let mut place = aligned(size_of::<u64>() + length);
    let mut next = |bytes: usize| match place.checked_add(bytes).is_none_or(|end| end > mapped.len()) {
        true => Err(broken()),
        false => {
            let from = place;
            place += aligned(bytes);
            Ok(mapped.slice_with_length(from, bytes))
        }
    };
    let mut datasets = Vec::new();
    for Head { dim, classes, content, bytes, trials: heads } in heads {
        let mut trials = Vec::new();
        for (mut trial, numbers) in heads {
            let bytes = numbers.checked_mul(size_of::<f32>()).ok_or_else(broken)?;
            trial.embeddings = ScalarBuffer::from(next(bytes)?);
            trials.push(trial);
        }
        datasets.push(Dataset { dim, classes, trials, content, bytes });
    }
    let contents = files
        .into_iter()
        .map(|(asked, path, length)| Ok((asked, path, next(length)?.as_slice().into())))
        .collect::<io::Result<Vec<_>>>()?;
    Ok((datasets, Inputs::handed_on(contents)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;
    use crate::data::Ids;

    fn trial(number: u32, embeddings: Vec<f32>) -> Trial {
        Trial {
            number,
            ids: Ids::Numbers((0..embeddings.len() as i64 / 3).collect()),
            embeddings: embeddings.into(),
            truth: Some([vec![0, 2], vec![]].into_iter().collect()),
            preferences: None,
            weights: Some(vec![0.5; 2]),
            seeds: None,
            columns: Vec::new(),
            key: format!("key {number}"),
            numbers_key: String::new(),
            truth_key: String::new(),
            seeds_key: String::new(),
            damaged: Default::default(),
        }
    }

    #[test]
    fn data_comes_back_as_it_was_with_its_numbers_where_the_file_has_them() {
        let one = vec![1.0, -2.5, f32::MIN_POSITIVE, 0.0, 5.0, 6.0];
        let trials = vec![trial(3, one.clone()), trial(9, Vec::new())];
        let dataset =
            Dataset { dim: 3, classes: vec!["anna".to_owned()], trials, content: "all".to_owned(), bytes: 7 };
        let folder = tempfile::tempdir().unwrap();
        let weights = folder.path().join("weights");
        std::fs::write(&weights, "of g").unwrap();
        let inputs = Inputs::default();
        inputs.content(&weights, 10, &Cancel::new()).unwrap();
        let file = write([&dataset, &dataset].into_iter(), &inputs).unwrap();
        std::fs::remove_file(&weights).unwrap();
        let (back, files) = read(&file).unwrap();
        assert_eq!(*files.content(&weights, 10, &Cancel::new()).unwrap().bytes, *b"of g");
        assert_eq!(back.len(), 2);
        for dataset in &back {
            assert_eq!((dataset.dim, &dataset.classes[0][..], &dataset.content[..]), (3, "anna", "all"));
            assert_eq!(&dataset.trials[0].embeddings[..], &one);
            assert_eq!((dataset.trials[0].number, &dataset.trials[0].key[..]), (3, "key 3"));
            assert_eq!(dataset.trials[0].truth.as_ref().unwrap().iter().count(), 2);
            assert!(dataset.trials[1].embeddings.is_empty());
        }
        // Nobody can change it any more.
        #[cfg(target_os = "linux")]
        assert!((&file).write_all(b"other").is_err() && file.set_len(100).is_err());
    }
}
