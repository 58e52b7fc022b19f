//! T1, T2: a server that is used to flood a third party.

use std::time::Duration;

use haulier_proto::Machine as _;
use haulier_proto::client::ClientMachine;
use haulier_proto::connection::ConnectionConfig;
use haulier_proto::server::{ServerEvent, ServerMachine};
use haulier_sim::attack::raw::RawClient;
use haulier_sim::{Rng, Shot, address};

use crate::support::{
    ATTACKER, BOTH, CLIENT, Keyed, Pair, SERVER, Ticker, Town, block, drain, drain_client, ms,
    secret, server_config,
};
use crate::tokens::{NOW_UNIX, token_client_at, token_server};

/// Requests with a right check from a thousand addresses that never asked: the server answers each with
/// three times what came at most, in bytes and in datagrams, in every prefix of the run. The honest
/// client joins during it.
#[test]
fn t1_spoofed_requests_get_three_times_their_bytes_at_most() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 200_000);
        let mut rng = Rng::new(3);
        let key = (keyed == Keyed::Secret).then(secret);
        let act = move |_, out: &mut Vec<Shot>| {
            let request = RawClient::new(key.as_ref(), rng.next_u64()).request();
            let victim = address(100_000 + rng.below(1000) as u32);
            // Sometimes a few copies, as an honest client would send.
            for _ in 0..rng.between(1, 3) {
                out.push(Shot::spoofed(victim, address(SERVER), request.clone()));
            }
        };
        let every = Duration::from_millis(2);
        town.attacker(ATTACKER, Ticker { every, next: ms(0), left: 2000, act });
        town.assert_joins(ms(5_000));
        town.world.run_to(ms(20_000));
        let meter = &town.server().meter;
        println!(
            "{keyed:?}: {:.3} bytes, {:.3} datagrams for one",
            meter.worst_bytes(),
            meter.worst_datagrams()
        );
        assert!(meter.worst_bytes() > 1.0, "the flood did not reach the server");
    }
}

/// Random bytes of every length behind every first byte, and real datagrams cut and flipped: not one byte
/// out, and nothing changed but counters. What is not a request with a right check is not worth an answer;
/// the refusal of a wrong one is an answer to 1200 bytes, counted by the test after this.
#[test]
fn t1_junk_gets_no_byte_and_changes_nothing() {
    let mut rng = Rng::new(4);
    for keyed in BOTH {
        let mut pair = Pair::connected(keyed);
        let wire = pair.wire.clone();
        let before = pair.settled();
        for round in 0..60_000u32 {
            let junk = if round % 2 == 0 {
                let mut junk = vec![0; rng.below(1300) as usize];
                junk.fill_with(|| rng.next_u64() as u8);
                if let Some(first) = junk.first_mut() {
                    *first = (round / 2) as u8;
                }
                junk
            } else {
                let mut real = rng.pick(&wire).1.clone();
                if rng.below(2) == 0 {
                    real.truncate(rng.below(real.len() as u64) as usize);
                } else {
                    let at = rng.below(real.len() as u64) as usize;
                    real[at] ^= 1 << rng.below(8);
                }
                real
            };
            // A request of the right length is refused, with less than a tenth of its bytes.
            if junk.len() >= 1200 && junk[0] == 0x04 {
                continue;
            }
            let from = address(rng.below(1 << 20) as u32 + 50);
            let taken = pair.server.handle_datagram(pair.now, from, &mut junk.clone());
            assert!(taken.is_err(), "junk was taken: {junk:02x?}");
            assert!(!pair.takes(false, &junk), "junk was taken by the client: {junk:02x?}");
        }
        pair.assert_untouched(&before);
    }
}

/// A flood of requests with a wrong check, version, mode or token: at most one refusal each, of 34 bytes for
/// 1200, at most 100 a second for all sources together, and no memory.
#[test]
fn t1_refusals_are_small_and_few() {
    for keyed in BOTH {
        let mut server = ServerMachine::new(ms(0), 0, server_config(keyed), [1; 32]).unwrap();
        let mut rng = Rng::new(5);
        let (mut bytes_out, mut refusals) = (0, 0);
        let key = (keyed == Keyed::Secret).then(secret);
        let request = RawClient::new(key.as_ref(), 1).request();
        for at in 0..10_000u64 {
            let mut forged = request.clone();
            let place = *rng.pick(&[1usize, 2, 5, 12, 40, 1000, 1190]);
            forged[place] ^= 1 << rng.below(8);
            let from = address(rng.below(1 << 20) as u32 + 50);
            assert!(server.handle_datagram(ms(at), from, &mut forged).is_err());
            for (to, answer) in drain(&mut server, ms(at)) {
                assert_eq!(to, from);
                assert!(answer.len() <= 34, "{} bytes", answer.len());
                bytes_out += answer.len();
                refusals += 1;
            }
        }
        assert!(refusals <= 100 * 11, "{refusals} refusals in 10 s");
        assert_eq!((server.stats().connections, server.stats().remembered), (0, 0));
        println!("{keyed:?}: {refusals} refusals, {bytes_out} bytes for 12 MB");
    }
}

/// Two machines pointed at each other must not send without end: every datagram a server sent comes back to
/// it, and every datagram a client sent comes back to that. Neither answers.
#[test]
fn t1_reflected_datagrams_get_no_byte() {
    for keyed in BOTH {
        let mut pair = Pair::connected(keyed);
        let before = pair.settled();
        for (to_server, bytes) in pair.wire.clone() {
            if to_server {
                assert!(!pair.takes(false, &bytes));
            } else {
                for from in [address(CLIENT), address(SERVER), address(77)] {
                    let taken = pair.server.handle_datagram(pair.now, from, &mut bytes.clone());
                    assert!(taken.is_err());
                }
            }
        }
        pair.assert_untouched(&before);
    }
}

