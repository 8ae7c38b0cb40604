//! Thrift in the compact protocol, walked as decoders do but without making room for anything; and its numbers, which Parquet's own
//! encodings have too.

/// Structures inside one another that any footer has.
const MOST_STRUCTURES: usize = 32;

/// Types of the compact protocol.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// What decoders take a field for. They do not look at the type that it says it has: with another one, they would go on at
/// another place than who does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Truth,
    Byte,
    /// Of 16, 32 or 64 bits, which are written alike.
    Number,
    Bytes,
    Structure(Shape),
    Structures(Shape),
}

/// The fields of a structure that decoders know, by their numbers.
pub(super) type Shape = &'static [(i64, Kind)];

impl Kind {
    fn is_written_as(self, kind: u8) -> bool {
        match self {
            Self::Truth => matches!(kind, TRUE | FALSE),
            Self::Byte => kind == 3,
            Self::Number => matches!(kind, 4..=6),
            Self::Bytes => kind == 8,
            Self::Structure(_) => kind == STRUCT,
            Self::Structures(_) => kind == LIST,
        }
    }
}

/// What a structure has at some place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// A number, or 1 for what is true.
    Number(i64),
    End,
}

/// Goes through what was encoded.
pub(super) struct Walk<'b> {
    rest: &'b [u8],
    /// Where it is, as messages say it.
    place: &'static str,
    /// Whether it is for want of bytes that it went no further.
    pub(super) ran_out: bool,
}

impl<'b> Walk<'b> {
    pub(super) fn new(rest: &'b [u8], place: &'static str) -> Self {
        Self { rest, place, ran_out: false }
    }

    /// Bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, count: u64) -> Result<&'b [u8], String> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.ran_out = count > self.rest.len();
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| format!("{} claims {count} bytes and has {}", self.place, self.rest.len()))?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.ran_out = self.rest.is_empty();
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
    fn field(&mut self, number: &mut i64) -> Result<Option<u8>, String> {
        let byte = self.byte()?;
        if byte == STOP {
            return Ok(None);
        }
        let next = match byte >> 4 {
            0 => self.zigzag()?,
            difference => number.saturating_add(i64::from(difference)),
        };
        // Of two with one number, the decoder may take the other one; and it keeps 16 bits of them.
        if next <= *number || next > i64::from(i16::MAX) {
            return Err(format!("{} has a field {next} behind a field {number}", self.place));
        }
        *number = next;
        Ok(Some(byte & 0x0f))
    }

    /// How many elements a list has, and of what type.
    fn list(&mut self) -> Result<(u64, u8), String> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        self.all_there(count)?;
        Ok((count, byte & 0x0f))
    }

    /// Every element takes a byte.
    fn all_there(&mut self, count: u64) -> Result<(), String> {
        self.ran_out = count > self.rest.len() as u64;
        match self.ran_out {
            true => Err(format!("a list of {} claims {count} elements in {} bytes", self.place, self.rest.len())),
            false => Ok(()),
        }
    }

    /// Goes through a structure as decoders do, and tells what it has: the numbers of the fields that lead there, and the number,
    /// or the end of the structure. Fields that decoders do not know they skip by their types.
    pub(super) fn structure(
        &mut self,
        shape: Shape,
        path: &mut Vec<i64>,
        seen: &mut impl FnMut(&[i64], Seen),
    ) -> Result<(), String> {
        let mut number = 0;
        while let Some(kind) = self.field(&mut number)? {
            let Some((_, known)) = shape.iter().find(|(known, _)| *known == number) else {
                self.skip(kind, path.len())?;
                continue;
            };
            if !known.is_written_as(kind) {
                return Err(format!("{} has a field {number} of the type {kind}", self.place));
            }
            path.push(number);
            match *known {
                Kind::Truth => seen(path, Seen::Number(i64::from(kind == TRUE))),
                Kind::Number => seen(path, Seen::Number(self.zigzag()?)),
                Kind::Byte | Kind::Bytes => self.skip(kind, path.len())?,
                Kind::Structure(shape) => self.structure(shape, path, seen)?,
                Kind::Structures(shape) => {
                    let (count, of) = self.list()?;
                    if count > 0 && of != STRUCT {
                        return Err(format!("a list of {} has the type {of}", self.place));
                    }
                    for _ in 0..count {
                        self.structure(shape, path, seen)?;
                    }
                }
            }
            path.pop();
        }
        seen(path, Seen::End);
        Ok(())
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), String> {
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
                (0..count).try_for_each(|_| self.member(of, depth))
            }
            11 => {
                let count = self.varint()?;
                self.all_there(count)?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.member(kinds >> 4, depth)?;
                    self.member(kinds & 0x0f, depth)
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

    /// Of a list or a map, where truth values take a byte: not to all decoders.
    fn member(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        match kind {
            TRUE | FALSE => Err(format!("{} has a list of truth values", self.place)),
            _ => self.skip(kind, depth + 1),
        }
    }
}
