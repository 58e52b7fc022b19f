//! Traces over real sockets: to sinks and by polling, with every driver, and the text of a key log.

use std::io::Write;
use std::sync::{Arc, Mutex};

use haulier::trace::{KeyLog, TraceEvent, TraceLevel, TraceSink, Traced};
use haulier::{Block, Client, Connect, ConnectionId, Event, Listen, Server, ServerEvent};

use crate::support::{MAX, bytes, config_for, with_secret};

/// A file that the test can look into.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

type Event1 = (Option<ConnectionId>, TraceEvent);

/// Keeps everything.
#[derive(Clone, Default)]
struct All(Arc<Mutex<Vec<Event1>>>);

impl TraceSink for All {
    fn write(&mut self, of: Option<ConnectionId>, traced: &Traced) {
        self.0.lock().unwrap().push((of, traced.event.clone()));
    }
}

impl All {
    fn has(&self, is_it: impl Fn(&TraceEvent) -> bool) -> bool {
        self.0.lock().unwrap().iter().any(|(_, event)| is_it(event))
    }
}

/// Joins, has a block, and ends.
fn join(server: &Server, client: Client) {
    let world = Block::new(1, bytes(300_000));
    // The close of a client that closes at once may arrive before its last acks.
    let (mut has_come, mut is_acked) = (false, false);
    while !has_come || !is_acked {
        while let Some((id, event)) = server.poll().unwrap() {
            match event {
                ServerEvent::Connecting { .. } => drop(server.send_block(id, &world).unwrap()),
                ServerEvent::Connection(Event::BlockSent { .. }) => is_acked = true,
                _ => {}
            }
        }
        match client.wait(std::time::Duration::from_millis(1)).unwrap() {
            Some(Event::Block { .. }) => has_come = true,
            Some(Event::Closed(reason)) => panic!("{reason}"),
            _ => {}
        }
    }
    client.close(haulier::CloseCode::DONE, "");
    let is_gone = || server.connections().is_empty() && client.is_closed();
    while !is_gone() {
        let _closed = server.wait(std::time::Duration::from_millis(1)).unwrap();
        let _closed = client.wait(std::time::Duration::from_millis(1)).unwrap();
    }
    client.finish(MAX).unwrap();
}

#[test]
fn both_ends_log_the_same_keys_in_the_form_of_the_page() {
    let logs = [Shared::default(), Shared::default()];
    let mut config = with_secret();
    config.connection.trace_secrets = true;
    let listen = Listen::bind("127.0.0.1:0").unwrap();
    let server = listen.with_trace_sink(KeyLog::new(logs[0].clone())).start(config).unwrap();
    let mut connect = Connect::from(config_for(&server));
    connect.connection.trace_secrets = true;
    let connect = connect.with_trace_sink(KeyLog::new(logs[1].clone()));
    join(&server, Client::connect(connect).unwrap());
    server.finish(MAX).unwrap();
    let [of_server, of_client] = logs.map(|log| log.lines());
    assert_eq!(of_server, of_client);
    let fields: Vec<Vec<&str>> = of_client.iter().map(|line| line.split(' ').collect()).collect();
    let words: Vec<_> = fields.iter().map(|line| line[0]).collect();
    assert_eq!(words, ["HELLO", "WELCOME", "CLIENT", "SERVER"]);
    for line in &fields {
        let lengths: Vec<_> = line.iter().skip(1).map(|field| field.len()).collect();
        let is_traffic = matches!(line[0], "CLIENT" | "SERVER");
        if is_traffic {
            assert!(["0", "1"].contains(&line[3]), "{line:?}");
            assert_eq!((lengths[0], lengths[1], lengths[3]), (16, 16, 64), "{line:?}");
        } else {
            assert_eq!(lengths, [16, 64, 64], "{line:?}");
        }
        let is_hex = |field: &&str| field.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let hex = line.iter().enumerate().filter(|(at, _)| *at > 0 && !(is_traffic && *at == 3));
        assert!(hex.map(|(_, field)| field).all(is_hex), "{line:?}");
        assert_eq!(line[1], fields[0][1], "the same client");
    }
}