/// A receiver's acks are a small part of what it gets, always: otherwise an attacker that can make it get
/// slices has an amplifier. Ten megabytes to a client over a good link and a bad one.
#[test]
fn t2_acks_are_a_small_part_of_what_they_answer() {
    for loss in [0, 20] {
        let mut town = Town::new(Keyed::Secret, 2_000_000);
        let mut rng = Rng::new(6);
        town.on_path(move |_, _, datagram, _| {
            if rng.below(100) < loss {
                datagram.clear();
            }
        });
        let client = town.client;
        let mut worst: f64 = 0.0;
        let done = town.world.run_until(ms(120_000), |world| {
            let host = world.host(client);
            if let Some(connection) = host.client.as_ref().and_then(|c| c.connection()) {
                let stats = connection.stats();
                let ratio = stats.ack_bytes_sent as f64 / stats.bytes_received.max(1) as f64;
                worst = worst.max(ratio);
            }
            host.app.joined_after().is_some()
        });
        assert!(done);
        let stats = town.client().client.as_ref().unwrap().connection().unwrap().stats();
        let all = stats.ack_bytes_sent as f64 / stats.bytes_received as f64;
        println!("loss {loss} %: acks are {all:.4} of the bytes, {worst:.4} in the worst prefix");
        assert!(all <= 0.10 && worst <= 1.0, "{all} {worst}");
    }
}

/// Whoever has a token with an address in it may be elsewhere. To that address the server sent 6.2 MB for
/// four spoofed requests, because it counted as validated. Now it is 80 times and 384 KiB at most, and for
/// four handshakes of a prefix at a time, however many tokens there are.
#[test]
fn t1_a_token_with_a_victims_address_sends_it_a_bounded_amount() {
    let (config, key) = token_server();
    let config = config.with_connection(ConnectionConfig::default());
    let victim = address(66);
    for (tokens, copies) in [(1, 1), (1, 4), (1, 10), (100, 10)] {
        let mut server = ServerMachine::new(ms(0), NOW_UNIX, config.clone(), [1; 32]).unwrap();
        let (mut spoofed, mut sent, mut now) = (0, 0, ms(0));
        let mut waiting: Vec<Vec<u8>> = (0..tokens)
            .flat_map(|n| {
                let client = token_client_at(&key, n, victim).with_copies(copies);
                let mut client = ClientMachine::new(now, client, [n; 32]).unwrap();
                drain_client(&mut client, now)
            })
            .collect();
        for _ in 0..9_000 {
            if let Some(mut request) = waiting.pop() {
                spoofed += request.len();
                let _counted = server.handle_datagram(now, victim, &mut request);
            }
            while let Some((id, event)) = server.poll_event(now) {
                if let ServerEvent::Connecting { .. } = event {
                    let connection = server.connection_mut(id).unwrap();
                    connection.send_block(now, &block(16 << 20)).unwrap();
                }
            }
            sent +=
                drain(&mut server, now).iter().map(|(_, datagram)| datagram.len()).sum::<usize>();
            now = now + Duration::from_millis(1);
            server.handle_timeout(now);
        }
        let ratio = sent as f64 / spoofed as f64;
        println!(
            "{tokens} tokens, {spoofed} bytes spoofed, {sent} sent to the victim, x {ratio:.1}"
        );
        assert!(sent <= 80 * spoofed && sent <= 4 * 393_216 + 3 * spoofed, "{sent}");
        assert_eq!(server.stats().accepted, 0);
    }
}

/// Data that does not fit into the rest of the amplification limit waits until the limit grows, and does not
/// wake the server: otherwise a server that has slices, packets, messages or hints for a client that never
/// answers would spin until the handshake times out. A token's limit has less than 1200 bytes for each
/// datagram.
#[test]
fn t1_what_does_not_fit_the_limit_waits() {
    let (config, key) = token_server();
    let config = config.with_connection(ConnectionConfig::default());
    let victim = address(66);
    let client = token_client_at(&key, 1, victim).with_copies(10);
    let mut client = ClientMachine::new(ms(0), client, [1; 32]).unwrap();
    let requests = drain_client(&mut client, ms(0));
    for size in (0..2_400).step_by(29) {
        for what in 0..4 {
            let mut server = ServerMachine::new(ms(0), NOW_UNIX, config.clone(), [1; 32]).unwrap();
            for request in &requests {
                let _copy = server.handle_datagram(ms(0), victim, &mut request.clone());
            }
            while server.poll_event(ms(0)).is_some() {}
            let id = server.connections().next().unwrap();
            let (mut bytes, mut fill) = (0, 391_000 - size);
            for now in 1..1_000 {
                let connection = server.connection_mut(id).unwrap();
                if bytes < fill {
                    let _sequence = connection.send_packet(vec![7; 1024]).unwrap();
                } else if std::mem::take(&mut fill) > 0 {
                    match what {
                        0 => assert!(connection.send_block(ms(now), &block(1 << 20)).is_ok()),
                        1 => assert!(connection.send_packet(vec![7; 5_000]).is_ok()),
                        2 => (0..9).for_each(|n| connection.send_message(vec![n; 900]).unwrap()),
                        _ => assert!((0..60).all(|n| connection.have_block([n; 32]))),
                    }
                }
                server.handle_timeout(ms(now));
                while server.poll_event(ms(now)).is_some() {}
                bytes += drain(&mut server, ms(now)).iter().map(|(_, it)| it.len()).sum::<usize>();
                let next = server.poll_timeout();
                assert!(next > Some(ms(now)), "{what}, {size}: {next:?} at {now} ms, {bytes} sent");
            }
            assert!(fill == 0 && bytes <= 393_216, "{bytes} bytes");
        }
    }
}
