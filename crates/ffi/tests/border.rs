//! The border as C sees it: what is wrong is an error with a sentence, and never more than that. What works
//! is tried by `program.c`, in C and C++, with the sanitizers.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use haulier_ffi::block::*;
use haulier_ffi::client::blocks::*;
use haulier_ffi::client::look::*;
use haulier_ffi::client::send::*;
use haulier_ffi::client::*;
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

/// Every function that takes a pointer is given null, in each of the places where it must not be.
#[test]
fn null_pointers_are_named() {
    let (client, server) = (null::<haulier_client>(), null::<haulier_server>());
    let mut place = event();
    let some = c"127.0.0.1:1".as_ptr();
    let yes = 1 << 32 | 1;
    // SAFETY: null is what is tried, and the rest lives here.
    unsafe {
        refused(haulier_client_connect(null(), null(), &mut null_mut()), "`ticket`");
        refused(haulier_client_connect_to(some, 1, null(), null(), null(), null_mut()), "`client`");
        refused(
            haulier_client_connect_to(null(), 1, null(), null(), null(), &mut null_mut()),
            "`address`",
        );
        refused(haulier_client_poll(client, &mut place), "`client`");
        refused(haulier_client_wait(client, 0, &mut place), "`client`");
        refused(haulier_client_wake(client), "`client`");
        refused(haulier_client_close(client, 0, null()), "`client`");
        refused(haulier_client_finish(client, 0), "`client`");
        refused(haulier_client_send_message(client, null(), 0), "`client`");
        refused(haulier_client_send_packet(client, null(), 0, null_mut()), "`client`");
        refused(haulier_client_send_block(client, null(), null_mut()), "`client`");
        refused(haulier_client_have_block(client, null()), "`client`");
        refused(haulier_client_stats(client, null_mut(), 0), "`client`");
        refused(haulier_client_want_chunk(client, null_mut()), "`client`");
        refused(haulier_client_provide_chunk(client, 0, 0, null(), 0), "`client`");
        refused(haulier_server_want_chunk(server, yes, null_mut()), "`server`");
        refused(haulier_server_provide_chunk(server, yes, 0, 0, null(), 0), "`server`");
        refused(haulier_server_worker(server, 0, &mut null_mut()), "`server`");
        refused(haulier_chunk_value(1, 0, null(), 1, null_mut()), "`chunk`");
        refused(haulier_chunk_value(1, 0, some.cast(), 1, null_mut()), "`value`");
        refused(haulier_block_from_values(1, 1, null(), 1, &mut null_mut()), "`values`");
        refused(haulier_block_from_values(1, 0, null(), 0, null_mut()), "`block`");
        refused(haulier_server_bind(null(), 1, null(), &mut null_mut()), "`address`");
        refused(haulier_server_bind(some, 1, null(), null_mut()), "`server`");
        refused(haulier_server_poll(server, &mut place), "`server`");
        refused(haulier_server_wait(server, 0, &mut place), "`server`");
        refused(haulier_server_close(server, 1, 0, null()), "`server`");
        refused(haulier_server_ticket(server, null(), 0, null_mut(), 0), "`server`");
        refused(haulier_server_stats(server, null_mut(), 0), "`server`");
        refused(haulier_block_new(1, null(), 1, &mut null_mut()), "`data`");
        refused(haulier_block_new(1, null(), 0, null_mut()), "`block`");
        refused(haulier_block_from_buffer(1, null_mut(), &mut null_mut()), "`buffer`");
        refused(haulier_block_from_buffer(1, &mut null_mut(), &mut null_mut()), "`buffer`");
        refused(haulier_block_digest(null(), null_mut()), "`block`");
        refused(haulier_secret_random(null_mut()), "`secret`");
        refused(haulier_identity_public(null(), null_mut()), "`identity`");
        refused(haulier_token_issue(null(), 1, null(), null_mut(), 0), "`key`");
        refused(haulier_connection_settings_init(null_mut(), 0), "haulier_connection_settings");
        // What frees, and what only looks, takes it for nothing.
        haulier_client_free(null_mut());
        haulier_server_free(null_mut());
        haulier_block_free(null_mut());
        haulier_buffer_free(null_mut());
        haulier_event_free(null_mut());
        haulier_secret_wipe(null_mut());
        assert!(haulier_buffer_data(null_mut()).is_null());
        assert!(haulier_client_is_closed(client) && haulier_client_all_acked(client));
        assert!(haulier_server_is_shut_down(server));
        assert_eq!(haulier_client_state(client), haulier_state::HAULIER_STATE_NONE);
        assert_eq!(haulier_block_length(null()), 0);
        assert!(!haulier_block_is_chunk(null(), 0, null(), 0));
    }
}

