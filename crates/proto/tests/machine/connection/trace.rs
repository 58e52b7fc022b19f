//! The events that a connection records in its trace, and those that it does not.

use std::collections::BTreeSet;

use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use haulier_proto::connection::trace::{
    DatagramKind, SliceSort, TraceEvent, TraceFrame, TraceLevel, TraceSecret, Traced,
};
use haulier_proto::connection::{Block, CloseCode, ConnectionConfig, ConnectionState, Event};
use haulier_proto::credentials::Secret;
use haulier_proto::internals::{Frames, Hello, ResponseHeader, TAG_BYTES, TrafficSecret, Welcome};

use crate::lan::{Lan, Way, client_config, server_config};

/// A block of 2 MiB and messages, where every 20th datagram is lost, and the client closes. Returns the
/// traces of the server and of the client, and how many datagrams and bytes the two say that they have sent.
struct Run {
    server: Vec<Traced>,
    client: Vec<Traced>,
    sent: [(u64, u64); 2],
    lost: [u64; 2],
    in_flight: [u64; 2],
    /// Every datagram as it crossed.
    wire: Vec<(Way, Vec<u8>)>,
}

fn lan(config: ConnectionConfig) -> Lan {
    let mut lan = Lan::new(server_config().with_connection(config));
    lan.add(client_config().with_connection(config));
    lan
}

fn run(config: ConnectionConfig, is_taken: bool) -> Run {
    let mut lan = lan(config);
    let (mut server, mut client, mut wire, mut n) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut stats = [Default::default(); 2];
    for round in 0..1_500 {
        lan.run_with(1, |way, datagram| {
            wire.push((way, datagram.clone()));
            n += 1;
            n % 20 != 0
        });
        match round {
            20 => drop(lan.peer().send_block(&Block::new(5, vec![7; 2 << 20])).unwrap()),
            600 => lan.client(0).send_message(&b"a message"[..]).unwrap(),
            1_200 => {
                assert!(lan.peer().all_acked(), "the block is not over");
                stats = [lan.peer().stats(), lan.client(0).stats()];
                lan.client(0).close(CloseCode::DONE, "");
            }
            _ => {}
        }
        if is_taken || round == 1_499 {
            server.extend(std::iter::from_fn(|| lan.server.poll_trace()).map(|(_, traced)| traced));
            client.extend(std::iter::from_fn(|| lan.clients[0].poll_trace()));
        }
    }
    Run {
        server,
        client,
        wire,
        sent: stats.map(|stats| (stats.datagrams_sent, stats.bytes_sent)),
        lost: stats.map(|stats| stats.datagrams_lost),
        in_flight: stats.map(|stats| stats.datagrams_in_flight),
    }
}

/// A network without delay takes a block in one moment: the rate is set.
fn at(level: TraceLevel) -> ConnectionConfig {
    ConnectionConfig::default().with_trace(level).with_max_rate_bps(40_000_000)
}

/// The events before this end, or the other, closed.
fn before_close(trace: &[Traced]) -> impl Iterator<Item = &TraceEvent> {
    let events = trace.iter().map(|traced| &traced.event);
    events.take_while(|event| !matches!(event, TraceEvent::Closed(_)))
}

#[test]
fn nothing_is_written_unless_it_is_asked_for() {
    let run = run(ConnectionConfig::default(), false);
    assert!(run.server.is_empty() && run.client.is_empty());
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let [first, second] = [0, 1].map(|_| run(at(TraceLevel::Datagrams), true));
    assert!(first.server.len() > 2_000, "{}", first.server.len());
    assert_eq!(first.server, second.server);
    assert_eq!(first.client, second.client);
    let other = run(at(TraceLevel::Datagrams).with_max_rate_bps(20_000_000), true);
    assert_ne!(first.server, other.server);
}

