//! What a qlog has of a join: beside a file that was looked at in a viewer, and beside the schema.
//!
//! After a change of the wire or the sender: `UPDATE_QLOG=1 cargo test -p haulier --features qlog --test
//! qlog`, and look at what differs.

#![cfg(feature = "qlog")]
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use haulier::proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier::proto::server::{ServerConfig, ServerCredentials, ServerEvent, ServerMachine};
use haulier::proto::{AesSupport, Machine as _, Platform};
use haulier::trace::{Qlog, TraceLevel, VantagePoint};
use haulier::{Block, CloseCode, ConnectionConfig, ConnectionStats, Event, Secret};
use haulier_core::Instant;
use serde_json::{Value, json};

/// The two files of a join by a secret, over a link of 10 ms each way that loses each datagram at these
/// places; and what the server counted.
struct Join {
    client: Vec<u8>,
    server: Vec<u8>,
    stats: ConnectionStats,
    end: Instant,
}

fn join(world: &Block, is_lost: impl Fn(usize) -> bool) -> Join {
    let (at, home): (SocketAddr, SocketAddr) =
        ("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:5000".parse().unwrap());
    let config = ConnectionConfig::default()
        .with_trace(TraceLevel::Datagrams)
        .with_trace_secrets(true)
        .with_grease(false);
    let secret = Secret::from_bytes([7; 32]);
    let credentials = ServerCredentials::default().with_secret(secret.clone());
    let server_config = ServerConfig::new(7, credentials).with_connection(config);
    let platform = |seed| Platform::new([seed; 32], AesSupport::Software);
    let mut server = ServerMachine::new(Instant::ZERO, 0, server_config, platform(1)).unwrap();
    let credentials = Credentials::Secret { secret, identity: None };
    let client_config =
        ClientConfig::new(at, 7, credentials).with_copies(2).with_connection(config);
    let mut client = ClientMachine::new(Instant::ZERO, client_config, platform(2)).unwrap();
    let mut files =
        [VantagePoint::Client, VantagePoint::Server].map(|of| Qlog::new(Vec::new(), of).unwrap());
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let (mut sent, mut stats, mut buffer, mut now) =
        (0, ConnectionStats::default(), Vec::new(), Instant::ZERO);
    let mut closes_at = None;
    for _ in 0..4_000 {
        now = now + Duration::from_millis(1);
        server.handle_timeout(now);
        client.handle_timeout(now);
        let has_arrived = |way: &Vec<(Instant, Vec<u8>)>| way.first().is_some_and(|it| it.0 <= now);
        while has_arrived(&up) {
            let _counted = server.handle_datagram(now, home, &mut up.remove(0).1);
        }
        while has_arrived(&down) {
            let _counted = client.handle_datagram(now, at, &mut down.remove(0).1);
        }
        while let Some((id, event)) = server.poll_event(now) {
            if let ServerEvent::Connecting { .. } = event {
                server.connection_mut(id).unwrap().send_block(now, world).unwrap();
            }
            if let Some(connection) = server.connection(id) {
                stats = connection.stats();
            }
        }
        while let Some(event) = client.poll_event(now) {
            if let Event::Block { .. } = event {
                closes_at = Some(now + Duration::from_millis(500));
            }
        }
        if closes_at.is_some_and(|at| at <= now) {
            client.close(now, CloseCode::DONE, "");
        }
        let arrival = now + Duration::from_millis(10);
        while client.poll_datagram(now, &mut buffer).is_some() {
            sent += 1;
            if !is_lost(sent) {
                up.push((arrival, buffer.clone()));
            }
        }
        while server.poll_datagram(now, &mut buffer).is_some() {
            sent += 1;
            if !is_lost(sent) {
                down.push((arrival, buffer.clone()));
            }
        }
        while let Some(traced) = client.poll_trace() {
            files[0].write_event(None, &traced).unwrap();
        }
        while let Some((id, traced)) = server.poll_trace() {
            files[1].write_event(Some(id), &traced).unwrap();
        }
        if client.is_closed() && server.connections().next().is_none() {
            break;
        }
    }
    let [client, server] = files.map(|file| file.into_inner().unwrap());
    Join { client, server, stats, end: now }
}

/// The header and the records after it. Each is one line behind a separator.
fn records(file: &[u8]) -> (Value, Vec<Value>) {
    let text = std::str::from_utf8(file).unwrap();
    let mut records = text.split('\u{1e}');
    assert_eq!(records.next(), Some(""), "the file begins with a separator");
    let mut values = records.map(|record| {
        assert!(record.ends_with('\n') && record.matches('\n').count() == 1, "{record}");
        serde_json::from_str(record).unwrap()
    });
    (values.next().unwrap(), values.collect())
}

#[test]
fn a_tiny_join_is_what_it_was() {
    let file = join(&Block::new(5, vec![9; 3_000]), |n| n == 5).client;
    let text = String::from_utf8(file).unwrap().replace('\u{1e}', "");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/join.sqlog.txt");
    if std::env::var_os("UPDATE_QLOG").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (line, (is, was)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, was, "line {}", line + 1);
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}

