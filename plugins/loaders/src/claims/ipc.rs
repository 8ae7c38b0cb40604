//! Arrow IPC: where messages say that they are, and how long their buffers become.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use arrow_ipc::{Message, RecordBatch, root_as_footer, root_as_message};

use super::check_size;

/// What stands before the length of a message.
pub(crate) const CONTINUATION: [u8; 4] = [0xff; 4];
/// The footer's length and the magic at the end of a file.
const TAIL: u64 = 10;
/// At least this many values of a column take a byte.
const VALUES_PER_BYTE: u64 = 8;

/// Refuses a file, or a stream, with messages that lie outside of it, or that claim more than they can hold or the memory
/// allows. The file is then at its beginning; what is wrong otherwise is for the decoder to say.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(file: &mut File, is_file: bool, memory: u64) -> Result<(), String> {
    let length = file.metadata().map_err(text)?.len();
    let mut claims = Claims { file, length, memory };
    if is_file { claims.file() } else { claims.stream() }?;
    claims.file.rewind().map_err(text)
}

fn text(error: io::Error) -> String {
    error.to_string()
}

struct Claims<'f> {
    file: &'f mut File,
    length: u64,
    memory: u64,
}

impl Claims<'_> {
    /// The blocks that the footer names.
    fn file(&mut self) -> Result<(), String> {
        let Some(tail) = self.length.checked_sub(TAIL) else { return Ok(()) };
        let footer_length = u64::from(u32::from_le_bytes(self.array(tail)?));
        let Some(start) = tail.checked_sub(footer_length) else {
            return Err(format!("its footer claims {footer_length} bytes, and the file has {}", self.length));
        };
        let bytes = self.bytes("its footer", start, footer_length)?;
        // What is no footer is for the decoder to name.
        let Ok(footer) = root_as_footer(&bytes) else { return Ok(()) };
        for block in
            footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten())
        {
            let (offset, header) = (block.offset(), i64::from(block.metaDataLength()));
            let place = [offset, header, block.bodyLength()].map(u64::try_from);
            let [Ok(offset), Ok(header), Ok(body)] = place else {
                return Err("its footer has a place below 0".to_owned());
            };
            let end = offset.checked_add(header).and_then(|end| end.checked_add(body));
            if end.is_none_or(|end| end > self.length) {
                let claimed = u128::from(header) + u128::from(body);
                return Err(format!("a message claims {claimed} bytes, and the file has {}", self.length));
            }
            let bytes = self.bytes("a message", offset, header)?;
            let begins = if bytes.starts_with(&CONTINUATION) { 8 } else { 4 };
            // The decoder would look for the rest of it in what follows.
            let Some(Ok(message)) = bytes.get(begins..).map(root_as_message) else {
                return Err(format!("there is no message in the {header} bytes that its footer names"));
            };
            self.message(&message, offset + header, body)?;
        }
        Ok(())
    }

    /// One message after another.
    fn stream(&mut self) -> Result<(), String> {
        let mut at = 0;
        while at + 8 <= self.length {
            let start: [u8; 4] = self.array(at)?;
            at += 4;
            let header = if start == CONTINUATION {
                at += 4;
                self.array(at - 4)?
            } else {
                start
            };
            let header = u64::from(u32::from_le_bytes(header));
            if header == 0 {
                break;
            }
            if header > self.length - at {
                return Err(format!("a message claims {header} bytes, and the file has {}", self.length));
            }
            let bytes = self.bytes("a message", at, header)?;
            let Ok(message) = root_as_message(&bytes) else { return Ok(()) };
            at += header;
            let body = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
            if body > self.length - at {
                return Err(format!("a message claims {body} bytes, and {} are left", self.length - at));
            }
            self.message(&message, at, body)?;
            at += body;
        }
        Ok(())
    }

    fn message(&mut self, message: &Message<'_>, at: u64, body: u64) -> Result<(), String> {
        let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
        match message.header_as_record_batch().or(dictionary) {
            Some(batch) => self.batch(&batch, at, body),
            None => Ok(()),
        }
    }

    /// What a batch decodes to: the lengths that stand before compressed buffers, and the numbers of rows.
    fn batch(&mut self, batch: &RecordBatch<'_>, at: u64, body: u64) -> Result<(), String> {
        let mut decoded = body;
        for buffer in batch.buffers().into_iter().flatten() {
            let place = [buffer.offset(), buffer.length()].map(u64::try_from);
            let [Ok(offset), Ok(length)] = place else { return Err("a buffer has a place below 0".to_owned()) };
            if offset.checked_add(length).is_none_or(|end| end > body) {
                return Err(format!("a buffer claims {length} bytes, and its batch has {body}"));
            }
            if batch.compression().is_some() && length >= 8 {
                // Below 0 it is not compressed.
                let claimed = u64::try_from(i64::from_le_bytes(self.array(at + offset)?)).unwrap_or(length);
                check_size("a compressed buffer", claimed, length, self.memory)?;
                decoded = decoded.saturating_add(claimed);
            }
        }
        check_size("a batch", decoded, body, self.memory)?;
        let lengths = batch.nodes().into_iter().flatten().map(|node| node.length()).chain([batch.length()]);
        for rows in lengths {
            if u64::try_from(rows).is_ok_and(|rows| rows / VALUES_PER_BYTE > decoded) {
                return Err(format!("a column claims {rows} values, and {decoded} bytes stand for them"));
            }
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self, at: u64) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.file.seek(SeekFrom::Start(at)).map_err(text)?;
        self.file.read_exact(&mut bytes).map_err(text)?;
        Ok(bytes)
    }

    /// Of a place that is inside the file, if there is room for so much.
    fn bytes(&mut self, what: &str, at: u64, length: u64) -> Result<Vec<u8>, String> {
        check_size(what, length, length, self.memory)?;
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(at)).map_err(text)?;
        (&mut *self.file).take(length).read_to_end(&mut bytes).map_err(text)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// What is said of a file of five gibibytes, most of them nowhere, with this at these places.
    fn refused(is_file: bool, written: &[(u64, &[u8])]) -> String {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(5 << 30).unwrap();
        written.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
        check(&mut file, is_file, 256 << 20).unwrap_err()
    }

    #[test]
    fn what_says_where_everything_is_is_held_to_the_memory_before_it_is_read() {
        let large = 0xffff_fff0_u32.to_le_bytes();
        let tail = (5 << 30) - TAIL;
        let text = refused(true, &[(0, b"ARROW1\0\0"), (tail, &large), (tail + 4, b"ARROW1")]);
        assert_eq!(text, "its footer needs 4294967280 bytes, more than the 268435456 that may be used");
        let text = refused(false, &[(0, &CONTINUATION), (4, &large)]);
        assert_eq!(text, "a message needs 4294967280 bytes, more than the 268435456 that may be used");
    }
}