/// Each datagram that was sent has one fate, and the numbers are those of the counters.
#[test]
fn the_books_balance() {
    let run = run(at(TraceLevel::Datagrams), true);
    for (end, trace) in [&run.server, &run.client].into_iter().enumerate() {
        let (mut sent, mut eliciting) = ((0, 0), BTreeSet::new());
        let (mut acked, mut lost) = (BTreeSet::new(), BTreeSet::new());
        let mut measured = None;
        for event in before_close(trace) {
            match event {
                TraceEvent::DatagramSent(it) if it.kind != DatagramKind::Request => {
                    sent = (sent.0 + 1, sent.1 + it.bytes as u64);
                    assert!(!it.frames.is_empty(), "number {} is empty", it.number);
                    if it.is_ack_eliciting {
                        assert!(eliciting.insert(it.number), "number {} again", it.number);
                    }
                }
                TraceEvent::DatagramAcked { number } if eliciting.contains(number) => {
                    assert!(acked.insert(*number), "{number} acked twice");
                }
                TraceEvent::DatagramLost { number, .. } => {
                    assert!(lost.insert(*number), "{number} lost twice");
                }
                TraceEvent::Measured(measures) => measured = Some(*measures),
                _ => {}
            }
        }
        assert_eq!(sent, run.sent[end]);
        assert!(acked.is_disjoint(&lost));
        assert_eq!(lost.len() as u64, run.lost[end]);
        let in_flight = eliciting.len() - acked.len() - lost.len();
        assert_eq!(in_flight as u64, run.in_flight[end]);
        let measured = measured.unwrap();
        assert!(measured.smoothed_rtt.is_some() && measured.min_rtt <= measured.latest_rtt);
        assert_eq!(measured.datagrams_in_flight == 0, measured.bytes_in_flight == 0);
    }
    assert!(run.lost[0] > 50, "nothing was lost");
}

/// The slices cover the block, and lost ones are repaired or sent again.
#[test]
fn slices_say_what_they_are() {
    let run = run(at(TraceLevel::Datagrams), true);
    let slices = |trace: &[Traced]| {
        let datagrams = trace.iter().filter_map(|traced| match &traced.event {
            TraceEvent::DatagramSent(it) | TraceEvent::DatagramReceived(it) => Some(it.clone()),
            _ => None,
        });
        let frames = datagrams.flat_map(|it| it.frames).filter_map(|frame| match frame {
            TraceFrame::Slice { block, offset, bytes, sort, .. } => {
                Some((block, offset, bytes, sort))
            }
            _ => None,
        });
        frames.collect::<Vec<_>>()
    };
    let sent = slices(&run.server);
    let sources = sent.iter().filter(|slice| slice.3 == SliceSort::Source);
    let mut covered = sources.map(|&(_, offset, bytes, _)| offset..offset + bytes as u64);
    let mut starts: Vec<_> = covered.by_ref().collect();
    starts.sort_by_key(|range| range.start);
    let mut end = 0;
    for range in &starts {
        assert_eq!(range.start, end, "a gap, or a slice that was sent before");
        end = range.end;
    }
    assert_eq!(end, 2 << 20);
    assert!(sent.iter().any(|slice| slice.3 != SliceSort::Source), "no repair, nothing resent");
    let received = slices(&run.client);
    assert!(received.len() < sent.len() && received.len() > sent.len() * 9 / 10);
}

/// A level has those before it, and no more. What happened is in the order in which it did.
#[test]
fn a_level_has_what_it_says() {
    let all = run(at(TraceLevel::Datagrams), true);
    for level in [TraceLevel::Life, TraceLevel::Path] {
        let part = run(at(level), true);
        for (all, part) in [(&all.server, &part.server), (&all.client, &part.client)] {
            let wanted = all.iter().filter(|traced| traced.event.level() <= level);
            assert_eq!(wanted.collect::<Vec<_>>(), part.iter().collect::<Vec<_>>(), "{level:?}");
        }
    }
    let life = run(at(TraceLevel::Life), true);
    let words = |trace: &[Traced]| -> Vec<String> {
        let word = |traced: &Traced| match &traced.event {
            TraceEvent::StateChanged(state) => format!("{state:?}"),
            event => format!("{event:?}").split([' ', '(']).next().unwrap().to_string(),
        };
        trace.iter().map(word).collect()
    };
    let size = "DatagramSizeChanged";
    let without_sizes = |words: Vec<String>| words.into_iter().filter(move |word| word != size);
    let client: Vec<_> = without_sizes(words(&life.client)).collect();
    assert_eq!(
        client,
        [
            "Started",
            "Agreed",
            "Connected",
            "BlockAnnounced",
            "BlockReceived",
            "Closing",
            "Closed",
            "Closed"
        ]
    );
    let server: Vec<_> = without_sizes(words(&life.server)).collect();
    assert_eq!(
        server,
        [
            "Started",
            "Agreed",
            "Connected",
            "BlockAnnounced",
            "BlockSent",
            "Closing",
            "Closed",
            "Closed"
        ]
    );
    let ended = |event: &TraceEvent| *event == TraceEvent::StateChanged(ConnectionState::Closed);
    assert!(life.server.iter().any(|traced| ended(&traced.event)));
}