/// What the schema requires of each record, and qvis of those it draws.
#[test]
fn each_record_has_what_the_schema_requires() {
    let join = join(&Block::new(5, vec![9; 600_000]), |n| n % 17 == 0);
    for (file, vantage) in [(&join.client, "client"), (&join.server, "server")] {
        let (header, records) = records(file);
        assert_eq!(header["qlog_version"], "0.3");
        assert_eq!(header["qlog_format"], "JSON-SEQ");
        assert_eq!(header["trace"]["vantage_point"]["type"], vantage);
        let (mut last, mut names) = (0.0, BTreeSet::new());
        for record in &records {
            let time = record["time"].as_f64().unwrap();
            assert!(time >= last, "{record}");
            last = time;
            let name = record["name"].as_str().unwrap();
            names.insert(name.to_owned());
            let data = &record["data"];
            assert!(data.is_object(), "{record}");
            assert_eq!(record.get("group_id").is_some(), vantage == "server", "{record}");
            match name {
                "transport:packet_sent" | "transport:packet_received" => {
                    let kind = data["header"]["packet_type"].as_str().unwrap();
                    assert!(["initial", "1RTT"].contains(&kind), "{record}");
                    assert!(data["header"]["packet_number"].is_u64(), "{record}");
                    assert!(data["raw"]["length"].as_u64().unwrap() > 0, "{record}");
                    data["frames"].as_array().unwrap().iter().for_each(check_frame);
                }
                "recovery:packet_lost" => {
                    assert!(data["header"]["packet_number"].is_u64(), "{record}");
                    assert_eq!(data["header"]["packet_type"], "1RTT");
                }
                "recovery:metrics_updated" => assert!(data["bytes_in_flight"].is_u64(), "{record}"),
                "transport:packet_dropped" => assert!(data["trigger"].is_string(), "{record}"),
                "transport:parameters_set" => assert!(data["owner"].is_string(), "{record}"),
                _ => {}
            }
        }
        assert!(last / 1e3 <= join.end.since(Instant::ZERO).as_secs_f64());
        for name in ["connectivity:connection_started", "connectivity:connection_closed"] {
            assert!(names.contains(name), "{name} is missing: {names:?}");
        }
        let all = String::from_utf8(file.clone()).unwrap();
        assert!(!all.contains("ecret\":"), "secrets were asked for, and are not for a qlog");
    }
    let (_, records) = records(&join.server);
    let measured = records.iter().filter(|it| it["name"] == "recovery:metrics_updated");
    let whole = measured.filter(|it| {
        let names = ["congestion_window", "smoothed_rtt", "min_rtt", "latest_rtt", "rtt_variance"];
        names.iter().all(|name| it["data"][name].is_number())
    });
    assert!(whole.count() > 10);
}

fn check_frame(frame: &Value) {
    match frame["frame_type"].as_str().unwrap() {
        "stream" => {
            for field in ["stream_id", "offset", "length"] {
                assert!(frame[field].is_u64(), "{frame}");
            }
        }
        "ack" => {
            let ranges = frame["acked_ranges"].as_array().unwrap();
            let ends: Vec<_> = ranges.iter().flat_map(|it| it.as_array().unwrap()).collect();
            assert!(!ends.is_empty() && ends.len() % 2 == 0, "{frame}");
            assert!(ends.is_sorted_by_key(|end| end.as_u64().unwrap()), "{frame}");
        }
        _ => {}
    }
}

/// Sent is acknowledged, lost or in flight, and the bytes are those that were counted.
#[test]
fn the_numbers_are_those_of_the_connection() {
    let join = join(&Block::new(5, vec![9; 600_000]), |n| n % 17 == 0);
    let (_, mut records) = records(&join.server);
    // The counters were looked at before the answer to the close.
    let end = records.iter().position(|it| it["name"] == "connectivity:connection_closed");
    records.truncate(end.unwrap());
    let named = |name: &'static str| records.iter().filter(move |record| record["name"] == name);
    let number = |record: &Value| record["data"]["header"]["packet_number"].as_u64().unwrap();
    let sent: BTreeSet<_> = named("transport:packet_sent").map(number).collect();
    let lost: BTreeSet<_> = named("recovery:packet_lost").map(number).collect();
    let acked = named("transport:packets_acked");
    let acked = acked.flat_map(|it| it["data"]["packet_numbers"].as_array().unwrap().clone());
    let acked: BTreeSet<_> = acked.map(|it| it.as_u64().unwrap()).collect();
    assert!(acked.is_disjoint(&lost) && acked.is_subset(&sent) && lost.is_subset(&sent));
    assert_eq!(lost.len() as u64, join.stats.datagrams_lost);
    assert!(lost.len() > 10, "{} lost", lost.len());
    let asks = |record: &&Value| {
        record["data"]["frames"].as_array().unwrap().iter().any(|frame| {
            !matches!(
                frame["frame_type"].as_str().unwrap(),
                "ack"
                    | "haulier:progress"
                    | "haulier:arrivals"
                    | "haulier:slices_here"
                    | "padding"
                    | "path_response"
                    | "connection_close"
            )
        })
    };
    let asking: BTreeSet<_> = named("transport:packet_sent").filter(asks).map(number).collect();
    let open = asking.iter().filter(|it| !acked.contains(it) && !lost.contains(it)).count();
    assert_eq!(open as u64, join.stats.datagrams_in_flight);
    let lengths = |it: &Value| it["data"]["raw"]["length"].as_u64().unwrap();
    let bytes: u64 = named("transport:packet_sent").map(lengths).sum();
    let count = named("transport:packet_sent").count() as u64;
    assert_eq!(bytes, join.stats.bytes_sent, "{count} for {}", join.stats.datagrams_sent);
    let streams = named("transport:packet_sent");
    let frames = streams.flat_map(|it| it["data"]["frames"].as_array().unwrap().clone());
    let mut offsets: Vec<_> = frames
        .filter(|it| it["frame_type"] == "stream" && it["haulier_resent"] != json!(true))
        .map(|it| (it["offset"].as_u64().unwrap(), it["length"].as_u64().unwrap()))
        .collect();
    offsets.sort_unstable();
    let end = offsets.iter().fold(0, |end, &(offset, length)| {
        assert_eq!(offset, end, "a gap");
        offset + length
    });
    assert_eq!(end, 600_000);
}
