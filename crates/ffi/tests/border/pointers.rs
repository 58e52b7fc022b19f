//! Pointers and text: null, too short, not UTF-8, or wild after an error.

use super::*;

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
        let key = haulier_token_key { key: haulier_secret { bytes: [7; 32] }, id: 1 };
        refused(haulier_token_issue(&key, 1, null(), null_mut(), 0), "`claims`");
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
        assert!(haulier_server_is_shut_down(server) && haulier_server_all_acked(server, yes));
        assert_eq!(haulier_client_state(client), haulier_state::HAULIER_STATE_NONE);
        assert_eq!(haulier_block_length(null()), 0);
        assert!(!haulier_block_is_chunk(null(), 0, null(), 0));
    }
}

/// A caller that ignores the result has a null pointer, and not a wild one.
#[test]
fn what_could_not_be_made_is_null() {
    let server = Served::new(|_| ());
    let wild = std::ptr::dangling_mut::<u64>();
    let (mut client, mut other) = (wild.cast::<haulier_client>(), wild.cast::<haulier_server>());
    // SAFETY: nobody follows these pointers.
    unsafe {
        let no_ticket = haulier_client_connect(c"no ticket".as_ptr(), null(), &mut client);
        assert_eq!((no_ticket, client.is_null()), (HAULIER_ERROR_CREDENTIALS, true));
        client = wild.cast();
        refused(
            haulier_client_connect_to(c"x".as_ptr(), 1, null(), null(), null(), &mut client),
            "like",
        );
        assert!(client.is_null());
        refused(haulier_server_bind(c"x".as_ptr(), 1, null(), &mut other), "like");
        assert!(other.is_null());
        other = wild.cast();
        assert_eq!(haulier_server_worker(server.0, 9, &mut other), HAULIER_NOTHING);
        assert!(other.is_null());
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
            refused(result, "an address is like");
        }
    }
}

/// Text that does not fit is not cut off, and nothing is written behind the end.
#[test]
fn a_buffer_that_is_too_small_is_left_alone() {
    let server = Served::new(|_| ());
    let mut room = [1 as c_char; 64];
    // SAFETY: there is more room than is said.
    unsafe {
        refused(haulier_server_ticket(server.0, null(), 0, room.as_mut_ptr(), 20), "buffer has 20");
        refused(haulier_server_local_address(server.0, null_mut(), 64), "`text`");
        refused(haulier_server_local_address(server.0, room.as_mut_ptr(), 0), "buffer has 0");
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
        let with_identity = CStr::from_ptr(room.as_ptr()).count_bytes();
        claims.server_identity = null();
        assert_eq!(issue(&claims, &mut room), HAULIER_OK);
        assert!(CStr::from_ptr(room.as_ptr()).count_bytes() < with_identity);
        claims.user_data_bytes = 257;
        assert_eq!(issue(&claims, &mut room), HAULIER_ERROR_USAGE);
        claims.user_data_bytes = 0;
        claims.max_rate_bps = u64::MAX;
        refused(issue(&claims, &mut room), "max_rate_bps");
    }
}
