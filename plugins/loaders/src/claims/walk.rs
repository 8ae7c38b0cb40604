//! Thrift in the compact protocol, walked without being decoded; and its numbers, which Parquet's own encodings have too.

/// Structures inside one another that any footer has.
const MOST_STRUCTURES: usize = 32;

/// Types of the compact protocol.
const STOP: u8 = 0;
const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const I32: u8 = 5;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Goes through what was encoded.
pub(super) struct Walk<'b> {
    rest: &'b [u8],
    /// Where it is, as messages say it.
    place: &'static str,
}

impl<'b> Walk<'b> {
    pub(super) fn new(rest: &'b [u8], place: &'static str) -> Self {
        Self { rest, place }
    }

    /// Bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, count: u64) -> Result<&'b [u8], String> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| format!("{} claims {count} bytes and has {}", self.place, self.rest.len()))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, String> {
        let (byte, rest) = self.rest.split_first().ok_or_else(|| format!("{} breaks off", self.place))?;
        self.rest = rest;
        Ok(*byte)
    }

    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(format!("{} has a number that does not end", self.place))
    }

    /// A number with a sign.
    pub(super) fn zigzag(&mut self) -> Result<i64, String> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// The type of the next field of a structure; `number` is that of the last one.
    pub(super) fn field(&mut self, number: &mut i64) -> Result<Option<u8>, String> {
        let byte = self.byte()?;
        if byte == STOP {
            return Ok(None);
        }
        *number = match byte >> 4 {
            0 => self.zigzag()?,
            difference => number.saturating_add(i64::from(difference)),
        };
        Ok(Some(byte & 0x0f))
    }

    /// How many elements a list has, and of what type.
    pub(super) fn list(&mut self) -> Result<(u64, u8), String> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        self.all_there(count)?;
        Ok((count, byte & 0x0f))
    }

    /// Every element takes a byte.
    fn all_there(&self, count: u64) -> Result<(), String> {
        match count > self.rest.len() as u64 {
            true => Err(format!("a list of {} claims {count} elements in {} bytes", self.place, self.rest.len())),
            false => Ok(()),
        }
    }

    pub(super) fn skip(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        if depth > MOST_STRUCTURES {
            return Err(format!("{} is nested more than {MOST_STRUCTURES} deep", self.place));
        }
        match kind {
            TRUE | FALSE => Ok(()),
            3 => self.take(1).map(|_| ()),
            4..=6 => self.varint().map(|_| ()),
            7 => self.take(8).map(|_| ()),
            8 => {
                let length = self.varint()?;
                self.take(length).map(|_| ())
            }
            9 | 10 => {
                let (count, of) = self.list()?;
                (0..count).try_for_each(|_| self.element(of, depth))
            }
            11 => {
                let count = self.varint()?;
                self.all_there(count)?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 0x0f, depth)
                })
            }
            STRUCT => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            13 => self.take(16).map(|_| ()),
            other => Err(format!("{} has a value of the unknown type {other}", self.place)),
        }
    }

    /// Of a list or a map, where truth values take a byte.
    fn element(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        if matches!(kind, TRUE | FALSE) { self.take(1).map(|_| ()) } else { self.skip(kind, depth + 1) }
    }
}
