//! Conversions between the boundary's types and Rust's, used by both directions of the crossing.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::types::{Float32Type, Float64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float32Array, Float64Array, ListArray, StructArray};
use arrow_schema::{DataType, Field};

use crate::abi::{RawClustering, RawSets, RawStr, RawTable};
use crate::guard::catch;
use crate::{Clustering, Diagnostics, Error, Result, Sets};

/// Copies a structure that begins with its size. Fields that were appended after the other side's release are zero
/// here, which is to say absent.
///
/// # Safety
/// `T` begins with a `u32`, and all zeroes are valid for what that says is not there; `ptr` points to one of at least the
/// length that it says.
pub(crate) unsafe fn read_sized<T>(ptr: *const T) -> T {
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: the caller vouches for the size, and for what the bytes are.
    unsafe {
        let size = ptr.cast::<u32>().read() as usize;
        ptr.cast::<u8>().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), size.min(size_of::<T>()));
        copy.assume_init()
    }
}

/// Lends a text to the other side.
pub(crate) fn lend(text: &str) -> RawStr {
    RawStr { ptr: text.as_ptr(), len: text.len() as u64 }
}

/// Lends a text that may be absent.
pub(crate) fn lend_optional(text: Option<&str>) -> RawStr {
    text.map_or(RawStr { ptr: std::ptr::null(), len: 0 }, lend)
}

/// Reads a borrowed text that may be absent.
///
/// # Safety
/// `raw` points to `len` bytes for at least `'a`, or is null.
pub(crate) unsafe fn optional_text<'a>(raw: RawStr) -> Result<Option<&'a str>> {
    if raw.ptr.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the bytes.
    let bytes = unsafe { slice(raw.ptr, raw.len) };
    std::str::from_utf8(bytes).map(Some).map_err(|_| Error::new("a text is not UTF-8"))
}

/// Reads a borrowed text; null is empty.
///
/// # Safety
/// As for [`optional_text`].
pub(crate) unsafe fn text<'a>(raw: RawStr) -> Result<&'a str> {
    // SAFETY: passed on to the caller.
    Ok(unsafe { optional_text(raw) }?.unwrap_or_default())
}

/// Views borrowed memory.
///
/// # Safety
/// `ptr` points to `len` initialised values for at least `'a`, or `len` is 0.
pub(crate) unsafe fn slice<'a, T>(ptr: *const T, len: u64) -> &'a [T] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for the memory.
    unsafe { std::slice::from_raw_parts(ptr, len as usize) }
}

/// Views borrowed memory for writing.
///
/// # Safety
/// As for [`slice`], and nobody else uses the memory meanwhile.
pub(crate) unsafe fn slice_mut<'a, T>(ptr: *mut T, len: u64) -> &'a mut [T] {
    if len == 0 {
        return &mut [];
    }
    // SAFETY: the caller vouches for the memory.
    unsafe { std::slice::from_raw_parts_mut(ptr, len as usize) }
}

/// Appends a text to the `String` behind `sink_ctx`.
///
/// # Safety
/// `sink_ctx` points to a `String` that nobody else uses meanwhile; `raw` is valid for the call.
pub(crate) unsafe extern "C" fn collect_text(sink_ctx: *mut c_void, raw: RawStr) {
    // SAFETY: the caller vouches for both.
    let (sink, bytes) = unsafe { (&mut *sink_ctx.cast::<String>(), slice(raw.ptr, raw.len)) };
    sink.push_str(&String::from_utf8_lossy(bytes));
}

/// Lends sets to the other side.
pub(crate) fn lend_sets(sets: &Sets) -> RawSets {
    RawSets { len: sets.len() as u64, offsets: sets.offsets().as_ptr(), values: sets.values().as_ptr() }
}

/// Copies borrowed sets.
///
/// # Safety
/// `raw` is valid for the call and describes sets as its type says.
pub(crate) unsafe fn copy_sets(raw: &RawSets) -> Result<Sets> {
    // SAFETY: the caller vouches for the offsets.
    let offsets = unsafe { slice(raw.offsets, raw.len + 1) };
    // SAFETY: the caller vouches for as many values as the last offset says.
    let values = unsafe { slice(raw.values, offsets[offsets.len() - 1].into()) };
    Sets::from_parts(offsets.to_vec(), values.to_vec())
}

impl RawTable {
    /// No table; what a callee overwrites.
    pub(crate) fn empty() -> Self {
        Self { array: FFI_ArrowArray::empty(), schema: FFI_ArrowSchema::empty() }
    }

    fn export(columns: Vec<(&str, ArrayRef)>, rows: usize) -> Result<Self> {
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let table = StructArray::try_new_with_length(fields.into(), arrays, None, rows)?;
        let (array, schema) = to_ffi(&table.into())?;
        Ok(Self { array, schema })
    }

    /// Takes over a table, checked to be well-formed.
    fn import(self, what: &str) -> Result<StructArray> {
        let import = || -> Result<StructArray> {
            if self.array.is_released() {
                return Err(Error::new("was not returned"));
            }
            // SAFETY: a table on the boundary follows the Arrow C Data Interface; its content is validated next.
            let data = unsafe { from_ffi(self.array, &self.schema) }?;
            data.validate_full()?;
            match data.data_type() {
                DataType::Struct(_) => Ok(StructArray::from(data)),
                other => Err(Error::new(format!("must be a struct, found {other}"))),
            }
        };
        // Arrow asserts what it expects of a structure's shape.
        catch(import).map_err(|error| error.context(format!("the table `{what}`")))
    }
}

