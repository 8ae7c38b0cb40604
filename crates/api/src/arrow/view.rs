//! From Arrow structures of another library to vectors: only the few types that tables on the boundary have.

use std::ffi::c_void;

use super::check::{check, children, schema_text, width};
use super::{ArrowArray, ArrowSchema, Column};
use crate::abi::RawTable;
use crate::{Error, Result, Sets};

/// A table of another library, found to be well-formed.
pub(crate) struct View<'a> {
    rows: usize,
    /// How many rows of every child come before the first.
    offset: usize,
    /// Bytes that its producer was allowed to allocate.
    budget: u64,
    columns: Vec<(&'a str, &'a ArrowSchema, &'a ArrowArray)>,
}

/// Copies `len` values behind the first `first` of a buffer, aligned or not.
///
/// # Safety
/// The buffer has that many, or `len` is 0.
unsafe fn copy<T: Copy + Default>(buffer: *const c_void, first: usize, len: usize) -> Vec<T> {
    let mut values = vec![T::default(); len];
    if len > 0 {
        let bytes = len * size_of::<T>();
        // SAFETY: the caller vouches for the memory.
        unsafe {
            let from = buffer.cast::<u8>().add(first * size_of::<T>());
            from.copy_to_nonoverlapping(values.as_mut_ptr().cast(), bytes);
        }
    }
    values
}

/// The `at`-th bit.
///
/// # Safety
/// The buffer has it.
unsafe fn bit(buffer: *const c_void, at: usize) -> bool {
    // SAFETY: the caller vouches for the memory.
    unsafe { buffer.cast::<u8>().add(at / 8).read() >> (at % 8) & 1 == 1 }
}

/// Some values of an array.
#[derive(Clone, Copy)]
struct Part<'a> {
    schema: &'a ArrowSchema,
    array: &'a ArrowArray,
    /// Position of the first in the buffers.
    first: usize,
    len: usize,
    budget: u64,
}