/// An event that has no place to go to is not taken, and so not lost.
#[test]
fn an_event_without_a_place_waits_for_one() {
    let server = Served::new(|_| ());
    let mut client = null_mut();
    // SAFETY: all of it lives here.
    unsafe {
        assert_eq!(
            haulier_client_connect(server.ticket().as_ptr(), null(), &mut client),
            HAULIER_OK
        );
        refused(haulier_server_wait(server.0, 10_000, null_mut()), "`event`");
        let mut connecting = server.hear(haulier_event_kind::HAULIER_EVENT_CONNECTING);
        assert_ne!(connecting.connection, 0);
        haulier_event_free(&mut connecting);
        // The second time it holds nothing any more.
        haulier_event_free(&mut connecting);
        assert_eq!(connecting.kind, haulier_event_kind::HAULIER_EVENT_NONE);
        haulier_client_free(client);
    }
}

#[test]
fn text_that_is_no_text_is_refused() {
    let bad = CString::new(vec![b'h', 0xff, 0xfe]).unwrap();
    let mut client = null_mut();
    // SAFETY: all of it lives here.
    unsafe {
        refused(haulier_client_connect(bad.as_ptr(), null(), &mut client), "UTF-8");
        let result = haulier_client_connect(c"no ticket".as_ptr(), null(), &mut client);
        assert_eq!((result, client.is_null()), (HAULIER_ERROR_CREDENTIALS, true));
        for wrong in ["", "127.0.0.1", "127.0.0.1:x", ":4016:"] {
            let wrong = text(wrong);
            let result =
                haulier_client_connect_to(wrong.as_ptr(), 1, null(), null(), null(), &mut client);
            assert!(
                matches!(result, HAULIER_ERROR_USAGE | HAULIER_ERROR_IO) && client.is_null(),
                "{wrong:?}: {result:?}"
            );
        }
    }
}

#[test]
fn numbers_that_mean_nothing_are_refused() {
    let server = Served::new(|_| ());
    let byte = [0_u8];
    let data = byte.as_ptr().cast::<c_void>();
    let (no, yes) = (u64::from(u32::MAX), 1 << 32 | 1);
    // SAFETY: all of it lives here.
    unsafe {
        let send = |channel, order| {
            haulier_server_send_message_on(server.0, yes, channel, order, data, 1, null_mut())
        };
        refused(send(256, 0), "256 is no channel");
        refused(send(0, 2), "2 is no haulier_order");
        // A connection that is gone, or never was.
        assert_eq!(send(0, 0), HAULIER_ERROR_NOT_OPEN);
        refused(haulier_server_send_message(server.0, no, data, 1), "never a connection");
        assert_eq!(haulier_server_state(server.0, yes), haulier_state::HAULIER_STATE_NONE);
        refused(haulier_server_set_urgency(server.0, yes, 9), "9 is no haulier_urgency");
        refused(haulier_server_set_lane(server.0, yes, 3, 0, 0, 1), "3 is no haulier_source");
        refused(haulier_server_set_lane(server.0, yes, 0, 0, 256, 1), "256 is no priority");
        refused(haulier_server_set_lane(server.0, yes, 0, 0, 0, 0), "`weight`");
        // A length that no object has is not believed.
        refused(haulier_server_send_message(server.0, yes, data, usize::MAX), "`data`");
        refused(haulier_block_new(u64::MAX, data, 1, &mut null_mut()), "2^62 - 1");
        assert_eq!(haulier_buffer_new(usize::MAX, &mut null_mut()), HAULIER_ERROR_IO);
        refused(haulier_check_abi(HAULIER_ABI_VERSION + 1), "header");
        assert_eq!(haulier_check_abi(haulier_abi_version()), HAULIER_OK);
    }
}

/// What does not fit is not cut off, and nothing is written behind the end.
#[test]
fn a_buffer_that_is_too_small_is_left_alone() {
    let server = Served::new(|_| ());
    let mut room = [1 as c_char; 64];
    // SAFETY: there is more room than is said.
    unsafe {
        refused(haulier_server_ticket(server.0, null(), 0, room.as_mut_ptr(), 20), "buffer has 20");
        assert_eq!(room, [1; 64]);
        let wanted = haulier_server_local_address(server.0, room.as_mut_ptr(), room.len());
        assert_eq!(wanted, HAULIER_OK);
        let length = CStr::from_ptr(room.as_ptr()).count_bytes();
        assert_eq!(
            haulier_server_local_address(server.0, room.as_mut_ptr(), length + 1),
            HAULIER_OK
        );
        refused(haulier_server_local_address(server.0, room.as_mut_ptr(), length), "takes");
    }
}

