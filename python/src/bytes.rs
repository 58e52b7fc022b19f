//! Bytes of Python and of haulier, and blocks.
//!
//! What goes in is not copied if it is `bytes`, which never change: haulier holds the object until it was
//! sent. Anything else with a buffer may change, and is copied. What comes out is `bytes`: copied once, which
//! at 10 GB/s is little beside decrypting it, and other threads of Python run meanwhile. A class with
//! Python's buffer protocol would save it, and needs Python 3.11 in a wheel for every version.

use bytes::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView};
use pyo3::{Borrowed, ffi};

/// Below it a copy is quicker than letting other threads run.
const COPIED_AT_ONCE: usize = 64 << 10;

/// Bytes from Python.
pub(crate) struct Data(pub(crate) Bytes);

impl<'a, 'py> FromPyObject<'a, 'py> for Data {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.extract::<PyBackedBytes>()
            && object.is_instance_of::<PyBytes>()
        {
            return Ok(Self(Bytes::from_owner(bytes)));
        }
        let view = PyMemoryView::from(&object).map_err(|_| {
            let what = object.get_type().name().map_or_else(|_| "?".into(), |it| it.to_string());
            PyTypeError::new_err(format!(
                "bytes are needed, or something with a buffer, not {what}"
            ))
        })?;
        let copy = view.call_method0("tobytes")?.extract::<PyBackedBytes>()?;
        Ok(Self(Bytes::from_owner(copy)))
    }
}

/// Secret bytes, or a BLAKE3: 32 of them.
pub(crate) fn thirty_two(data: &Data, what: &str) -> Result<[u8; 32], crate::failure::Failure> {
    data.0.as_ref().try_into().map_err(|_| {
        let found = data.0.len();
        crate::failure::Failure::usage(format!("{what} has {found} bytes: it must have 32"))
    })
}

/// Bytes for Python.
#[expect(unsafe_code, reason = "no safe way fills `bytes` while other threads of Python run")]
pub(crate) fn to_python<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let Ok(length) = ffi::Py_ssize_t::try_from(data.len()) else { unreachable!() };
    if data.len() < COPIED_AT_ONCE {
        return Ok(PyBytes::new(py, data));
    }
    // SAFETY: without bytes to copy Python makes an object of this length whose bytes are to be written
    // before any other code has it; no other code has it while the lock is released. The cast is right, for
    // the object is `bytes`.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(std::ptr::null(), length);
        let object = Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<PyBytes>();
        let room = ffi::PyBytes_AsString(object.as_ptr()) as usize;
        py.detach(|| {
            std::ptr::copy_nonoverlapping(data.as_ptr(), room as *mut u8, data.len());
        });
        Ok(object)
    }
}

/// Bytes to send, hashed once, to as many as want them. The tag is the program's own, below 2^62. `bytes`
/// are not copied, and held until they were sent; what else has a buffer is copied.
#[pyclass(module = "haulier", frozen)]
pub(crate) struct Block(pub(crate) haulier::Block);

#[pymethods]
impl Block {
    #[new]
    fn new(py: Python<'_>, tag: u64, data: Data) -> Self {
        Self(py.detach(|| haulier::Block::new(tag, data.0)))
    }

    /// The program's name for it.
    #[getter]
    const fn tag(&self) -> u64 {
        self.0.tag()
    }

    /// Its size.
    #[getter]
    const fn length_bytes(&self) -> u64 {
        self.0.length()
    }

    /// Its BLAKE3.
    #[getter]
    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.digest())
    }

    /// A copy of its bytes.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        to_python(py, self.0.data())
    }

    fn __repr__(&self) -> String {
        format!("<Block tag={} of {} bytes>", self.0.tag(), self.0.length())
    }
}
