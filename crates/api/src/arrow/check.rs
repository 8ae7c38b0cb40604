//! Whether an Arrow structure of another library can be read at all: looked at before any of its buffers is.

use std::ffi::{CStr, c_char};

use super::{ArrowArray, ArrowSchema};
use crate::{Error, Result};

/// Types inside types, deeper than any table of ours or of a loader.
const MAX_DEPTH: usize = 16;

/// Columns of a table.
const MAX_CHILDREN: i64 = 1 << 16;

/// A text of a schema; empty if it is null.
///
/// # Safety
/// `text` is null or ends with a zero, and lives as long as its schema.
pub(super) unsafe fn schema_text<'a>(text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Ok("");
    }
    // SAFETY: the caller vouches for the zero.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Error::new("a name or format is not UTF-8"))
}

/// What the children of a schema or array point to, none of them null or released.
///
/// # Safety
/// `children` is null or points to as many pointers as `count` says, each null or valid for `'a`.
pub(super) unsafe fn children<'a, T>(
    children: *const *mut T,
    count: i64,
    is_released: fn(&T) -> bool,
) -> Result<Vec<&'a T>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if !(0..=MAX_CHILDREN).contains(&count) {
        return Err(Error::new(format!("{count} children")));
    }
    if children.is_null() {
        return Err(Error::new(format!("its {count} children are null")));
    }
    (0..count as usize)
        .map(|at| {
            // SAFETY: the caller vouches for the pointers.
            let child = unsafe { (*children.add(at)).as_ref() };
            child
                .filter(|child| !is_released(child))
                .ok_or_else(|| Error::new(format!("child {at} is null or was released")))
        })
        .collect()
}

/// What is known of a type: how many buffers and children it has, and how many bits a value takes in the one that
/// matters. `None` for types that nobody here reads.
fn shape(format: &str) -> Option<(i64, Option<i64>, u64)> {
    Some(match format {
        "n" => (0, Some(0), 0),
        "b" => (2, Some(0), 1),
        "c" | "C" => (2, Some(0), 8),
        "s" | "S" | "e" => (2, Some(0), 16),
        "i" | "I" | "f" | "tdD" | "tts" | "ttm" => (2, Some(0), 32),
        "l" | "L" | "g" | "tdm" | "ttu" | "ttn" => (2, Some(0), 64),
        "u" | "z" => (3, Some(0), 32),
        "U" | "Z" => (3, Some(0), 64),
        "+l" => (2, Some(1), 32),
        "+L" => (2, Some(1), 64),
        "+s" => (1, None, 0),
        _ if format.starts_with("+w:") => (1, Some(1), 0),
        _ if format.starts_with("ts") || format.starts_with("tD") => (2, Some(0), 64),
        _ if format.starts_with("w:") => (2, Some(0), 8),
        _ => return None,
    })
}

/// The width in `+w:3` or `w:16`.
pub(super) fn width(format: &str) -> Result<u64> {
    let digits = format.rsplit(':').next().unwrap_or_default();
    let width: u64 = digits.parse().map_err(|_| Error::new(format!("the format {format} has no width")))?;
    if width > u64::from(u32::MAX) {
        return Err(Error::new(format!("the format {format} is too wide")));
    }
    Ok(width)
}

/// Whether schema and array belong together, say how long they are in a way that can be true, and have the buffers and
/// children that their type needs. What is in the buffers is not looked at. `budget` is how many bytes the producer was
/// allowed to allocate.
///
/// # Safety
/// Both are structures of the Arrow C data interface, not released, whose pointers are null or valid.
pub(crate) unsafe fn check(schema: &ArrowSchema, array: &ArrowArray, budget: u64) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe { check_below(schema, array, budget, 0, MAX_DEPTH) }
}

