//! Files of text, plain or compressed as a whole.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use compflow_api::{Error, Result};
use flate2::read::MultiGzDecoder;

use crate::source::open;

/// What a file begins with that gzip has compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What a file begins with that Zstandard has compressed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What some programs put before UTF-8 text.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// The text of a file.
pub(crate) type Text = Box<dyn BufRead + Send>;

/// Opens a file; that it is compressed shows from its content.
///
/// # Errors
/// Naming the file.
pub(crate) fn open_text(path: &Path) -> Result<Text> {
    let unreadable = |error: std::io::Error| Error::data(format!("cannot read {}: {error}", path.display()));
    let file = begun(open(path)?, ZSTD.len()).map_err(unreadable)?;
    let start = file.0.get_ref().as_slice();
    let text: Box<dyn Read + Send> = if start.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(file.0.chain(file.1)))
    } else if start.starts_with(&ZSTD) {
        Box::new(zstd::stream::read::Decoder::new(file.0.chain(file.1)).map_err(unreadable)?)
    } else {
        Box::new(file.0.chain(file.1))
    };
    let (start, rest) = begun(text, MARK.len()).map_err(unreadable)?;
    let skipped = if start.get_ref().as_slice() == MARK { Cursor::new(Vec::new()) } else { start };
    Ok(Box::new(BufReader::with_capacity(1 << 18, skipped.chain(rest))))
}

/// The first bytes of something, and the rest.
fn begun<R: Read>(mut from: R, count: usize) -> std::io::Result<(Cursor<Vec<u8>>, R)> {
    let mut start = Vec::new();
    from.by_ref().take(count as u64).read_to_end(&mut start)?;
    Ok((Cursor::new(start), from))
}

/// The size of a file, as far as that tells how many rows make a batch.
pub(crate) fn size(path: &Path) -> usize {
    File::open(path)
        .and_then(|file| file.metadata())
        .map_or(0, |about| usize::try_from(about.len()).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn text_is_the_same_plain_or_compressed_and_without_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(b"a,b\n1,2\n").unwrap();
        let zstd = zstd::encode_all(&b"a,b\n1,2\n"[..], 1).unwrap();
        let marked = [&MARK[..], b"a,b\n1,2\n"].concat();
        for bytes in [b"a,b\n1,2\n".to_vec(), gzip.finish().unwrap(), zstd, marked] {
            std::fs::write(&path, &bytes).unwrap();
            let mut text = String::new();
            open_text(&path).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "a,b\n1,2\n");
        }
        std::fs::write(&path, "").unwrap();
        assert_eq!(open_text(&path).unwrap().read_line(&mut String::new()).unwrap(), 0);
    }
}
