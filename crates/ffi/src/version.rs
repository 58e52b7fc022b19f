//! The version of the interface: what a program was compiled for, and what it runs with.

use crate::result::{Failure, border, haulier_result};

/// The version of the interface that this header describes. It changes when a program that was compiled with
/// another header would not work any more; the shared library has it in its name (libhaulier.so.1).
pub const HAULIER_ABI_VERSION: u32 = 1;

/// Returns the version of the interface of the library that runs: HAULIER_ABI_VERSION of its own header.
#[unsafe(no_mangle)]
pub extern "C" fn haulier_abi_version() -> u32 {
    HAULIER_ABI_VERSION
}

/// Compares the header with the library. Call it first, with HAULIER_ABI_VERSION:
///
///     if (haulier_check_abi(HAULIER_ABI_VERSION) != HAULIER_OK)
///         fprintf(stderr, "%s\n", haulier_last_error());
///
/// Returns HAULIER_OK if they fit, and HAULIER_ERROR_USAGE otherwise: then nothing else may be called.
#[unsafe(no_mangle)]
pub extern "C" fn haulier_check_abi(header: u32) -> haulier_result {
    border(|| {
        if header == HAULIER_ABI_VERSION {
            return Ok(haulier_result::HAULIER_OK);
        }
        Err(Failure::usage(format!(
            "the program was compiled for version {header} of haulier's C interface, and runs with a library \
             of version {HAULIER_ABI_VERSION}: compile it with the header of that library"
        )))
    })
}

/// Returns the version of the library as text, such as "0.1.0". It is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn haulier_version() -> *const core::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
