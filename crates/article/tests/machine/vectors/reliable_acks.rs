//! `reliable_acks.json`: acks and ack bits in the article's convention, with numbers of 16 and of 32 bits;
//! the 10 % filter of the round trip, the one-second rule, and the timelines of good and bad mode.

use std::time::Duration;

use haulier_article::ack::{AckBits, PacketFate, ReceivedPackets, SentPackets};
use haulier_article::congestion::{CongestionController, CongestionMode, GoodBad, GoodBadConfig};
use haulier_article::{
    ArticleRtt, Instant, PacketDropReason, Sequence, Sequence32, SequenceNumber,
};
use serde_json::Value;

use super::{hex_number, int, load, rows, text};

const LOSS_TIMEOUT: Duration = Duration::from_secs(1);

fn number(value: &Value) -> u32 {
    u32::try_from(int(value)).unwrap()
}

fn sixteen(number: u32) -> Sequence {
    Sequence::new(u16::try_from(number).unwrap())
}

/// A time of the file, which is in seconds with at most four decimals.
fn seconds(value: &Value) -> Duration {
    let micros = (value.as_f64().unwrap() * 1e6).round();
    Duration::from_micros(format!("{micros}").parse().unwrap())
}

fn at(value: &Value) -> Instant {
    Instant::ZERO + seconds(value)
}

fn sequences<S>(value: &Value, of: impl Fn(u32) -> S) -> Vec<S> {
    value.as_array().unwrap().iter().map(|value| of(number(value))).collect()
}

fn bits(value: &Value) -> u32 {
    u32::try_from(hex_number(value)).unwrap()
}

fn encode<S: SequenceNumber>(row: &Value, of: impl Fn(u32) -> S) {
    let mut received = ReceivedPackets::<S>::new();
    assert_eq!(received.ack_bits(), None, "nothing received yet");
    for sequence in sequences(&row["received_in_order"], &of) {
        match received.check(Instant::ZERO, sequence) {
            Ok(()) => received.on_accepted(Instant::ZERO, sequence, 1),
            Err(reason) => assert_eq!(reason, PacketDropReason::Duplicate, "{row}"),
        }
        received.check_invariants();
    }
    let acks = received.ack_bits().unwrap();
    assert_eq!(acks, AckBits { ack: of(number(&row["ack"])), bits: bits(&row["ack_bits"]) });
    let named: Vec<S> = acks.sequences().collect();
    assert_eq!(named, sequences(&row["acks"], &of), "{row}");
    if let Some(original) = row["original_convention"].as_object() {
        assert_eq!(acks.ack, of(number(&original["ack"])));
        assert_eq!(acks.in_original_convention(), bits(&original["ack_bits"]), "{row}");
    }
}

#[test]
fn encoding() {
    for row in rows(&load("reliable_acks.json"), "encode", 38) {
        match int(&row["sequence_bits"]) {
            16 => encode(row, sixteen),
            _ => encode(row, Sequence32::new),
        }
    }
}

fn decode<S: SequenceNumber>(row: &Value, of: impl Fn(u32) -> S) {
    let sent = sequences(&row["sent"], &of);
    let mut packets = SentPackets::starting_at(sent[0], LOSS_TIMEOUT);
    for &sequence in &sent {
        assert_eq!(packets.on_sent(Instant::ZERO, 1).sequence, sequence, "{row}");
    }
    for ack in sequences(&row["already_acked"], &of) {
        assert_eq!(packets.on_ack(Instant::ZERO, AckBits { ack, bits: 0 }).acked(), [ack]);
    }
    let acks = AckBits { ack: of(number(&row["ack"])), bits: bits(&row["ack_bits"]) };
    let news = packets.on_ack(Instant::from_millis(70), acks);
    assert_eq!(news.acked(), sequences(&row["newly_acked"], &of), "{row}");
    // The round trip is that of the ack itself, if it is news.
    let sampled = news.acked().first() == Some(&acks.ack);
    assert_eq!(news.rtt_sample, sampled.then_some(Duration::from_millis(70)), "{row}");
    assert!(packets.on_ack(Instant::ZERO, acks).acked().is_empty(), "acked twice: {row}");
    packets.check_invariants();
}

#[test]
fn decoding() {
    for row in rows(&load("reliable_acks.json"), "decode", 8) {
        match int(&row["sequence_bits"]) {
            16 => decode(row, sixteen),
            _ => decode(row, Sequence32::new),
        }
    }
}

