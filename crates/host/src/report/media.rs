//! Pictures and sounds of the examples: the files that columns `image` and `audio` name.
//!
//! The page holds addresses of files that are there now, and no others: nothing from a network, no device, nothing that would
//! keep a browser busy. Whoever wrote the data has no other file shown than one that the reader of the page could open.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use compflow_api::Column;
use compflow_engine::data::{MEDIA, Trial};
use serde_json::{Value, json};

use super::ReportData;

/// Sixty pictures are shown at a time, so none is larger than this. Sounds are fetched as they are played.
const LARGEST_PICTURE: u64 = 8_000_000;

/// What browsers show, and what they play.
const PICTURES: [&str; 9] = ["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "avif", "apng"];
const SOUNDS: [&str; 9] = ["wav", "mp3", "flac", "ogg", "oga", "opus", "m4a", "aac", "webm"];

/// For each of the two columns that there is, what it is called and the addresses of some rows, and what is said of files
/// that are not shown.
pub(crate) fn of(report: &ReportData, data: &str, trial: &Trial, rows: &[usize]) -> Value {
    let files = report.results.record.data.get(data).map_or(&[][..], |record| &record.files[..]);
    let folders: BTreeSet<PathBuf> =
        files.iter().filter_map(|file| Some(Path::new(file).parent()?.to_owned())).collect();
    let column = |kind: &str| {
        let paths = trial.columns.iter().find_map(|(name, column)| match column {
            Column::Texts(paths) if name == kind => Some(paths),
            _ => None,
        })?;
        let mut refused = Vec::new();
        let addresses: Vec<Option<String>> = rows
            .iter()
            .map(|row| match paths[*row].as_str() {
                "" => None,
                path => {
                    address(&folders, path, kind).map_err(|reason| refused.push(format!("{path} {reason}"))).ok()
                }
            })
            .collect();
        let note =
            refused.first().map(|first| format!("{} of {} are not shown: {first}", refused.len(), rows.len()));
        // What all begin with is there once.
        let base = common(addresses.iter().flatten());
        let of = addresses.iter().map(|address| address.as_ref().map(|address| &address[base.len()..]));
        Some(json!({ "kind": kind, "base": base, "of": of.collect::<Vec<_>>(), "note": note }))
    };
    MEDIA.into_iter().filter_map(column).collect()
}

/// What some texts of ASCII begin with, all of them.
fn common<'a>(mut texts: impl Iterator<Item = &'a String>) -> &'a str {
    let first = texts.next().map_or("", String::as_str);
    let alike = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    texts.fold(first, |common, text| &common[..alike(common, text)])
}

/// The address of a file beside the data, or why it has none.
fn address(folders: &BTreeSet<PathBuf>, path: &str, kind: &str) -> Result<String, &'static str> {
    // A name that is in two folders could be that of either.
    let found: BTreeSet<PathBuf> =
        folders.iter().filter_map(|folder| folder.join(path).canonicalize().ok()).collect();
    let path = match found.len() {
        0 if path.contains("://") => return Err("is an address, and nothing is fetched"),
        0 => return Err("is not there"),
        1 => found.first().ok_or("is not there")?,
        _ => return Err("is there twice"),
    };
    let about = path.metadata().map_err(|_| "cannot be looked at")?;
    if !about.is_file() {
        return Err("is no file");
    }
    // Of what a link leads to.
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if !(if kind == "image" { PICTURES } else { SOUNDS }).contains(&ending.as_str()) {
        return Err("is of no kind that browsers know");
    }
    if kind == "image" && about.len() > LARGEST_PICTURE {
        return Err("is larger than 8 MB");
    }
    let path = path.to_str().ok_or("has a name that is no text")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let encoded =
        path.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") });
    Ok(format!("file://{}", encoded.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_there_have_an_address() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        for (folder, names) in
            [(&one, &["a&b é.png", "twice.png"][..]), (&two, &["twice.png", "of two.GIF", "of two.wav"])]
        {
            std::fs::create_dir(folder).unwrap();
            names.iter().for_each(|name| std::fs::write(folder.join(name), "x").unwrap());
        }
        let large = std::fs::File::create(one.join("large.png")).unwrap();
        large.set_len(LARGEST_PICTURE + 1).unwrap();
        let folders = BTreeSet::from([one.clone(), two.clone()]);
        let address = |path: &str| address(&folders, path, "image");
        let ends = |path: &str, end: &str| {
            let address = address(path).unwrap();
            assert!(address.starts_with("file:///") && address.ends_with(end), "{address}");
        };
        ends("a&b é.png", "/one/a%26b%20%C3%A9.png");
        ends("of two.GIF", "/two/of%20two.GIF");
        ends("../two/of two.GIF", "/two/of%20two.GIF");
        ends(one.join("twice.png").to_str().unwrap(), "/one/twice.png");
        for (path, reason) in [
            ("gone.png", "is not there"),
            ("twice.png", "is there twice"),
            ("large.png", "is larger than 8 MB"),
            ("..", "is no file"),
            ("/dev/zero", "is no file"),
            ("https://example.org/x.png", "is an address, and nothing is fetched"),
            ("//example.org/x.png", "is not there"),
            ("a\0b", "is not there"),
            ("of two.wav", "is of no kind that browsers know"),
        ] {
            assert_eq!(address(path), Err(reason), "{path}");
        }
        assert!(super::address(&folders, "of two.wav", "audio").is_ok());
    }
}
