//! Pointers of C: the one place where they become references.
//!
//! The invariant: what can be seen to be wrong (a null pointer, a length that no object has, text that is
//! not UTF-8, a struct of a size that was never one) is an error. The rest is the caller's promise: a
//! pointer that is not null points to what the header says, for as long as the call runs.

use core::ffi::{CStr, c_char, c_void};
use core::mem::{MaybeUninit, size_of};
use core::net::SocketAddr;
use std::net::ToSocketAddrs;

use crate::result::{Failure, haulier_result};

/// What a handle points to.
///
/// # Safety
/// `pointer` is null, or points to a `T` that lives, and is not changed but by itself, while the result does.
#[inline]
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| is_null(name))
}

/// The bytes at a pointer. A null pointer may be given with a `length` of 0.
///
/// # Safety
/// `pointer` is null, or points to `length` bytes, which do not change while the result lives.
#[inline]
pub(crate) unsafe fn bytes<'a>(
    pointer: *const c_void,
    length: usize,
    name: &str,
) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise; a byte has every value and any place.
    unsafe { list(pointer.cast::<u8>(), length, name) }
}

/// The objects at a pointer. A null pointer may be given with a `count` of 0.
///
/// # Safety
/// `pointer` is null, or points to `count` objects, which do not change while the result lives.
#[inline]
pub(crate) unsafe fn list<'a, T>(
    pointer: *const T,
    count: usize,
    name: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(is_null(name));
    }
    if count > isize::MAX.unsigned_abs() / size_of::<T>().max(1) {
        return Err(is_too_long(name, count));
    }
    // SAFETY: not null, no longer than an object may be, and the rest is the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// Text of C.
///
/// # Safety
/// `pointer` is null, or points to bytes of which one is 0, and they do not change while the result lives.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(is_null(name));
    }
    // SAFETY: not null, and the rest is the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::usage(format!("`{name}` is not UTF-8")))
}

/// An address, or those of a name, which the system is asked for.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn addresses(
    pointer: *const c_char,
    name: &str,
) -> Result<Vec<SocketAddr>, Failure> {
    // SAFETY: the caller's promise.
    let text = unsafe { text(pointer, name) }?;
    let found = text.to_socket_addrs().map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => Failure::usage(format!(
            "`{name}` is \"{text}\", and an address is like \"192.0.2.7:4016\", \"[2001:db8::7]:4016\" or \
             \"example.org:4016\""
        )),
        _ => Failure::new(
            haulier_result::HAULIER_ERROR_IO,
            format!("no address is known for \"{text}\": {error}"),
        ),
    })?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() {
        let what = format!("no address is known for \"{text}\"");
        return Err(Failure::new(haulier_result::HAULIER_ERROR_IO, what));
    }
    Ok(found)
}

/// All addresses of a list of texts.
///
/// # Safety
/// As for [`list`], each as for [`text`].
pub(crate) unsafe fn all_addresses(
    pointer: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Vec<SocketAddr>, Failure> {
    let mut all = Vec::new();
    // SAFETY: the caller's promise, here and below.
    for &text in unsafe { list(pointer, count, name) }? {
        // SAFETY: see above.
        all.extend(unsafe { addresses(text, name) }?);
    }
    Ok(all)
}

/// Writes a result where the caller wants it. It must want it.
///
/// # Safety
/// `pointer` is null, or a `T` can be written there.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(is_null(name));
    }
    // SAFETY: not null, and the rest is the caller's promise. What was there is not dropped: C's memory may
    // never have been written.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Writes a result where the caller wants it, if it does.
///
/// # Safety
/// As for [`put`].
pub(crate) unsafe fn put_if_wanted<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: as in `put`.
        unsafe { pointer.write(value) };
    }
}

/// Writes text with its 0 into a buffer of the caller's.
///
/// # Safety
/// `buffer` is null, or `buffer_bytes` bytes can be written there.
pub(crate) unsafe fn put_text(
    buffer: *mut c_char,
    buffer_bytes: usize,
    text: &str,
) -> Result<haulier_result, Failure> {
    if buffer.is_null() {
        return Err(is_null("text"));
    }
    if text.len() >= buffer_bytes {
        let needed = text.len() + 1;
        let what = format!("the text takes {needed} bytes, and its buffer has {buffer_bytes}");
        return Err(Failure::usage(what));
    }
    // SAFETY: the buffer has room for the text and its 0, and it is not in the text, which is Rust's.
    unsafe {
        buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        buffer.add(text.len()).write(0);
    }
    Ok(haulier_result::HAULIER_OK)
}

/// A struct of settings or of results: its first field is its size as the program knows it, so that later
/// versions may add fields at the end.
///
/// # Safety
/// It is `repr(C)`, its first field is a `usize`, and every pattern of bits is one of its values.
pub(crate) unsafe trait Versioned: Copy {
    /// For messages.
    const NAME: &str;

    /// Its size in the first version of this ABI.
    const FIRST_BYTES: usize;

    /// Its values, if nobody sets any, with its size.
    fn defaults() -> Self;
}

/// What the program has set: what it does not know of has its default. Null is all defaults.
///
/// # Safety
/// `pointer` is null, or points to as many bytes as its first field says.
pub(crate) unsafe fn settings<T: Versioned>(pointer: *const T) -> Result<T, Failure> {
    let mut settings = T::defaults();
    if pointer.is_null() {
        return Ok(settings);
    }
    // SAFETY: not null, and a `T` begins with its size.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    check_size::<T>(size)?;
    // SAFETY: `pointer` has `size` bytes, as the caller promises, and a `T` has at least that number, as was
    // checked; and any bytes make a `T`.
    unsafe {
        let to = (&raw mut settings).cast::<u8>();
        to.copy_from_nonoverlapping(pointer.cast::<u8>(), size);
    }
    Ok(settings)
}

/// Writes a struct as far as the program knows it.
///
/// # Safety
/// `pointer` is null, or `size` bytes can be written there.
pub(crate) unsafe fn put_sized<T: Versioned>(
    pointer: *mut T,
    size: usize,
    value: T,
) -> Result<haulier_result, Failure> {
    if pointer.is_null() {
        return Err(is_null(T::NAME));
    }
    check_size::<T>(size)?;
    let value = MaybeUninit::new(value);
    // SAFETY: `pointer` has `size` bytes by the caller's promise, and `value` has them, as was checked.
    unsafe {
        let from = value.as_ptr().cast::<u8>();
        pointer.cast::<u8>().copy_from_nonoverlapping(from, size);
        // Not more than the program has room for.
        pointer.cast::<usize>().write_unaligned(size);
    }
    Ok(haulier_result::HAULIER_OK)
}

fn check_size<T: Versioned>(size: usize) -> Result<(), Failure> {
    let (first, last) = (T::FIRST_BYTES, size_of::<T>());
    if (first..=last).contains(&size) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "a {} has {first} to {last} bytes in this library, and {size} in the program: fill it with its \
         _init function, and compile with the header of the library",
        T::NAME
    )))
}

#[cold]
fn is_too_long(name: &str, count: usize) -> Failure {
    Failure::usage(format!("`{name}` is said to have {count} elements"))
}

#[cold]
fn is_null(name: &str) -> Failure {
    Failure::usage(format!("`{name}` is a null pointer"))
}
