//! Memory that belongs to Python, lent to Arrow: all unsafe code of the module.

use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{Buffer, ScalarBuffer};
use numpy::{PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The numbers of a C-contiguous matrix, where NumPy has them, and its shape.
pub(crate) fn matrix(array: &Bound<'_, PyArray2<f32>>) -> PyResult<(ScalarBuffer<f32>, [usize; 2])> {
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err("the matrix must be C-contiguous"));
    }
    let (rows, columns) = (array.shape()[0], array.shape()[1]);
    let Some(start) = NonNull::new(array.data().cast::<u8>()).filter(|_| rows * columns > 0) else {
        return Ok((ScalarBuffer::default(), [rows, columns]));
    };
    // Py says nothing of unwinding, and a reference that is only dropped is safe to look at after a panic.
    let owner = Arc::new(AssertUnwindSafe(array.clone().unbind()));
    // SAFETY: the array has so many numbers from there on, and lives as long as its owner, a reference to it, does. NumPy
    // does not move or resize an array that has references. That the numbers stay the same is up to the user's other
    // threads; the engine compares hashes before and after, and refuses the result if they were written to.
    let buffer = unsafe { Buffer::from_custom_allocation(start, 4 * rows * columns, owner) };
    Ok((buffer.into(), [rows, columns]))
}

/// The arrays that something with `__arrow_c_stream__` or `__arrow_c_array__` yields, in whose memory they stay.
pub(crate) fn arrays(object: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    if let Ok(export) = object.getattr("__arrow_c_stream__") {
        let capsule = export.call0()?.cast_into::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule of this name points to a `struct ArrowArrayStream`, which is moved out of it: what remains is
        // marked as released, so that the capsule's destructor does nothing.
        let reader = unsafe { ArrayStreamReader::from_raw(pointer.as_ptr()) }.map_err(refused)?;
        return reader.collect::<Result<Vec<_>, _>>().map_err(refused);
    }
    let Ok(export) = object.getattr("__arrow_c_array__") else {
        return Err(PyTypeError::new_err("expected an Arrow table or array"));
    };
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = export.call0()?.extract()?;
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: as above: capsules of these names point to these structures, which are moved out of them.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw(array.as_ptr());
        from_ffi(array, &FFI_ArrowSchema::from_raw(schema.as_ptr()))
    };
    Ok(vec![make_array(data.map_err(refused)?)])
}

fn refused(error: arrow_schema::ArrowError) -> PyErr {
    PyValueError::new_err(format!("the Arrow data cannot be read: {error}"))
}