/// A block of a source has a value for each of its chunks, and each is that of a chunk of the right length.
#[test]
fn values_that_make_no_block_are_refused() {
    let chunk = vec![7_u8; HAULIER_CHUNK_BYTES as usize];
    let (at, whole) = (chunk.as_ptr().cast::<c_void>(), chunk.len());
    let mut values = [0_u8; 64];
    let mut block = null_mut();
    // SAFETY: all of it lives here.
    unsafe {
        let mut value = |index, bytes| {
            haulier_chunk_value(300_000, index, at, bytes, values.as_mut_ptr().add(32))
        };
        refused(value(0, whole - 1), "chunk 0 of a block of 300000 bytes has 262144");
        refused(value(1, whole), "has 37856");
        refused(value(2, 0), "chunk 2");
        assert_eq!(value(1, 300_000 - whole), HAULIER_OK);
        assert_eq!(haulier_chunk_value(300_000, 0, at, whole, values.as_mut_ptr()), HAULIER_OK);
        let made = haulier_block_from_values(1, 300_000, values.as_ptr(), 1, &mut block);
        refused(made, "has 2 chunks, and 1 values were given");
        refused(haulier_block_from_values(u64::MAX, 0, null(), 0, &mut block), "2^62 - 1");
        let made = haulier_block_from_values(1, 300_000, values.as_ptr(), 2, &mut block);
        assert_eq!((made, haulier_block_length(block)), (HAULIER_OK, 300_000));
        // The same bytes as one piece have the same digest.
        let (mut digest, mut other) = ([0; 32], [1; 32]);
        let mut copied = null_mut();
        let bytes = vec![7_u8; 300_000];
        assert_eq!(
            haulier_block_new(1, bytes.as_ptr().cast(), bytes.len(), &mut copied),
            HAULIER_OK
        );
        assert_eq!(haulier_block_digest(block, digest.as_mut_ptr()), HAULIER_OK);
        assert_eq!(haulier_block_digest(copied, other.as_mut_ptr()), HAULIER_OK);
        assert_eq!(digest, other);
        assert!(haulier_block_is_chunk(block, 0, at, whole));
        assert!(!haulier_block_is_chunk(block, 1, at, whole));
        assert!(haulier_block_is_chunk(copied, 1, at, 300_000 - whole));
        haulier_block_free(block);
        haulier_block_free(copied);
    }
}

/// A path that cannot be written is named before anything is begun.
#[test]
fn a_trace_that_cannot_be_written_is_an_error() {
    let mut settings = MaybeUninit::<haulier_client_settings>::uninit();
    let mut client = null_mut();
    // SAFETY: all of it lives here.
    unsafe {
        let size = size_of::<haulier_client_settings>();
        assert_eq!(haulier_client_settings_init(settings.as_mut_ptr(), size), HAULIER_OK);
        let mut settings = settings.assume_init();
        let connect = |settings: &haulier_client_settings, client: &mut _| {
            let address = c"127.0.0.1:1".as_ptr();
            haulier_client_connect_to(address, 1, null(), null(), settings, client)
        };
        settings.qlog_path = c"/nowhere/at/all.sqlog".as_ptr();
        assert_eq!((connect(&settings, &mut client), client.is_null()), (HAULIER_ERROR_IO, true));
        assert!(last_error().contains("`qlog_path` is \"/nowhere/at/all.sqlog\""));
        settings.qlog_path = null();
        settings.key_log_path = c"/nowhere/at/all.keys".as_ptr();
        assert_eq!((connect(&settings, &mut client), client.is_null()), (HAULIER_ERROR_IO, true));
        assert!(last_error().contains("`key_log_path`"), "{}", last_error());
    }
}

/// The events of a worker are those of its clients, and the server goes on until the last handle is freed.
#[test]
fn a_worker_is_the_same_server() {
    let mut server = Served::new(|settings| settings.workers = 1);
    let (mut worker, mut client) = (null_mut(), null_mut());
    // SAFETY: all of it lives here, and is freed once.
    unsafe {
        assert_eq!(haulier_server_worker(server.0, 1, &mut worker), HAULIER_NOTHING);
        assert!(worker.is_null());
        assert_eq!(haulier_server_worker(server.0, 0, &mut worker), HAULIER_OK);
        let ticket = server.ticket();
        haulier_server_free(std::mem::replace(&mut server.0, worker));
        assert_eq!(haulier_client_connect(ticket.as_ptr(), null(), &mut client), HAULIER_OK);
        let mut connecting = server.hear(haulier_event_kind::HAULIER_EVENT_CONNECTING);
        haulier_event_free(&mut connecting);
        haulier_client_free(client);
    }
}