/// A program that does not take the trace has as many events as fit, the number of missing ones, and the end.
#[test]
fn a_trace_that_nobody_takes_is_bounded() {
    let all = run(at(TraceLevel::Datagrams), true);
    // Enough for several times what fits.
    let mut lan = lan(at(TraceLevel::Datagrams).with_max_rate_bps(400_000_000));
    lan.run(20);
    let blocks = 12;
    for tag in 0..blocks {
        lan.peer().send_block(&Block::new(tag, vec![7; 4 << 20])).unwrap();
    }
    lan.run(3_000);
    assert!(lan.peer().all_acked());
    lan.peer().close(CloseCode::DONE, "");
    lan.run(2_000);
    let trace: Vec<_> = std::iter::from_fn(|| lan.server.poll_trace()).map(|it| it.1).collect();
    let bytes: usize = trace.iter().map(|traced| memory(&traced.event)).sum();
    assert!((400 << 10..=1_088 << 10).contains(&bytes), "{bytes} bytes");
    let missing: u64 = trace.iter().map(|traced| traced.missing).sum();
    assert!(missing > 10_000, "{missing} missing");
    let is_closed = |traced: &Traced| matches!(traced.event, TraceEvent::Closed(_));
    assert!(trace.iter().any(is_closed), "its end is missing");
    let sent = trace.iter().filter(|it| matches!(it.event, TraceEvent::BlockSent { .. })).count();
    assert_eq!(sent as u64, blocks);
    assert!(all.server.iter().all(|traced| traced.missing == 0));
}

fn memory(event: &TraceEvent) -> usize {
    let frames = match event {
        TraceEvent::DatagramSent(it) | TraceEvent::DatagramReceived(it) => it.frames.as_slice(),
        _ => &[],
    };
    let ranges = frames.iter().map(|frame| match frame {
        TraceFrame::Ack { ranges, .. } => ranges.len() * 16,
        _ => 0,
    });
    size_of::<Traced>() + size_of_val(frames) + ranges.sum::<usize>()
}