impl<'a> Part<'a> {
    fn format(&self) -> Result<&'a str> {
        // SAFETY: schemas were checked to be ones when the view was made.
        unsafe { schema_text(self.schema.format) }
    }

    fn buffer(&self, at: usize) -> *const c_void {
        // SAFETY: the number of buffers was checked.
        unsafe { *self.array.buffers.add(at) }
    }

    /// The first that is null.
    fn first_null(&self) -> Option<usize> {
        if self.array.null_count == 0 || self.array.n_buffers == 0 || self.buffer(0).is_null() {
            return None;
        }
        // SAFETY: a validity buffer has a bit for every value.
        (0..self.len).find(|at| unsafe { !bit(self.buffer(0), self.first + at) })
    }

    fn require_no_nulls(&self) -> Result<()> {
        match self.first_null() {
            Some(row) => Err(Error::new(format!("row {row} is null"))),
            None => Ok(()),
        }
    }

    fn must_be(&self, wanted: &str) -> Error {
        Error::new(format!("must be {wanted}, found Arrow's `{}`", self.format().unwrap_or_default()))
    }

    /// The values, if they are of that format.
    fn plain<T: Copy + Default>(&self, format: &str, wanted: &str) -> Result<Vec<T>> {
        if self.format()? != format {
            return Err(self.must_be(wanted));
        }
        // SAFETY: a buffer of that format has `size_of::<T>()` bytes a value, and its length was checked.
        Ok(unsafe { copy(self.buffer(1), self.first, self.len) })
    }

    fn child(&self, first: usize, len: usize) -> Result<Part<'a>> {
        // SAFETY: checked when the view was made.
        let (schema, array) = unsafe {
            let schemas = children(self.schema.children, self.schema.n_children, ArrowSchema::is_released)?;
            let arrays = children(self.array.children, self.array.n_children, ArrowArray::is_released)?;
            (schemas[0], arrays[0])
        };
        let has = array.length as usize;
        if first.checked_add(len).is_none_or(|end| end > has) {
            return Err(Error::new(format!("refers to value {first} + {len} of {has}")));
        }
        Ok(Part { schema, array, first: array.offset as usize + first, len, budget: self.budget })
    }

    /// Positions of every row's values, ascending, the first 0; and the position of the first.
    fn offsets(&self, wide: bool) -> Result<(Vec<u64>, usize)> {
        // SAFETY: a buffer of offsets has one more than there are rows.
        let offsets: Vec<i64> = unsafe {
            if wide {
                copy::<i64>(self.buffer(1), self.first, self.len + 1)
            } else {
                copy::<i32>(self.buffer(1), self.first, self.len + 1).into_iter().map(i64::from).collect()
            }
        };
        if offsets[0] < 0 || !offsets.is_sorted() {
            return Err(Error::new("has offsets that descend"));
        }
        Ok((offsets.iter().map(|at| (at - offsets[0]) as u64).collect(), offsets[0] as usize))
    }

    fn lists(&self) -> Result<(Vec<u64>, Vec<u32>)> {
        let wide = match self.format()? {
            "+l" => false,
            "+L" => true,
            _ => return Err(self.must_be("a list of u32")),
        };
        self.require_no_nulls()?;
        if self.len == 0 {
            return Ok((vec![0], Vec::new()));
        }
        let (offsets, first) = self.offsets(wide)?;
        let items = self.child(first, offsets[self.len] as usize)?;
        items.require_no_nulls()?;
        Ok((offsets, items.plain("I", "a list of u32")?))
    }

    fn vectors(&self) -> Result<(usize, Vec<f32>)> {
        if !self.format()?.starts_with("+w:") {
            return Err(self.must_be("a fixed-size list of f32"));
        }
        self.require_no_nulls()?;
        let width = width(self.format()?)? as usize;
        let items = self.child(self.first * width, self.len * width)?;
        items.require_no_nulls()?;
        Ok((width, items.plain("f", "a fixed-size list of f32")?))
    }

    fn floats(&self) -> Result<Vec<f64>> {
        let mut values: Vec<f64> = match self.format()? {
            "f" => self.plain::<f32>("f", "")?.into_iter().map(f64::from).collect(),
            _ => self.plain("g", "f64")?,
        };
        if self.first_null().is_some() {
            for (at, value) in values.iter_mut().enumerate() {
                // SAFETY: a validity buffer has a bit for every value.
                if unsafe { !bit(self.buffer(0), self.first + at) } {
                    *value = f64::NAN;
                }
            }
        }
        Ok(values)
    }

    fn texts(&self) -> Result<Vec<String>> {
        let wide = match self.format()? {
            "u" => false,
            "U" => true,
            _ => return Err(self.must_be("texts")),
        };
        self.require_no_nulls()?;
        if self.len == 0 {
            return Ok(Vec::new());
        }
        let (offsets, first) = self.offsets(wide)?;
        let total = offsets[self.len] as usize;
        if (first as u64).saturating_add(total as u64) > self.budget.min(isize::MAX as u64) {
            return Err(Error::new(format!("claims {total} bytes of text, more than the memory budget holds")));
        }
        if total > 0 && self.buffer(2).is_null() {
            return Err(Error::new("lacks a buffer"));
        }
        // SAFETY: the bytes of texts reach as far as the last offset says.
        let bytes: Vec<u8> = unsafe { copy(self.buffer(2), first, total) };
        offsets
            .windows(2)
            .enumerate()
            .map(|(row, ends)| {
                let bytes = &bytes[ends[0] as usize..ends[1] as usize];
                String::from_utf8(bytes.to_vec()).map_err(|_| Error::new(format!("row {row} is not UTF-8")))
            })
            .collect()
    }

    fn column(&self) -> Result<Column> {
        Ok(match self.format()? {
            "+l" | "+L" => {
                let (offsets, values) = self.lists()?;
                Column::Sets(Sets::from_parts(offsets, values)?)
            }
            "f" | "g" => Column::Floats(self.floats()?),
            "u" | "U" => Column::Texts(self.texts()?),
            "l" => {
                self.require_no_nulls()?;
                Column::Integers(self.plain("l", "")?)
            }
            "i" => {
                self.require_no_nulls()?;
                Column::Integers(self.plain::<i32>("i", "")?.into_iter().map(i64::from).collect())
            }
            "I" => {
                self.require_no_nulls()?;
                Column::Integers(self.plain::<u32>("I", "")?.into_iter().map(i64::from).collect())
            }
            "b" => {
                self.require_no_nulls()?;
                // SAFETY: a buffer of flags has a bit for every value.
                Column::Flags((0..self.len).map(|at| unsafe { bit(self.buffer(1), self.first + at) }).collect())
            }
            format if format.starts_with("+w:") => {
                let (width, values) = self.vectors()?;
                Column::Vectors { width, values }
            }
            _ => return Err(self.must_be("a list of u32, f64, i64, bool or utf8")),
        })
    }
}

