//! One array in the npy format, read some rows at a time. Whatever the order and the byte order of the file, rows come
//! out one after another and little-endian.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use compflow_api::{Error, Result};
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, TypeStr};

use crate::claims;
use crate::source::open;

/// An open file.
pub(crate) struct NpyFile {
    file: File,
    path: PathBuf,
    /// Where the values begin.
    start: u64,
    dtype: TypeStr,
    /// Bytes of a value.
    pub(crate) item: usize,
    /// How many axes the array has: one or two.
    pub(crate) axes: usize,
    /// Length of the first axis.
    pub(crate) rows: usize,
    /// Length of the second axis; 1 if there is none.
    pub(crate) columns: usize,
    order: Order,
}

impl NpyFile {
    /// Reads the header.
    ///
    /// # Errors
    /// If the file is no array of one or two axes, of plain values, or is shorter than its header says.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut file = open(path)?;
        let fail = |text: String| Error::data(format!("{} {text}", path.display()));
        let not_npy = |error: io::Error| fail(format!("is not an npy file: {error}"));
        claims::npy::check(&file).map_err(|text| fail(format!("is not an npy file: {text}")))?;
        let header = NpyHeader::from_reader(&mut file).map_err(not_npy)?;
        let (start, length) = (file.stream_position()?, file.metadata()?.len());
        let DType::Plain(dtype) = header.dtype() else {
            return Err(fail("holds records, expected plain values".to_owned()));
        };
        let item = dtype
            .num_bytes()
            .filter(|bytes| *bytes > 0)
            .ok_or_else(|| fail(format!("holds values of type {dtype}, which have no fixed size")))?;
        let (axes, rows, columns) = match *header.shape() {
            [rows] => (1, rows, 1),
            [rows, columns] => (2, rows, columns),
            ref shape => return Err(fail(format!("has {} axes, expected one or two", shape.len()))),
        };
        let needed = rows
            .checked_mul(columns)
            .and_then(|values| values.checked_mul(item as u64))
            .and_then(|bytes| bytes.checked_add(start));
        if needed.is_none_or(|needed| needed > length) {
            return Err(fail(format!(
                "is cut off: it has {length} bytes, too few for {rows} rows of {columns} values of {item} bytes"
            )));
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            start,
            dtype,
            item,
            axes,
            rows: usize::try_from(rows)?,
            columns: usize::try_from(columns)?,
            order: header.order(),
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes a row takes.
    pub(crate) fn row_bytes(&self) -> usize {
        self.columns.saturating_mul(self.item)
    }

    /// What kind of values it holds.
    pub(crate) fn kind(&self) -> TypeChar {
        self.dtype.type_char()
    }

    /// An error about this file: what it holds, and what was expected.
    pub(crate) fn unexpected(&self, expected: &str) -> Error {
        let (path, dtype) = (self.path.display(), &self.dtype);
        let shape = if self.axes == 1 {
            format!("{} values", self.rows)
        } else {
            format!("{} × {} values", self.rows, self.columns)
        };
        Error::data(format!("{path} holds {shape} of type {dtype}, expected {expected}"))
    }

    /// The bytes of some rows.
    pub(crate) fn read(&mut self, rows: Range<usize>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; rows.len() * self.columns * self.item];
        match self.order {
            Order::C => self.read_at(rows.start * self.columns, &mut bytes)?,
            Order::Fortran => {
                let mut column = vec![0; rows.len() * self.item];
                for at in 0..self.columns {
                    self.read_at(at * self.rows + rows.start, &mut column)?;
                    let places = bytes.chunks_exact_mut(self.item).skip(at).step_by(self.columns);
                    for (place, value) in places.zip(column.chunks_exact(self.item)) {
                        place.copy_from_slice(value);
                    }
                }
            }
        }
        if self.dtype.endianness() == Endianness::Big {
            // A string is a sequence of 32-bit characters.
            let unit = if self.kind() == TypeChar::UnicodeStr { 4 } else { self.item };
            bytes.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }

    /// The bytes from the value with this number on.
    fn read_at(&mut self, value: usize, bytes: &mut [u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.start + value as u64 * self.item as u64))?;
        self.file.read_exact(bytes)
    }
}