/// The logged secrets open everything that was sent: hello, welcome, and datagrams of each key.
#[test]
fn the_logged_secrets_open_what_crossed() {
    let config = ConnectionConfig::default().with_trace_secrets(true).with_datagrams_per_key(200);
    let run = run(config, true);
    let secrets = |trace: &[Traced]| -> Vec<TraceSecret> {
        let secret = |traced: &Traced| match &traced.event {
            TraceEvent::Secret(secret) => secret.clone(),
            event => panic!("no more was asked for than secrets: {event:?}"),
        };
        trace.iter().map(secret).collect()
    };
    let logged = secrets(&run.client);
    assert_eq!(logged, secrets(&run.server), "both ends have the same");
    let [
        TraceSecret::Hello { client_id, key: hello_key, associated_data: hello_data },
        TraceSecret::Welcome { key: welcome_key, associated_data: welcome_data, .. },
        TraceSecret::Traffic { is_clients: true, suite, secret: up, .. },
        TraceSecret::Traffic { is_clients: false, server_id, secret: down, .. },
    ] = logged.as_slice()
    else {
        panic!("{logged:?}")
    };
    let (mut requests, mut responses, mut data) = (0, 0, 0);
    let mut keys = [up, down].map(|first| vec![TrafficSecret::new(first.clone())]);
    for (way, datagram) in &run.wire {
        match datagram[0] & 0xfc {
            0x0c => {
                let (end, to) = match way {
                    Way::Up(_) => (0, server_id),
                    Way::Down(_) => (1, client_id),
                };
                assert_eq!(&datagram[1..9], to);
                let number = u32::from_le_bytes(datagram[9..13].try_into().unwrap()).into();
                let is_open = |secret: &TrafficSecret| {
                    let (covered, tag) = datagram.split_last_chunk::<TAG_BYTES>().unwrap();
                    let (header, text) = covered.split_at(13);
                    let mut text = text.to_vec();
                    let key = secret.key(*suite).unwrap();
                    key.open(number, header, &mut text, tag).is_ok()
                        && Frames::of(&text).all(|frame| frame.is_ok())
                };
                if !keys[end].iter().rev().any(is_open) {
                    let next = keys[end].last().unwrap().next();
                    assert!(is_open(&next), "number {number} of {way:?} does not open");
                    keys[end].push(next);
                }
                data += 1;
            }
            _ if matches!(way, Way::Up(_)) => {
                requests += usize::from(datagram.len() == 1200);
            }
            _ => {
                let Ok(header) = ResponseHeader::read(datagram) else { continue };
                let welcome = opened(welcome_key, welcome_data, header.welcome_message);
                assert_eq!(Welcome::read(&welcome).unwrap().server_id.0, *server_id);
                responses += 1;
            }
        }
    }
    assert!(requests > 0 && responses > 0, "{requests} requests, {responses} responses");
    assert!(data > 1_500, "{data} datagrams");
    assert!(keys[1].len() > 3, "{} keys", keys[1].len());
    let request = &run.wire[0].1;
    let sealed = (0..request.len() - 48).find_map(|from| {
        (60..400).find_map(|bytes| {
            let message = request.get(from..from + bytes)?;
            try_open(hello_key, hello_data, message)
        })
    });
    assert!(Hello::read(&sealed.expect("no hello opens")).is_ok());
}

fn opened(key: &Secret, associated_data: &[u8; 32], message: &[u8]) -> Vec<u8> {
    try_open(key, associated_data, message).expect("it opens")
}

/// The payload of a Noise message, which is behind an ephemeral key of 32 bytes.
fn try_open(key: &Secret, associated_data: &[u8; 32], message: &[u8]) -> Option<Vec<u8>> {
    let (text, tag) = message.get(32..)?.split_last_chunk::<TAG_BYTES>()?;
    let (cipher, mut text) = (ChaCha20Poly1305::new(key.as_bytes().into()), text.to_vec());
    let opened =
        cipher.decrypt_in_place_detached(&Nonce::default(), associated_data, &mut text, tag.into());
    opened.ok().map(|()| text)
}

/// Without its own setting no trace has a secret, whatever the level.
#[test]
fn secrets_are_only_in_a_trace_that_asks_for_them() {
    let run = run(at(TraceLevel::Datagrams), true);
    let is_secret = |traced: &Traced| matches!(traced.event, TraceEvent::Secret(_));
    assert!(!run.server.iter().chain(&run.client).any(is_secret));
    let both = at(TraceLevel::Life).with_trace_secrets(true);
    let mut lan = lan(both);
    lan.run(50);
    let trace: Vec<_> = std::iter::from_fn(|| lan.clients[0].poll_trace()).collect();
    assert_eq!(trace.iter().filter(|traced| is_secret(traced)).count(), 4);
    let shown = format!("{trace:?}");
    assert!(shown.contains("Secret { .. }") && !shown.contains("Secret { ["), "{shown}");
}

/// A handshake that nobody answers has a trace, with its end.
#[test]
fn a_handshake_that_fails_has_a_trace() {
    let mut lan = lan(at(TraceLevel::Datagrams));
    lan.run_with(11_000, |_, _| false);
    assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Closed(_))));
    let trace: Vec<_> = std::iter::from_fn(|| lan.clients[0].poll_trace()).collect();
    assert!(matches!(trace.first().unwrap().event, TraceEvent::Started { is_client: true, .. }));
    assert!(matches!(trace.last().unwrap().event, TraceEvent::Closed(_)));
    assert!(trace.len() > 40, "{} requests", trace.len() - 2);
}