fn fixed_size_list(values: &[f32], rows: usize) -> Result<ArrayRef> {
    let width = values.len().checked_div(rows).unwrap_or(0);
    let item = Field::new_list_field(DataType::Float32, false).into();
    let values = Arc::new(Float32Array::from(values.to_vec()));
    Ok(Arc::new(FixedSizeListArray::try_new(item, width as i32, values, None)?))
}

fn floats(table: &StructArray, name: &str) -> Result<Vec<f32>> {
    let Some(column) = table.column_by_name(name) else { return Ok(Vec::new()) };
    let list = column.as_fixed_size_list_opt();
    let values = list.and_then(|list| list.values().as_primitive_opt::<Float32Type>());
    let (Some(list), Some(values)) = (list, values) else {
        return Err(Error::new(format!(
            "the column `{name}` must be fixed_size_list<f32>, found {}",
            column.data_type()
        )));
    };
    if list.null_count() + values.null_count() > 0 {
        return Err(Error::new(format!("the column `{name}` has nulls")));
    }
    let width = list.value_length() as usize;
    Ok(values.values()[..list.len() * width].to_vec())
}

fn sets(table: &StructArray, what: &str, name: &str) -> Result<Sets> {
    let column = table
        .column_by_name(name)
        .ok_or_else(|| Error::new(format!("the table `{what}` has no column `{name}`")))?;
    Sets::from_arrow(column).map_err(|error| error.context(format!("the column `{name}` of `{what}`")))
}

impl RawClustering {
    /// What a callee overwrites.
    pub(crate) fn empty() -> Self {
        Self {
            size: size_of::<Self>() as u32,
            converged: 0,
            iterations: 0,
            objective: f64::NAN,
            assignments: RawTable::empty(),
            clusters: RawTable::empty(),
            trace: RawTable::empty(),
        }
    }
}

impl TryFrom<Clustering> for RawClustering {
    type Error = Error;

    fn try_from(clustering: Clustering) -> Result<Self> {
        let (rows, clusters) = (clustering.assignments.len(), clustering.clusters.len());
        let mut assignments: Vec<(&str, ArrayRef)> =
            vec![("clusters", Arc::new(clustering.assignments.to_arrow()))];
        if !clustering.memberships.is_empty() {
            assignments.push(("memberships", fixed_size_list(&clustering.memberships, rows)?));
        }
        for (name, column) in &clustering.extra {
            assignments.push((name, Arc::new(column.to_arrow())));
        }
        let mut described: Vec<(&str, ArrayRef)> = vec![("clusters", Arc::new(clustering.clusters.to_arrow()))];
        if !clustering.exemplars.is_empty() {
            let lists = clustering.exemplars.iter().map(|rows| Some(rows.iter().copied().map(Some)));
            described.push(("exemplars", Arc::new(ListArray::from_iter_primitive::<UInt32Type, _, _>(lists))));
        }
        if !clustering.centroids.is_empty() {
            described.push(("centroid", fixed_size_list(&clustering.centroids, clusters)?));
        }
        let Diagnostics { iterations, converged, objective, trace } = clustering.diagnostics;
        let steps = trace.len();
        Ok(Self {
            size: size_of::<Self>() as u32,
            converged: converged.into(),
            iterations,
            objective,
            assignments: RawTable::export(assignments, rows)?,
            clusters: RawTable::export(described, clusters)?,
            trace: RawTable::export(vec![("objective", Arc::new(Float64Array::from(trace)))], steps)?,
        })
    }
}

impl TryFrom<RawClustering> for Clustering {
    type Error = Error;

    fn try_from(raw: RawClustering) -> Result<Self> {
        let assignments = raw.assignments.import("assignments")?;
        let clusters = raw.clusters.import("clusters")?;
        let trace = raw.trace.import("trace")?;
        let trace = trace
            .column_by_name("objective")
            .and_then(|column| column.as_primitive_opt::<Float64Type>())
            .filter(|column| column.null_count() == 0)
            .ok_or_else(|| Error::new("the table `trace` must have a column `objective` of f64 without nulls"))?;
        let exemplars = match clusters.column_by_name("exemplars") {
            None => Vec::new(),
            Some(column) => {
                let list = column.as_list_opt::<i32>();
                let lists = list
                    .filter(|list| list.values().data_type() == &DataType::UInt32)
                    .filter(|list| list.null_count() + list.values().null_count() == 0);
                let Some(lists) = lists else {
                    return Err(Error::new("the column `exemplars` must be list<u32> without nulls"));
                };
                (0..lists.len()).map(|at| lists.value(at).as_primitive::<UInt32Type>().values().to_vec()).collect()
            }
        };
        let extra = assignments
            .column_names()
            .into_iter()
            .filter(|name| !["clusters", "memberships"].contains(name))
            .map(|name| Ok((name.to_owned(), sets(&assignments, "assignments", name)?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            assignments: sets(&assignments, "assignments", "clusters")?,
            clusters: sets(&clusters, "clusters", "clusters")?,
            exemplars,
            centroids: floats(&clusters, "centroid")?,
            memberships: floats(&assignments, "memberships")?,
            extra,
            diagnostics: Diagnostics {
                iterations: raw.iterations,
                converged: raw.converged != 0,
                objective: raw.objective,
                trace: trace.values().to_vec(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::RawClustererMethods;

    #[test]
    fn what_an_older_release_does_not_have_is_absent() {
        let older = [24u32, 0, 1, 0, 1, 0, 77, 77, 77, 77];
        // SAFETY: 24 bytes of methods, two of them functions that are not called.
        let methods: RawClustererMethods = unsafe { read_sized(older.as_ptr().cast()) };
        assert!(methods.memory.is_some() && methods.cluster.is_some());
        assert!(methods.streams.is_none() && methods.cluster_stream.is_none());
    }
}
