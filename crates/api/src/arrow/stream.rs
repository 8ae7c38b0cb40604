//! Tables one after the other: what a loader yields.

use std::ffi::{CStr, CString, c_char, c_int};

use super::{ArrowArray, ArrowArrayStream, ArrowSchema, Build, Table, View};
use crate::abi::RawTable;
use crate::float_env::with_default_floats;
use crate::guard::catch;
use crate::once::returning_once;
use crate::{Error, Result};

/// A stream of tables with the same columns, produced as they are asked for; every Arrow implementation can read it.
///
/// ```
/// use compflow_api::{Column, Stream};
/// let table = vec![("id".to_owned(), Column::Integers(vec![1, 2]))];
/// let tables: Vec<_> = Stream::of(table.clone())?.collect::<Result<_, _>>()?;
/// assert_eq!(tables, [table]);
/// # Ok::<(), compflow_api::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    raw: ArrowArrayStream,
    /// What it says its tables look like, once asked.
    schema: Option<ArrowSchema>,
}

/// What a stream of ours is made from.
pub(super) trait Produce: Send {
    fn schema(&mut self) -> Result<ArrowSchema>;

    fn next(&mut self) -> Result<Option<ArrowArray>>;
}

/// Tables of this crate.
struct Tables<T> {
    tables: T,
    /// Read to know the columns.
    first: Option<Table>,
    /// The first table without its rows.
    prototype: Table,
}

impl<T: Iterator<Item = Result<Table>> + Send> Produce for Tables<T> {
    fn schema(&mut self) -> Result<ArrowSchema> {
        table_schema(&self.prototype)
    }

    fn next(&mut self) -> Result<Option<ArrowArray>> {
        let Some(table) = self.first.take().map(Ok).or_else(|| self.tables.next()).transpose()? else {
            return Ok(None);
        };
        if without_rows(&table) != self.prototype {
            return Err(Error::new("a table has other columns than the first"));
        }
        let RawTable { array, schema: _ } = build(&table)?;
        Ok(Some(array))
    }
}

/// What a stream of ours points to.
struct Producer {
    /// `None` once it failed or panicked, which ends the stream.
    produce: Option<Box<dyn Produce>>,
    error: CString,
}

impl Producer {
    /// Runs a callback of the stream; 0, or an error number and a text that can be asked for.
    ///
    /// # Safety
    /// `stream` is one of ours, not released, used by this thread alone.
    unsafe fn answer(
        stream: *mut ArrowArrayStream,
        callback: impl FnOnce(Option<&mut dyn Produce>) -> Result<()>,
    ) -> c_int {
        // SAFETY: the caller vouches for the stream.
        let producer = unsafe { &mut *(*stream).private_data.cast::<Self>() };
        let produce = &mut producer.produce;
        match catch(|| callback(produce.as_mut().map(|produce| &mut **produce as &mut dyn Produce))) {
            Ok(()) => 0,
            Err(error) => {
                let_go(produce.take());
                producer.error = CString::new(error.to_string().replace('\0', "\u{fffd}")).unwrap_or_default();
                EIO
            }
        }
    }
}

/// Drops a value. What goes wrong while it is being dropped has nobody to be told to.
fn let_go<T>(value: T) {
    let _ = catch(|| {
        drop(value);
        Ok(())
    });
}

/// The error number of a stream that cannot go on.
const EIO: c_int = 5;

fn build(table: &Table) -> Result<RawTable> {
    let columns = table.iter().try_fold(Build::default(), |build, (name, column)| build.column(name, column));
    columns?.finish(0)
}

/// The type of a table.
pub(crate) fn table_schema(table: &Table) -> Result<ArrowSchema> {
    let RawTable { array: _, schema } = build(&without_rows(table))?;
    Ok(schema)
}

fn without_rows(table: &Table) -> Table {
    use super::Column::{Flags, Floats, Integers, Sets, Texts, Vectors};
    let empty = |column: &super::Column| match column {
        Sets(_) => Sets(crate::Sets::default()),
        Vectors { width, .. } => Vectors { width: *width, values: Vec::new() },
        Floats(_) => Floats(Vec::new()),
        Integers(_) => Integers(Vec::new()),
        Flags(_) => Flags(Vec::new()),
        Texts(_) => Texts(Vec::new()),
    };
    table.iter().map(|(name, column)| (name.clone(), empty(column))).collect()
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the interface promises a live stream and room for a schema, whatever was there before.
    unsafe {
        Producer::answer(stream, |produce| {
            let produce = produce.ok_or_else(|| Error::new("the stream has ended"))?;
            out.write(produce.schema()?);
            Ok(())
        })
    }
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as for `get_schema`.
    unsafe {
        Producer::answer(stream, |produce| {
            let next = produce.map_or(Ok(None), |produce| produce.next())?;
            out.write(next.unwrap_or_else(ArrowArray::empty));
            Ok(())
        })
    }
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the interface promises a live stream.
    unsafe { (*(*stream).private_data.cast::<Producer>()).error.as_ptr() }
}

