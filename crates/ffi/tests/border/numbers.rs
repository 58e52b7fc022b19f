//! Numbers, structs of settings and addresses that make no sense.

use super::*;

/// Each says by its kind whose fault it is.
#[test]
fn an_address_that_is_taken_and_a_name_that_is_unknown_are_no_fault_of_the_program() {
    let server = Served::new(|_| ());
    let mut taken = [0 as c_char; 64];
    let mut settings = MaybeUninit::<haulier_server_settings>::uninit();
    let (mut other, mut client) = (null_mut(), null_mut());
    // Longer than a name may be: no server of names is asked.
    let unknown = text(&format!("{}.example:4016", "x".repeat(70)));
    // SAFETY: all of it lives here.
    unsafe {
        let size = size_of::<haulier_server_settings>();
        assert_eq!(haulier_server_settings_init(settings.as_mut_ptr(), size), HAULIER_OK);
        (*settings.as_mut_ptr()).is_open = 1;
        let at = haulier_server_local_address(server.0, taken.as_mut_ptr(), taken.len());
        assert_eq!(at, HAULIER_OK);
        let bound = haulier_server_bind(taken.as_ptr(), 7, settings.as_ptr(), &mut other);
        assert_eq!(bound, HAULIER_ERROR_IO, "{}", last_error());
        let connected =
            haulier_client_connect_to(unknown.as_ptr(), 1, null(), null(), null(), &mut client);
        assert_eq!(connected, HAULIER_ERROR_IO, "{}", last_error());
    }
}

/// A number that a type of Rust's would cut off to one that makes sense is refused by its name.
#[test]
fn settings_that_mean_nothing_are_refused() {
    type Change = fn(&mut haulier_client_settings, &mut haulier_connection_settings);
    let changes: [(&str, Change); 5] = [
        ("3 is no haulier_delivery", |_, connection| connection.delivery = 3),
        ("2 is no haulier_drive", |client, _| client.drive = 2),
        ("`max_channels`", |_, connection| connection.max_channels = 65_536 + 16),
        ("`max_datagram_bytes`", |_, connection| connection.max_datagram_bytes = 65_536 + 1200),
        ("`request_copies`", |client, _| client.request_copies = 256 + 4),
    ];
    for (part, change) in changes {
        let mut client = MaybeUninit::<haulier_client_settings>::uninit();
        let mut connection = MaybeUninit::<haulier_connection_settings>::uninit();
        let mut made = null_mut();
        // SAFETY: all of it lives here.
        unsafe {
            let size = size_of::<haulier_client_settings>();
            assert_eq!(haulier_client_settings_init(client.as_mut_ptr(), size), HAULIER_OK);
            let size = size_of::<haulier_connection_settings>();
            assert_eq!(haulier_connection_settings_init(connection.as_mut_ptr(), size), HAULIER_OK);
            let (mut client, mut connection) = (client.assume_init(), connection.assume_init());
            change(&mut client, &mut connection);
            client.connection = &connection;
            let address = c"127.0.0.1:1".as_ptr();
            let result = haulier_client_connect_to(address, 1, null(), null(), &client, &mut made);
            refused(result, part);
            assert!(made.is_null());
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
        refused(haulier_server_set_lane(server.0, yes, 0, 0, 0, 65_537), "65537 is no weight");
        refused(haulier_server_set_block_priority(server.0, yes, 0, 256), "256 is no priority");
        // A length that no object has is not believed.
        refused(haulier_server_send_message(server.0, yes, data, usize::MAX), "`data`");
        refused(haulier_block_new(u64::MAX, data, 1, &mut null_mut()), "2^62 - 1");
        assert_eq!(haulier_buffer_new(usize::MAX, &mut null_mut()), HAULIER_ERROR_IO);
        refused(haulier_check_abi(HAULIER_ABI_VERSION + 1), "header");
        assert_eq!(haulier_check_abi(haulier_abi_version()), HAULIER_OK);
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

/// A program that was compiled before there was a `first_block`: what lies behind its settings is not read.
#[test]
fn settings_that_know_of_no_first_block_have_none() {
    Served::new(|settings| {
        settings.struct_size = std::mem::offset_of!(haulier_server_settings, first_block);
        settings.first_block = std::ptr::dangling();
    });
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
