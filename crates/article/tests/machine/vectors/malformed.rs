//! `malformed.json`: 107 hostile datagrams, each refused for the reason listed, and the scripts of
//! several packets given to one chunk sender, one chunk receiver or one reassembler.

use haulier_article::chunk::{
    ChunkId, ChunkReceiver, ChunkReceiverConfig, ChunkSender, ChunkSenderConfig, SenderState,
    SliceArrival,
};
use haulier_article::fragment::{FragmentPool, Reassembler};
use haulier_article::packet::article::ArticlePacket;
use haulier_article::packet::fragment::{FragmentPacket, RawFragmentPacket};
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{ArticleConfig, ArticlePeer, Instant, PacketDropReason};
use serde_json::Value;

use super::fragments::decode;
use super::three_types::{Abc3, Abc4};
use super::{load, rows, size, text, unhex};

const FRAGMENTS: ProtocolId = ProtocolId::PACKETS;

/// Why the parser of that layer refuses the datagram.
fn refusal(row: &Value, bytes: &[u8]) -> PacketDropReason {
    let refused = match (text(&row["layer"]), row["count_encoding"].as_str()) {
        ("chunk", _) => packet::read::<ArticlePacket<'_>>(ProtocolId::ARTICLE, bytes).err(),
        ("abc3", _) => packet::read::<Abc3>(FRAGMENTS, bytes).err(),
        ("abc4", _) => packet::read::<Abc4>(FRAGMENTS, bytes).err(),
        ("fragment", Some("raw")) => packet::read::<RawFragmentPacket<'_>>(FRAGMENTS, bytes).err(),
        ("fragment", _) => packet::read::<FragmentPacket<'_>>(FRAGMENTS, bytes).err(),
        (other, _) => panic!("unknown layer {other}"),
    };
    refused.unwrap_or_else(|| panic!("accepted: {}", row["name"]))
}

#[test]
fn every_datagram_is_refused_for_the_reason_listed() {
    for row in rows(&load("malformed.json"), "cases", 107) {
        let bytes = unhex(text(&row["hex"]));
        let reason = refusal(row, &bytes);
        let expected = text(&row["reason"]);
        // `too_short` and `truncated` may swap by the file's own word; ours never have to.
        assert!(expected == "any" || reason.name() == expected, "{}: {reason}", row["name"]);
        assert!(reason.is_hostile(), "{}: {reason}", row["name"]);
    }
}

#[test]
fn a_refused_datagram_is_counted_and_changes_nothing() {
    let file = load("malformed.json");
    let mut peer = ArticlePeer::new(ArticleConfig::default());
    let untouched = format!("{:?}{:?}", peer.sender(), peer.receiver());
    let chunk_rows = rows(&file, "cases", 107).iter().filter(|row| row["layer"] == "chunk");
    let mut expected = haulier_article::PacketDropCounts::default();
    for row in chunk_rows {
        let bytes = unhex(text(&row["hex"]));
        let reason = peer.handle_datagram(Instant::ZERO, &bytes).unwrap_err();
        expected.count(reason);
        assert_eq!(format!("{:?}{:?}", peer.sender(), peer.receiver()), untouched);
    }
    assert_eq!(peer.drops(), &expected);
    assert!(peer.drops().iter().all(|(reason, _)| reason.is_hostile()));
    assert!(peer.drops().hostile() >= 60);
}

fn parse(step: &Value) -> Vec<u8> {
    unhex(text(&step["hex"]))
}

/// What a script expects of a step, and what happened.
fn assert_step<T: std::fmt::Debug>(
    name: &str,
    step: &Value,
    outcome: &Result<T, PacketDropReason>,
) {
    match text(&step["expect"]) {
        "accept" => assert!(outcome.is_ok(), "{name}: {outcome:?}"),
        "ignore" => {
            let reason = outcome.as_ref().expect_err(name);
            assert_eq!(reason.name(), text(&step["reason"]), "{name}");
            assert!(!reason.is_hostile(), "{name}");
        }
        "reject" => {
            let reason = outcome.as_ref().expect_err(name);
            assert_eq!(reason.name(), text(&step["reason"]), "{name}");
            assert!(reason.is_hostile(), "{name}");
        }
        other => panic!("{name}: unknown expectation {other}"),
    }
}