impl<'a> View<'a> {
    /// Looks at a table.
    ///
    /// # Errors
    /// If it is not well-formed, or cannot be: `budget` is what its producer was allowed to allocate.
    ///
    /// # Safety
    /// The table follows the Arrow C data interface: pointers in it are null or valid.
    pub(crate) unsafe fn new(table: &'a RawTable, budget: u64) -> Result<Self> {
        if table.array.is_released() || table.schema.is_released() {
            return Err(Error::new("was not returned"));
        }
        // SAFETY: passed on to the caller.
        unsafe {
            check(&table.schema, &table.array, budget)?;
            if schema_text(table.schema.format)? != "+s" {
                return Err(Error::new("must be a struct"));
            }
            let schemas = children(table.schema.children, table.schema.n_children, ArrowSchema::is_released)?;
            let arrays = children(table.array.children, table.array.n_children, ArrowArray::is_released)?;
            let columns = schemas
                .into_iter()
                .zip(arrays)
                .map(|(schema, array)| Ok((schema_text(schema.name)?, schema, array)));
            let view = Self {
                rows: table.array.length as usize,
                offset: table.array.offset as usize,
                budget,
                columns: columns.collect::<Result<_>>()?,
            };
            for (at, name) in view.names().enumerate() {
                if view.names().take(at).any(|earlier| earlier == name) {
                    return Err(Error::new(format!("has two columns named `{name}`")));
                }
            }
            Ok(view)
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.columns.iter().map(|(name, ..)| *name)
    }

    fn find<R>(&self, name: &str, read: impl FnOnce(Part<'a>) -> Result<R>) -> Result<Option<R>> {
        let Some((_, schema, array)) = self.columns.iter().find(|(known, ..)| *known == name) else {
            return Ok(None);
        };
        let part = Part {
            schema,
            array,
            first: array.offset as usize + self.offset,
            len: self.rows,
            budget: self.budget,
        };
        read(part).map(Some).map_err(|error| error.context(format!("the column `{name}`")))
    }

    /// A column of ascending sets.
    pub(crate) fn sets(&self, name: &str) -> Result<Option<Sets>> {
        self.find(name, |part| {
            let (offsets, values) = part.lists()?;
            Sets::from_parts(offsets, values)
        })
    }

    /// A column of lists in any order.
    pub(crate) fn lists(&self, name: &str) -> Result<Option<Vec<Vec<u32>>>> {
        self.find(name, |part| {
            let (offsets, values) = part.lists()?;
            Ok(offsets.windows(2).map(|ends| values[ends[0] as usize..ends[1] as usize].to_vec()).collect())
        })
    }

    /// The numbers of a column of vectors, vector after vector.
    pub(crate) fn vectors(&self, name: &str) -> Result<Option<Vec<f32>>> {
        self.find(name, |part| Ok(part.vectors()?.1))
    }

    pub(crate) fn floats(&self, name: &str) -> Result<Option<Vec<f64>>> {
        self.find(name, |part| part.floats())
    }

    pub(crate) fn numbers(&self, name: &str) -> Result<Option<Vec<u32>>> {
        self.find(name, |part| {
            part.require_no_nulls()?;
            part.plain("I", "u32")
        })
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        self.find(name, |part| part.texts())
    }

    /// A column of any type that can be further.
    pub(crate) fn column(&self, name: &str) -> Result<Option<Column>> {
        self.find(name, |part| part.column())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::Build;

    #[test]
    fn texts_that_claim_more_than_the_budget_are_not_read() {
        let table = Build::default().texts("name", ["ab", "c"].into_iter()).unwrap().finish(0).unwrap();
        let read = |budget| {
            // SAFETY: made by this crate.
            unsafe { View::new(&table, budget) }.and_then(|view| view.texts("name"))
        };
        assert_eq!(read(1000).unwrap(), Some(vec!["ab".to_owned(), "c".to_owned()]));
        // SAFETY: the second buffer of the only child holds three offsets, and nobody else looks at it.
        unsafe {
            let offsets = (*(*(*table.array.children)).buffers.add(1)).cast::<i64>().cast_mut();
            offsets.add(2).write(1 << 40);
        }
        let error = read(1000).unwrap_err().to_string();
        assert_eq!(
            error,
            "the column `name`: claims 1099511627776 bytes of text, more than the memory budget holds"
        );
    }
}