unsafe extern "C" fn release(stream: *mut ArrowArrayStream) {
    // SAFETY: the stream is ours and is released once.
    unsafe {
        let producer = Box::from_raw((*stream).private_data.cast::<Producer>());
        (*stream).release = None;
        let_go(producer);
    }
}

impl Stream {
    /// A stream of one table.
    ///
    /// # Errors
    /// If its columns are not equally long.
    pub fn of(table: Table) -> Result<Self> {
        Self::from_tables([Ok(table)])
    }

    /// A stream of tables, produced as they are asked for; the first is asked for at once. An error ends the stream.
    ///
    /// # Errors
    /// That of the first table, or that there is none: a source without rows has one table without rows.
    pub fn from_tables<T>(tables: T) -> Result<Self>
    where
        T: IntoIterator<Item = Result<Table>>,
        T::IntoIter: Send + 'static,
    {
        let mut tables = tables.into_iter();
        let first = tables.next().ok_or_else(|| Error::new("there is no table, not even one without rows"))??;
        let prototype = without_rows(&first);
        Ok(Self::producing(Box::new(Tables { tables, first: Some(first), prototype })))
    }

    pub(super) fn producing(produce: Box<dyn Produce>) -> Self {
        let producer = Producer { produce: Some(produce), error: CString::default() };
        let mut raw = ArrowArrayStream::empty();
        raw.get_schema = Some(get_schema);
        raw.get_next = Some(get_next);
        raw.get_last_error = Some(get_last_error);
        raw.release = Some(release);
        raw.private_data = Box::into_raw(Box::new(producer)).cast();
        Self { raw, schema: None }
    }

    /// Takes over a stream.
    ///
    /// # Errors
    /// If it is released or lacks a function.
    ///
    /// # Safety
    /// `raw` follows the Arrow C stream interface.
    pub unsafe fn from_raw(raw: ArrowArrayStream) -> Result<Self> {
        if raw.is_released() || raw.get_schema.is_none() || raw.get_next.is_none() {
            return Err(Error::new("no stream was returned, or one that lacks a function"));
        }
        Ok(Self { raw, schema: None })
    }

    /// Hands the stream to whoever follows the Arrow C stream interface.
    pub fn into_raw(self) -> ArrowArrayStream {
        self.raw
    }

    /// Why the last call failed.
    fn last_error(&mut self, status: c_int) -> Error {
        let text = match self.raw.get_last_error {
            Some(get_last_error) => returning_once(|| {
                // SAFETY: the interface lets it be called after a call that failed.
                with_default_floats(|| unsafe { get_last_error(&mut self.raw) })
            }),
            None => std::ptr::null(),
        };
        if text.is_null() {
            return Error::new(format!("the stream failed with error {status}"));
        }
        // SAFETY: a text that is not null ends with a zero.
        Error::data(unsafe { CStr::from_ptr(text) }.to_string_lossy())
    }

    /// What all its tables look like.
    pub(super) fn schema(&mut self) -> Result<&ArrowSchema> {
        if self.schema.is_none() {
            let mut schema = ArrowSchema::empty();
            let get_schema = self.raw.get_schema.ok_or_else(|| Error::new("the stream has no schema"))?;
            // SAFETY: the stream is live, and the schema is one to be overwritten.
            let status =
                returning_once(|| with_default_floats(|| unsafe { get_schema(&mut self.raw, &mut schema) }));
            if status != 0 {
                return Err(self.last_error(status));
            }
            if schema.is_released() {
                return Err(Error::new("the stream has no schema"));
            }
            self.schema = Some(schema);
        }
        self.schema.as_ref().ok_or_else(|| Error::new("the stream has no schema"))
    }

    /// The next array; a released one at the end.
    pub(super) fn next_array(&mut self) -> Result<ArrowArray> {
        let mut array = ArrowArray::empty();
        let get_next = self.raw.get_next.ok_or_else(|| Error::new("the stream has no tables"))?;
        // SAFETY: the stream is live, and the array is one to be overwritten.
        let status = returning_once(|| with_default_floats(|| unsafe { get_next(&mut self.raw, &mut array) }));
        if status == 0 { Ok(array) } else { Err(self.last_error(status)) }
    }

    fn next_table(&mut self) -> Result<Option<Table>> {
        let array = self.next_array()?;
        if array.is_released() {
            return Ok(None);
        }
        self.schema()?;
        let schema = self.schema.take().unwrap_or_else(ArrowSchema::empty);
        let raw = RawTable { array, schema };
        // SAFETY: both are of the stream, which follows Arrow's interfaces.
        let table = unsafe { View::new(&raw, u64::MAX) }.and_then(|view| {
            view.names()
                .map(|name| Ok((name.to_owned(), view.column(name)?.unwrap_or(super::Column::Flags(vec![])))))
                .collect()
        });
        self.schema = Some(raw.schema);
        table.map(Some)
    }
}

/// The tables, as far as their columns are among those of [`Column`](super::Column).
impl Iterator for Stream {
    type Item = Result<Table>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_table().transpose()
    }
}
