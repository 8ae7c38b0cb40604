//! Files of text, plain or compressed as a whole.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use compflow_api::{Error, Result, Services};
use flate2::read::MultiGzDecoder;

use crate::source::{open, too_long};

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

/// A text that is read once to see what is in it: counts its bytes, and refuses lines that are too long.
pub(crate) struct Measured<'a> {
    text: Text,
    services: &'a Services<'a>,
    /// Bytes that a line may take; or all of them, if they are one.
    most: usize,
    is_one: bool,
    /// The line that is being read, from 1, and how much of it was.
    line: u64,
    length: usize,
    /// Bytes of all, and of the longest line.
    pub(crate) bytes: u64,
    pub(crate) longest: usize,
}

impl<'a> Measured<'a> {
    pub(crate) fn new(text: Text, line: u64, is_one: bool, most: usize, services: &'a Services<'a>) -> Self {
        Self { text, services, most, is_one, line, length: 0, bytes: 0, longest: 0 }
    }
}

impl Read for Measured<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Measured<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.services.check_cancelled().map_err(|error| std::io::Error::other(error.to_string()))?;
        if self.length > self.most {
            let what = if self.is_one { "a list of objects".to_owned() } else { format!("line {}", self.line) };
            return Err(std::io::Error::other(too_long(what, self.most)));
        }
        self.text.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        // What was filled is there, without being read again.
        let taken = self.text.fill_buf().map_or(&[][..], |filled| &filled[..count.min(filled.len())]);
        self.bytes += taken.len() as u64;
        let mut pieces = taken.split(|byte| *byte == b'\n' && !self.is_one);
        self.length += pieces.next().map_or(0, <[u8]>::len);
        self.longest = self.longest.max(self.length);
        for piece in pieces {
            self.line += 1;
            self.length = piece.len();
            self.longest = self.longest.max(self.length);
        }
        self.text.consume(count);
    }
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