#[cfg(unix)]
#[test]
fn a_key_log_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = std::env::temp_dir().join(format!("haulier-keylog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("keys");
    drop(KeyLog::append(&path).unwrap());
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path) & 0o777, 0o600);
    std::fs::write(&path, "# earlier\n").unwrap();
    drop(KeyLog::append(&path).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "# earlier\n", "it is appended to");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = KeyLog::append(&path).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A sink of a server receives with each event the connection that it is of, and receives the end of each
/// connection, also of one that the application has read to the end.
#[test]
fn a_sink_has_it_all_with_either_driver() {
    for is_inline in [false, true] {
        let (here, there) = (All::default(), All::default());
        let mut config = with_secret();
        config.connection.trace = TraceLevel::Datagrams;
        let mut listen = Listen::bind("127.0.0.1:0").unwrap().with_trace_sink(here.clone());
        if is_inline {
            listen = listen.inline();
        }
        let server = listen.start(config).unwrap();
        let mut connect = Connect::from(config_for(&server));
        connect.connection.trace = TraceLevel::Datagrams;
        // The two are driven by one thread, so that one of them has to have its own.
        join(&server, Client::connect(connect.with_trace_sink(there.clone())).unwrap());
        server.finish(MAX).unwrap();
        for (all, is_server) in [(&here, true), (&there, false)] {
            assert!(all.0.lock().unwrap().iter().all(|(of, _)| of.is_some() == is_server));
            assert!(all.has(|event| matches!(event, TraceEvent::Agreed { .. })));
            assert!(all.has(|event| matches!(event, TraceEvent::DatagramReceived(_))));
            assert!(all.has(|event| matches!(event, TraceEvent::Closed(_))));
            assert!(!all.has(|event| matches!(event, TraceEvent::Secret(_))));
        }
        assert!(here.has(|event| matches!(event, TraceEvent::BlockSent { .. })));
        assert!(there.has(|event| matches!(event, TraceEvent::BlockReceived { tag: 1 })));
    }
}

#[test]
fn without_a_sink_the_trace_is_polled() {
    let mut config = with_secret();
    config.connection.trace = TraceLevel::Life;
    let server = Listen::bind("127.0.0.1:0").unwrap().start(config).unwrap();
    let mut connect = Connect::from(config_for(&server));
    connect.connection.trace = TraceLevel::Life;
    let client = Client::connect(connect).unwrap();
    let polled = client.clone();
    join(&server, client);
    let of_client: Vec<_> = std::iter::from_fn(|| polled.poll_trace()).collect();
    assert!(matches!(of_client.last().unwrap().event, TraceEvent::StateChanged(_)));
    let of_server: Vec<_> = std::iter::from_fn(|| server.poll_trace()).collect();
    assert!(matches!(of_server[0].1.event, TraceEvent::Started { is_client: false, .. }));
    assert!(of_server.iter().any(|(_, it)| matches!(it.event, TraceEvent::Closed(_))));
}

/// `fetch` ended before its client's sink was dropped, and its file in the middle of a record.
#[cfg(feature = "qlog")]
#[test]
fn a_qlog_is_whole_while_its_client_lives() {
    use haulier::trace::{Qlog, VantagePoint};
    let file = Shared::default();
    let server = Listen::bind("127.0.0.1:0").unwrap().start(with_secret()).unwrap();
    let mut connect = Connect::from(config_for(&server));
    connect.connection.trace = TraceLevel::Datagrams;
    let qlog = Qlog::new(file.clone(), VantagePoint::Client).unwrap();
    let client = Client::connect(connect.with_trace_sink(qlog)).unwrap();
    let alive = client.clone();
    join(&server, client);
    // The last round hands over what it has after the events of the round before are read.
    let is_whole = || {
        let text = file.lines().join("\n");
        let last = text.rsplit('\u{1e}').next().unwrap().to_owned();
        last.contains("connection_state_updated") && last.contains("\"closed\"")
    };
    while !is_whole() {
        std::thread::yield_now();
    }
    drop(alive);
}