/// 33 packets arrive, each is answered, and only the last answer comes through.
#[test]
fn redundancy() {
    let file = load("reliable_acks.json");
    let row = &rows(&file, "redundancy", 1)[0];
    let (mut sent, mut received) = (SentPackets::<Sequence>::new(), ReceivedPackets::new());
    let mut answer = None;
    for _ in 0..33 {
        let sequence = sent.on_sent(Instant::ZERO, 1).sequence;
        received.on_accepted(Instant::ZERO, sequence, 1);
        answer = received.ack_bits();
    }
    let answer = answer.unwrap();
    assert_eq!(answer, AckBits { ack: sixteen(number(&row["ack"])), bits: bits(&row["ack_bits"]) });
    let news = sent.on_ack(Instant::ZERO, answer);
    assert_eq!(news.acked(), sequences(&row["newly_acked"], sixteen));
    assert_eq!(sent.in_flight(), 0);
}

#[test]
fn rtt_smoothing() {
    for row in rows(&load("reliable_acks.json"), "rtt_smoothing_10_percent", 4) {
        let mut whole = ArticleRtt::new();
        let mut from_zero = ArticleRtt::starting_at(Duration::ZERO);
        for (i, sample) in row["samples_s"].as_array().unwrap().iter().enumerate() {
            for (rtt, expected) in [
                (&mut whole, &row["smoothed_first_sample_start_s"][i]),
                (&mut from_zero, &row["smoothed_zero_start_s"][i]),
            ] {
                rtt.on_sample(seconds(sample));
                let off = rtt.smoothed_rtt().unwrap().as_secs_f64() - expected.as_f64().unwrap();
                assert!(off.abs() < 1e-7, "{}: off by {off} s", row["name"]);
            }
        }
    }
}

#[test]
fn loss_timeout() {
    for row in rows(&load("reliable_acks.json"), "loss_timeout_1s", 4) {
        let mut sent = SentPackets::<Sequence>::new();
        let packet = sent.on_sent(at(&row["sent_at_s"]), 1).sequence;
        let now = if row["acked_at_s"].is_null() { &row["now_s"] } else { &row["acked_at_s"] };
        let now = at(now);
        // Whoever keeps the deadline has found the loss before a later ack comes.
        let lost = sent.next_lost(now);
        let acked = if row["acked_at_s"].is_null() {
            vec![]
        } else {
            sent.on_ack(now, AckBits { ack: packet, bits: 0 }).acked().to_vec()
        };
        let (fate, reported) = match text(&row["state"]) {
            "acked" => (PacketFate::Acked, (None, vec![packet])),
            "pending" => (PacketFate::InFlight, (None, vec![])),
            "lost" => (PacketFate::Lost, (Some(packet), vec![])),
            other => panic!("unknown state {other}"),
        };
        assert_eq!((lost, acked), reported, "{row}");
        assert_eq!(sent.fate(packet), Some(fate), "{row}");
    }
}

#[test]
fn congestion_modes() {
    for row in rows(&load("reliable_acks.json"), "congestion_modes", 8) {
        let name = text(&row["name"]);
        let mode =
            |name: &str| if name == "good" { CongestionMode::Good } else { CongestionMode::Bad };
        let config = GoodBadConfig::default()
            .with_start(mode(text(&row["start_mode"])))
            .with_recovery(seconds(&row["start_recovery_s"]));
        let mut controller = GoodBad::started_at(config, Instant::ZERO);
        let step = seconds(&row["step_s"]);
        let (mut now, mut events) = (Instant::ZERO, vec![]);
        for segment in row["segments"].as_array().unwrap() {
            let steps = seconds(&segment["duration_s"]).as_micros() / step.as_micros();
            for _ in 0..steps {
                now = now + step;
                let before = (controller.mode(), controller.recovery());
                controller.on_conditions(now, seconds(&segment["rtt_s"]));
                let after = (controller.mode(), controller.recovery());
                if before != after {
                    events.push((now, after.0, after.1));
                }
            }
        }
        let expected: Vec<_> = row["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| (at(&e["t"]), mode(text(&e["mode"])), seconds(&e["recovery_s"])))
            .collect();
        assert_eq!(events, expected, "{name}");
    }
}