fn run_receiver_script(script: &Value) {
    let name = text(&script["name"]);
    let mut receiver = ChunkReceiver::new(ChunkReceiverConfig::default());
    for step in script["steps"].as_array().unwrap() {
        if step["read_chunk"] == true {
            receiver.pop().unwrap_or_else(|| panic!("{name}: nothing to read"));
            // The completing ack has been sent by then: an ack that is due at the end was caused later.
            let _ = receiver.poll_ack(Instant::ZERO);
            continue;
        }
        let bytes = parse(step);
        let Ok(ArticlePacket::Slice(slice)) = packet::read(ProtocolId::ARTICLE, &bytes) else {
            panic!("{name}: not a slice");
        };
        let outcome = receiver.handle_slice(Instant::ZERO, &slice);
        assert_step(name, step, &outcome);
        if outcome == Ok(SliceArrival::Completed) {
            let _ = receiver.poll_ack(Instant::ZERO);
        }
        receiver.check_invariants();
    }
    let last = &script["final"];
    let progress = receiver.progress();
    for (key, expected) in last.as_object().unwrap() {
        let due = receiver.ack_due();
        match key.as_str() {
            "received" => {
                assert_eq!(progress.map_or(0, |p| p.received.len()), size(expected), "{name}");
            }
            "of" => assert_eq!(progress.unwrap().received.count().get(), size(expected), "{name}"),
            "ready" => assert_eq!(receiver.unread() > 0, expected == true, "{name}"),
            "ack_due" => assert_eq!(due.is_some(), expected == true, "{name}"),
            "ack_chunk" => assert_eq!(usize::from(due.unwrap().get()), size(expected), "{name}"),
            "ack_due_for_chunk_0" => {
                assert_eq!(due == Some(ChunkId::new(0)), expected == true, "{name}");
            }
            other => panic!("{name}: unknown state {other}"),
        }
    }
}

/// "Sending chunk 4 of 9 slices, nothing acked": every slice was sent once, so each may be acked.
fn run_sender_script(script: &Value) {
    let name = text(&script["name"]);
    let mut sender =
        ChunkSender::new(ChunkSenderConfig::default().with_first_chunk_id(ChunkId::new(4)));
    sender.send_chunk(vec![0; 9 * 1024]).unwrap();
    while sender.poll_slice(Instant::ZERO).is_some() {}
    for step in script["steps"].as_array().unwrap() {
        let bytes = parse(step);
        let Ok(ArticlePacket::Ack(ack)) = packet::read(ProtocolId::ARTICLE, &bytes) else {
            panic!("{name}: not an ack");
        };
        assert_step(name, step, &sender.handle_ack(Instant::ZERO, &ack));
        sender.check_invariants();
    }
    let sending = sender.state().is_sending();
    for (key, expected) in script["final"].as_object().unwrap() {
        match key.as_str() {
            "acked" => {
                let acked = sender.progress().map_or(9, |progress| progress.acked);
                assert_eq!(acked, size(expected), "{name}");
            }
            "sending" => assert_eq!(sending, expected == true, "{name}"),
            "next_chunk_id" => {
                assert_eq!(usize::from(sender.next_chunk_id().get()), size(expected), "{name}");
                assert_eq!(sender.state(), SenderState::Idle, "{name}");
            }
            other => panic!("{name}: unknown state {other}"),
        }
    }
}

/// Reassembly keeps 256 entries; the name of a script says in which encoding its fragments are.
fn run_reassembly_script(script: &Value) {
    let name = text(&script["name"]);
    let encoding = if name.ends_with("(raw)") { "raw" } else { "minus1" }.into();
    let (mut pool, mut peer) = (FragmentPool::default(), Reassembler::new());
    let mut packets = 0;
    for step in script["steps"].as_array().unwrap() {
        let bytes = parse(step);
        let fragment =
            decode(&bytes, &encoding).unwrap_or_else(|reason| panic!("{name}: {reason}"));
        let outcome: Result<_, PacketDropReason> =
            peer.handle_fragment(Instant::ZERO, &fragment, &mut pool).map_err(Into::into);
        packets += usize::from(matches!(outcome, Ok(Some(_))));
        assert_step(name, step, &outcome);
        pool.check_invariants();
        peer.check_invariants();
    }
    assert_eq!(packets, size(&script["final"]["packets"]), "{name}");
}

#[test]
fn scripts() {
    let (mut receivers, mut senders, mut reassemblies) = (0, 0, 0);
    for script in rows(&load("malformed.json"), "scripts", 35) {
        match text(&script["layer"]) {
            "chunk-receiver" => {
                run_receiver_script(script);
                receivers += 1;
            }
            "chunk-sender" => {
                run_sender_script(script);
                senders += 1;
            }
            "reassembly" => {
                run_reassembly_script(script);
                reassemblies += 1;
            }
            other => panic!("unknown layer {other}"),
        }
    }
    assert_eq!((receivers, senders, reassemblies), (11, 4, 20));
}
