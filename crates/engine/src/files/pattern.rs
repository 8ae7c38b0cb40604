//! The files that a pattern stands for, however large the tree that it is looked for in.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::cancel::Cancel;

/// More files than this are more likely a slip than a wish.
const MOST_FILES: usize = 100_000;
/// How often it is looked whether the files are still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// The files that match a pattern, in the order of their names.
///
/// # Errors
/// If it is no valid pattern, matches too many files, or they are no longer wanted.
pub(crate) fn expand(pattern: &str, cancel: &Cancel) -> Result<Vec<PathBuf>, String> {
    let found = glob::glob(pattern).map_err(|error| format!("is no valid pattern: {}", error.msg))?;
    // Nothing can stop a search between two matches, which may be hours; so somebody else waits for it, and it ends at the
    // next match once nobody does.
    let (sender, receiver) = sync_channel(1024);
    let search = move || {
        let mut files = found.filter_map(Result::ok).filter(|file| file.is_file());
        while files.next().is_some_and(|file| sender.send(file).is_ok()) {}
    };
    std::thread::Builder::new()
        .name("search".to_owned())
        .spawn(search)
        .map_err(|error| format!("cannot be searched for: no thread can be started: {error}"))?;
    let mut files = Vec::new();
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(file) => files.push(file),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if cancel.requested() {
            return Err("is no longer wanted".to_owned());
        }
        if files.len() > MOST_FILES {
            return Err(format!("matches more than {MOST_FILES} files"));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_search_of_everything_is_given_up_when_it_is_no_longer_wanted() {
        let cancel = Cancel::new();
        let stop = cancel.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            stop.request();
        });
        let started = Instant::now();
        let failed = expand("/**/no such file", &cancel).unwrap_err();
        assert_eq!(failed, "is no longer wanted");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }

    #[test]
    fn files_come_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.x", "a.x", "c.y"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("d.x")).unwrap();
        let found = expand(&folder.path().join("*.x").to_string_lossy(), &Cancel::new()).unwrap();
        assert_eq!(found, ["a.x", "b.x"].map(|name| folder.path().join(name)));
    }
}
