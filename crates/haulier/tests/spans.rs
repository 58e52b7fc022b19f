//! What a subscriber of `tracing` hears of connections, and that nothing is written down while it wants
//! nothing. A test program of its own: there is one subscriber in a program.

#![cfg(all(feature = "tracing", feature = "udp"))]
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use haulier::trace::{Spans, TraceLevel};
use haulier::{
    Block, Client, CloseCode, Connect, Credentials, Event, Server, ServerConfig, ServerCredentials,
    ServerEvent,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata};

/// The maximum that the subscriber wants: 0 for nothing, 1 up to INFO, 2 up to DEBUG, 3 up to TRACE.
static WANTED: AtomicU8 = AtomicU8::new(0);
static SPANS: AtomicU64 = AtomicU64::new(0);
/// Each span and event: the level, the span that it is or is in, and the words and fields.
static HEARD: Mutex<Vec<(Level, Option<u64>, String)>> = Mutex::new(Vec::new());

thread_local!(static INSIDE: std::cell::RefCell<Vec<u64>> = const { std::cell::RefCell::new(Vec::new()) });

struct Hearing;

struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

impl tracing::Subscriber for Hearing {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        let level = match *about.level() {
            Level::ERROR | Level::WARN | Level::INFO => 1,
            Level::DEBUG => 2,
            Level::TRACE => 3,
        };
        about.target() == "haulier" && WANTED.load(Ordering::SeqCst) >= level
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut words = Words(String::new());
        span.record(&mut words);
        let id = SPANS.fetch_add(1, Ordering::SeqCst) + 1;
        HEARD.lock().unwrap().push((
            *span.metadata().level(),
            Some(id),
            format!("span {}", words.0),
        ));
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut words = Words(String::new());
        event.record(&mut words);
        let inside = INSIDE.with_borrow(|inside| inside.last().copied());
        HEARD.lock().unwrap().push((*event.metadata().level(), inside, words.0));
    }

    fn enter(&self, span: &Id) {
        INSIDE.with_borrow_mut(|inside| inside.push(span.into_u64()));
    }

    fn exit(&self, _: &Id) {
        INSIDE.with_borrow_mut(|inside| inside.truncate(inside.len() - 1));
    }
}

/// A client joins, has a block, and leaves; what was heard of it.
fn join() -> Vec<(Level, Option<u64>, String)> {
    HEARD.lock().unwrap().clear();
    let credentials = ServerCredentials::default().with_open_access();
    let server = Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials)).unwrap();
    let connect = Connect::new(server.local_addr(), 7, Credentials::Open);
    let client = Client::connect(connect).unwrap();
    let (world, turn) = (Block::new(5, vec![1; 200_000]), Duration::from_millis(1));
    loop {
        while let Some((id, event)) = server.poll().unwrap() {
            if let ServerEvent::Connecting { .. } = event {
                server.send_block(id, &world).unwrap();
            }
        }
        if let Some(Event::Block { .. }) = client.wait(turn).unwrap() {
            break;
        }
    }
    // The server's end hears that it is acknowledged.
    while !server
        .connections()
        .iter()
        .all(|&id| server.with_connection(id, |it| it.all_acked()).unwrap())
    {
        let _event = client.wait(turn).unwrap();
    }
    client.close(CloseCode::DONE, "");
    // The network thread has not handed that over yet. It is for the subscriber, not for this call.
    assert!(client.poll_trace().is_none());
    while !server.connections().is_empty() {
        let _event = server.wait(turn).unwrap();
    }
    client.finish(Duration::from_secs(60)).unwrap();
    assert!(server.poll_trace().is_none());
    server.finish(Duration::from_secs(60)).unwrap();
    HEARD.lock().unwrap().clone()
}

#[test]
fn a_subscriber_hears_what_it_wants_and_no_more() {
    assert_eq!(Spans::wanted(), TraceLevel::Off);
    assert!(join().is_empty());
    tracing::subscriber::set_global_default(Hearing).unwrap();
    let mut counts = Vec::new();
    for (wanted, level, trace) in [
        (0, None, TraceLevel::Off),
        (1, Some(Level::INFO), TraceLevel::Life),
        (2, Some(Level::DEBUG), TraceLevel::Path),
        (3, Some(Level::TRACE), TraceLevel::Datagrams),
    ] {
        WANTED.store(wanted, Ordering::SeqCst);
        tracing::callsite::rebuild_interest_cache();
        assert_eq!(Spans::wanted(), trace);
        let heard = join();
        assert_eq!(heard.iter().map(|it| it.0).max(), level);
        counts.push(heard.len());
        if wanted == 0 {
            continue;
        }
        let spans: Vec<_> = heard.iter().filter(|it| it.2.starts_with("span")).collect();
        assert_eq!(spans.len(), 2, "one for each end: {spans:?}");
        assert!(spans.iter().all(|it| it.2.contains("peer=127.0.0.1:")), "{spans:?}");
        assert!(heard.iter().all(|it| it.1.is_some()), "something is outside of a span");
        let infos = |words: &str| {
            heard.iter().filter(|it| it.0 == Level::INFO && it.2.contains(words)).count()
        };
        assert_eq!((infos("message=connected"), infos("message=closed")), (2, 2));
        assert_eq!((infos("block sent"), infos("block received")), (1, 1));
        let has = |words: &str| heard.iter().any(|it| it.2.contains(words));
        assert_eq!(has("bytes_in_flight"), wanted >= 2);
        assert_eq!(has("frames="), wanted == 3);
    }
    assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
}
