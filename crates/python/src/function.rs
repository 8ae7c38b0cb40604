//! The composer `python`: a function of the user's.

use std::sync::{Arc, Mutex, PoisonError};

use compflow_api::{Component, Composer, Error, Flags, Result, Services};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::memory::Shelf;
use crate::work::call;

static FUNCTIONS: Shelf<Callables> = Shelf::new();

/// What the user wrote.
struct Callables {
    compose: Py<PyAny>,
    vjp: Option<Py<PyAny>>,
    /// What it raised last.
    raised: Mutex<Option<PyErr>>,
}

/// A Python function as a composer, as long as this object lives.
#[pyclass(frozen, module = "compflow._engine")]
pub(crate) struct Function {
    number: u64,
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (compose, vjp=None))]
    fn new(compose: Py<PyAny>, vjp: Option<Py<PyAny>>) -> Self {
        Self { number: FUNCTIONS.put(Callables { compose, vjp, raised: Mutex::default() }) }
    }

    /// The number that the component `python` is told.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// What the function raised last, if anything; forgotten then.
    fn take_raised<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let callables = FUNCTIONS.get(self.number)?;
        let raised = callables.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map(|error| error.into_value(py).into_bound(py).into_any())
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        FUNCTIONS.remove(self.number);
    }
}

/// A function of the program's.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// The number under which it is known.
    function: u64,
}

/// The component.
pub(crate) struct PythonComposer(Arc<Callables>);

impl Component for PythonComposer {
    const NAME: &'static str = "python";
    const SUMMARY: &'static str = "a Python function of two matrices";
    const FLAGS: Flags = Flags::HAS_GRADIENTS;
    type Params = Params;

    fn new(Params { function }: Params, _services: &Services<'_>) -> Result<Self> {
        FUNCTIONS.get(function).map(Self).ok_or_else(|| Error::parameter("function", "is gone"))
    }

    fn flags(&self) -> Flags {
        if self.0.vjp.is_some() { Flags::HAS_GRADIENTS } else { Flags::NONE }
    }
}

impl Composer for PythonComposer {
    fn compose(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        self.call("the composer", |py| {
            let pair = (matrix(py, left, dim)?, matrix(py, right, dim)?);
            let composed = self.0.compose.bind(py).call1(pair)?;
            take(&composed, "the composer", dim, out)
        })
    }

    fn vjp(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        grad: &[f32],
        grad_left: &mut [f32],
        grad_right: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        let Some(vjp) = &self.0.vjp else { return Err(Error::new("the composer has no gradients")) };
        self.call("the composer's vjp", |py| {
            let three = (matrix(py, left, dim)?, matrix(py, right, dim)?, matrix(py, grad, dim)?);
            let pulled = vjp.bind(py).call1(three)?;
            let pair: (Bound<'_, PyAny>, Bound<'_, PyAny>) = pulled.extract().map_err(|_| {
                PyTypeError::new_err(
                    "the composer's vjp must return two matrices, the gradients of left and right",
                )
            })?;
            take(&pair.0, "the composer's vjp", dim, grad_left)?;
            take(&pair.1, "the composer's vjp", dim, grad_right)
        })
    }
}

impl PythonComposer {
    /// Calls into Python from whichever thread this is.
    fn call(&self, what: &str, work: impl FnOnce(Python<'_>) -> PyResult<()>) -> Result<()> {
        let done = call(|py| {
            work(py).map_err(|error| {
                let name = error.get_type(py).name().map_or_else(|_| String::new(), |name| name.to_string());
                let text = format!("{what} raised {name}: {}", error.value(py));
                *self.0.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Error::data(text)
            })
        });
        // An interpreter that ends takes no more calls.
        done.unwrap_or(Err(Error::Cancelled))
    }
}

/// A copy that Python may keep.
fn matrix<'py>(py: Python<'py>, values: &[f32], dim: usize) -> PyResult<Bound<'py, PyArray2<f32>>> {
    PyArray1::from_slice(py, values).reshape([values.len() / dim, dim])
}

/// Copies what the function returned.
fn take(found: &Bound<'_, PyAny>, what: &str, dim: usize, out: &mut [f32]) -> PyResult<()> {
    let numpy = found.py().import("numpy")?;
    let array = numpy.call_method1("ascontiguousarray", (found, "float32"))?;
    let wrong = |found: String| {
        let wanted = (out.len() / dim, dim);
        PyTypeError::new_err(format!("{what} must return an array of shape {wanted:?}, found {found}"))
    };
    let Ok(array) = array.extract::<PyReadonlyArray2<'_, f32>>() else {
        return Err(wrong(format!("shape {}", array.getattr("shape")?)));
    };
    if array.shape() != [out.len() / dim, dim] {
        return Err(wrong(format!("shape {:?}", (array.shape()[0], array.shape()[1]))));
    }
    out.copy_from_slice(array.as_slice()?);
    Ok(())
}