#[test]
fn a_server_that_would_let_nobody_in_says_so() {
    let mut settings = MaybeUninit::<haulier_server_settings>::uninit();
    let mut server = null_mut();
    // SAFETY: all of it lives here.
    unsafe {
        let size = size_of::<haulier_server_settings>();
        assert_eq!(haulier_server_settings_init(settings.as_mut_ptr(), size), HAULIER_OK);
        let address = c"127.0.0.1:0".as_ptr();
        refused(haulier_server_bind(address, 7, settings.as_ptr(), &mut server), "nobody in");
        refused(haulier_server_bind(address, 7, null(), &mut server), "nobody in");
        (*settings.as_mut_ptr()).is_open = 1;
        (*settings.as_mut_ptr()).max_uplink_bps = 1;
        refused(haulier_server_bind(address, 7, settings.as_ptr(), &mut server), "max_uplink_bps");
        (*settings.as_mut_ptr()).struct_size = size + 8;
        refused(
            haulier_server_bind(address, 7, settings.as_ptr(), &mut server),
            "bytes in this library",
        );
        refused(haulier_server_settings_init(settings.as_mut_ptr(), size + 8), "_init");
        assert!(server.is_null());
    }
}

/// What HAULIER_TEXT_BYTES promises: the longest ticket and the longest token fit.
#[test]
fn the_longest_texts_fit() {
    let secret = haulier_secret { bytes: [7; 32] };
    let server = Served::new(|settings| {
        settings.secret = &secret;
        settings.identity = &secret;
    });
    let addresses: Vec<CString> =
        (1..=8).map(|n| text(&format!("[2001:db8:1111:2222:3333:4444:5555:{n}]:40000"))).collect();
    let addresses: Vec<*const c_char> = addresses.iter().map(|text| text.as_ptr()).collect();
    let mut room = [0 as c_char; HAULIER_TEXT_BYTES as usize];
    let key = haulier_token_key { key: secret, id: 1 };
    let mut claims = MaybeUninit::<haulier_token_claims>::uninit();
    let (user_data, public) = ([7_u8; 256], [7_u8; 32]);
    // SAFETY: all of it lives here.
    unsafe {
        let (at, count) = (addresses.as_ptr(), addresses.len());
        assert_eq!(
            haulier_server_ticket(server.0, at, count, room.as_mut_ptr(), room.len()),
            HAULIER_OK
        );
        haulier_token_claims_init(claims.as_mut_ptr(), size_of::<haulier_token_claims>());
        let mut claims = claims.assume_init();
        claims.expiry_unix_s = 60;
        (claims.servers, claims.server_count) = (at, count);
        claims.client_address = addresses[0];
        (claims.user_data, claims.user_data_bytes) = (user_data.as_ptr().cast(), user_data.len());
        claims.server_identity = public.as_ptr();
        let issue = |claims: &haulier_token_claims, room: &mut [c_char]| {
            haulier_token_issue(&key, 7, claims, room.as_mut_ptr(), room.len())
        };
        assert_eq!(issue(&claims, &mut room), HAULIER_OK, "{}", last_error());
        claims.user_data_bytes = 257;
        assert_eq!(issue(&claims, &mut room), HAULIER_ERROR_USAGE);
        claims.user_data_bytes = 0;
        claims.max_rate_bps = u64::MAX;
        refused(issue(&claims, &mut room), "max_rate_bps");
    }
}

/// A block is shared, not copied: it may be freed while it is on its way, and a buffer becomes a block whole.
#[test]
fn a_buffer_that_became_a_block_is_gone() {
    // SAFETY: all of it lives here.
    unsafe {
        let (mut buffer, mut block) = (null_mut(), null_mut());
        assert_eq!(haulier_buffer_new(3, &mut buffer), HAULIER_OK);
        haulier_buffer_data(buffer).copy_from(b"abc".as_ptr(), 3);
        // A tag that is refused leaves the buffer as it was.
        refused(haulier_block_from_buffer(u64::MAX, &mut buffer, &mut block), "tag");
        assert!(!buffer.is_null() && block.is_null());
        assert_eq!(haulier_block_from_buffer(1, &mut buffer, &mut block), HAULIER_OK);
        assert!(buffer.is_null());
        let (mut digest, mut other) = ([0; 32], [1; 32]);
        assert_eq!(haulier_block_digest(block, digest.as_mut_ptr()), HAULIER_OK);
        let mut copied = null_mut();
        assert_eq!(haulier_block_new(1, c"abc".as_ptr().cast(), 3, &mut copied), HAULIER_OK);
        assert_eq!(haulier_block_digest(copied, other.as_mut_ptr()), HAULIER_OK);
        assert_eq!((digest, haulier_block_length(block)), (other, 3));
        haulier_block_free(block);
        haulier_block_free(copied);
    }
}
