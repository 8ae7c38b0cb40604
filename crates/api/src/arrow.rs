//! The Arrow C data and stream interfaces: how tables cross the boundary.
//!
//! The three structures are those of Arrow's specification, so every Arrow implementation can make and read them. What this
//! crate itself needs of Arrow is little (tables of sets, vectors, numbers and texts), and is here: a plugin depends on no
//! Arrow library unless it wants to. With the feature `arrow`, [`Stream`] can be made from and turned into arrow-rs'
//! readers.

mod build;
mod check;
#[cfg(feature = "arrow")]
mod interop;
mod stream;
mod view;
#[cfg(feature = "arrow")]
mod words;

use std::ffi::{c_char, c_int, c_void};

pub(crate) use build::Build;
#[cfg(feature = "arrow")]
pub(crate) use check::check;
#[cfg(feature = "arrow")]
pub use interop::{BatchReader, Batches};
use serde::{Deserialize, Serialize};
pub use stream::Stream;
pub(crate) use stream::table_schema;
pub(crate) use view::View;
#[cfg(feature = "arrow")]
pub use words::in_words;

use crate::float_env::with_default_floats;
use crate::once::returning_once;
use crate::{Result, Sets};

/// `struct ArrowSchema` of the Arrow C data interface: a type. Released on drop.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    /// The type, in the interface's notation.
    pub format: *const c_char,
    /// The field's name; may be null.
    pub name: *const c_char,
    /// Not used here.
    pub metadata: *const c_char,
    /// Whether it may be null, among others.
    pub flags: i64,
    /// How many children.
    pub n_children: i64,
    /// The types that this one consists of.
    pub children: *mut *mut ArrowSchema,
    /// The type of a dictionary's values; null if it is none.
    pub dictionary: *mut ArrowSchema,
    /// Null once released.
    pub release: Option<unsafe extern "C" fn(schema: *mut ArrowSchema)>,
    /// The producer's own.
    pub private_data: *mut c_void,
}

/// `struct ArrowArray` of the Arrow C data interface: values. Released on drop.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    /// How many values.
    pub length: i64,
    /// How many of them are null; -1 if not counted.
    pub null_count: i64,
    /// How many values of the buffers come before the first.
    pub offset: i64,
    /// How many buffers.
    pub n_buffers: i64,
    /// How many children.
    pub n_children: i64,
    /// The buffers that the type has, the validity first.
    pub buffers: *mut *const c_void,
    /// The values that these consist of.
    pub children: *mut *mut ArrowArray,
    /// A dictionary's values; null if it is none.
    pub dictionary: *mut ArrowArray,
    /// Null once released.
    pub release: Option<unsafe extern "C" fn(array: *mut ArrowArray)>,
    /// The producer's own.
    pub private_data: *mut c_void,
}

/// `struct ArrowArrayStream` of the Arrow C stream interface. Released on drop.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    /// Writes the type of all arrays; 0, or an error number.
    pub get_schema: Option<unsafe extern "C" fn(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int>,
    /// Writes the next array, a released one at the end; 0, or an error number.
    pub get_next: Option<unsafe extern "C" fn(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int>,
    /// Why the last call failed; may be null. Valid until the next call.
    pub get_last_error: Option<unsafe extern "C" fn(stream: *mut ArrowArrayStream) -> *const c_char>,
    /// Null once released.
    pub release: Option<unsafe extern "C" fn(stream: *mut ArrowArrayStream)>,
    /// The producer's own.
    pub private_data: *mut c_void,
}

macro_rules! released_on_drop {
    ($($name:ident { $($field:ident: $empty:expr),* })*) => {$(
        impl $name {
            /// One that is released already: what a callee overwrites.
            pub fn empty() -> Self {
                Self { $($field: $empty),* }
            }

            /// Whether there is nothing in it.
            pub fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the interface has the owner of a structure call `release`, once: it sets itself to null.
                    returning_once(|| with_default_floats(|| unsafe { release(self) }));
                }
            }
        }

        // SAFETY: the interface lets structures be used by any one thread at a time.
        unsafe impl Send for $name {}
    )*};
}

released_on_drop! {
    ArrowSchema {
        format: std::ptr::null(), name: std::ptr::null(), metadata: std::ptr::null(), flags: 0, n_children: 0,
        children: std::ptr::null_mut(), dictionary: std::ptr::null_mut(), release: None,
        private_data: std::ptr::null_mut()
    }
    ArrowArray {
        length: 0, null_count: 0, offset: 0, n_buffers: 0, n_children: 0, buffers: std::ptr::null_mut(),
        children: std::ptr::null_mut(), dictionary: std::ptr::null_mut(), release: None,
        private_data: std::ptr::null_mut()
    }
    ArrowArrayStream {
        get_schema: None, get_next: None, get_last_error: None, release: None, private_data: std::ptr::null_mut()
    }
}

impl ArrowSchema {
    /// The names of the fields of a struct.
    pub(crate) fn field_names(&self) -> Result<Vec<String>> {
        // SAFETY: a schema follows the interface: its children are as many as it says, and its texts end with a zero.
        unsafe {
            let fields = check::children(self.children, self.n_children, Self::is_released)?;
            fields.into_iter().map(|field| Ok(check::schema_text(field.name)?.to_owned())).collect()
        }
    }
}

/// A column of a table: a value per row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Column {
    /// Sets of numbers: `list<u32>`.
    Sets(Sets),
    /// Vectors of equal length: `fixed_size_list<f32>`.
    Vectors {
        /// Length of a vector.
        width: usize,
        /// Vector after vector.
        values: Vec<f32>,
    },
    /// Numbers, NaN for null: `f64`.
    Floats(Vec<f64>),
    /// Whole numbers: `i64`.
    Integers(Vec<i64>),
    /// Yes or no: `bool`.
    Flags(Vec<bool>),
    /// Texts: `utf8`.
    Texts(Vec<String>),
}

impl Column {
    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Sets(sets) => sets.len(),
            Self::Vectors { width, values } => values.len().checked_div(*width).unwrap_or(0),
            Self::Floats(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Flags(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Columns of equal length, with their names.
pub type Table = Vec<(String, Column)>;
