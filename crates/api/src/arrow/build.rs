//! From vectors to Arrow structures that own them.

use std::any::Any;
use std::ffi::{CString, c_void};

use super::{ArrowArray, ArrowSchema, Column};
use crate::abi::RawTable;
use crate::{Error, Result, Sets};

/// What an array of ours points to.
struct ArrayParts {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    /// The buffers' memory.
    _owned: Vec<Box<dyn Any>>,
}

/// What a schema of ours points to.
struct SchemaParts {
    _format: CString,
    _name: CString,
    children: Vec<*mut ArrowSchema>,
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: `array` is one made by `make_array`, whose parts nobody else ends; a child that somebody has taken over is
    // marked as released, and its drop does nothing.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        parts.children.iter().for_each(|child| drop(Box::from_raw(*child)));
        (*array).release = None;
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: as for `release_array`.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        parts.children.iter().for_each(|child| drop(Box::from_raw(*child)));
        (*schema).release = None;
    }
}

fn make_schema(format: &str, name: &str, children: Vec<ArrowSchema>) -> Result<ArrowSchema> {
    let text = |text: &str| CString::new(text).map_err(|_| Error::new("the name of a column has a NUL in it"));
    let (format, name) = (text(format)?, text(name)?);
    let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let mut schema = ArrowSchema::empty();
    (schema.format, schema.name) = (format.as_ptr(), name.as_ptr());
    let mut parts = Box::new(SchemaParts { _format: format, _name: name, children });
    schema.n_children = parts.children.len() as i64;
    schema.children = parts.children.as_mut_ptr();
    schema.private_data = Box::into_raw(parts).cast();
    schema.release = Some(release_schema);
    Ok(schema)
}

/// A buffer: where it is, and what keeps it there.
type Buffer = (*const c_void, Box<dyn Any>);

fn buffer<T: 'static>(values: Vec<T>) -> Buffer {
    (values.as_ptr().cast(), Box::new(values))
}

/// An array without nulls: `buffers` are those behind the validity.
fn make_array(length: usize, buffers: Vec<Buffer>, children: Vec<ArrowArray>) -> ArrowArray {
    let (mut pointers, mut owned) = (vec![std::ptr::null()], Vec::new());
    for (pointer, memory) in buffers {
        pointers.push(pointer);
        owned.push(memory);
    }
    let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let mut parts = Box::new(ArrayParts { buffers: pointers, children, _owned: owned });
    let mut array = ArrowArray::empty();
    array.length = length as i64;
    array.n_buffers = parts.buffers.len() as i64;
    array.buffers = parts.buffers.as_mut_ptr();
    array.n_children = parts.children.len() as i64;
    array.children = parts.children.as_mut_ptr();
    array.private_data = Box::into_raw(parts).cast();
    array.release = Some(release_array);
    array
}

/// A table in the making.
#[derive(Debug, Default)]
pub(crate) struct Build {
    rows: Option<usize>,
    schemas: Vec<ArrowSchema>,
    arrays: Vec<ArrowArray>,
}

impl Build {
    fn push(mut self, name: &str, format: &str, items: Option<ArrowSchema>, array: ArrowArray) -> Result<Self> {
        let rows = array.length as usize;
        if *self.rows.get_or_insert(rows) != rows {
            return Err(Error::new(format!(
                "the column `{name}` has {rows} rows, those before it another number"
            )));
        }
        self.schemas.push(make_schema(format, name, items.into_iter().collect())?);
        self.arrays.push(array);
        Ok(self)
    }

    /// Lists of numbers in any order: list `i` is `values[offsets[i]..offsets[i + 1]]`.
    pub(crate) fn lists(self, name: &str, offsets: &[u64], values: Vec<u32>) -> Result<Self> {
        let rows = offsets.len() - 1;
        let items = make_array(values.len(), vec![buffer(values)], Vec::new());
        let small: Option<Vec<i32>> = offsets.iter().map(|&at| i32::try_from(at).ok()).collect();
        let (format, offsets) = match small {
            Some(offsets) => ("+l", buffer(offsets)),
            None => ("+L", buffer(offsets.iter().map(|&at| at as i64).collect())),
        };
        self.push(
            name,
            format,
            Some(make_schema("I", "item", Vec::new())?),
            make_array(rows, vec![offsets], vec![items]),
        )
    }

    pub(crate) fn sets(self, name: &str, sets: &Sets) -> Result<Self> {
        self.lists(name, sets.offsets(), sets.values().to_vec())
    }

    /// Vectors of equal length.
    pub(crate) fn vectors(self, name: &str, width: usize, values: Vec<f32>) -> Result<Self> {
        let rows = values.len().checked_div(width).unwrap_or(0);
        if width * rows != values.len() {
            let values = values.len();
            return Err(Error::new(format!("{values} numbers in the column `{name}` are not vectors of {width}")));
        }
        let items = make_array(values.len(), vec![buffer(values)], Vec::new());
        let item = make_schema("f", "item", Vec::new())?;
        self.push(name, &format!("+w:{width}"), Some(item), make_array(rows, Vec::new(), vec![items]))
    }

    /// Numbers of one type, whose name in the interface's notation is `format`.
    fn plain<T: 'static>(self, name: &str, format: &str, values: Vec<T>) -> Result<Self> {
        self.push(name, format, None, make_array(values.len(), vec![buffer(values)], Vec::new()))
    }

    pub(crate) fn numbers(self, name: &str, values: Vec<u32>) -> Result<Self> {
        self.plain(name, "I", values)
    }

    pub(crate) fn floats(self, name: &str, values: Vec<f64>) -> Result<Self> {
        self.plain(name, "g", values)
    }

    pub(crate) fn texts<'t>(self, name: &str, texts: impl Iterator<Item = &'t str>) -> Result<Self> {
        let (mut offsets, mut bytes) = (vec![0i64], Vec::new());
        for text in texts {
            bytes.extend_from_slice(text.as_bytes());
            offsets.push(bytes.len() as i64);
        }
        let rows = offsets.len() - 1;
        self.push(name, "U", None, make_array(rows, vec![buffer(offsets), buffer(bytes)], Vec::new()))
    }

    pub(crate) fn column(self, name: &str, column: &Column) -> Result<Self> {
        match column {
            Column::Sets(sets) => self.sets(name, sets),
            Column::Vectors { width, values } => self.vectors(name, *width, values.clone()),
            Column::Floats(values) => self.floats(name, values.clone()),
            Column::Integers(values) => self.plain(name, "l", values.clone()),
            Column::Texts(values) => self.texts(name, values.iter().map(String::as_str)),
            Column::Flags(values) => {
                let mut bits = vec![0u8; values.len().div_ceil(8)];
                for at in (0..values.len()).filter(|&at| values[at]) {
                    bits[at / 8] |= 1 << (at % 8);
                }
                self.push(name, "b", None, make_array(values.len(), vec![buffer(bits)], Vec::new()))
            }
        }
    }

    /// The table; `rows` is what it has if there are no columns.
    pub(crate) fn finish(self, rows: usize) -> Result<RawTable> {
        let rows = self.rows.unwrap_or(rows);
        Ok(RawTable {
            array: make_array(rows, Vec::new(), self.arrays),
            schema: make_schema("+s", "", self.schemas)?,
        })
    }
}
