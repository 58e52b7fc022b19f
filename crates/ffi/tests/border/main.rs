//! The border as C sees it: what is wrong is an error with a sentence, and never more than that. What works
//! is tried by `program.c`, in C and C++, with the sanitizers.

mod life;
mod numbers;
mod pointers;

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use haulier_ffi::block::*;
use haulier_ffi::client::blocks::*;
use haulier_ffi::client::look::*;
use haulier_ffi::client::send::*;
use haulier_ffi::client::*;
use haulier_ffi::event::haulier_event_kind::*;
use haulier_ffi::event::*;
use haulier_ffi::result::haulier_result::*;
use haulier_ffi::result::*;
use haulier_ffi::secret::*;
use haulier_ffi::server::blocks::*;
use haulier_ffi::server::look::*;
use haulier_ffi::server::send::*;
use haulier_ffi::server::*;
use haulier_ffi::settings::*;
use haulier_ffi::source::*;
use haulier_ffi::stats::*;
use haulier_ffi::version::*;

fn last_error() -> String {
    // SAFETY: text with a 0, valid until the next error of this thread.
    unsafe { CStr::from_ptr(haulier_last_error()) }.to_str().unwrap().to_owned()
}

/// A usage error that names what is wrong.
fn refused(result: haulier_result, part: &str) {
    assert_eq!(result, HAULIER_ERROR_USAGE, "{part}: {}", last_error());
    assert!(last_error().contains(part), "{part}: {}", last_error());
}

/// The next event of a kind of a client; others are freed.
fn hear(client: *const haulier_client, kind: haulier_event_kind) -> haulier_event {
    loop {
        let mut event = event();
        // SAFETY: the client lives.
        let result = unsafe { haulier_client_wait(client, 10_000, &mut event) };
        assert_eq!(result, HAULIER_OK, "no {kind:?}: {}", last_error());
        if event.kind == kind {
            return event;
        }
        // SAFETY: it was polled.
        unsafe { haulier_event_free(&mut event) };
    }
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn event() -> haulier_event {
    // SAFETY: all zeros is an event: the header says so.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// An open server of the library's, and what it was bound with.
struct Served(*mut haulier_server);

impl Served {
    fn new(change: impl FnOnce(&mut haulier_server_settings)) -> Self {
        let mut settings = MaybeUninit::uninit();
        // SAFETY: the struct has its size.
        let result = unsafe {
            haulier_server_settings_init(
                settings.as_mut_ptr(),
                size_of::<haulier_server_settings>(),
            )
        };
        assert_eq!(result, HAULIER_OK);
        // SAFETY: it was filled.
        let mut settings = unsafe { settings.assume_init() };
        settings.is_open = 1;
        change(&mut settings);
        let mut server = null_mut();
        // SAFETY: all of it lives here.
        let bound =
            unsafe { haulier_server_bind(c"127.0.0.1:0".as_ptr(), 7, &settings, &mut server) };
        assert_eq!(bound, HAULIER_OK, "{}", last_error());
        Self(server)
    }

    fn ticket(&self) -> CString {
        let mut room = [0 as c_char; HAULIER_TEXT_BYTES as usize];
        // SAFETY: there is as much room as is said.
        let result =
            unsafe { haulier_server_ticket(self.0, null(), 0, room.as_mut_ptr(), room.len()) };
        assert_eq!(result, HAULIER_OK, "{}", last_error());
        // SAFETY: it was written with its 0.
        unsafe { CStr::from_ptr(room.as_ptr()) }.to_owned()
    }

    /// Its one connection.
    fn one(&self) -> u64 {
        let (mut connections, mut count) = ([0_u64; 2], 0);
        // SAFETY: there is room for two.
        let seen =
            unsafe { haulier_server_connections(self.0, connections.as_mut_ptr(), 2, &mut count) };
        assert_eq!((seen, count), (HAULIER_OK, 1));
        connections[0]
    }

    /// The next event of a kind; others are freed.
    fn hear(&self, kind: haulier_event_kind) -> haulier_event {
        loop {
            let mut event = event();
            // SAFETY: the server lives.
            let result = unsafe { haulier_server_wait(self.0, 10_000, &mut event) };
            assert_eq!(result, HAULIER_OK, "no {kind:?}: {}", last_error());
            if event.kind == kind {
                return event;
            }
            // SAFETY: it was polled.
            unsafe { haulier_event_free(&mut event) };
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // SAFETY: it was bound, and nobody else has it.
        unsafe { haulier_server_free(self.0) };
    }
}