/// # Safety
/// As for [`check`].
unsafe fn check_below(
    schema: &ArrowSchema,
    array: &ArrowArray,
    budget: u64,
    least: u64,
    depth: usize,
) -> Result<()> {
    // SAFETY: the caller vouches for the structures.
    let (format, name) = unsafe { (schema_text(schema.format)?, schema_text(schema.name)?) };
    let about = |error: Error| if name.is_empty() { error } else { error.context(format!("`{name}`")) };
    let refuse = |text: String| about(Error::new(text));
    if depth == 0 {
        return Err(refuse(format!("has types more than {MAX_DEPTH} deep")));
    }
    let (Ok(length), Ok(offset)) = (u64::try_from(array.length), u64::try_from(array.offset)) else {
        return Err(refuse(format!("has the length {} and the offset {}", array.length, array.offset)));
    };
    let end = length.saturating_add(offset);
    if length < least {
        return Err(refuse(format!("has {length} values where there must be {least}")));
    }
    if array.null_count > array.length || array.null_count < -1 {
        return Err(refuse(format!("has {} nulls among {length} values", array.null_count)));
    }
    let Some((buffers, child_count, bits)) = shape(format) else {
        return check_other(schema, array, end, budget).map_err(about);
    };
    if schema.dictionary.is_null() != array.dictionary.is_null() {
        return Err(refuse("has a dictionary that its type does not name, or lacks it".to_owned()));
    }
    // SAFETY: the caller vouches for the pointers.
    if let Some((types, values)) = unsafe { schema.dictionary.as_ref().zip(array.dictionary.as_ref()) } {
        if types.is_released() || values.is_released() {
            return Err(refuse("has a dictionary that was released".to_owned()));
        }
        // SAFETY: passed on to the caller.
        unsafe { check_below(types, values, budget, 0, depth - 1) }.map_err(about)?;
    }
    if array.n_buffers != buffers || (buffers > 0 && array.buffers.is_null()) {
        return Err(refuse(format!("has {} buffers, and its type needs {buffers}", array.n_buffers)));
    }
    let bits = if format.starts_with("w:") { 8 * width(format).map_err(about)? } else { bits };
    // Whatever the budget, there is no more than the machine can address.
    if u128::from(end) * u128::from(bits) / 8 > u128::from(budget.min(isize::MAX as u64)) {
        return Err(refuse(format!("claims {end} values, more than the memory budget holds")));
    }
    for at in 1..buffers {
        // SAFETY: as many pointers as the type needs; a null one is noticed.
        let buffer = unsafe { *array.buffers.add(at as usize) };
        // The bytes of empty texts need no memory.
        if buffer.is_null() && end > 0 && at == 1 {
            return Err(refuse("lacks a buffer".to_owned()));
        }
    }
    // SAFETY: the caller vouches for the pointers.
    let (types, values) = unsafe {
        let types = children(schema.children, schema.n_children, ArrowSchema::is_released).map_err(about)?;
        (types, children(array.children, array.n_children, ArrowArray::is_released).map_err(about)?)
    };
    if types.len() != values.len() || child_count.is_some_and(|count| count != types.len() as i64) {
        return Err(refuse(format!("has {} children, its type {}", values.len(), types.len())));
    }
    let least = match format {
        "+s" => end,
        _ if format.starts_with("+w:") => end.saturating_mul(width(format).map_err(about)?),
        _ => 0,
    };
    for (schema, array) in types.into_iter().zip(values) {
        // SAFETY: passed on to the caller.
        unsafe { check_below(schema, array, budget, least, depth - 1) }.map_err(about)?;
    }
    Ok(())
}

/// What can be said of a type that nobody here reads: that it has as many children on both sides, and no more values than
/// there could be bits for.
fn check_other(schema: &ArrowSchema, array: &ArrowArray, end: u64, budget: u64) -> Result<()> {
    if schema.n_children != array.n_children {
        return Err(Error::new("schema and array are not of one type"));
    }
    if !(0..=MAX_CHILDREN).contains(&array.n_buffers) || (array.n_buffers > 0 && array.buffers.is_null()) {
        return Err(Error::new(format!("has {} buffers", array.n_buffers)));
    }
    if end / 8 > budget.min(isize::MAX as u64) {
        return Err(Error::new(format!("claims {end} values, more than the memory budget holds")));
    }
    Ok(())
}
