//! How long objects live, and which calls wait: events, wakes, workers, buffers.

use super::*;

/// An event that has no place to go to is not taken, and so not lost; nor is a chunk that is wanted.
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
        let mut connecting = server.hear(HAULIER_EVENT_CONNECTING);
        assert_ne!(connecting.connection, 0);
        haulier_event_free(&mut connecting);
        // The second time it holds nothing any more.
        haulier_event_free(&mut connecting);
        assert_eq!(connecting.kind, HAULIER_EVENT_NONE);
        haulier_event_free(&mut hear(client, HAULIER_EVENT_CONNECTED));
        // When an end knows that its message has arrived, the other has that.
        assert_eq!(haulier_client_send_message(client, null(), 0), HAULIER_OK);
        haulier_event_free(&mut hear(client, HAULIER_EVENT_MESSAGE_ACKED));
        refused(haulier_server_poll(server.0, null_mut()), "`event`");
        haulier_event_free(&mut server.hear(HAULIER_EVENT_MESSAGE));
        let sent = haulier_server_send_message(server.0, server.one(), null(), 0);
        assert_eq!(sent, HAULIER_OK);
        haulier_event_free(&mut server.hear(HAULIER_EVENT_MESSAGE_ACKED));
        refused(haulier_client_poll(client, null_mut()), "`event`");
        refused(haulier_client_wait(client, 10_000, null_mut()), "`event`");
        haulier_event_free(&mut hear(client, HAULIER_EVENT_MESSAGE));
        refused(haulier_client_want_chunk(client, null_mut()), "`chunk`");
        haulier_client_free(client);
    }
}

/// What a program reads that looks at the kind and not at the result: no event, rather than the last one.
#[test]
fn nothing_is_an_event_of_no_kind() {
    let server = Served::new(|settings| {
        settings.drive = haulier_drive::HAULIER_DRIVE_INLINE as u32;
    });
    let mut event = event();
    event.kind = HAULIER_EVENT_CLOSED;
    // SAFETY: all of it lives here.
    unsafe {
        assert_eq!(haulier_server_poll(server.0, &mut event), HAULIER_NOTHING);
        assert_eq!(event.kind, HAULIER_EVENT_NONE);
    }
}

/// A wake that comes before the wait ends it, whatever events there are.
#[test]
fn who_is_woken_does_not_wait() {
    let server = Served::new(|_| ());
    let (mut client, mut event) = (null_mut(), event());
    // SAFETY: all of it lives here.
    unsafe {
        let ticket = server.ticket();
        assert_eq!(haulier_client_connect(ticket.as_ptr(), null(), &mut client), HAULIER_OK);
        haulier_event_free(&mut hear(client, HAULIER_EVENT_CONNECTED));
        assert_eq!(haulier_client_send_message(client, null(), 0), HAULIER_OK);
        haulier_event_free(&mut hear(client, HAULIER_EVENT_MESSAGE_ACKED));
        // So the server has events.
        assert_eq!(haulier_server_wake(server.0), HAULIER_OK);
        assert_eq!(haulier_server_wait(server.0, 10_000, &mut event), HAULIER_NOTHING);
        haulier_event_free(&mut server.hear(HAULIER_EVENT_MESSAGE));
        let sent = haulier_server_send_message(server.0, server.one(), null(), 0);
        assert_eq!(sent, HAULIER_OK);
        haulier_event_free(&mut server.hear(HAULIER_EVENT_MESSAGE_ACKED));
        assert_eq!(haulier_client_wake(client), HAULIER_OK);
        assert_eq!(haulier_client_wait(client, 10_000, &mut event), HAULIER_NOTHING);
        haulier_event_free(&mut hear(client, HAULIER_EVENT_MESSAGE));
        haulier_client_free(client);
    }
}

/// A message that was not acknowledged in time gives an error: here the server is not driven any more.
#[test]
fn a_client_that_cannot_finish_says_so() {
    let server = Served::new(|settings| {
        settings.drive = haulier_drive::HAULIER_DRIVE_INLINE as u32;
    });
    let mut client = null_mut();
    // SAFETY: all of it lives here.
    unsafe {
        let ticket = server.ticket();
        assert_eq!(haulier_client_connect(ticket.as_ptr(), null(), &mut client), HAULIER_OK);
        haulier_event_free(&mut server.hear(HAULIER_EVENT_CONNECTED));
        haulier_event_free(&mut hear(client, HAULIER_EVENT_CONNECTED));
        assert_eq!(haulier_client_send_message(client, c"x".as_ptr().cast(), 1), HAULIER_OK);
        assert_eq!(haulier_client_finish(client, 50), HAULIER_ERROR_TIMEOUT);
        haulier_client_free(client);
    }
}

/// What an event points to is the event's: it outlives its client, and another thread may free it.
#[test]
fn an_event_outlives_its_client_and_is_freed_in_another_thread() {
    let server = Served::new(|_| ());
    let mut client = null_mut();
    // SAFETY: all of it lives here, and each is freed once.
    unsafe {
        let ticket = server.ticket();
        assert_eq!(haulier_client_connect(ticket.as_ptr(), null(), &mut client), HAULIER_OK);
        let id = server.hear(HAULIER_EVENT_CONNECTING).connection;
        let sent = haulier_server_send_message(server.0, id, c"words".as_ptr().cast(), 5);
        assert_eq!(sent, HAULIER_OK);
        let said = hear(client, HAULIER_EVENT_MESSAGE);
        haulier_client_free(client);
        drop(server);
        struct Handed(haulier_event);
        // SAFETY: as C hands it to another thread, which the header says it may.
        unsafe impl Send for Handed {}
        let handed = Handed(said);
        let seen = std::thread::spawn(move || {
            let mut handed = handed;
            let event = &mut handed.0;
            let data = std::slice::from_raw_parts(event.data, event.data_bytes).to_vec();
            haulier_event_free(event);
            (data, event.kind)
        });
        assert_eq!(seen.join().unwrap(), (b"words".to_vec(), HAULIER_EVENT_NONE));
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
        let mut connecting = server.hear(HAULIER_EVENT_CONNECTING);
        haulier_event_free(&mut connecting);
        haulier_client_free(client);
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
