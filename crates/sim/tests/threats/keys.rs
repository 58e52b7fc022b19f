//! T18: no number twice with a key, and keys that change under bad conditions.

use std::collections::HashMap;
use std::time::Duration;

use haulier_proto::connection::{CloseReason, Event};
use haulier_sim::{Rng, Shot};

use crate::support::{BOTH, Keyed, Town, client_config, connection, last, ms, server_config};

/// All data datagrams that ever crossed the wire: where to, with which phase and number, and what.
type Seen = HashMap<(Vec<u8>, u8, [u8; 4]), Vec<u8>>;

fn note(seen: &mut Seen, datagram: &[u8]) {
    if datagram[0] & 0xc0 != 0x40 {
        return;
    }
    let key =
        (datagram[1..9].to_vec(), datagram[0], <[u8; 4]>::try_from(&datagram[9..13]).unwrap());
    let before = seen.insert(key, datagram.to_vec());
    assert!(before.is_none_or(|before| before == datagram), "a number twice with one key");
}

/// A server that crashes and comes back knows nothing of what it sent. No (id, phase, number) is ever on
/// the wire with different bytes, over five lives; the client learns that its server is a new one, by the
/// reset, and does not wait for the idle time-out.
#[test]
fn t18_a_restarted_server_repeats_no_nonce_and_is_noticed() {
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Seen::new()));
    for life in 0..5u64 {
        let (server, client) = (server_config(Keyed::Secret), client_config(Keyed::Secret));
        let mut town = Town::seeded(server, client, 1_000_000, 10 * life);
        let record = seen.clone();
        town.on_path(move |_, _, datagram, _| {
            note(&mut record.borrow_mut(), datagram);
        });
        town.world.run_to(ms(300));
        assert!(town.is_open());
        town.restart_server(Keyed::Secret, 5 + 10 * life);
        town.world.run_to(ms(10_000));
        let event = last(town.client());
        assert!(matches!(event, Some(Event::Closed(CloseReason::ConnectionUnknown))), "{event:?}");
        let closed = town.client().app.first(|event| matches!(event, Event::Closed(_))).unwrap();
        println!("noticed after {:?}", closed - Duration::from_millis(300));
    }
}

/// In mode `open` there is nothing to keep over a restart, so only silence shows it.
#[test]
fn t18_in_mode_open_a_restart_is_noticed_by_silence() {
    let mut town = Town::new(Keyed::Open, 1_000_000);
    town.world.run_to(ms(300));
    town.restart_server(Keyed::Open, 100);
    town.world.run_to(ms(20_000));
    let event = last(town.client());
    assert!(matches!(event, Some(Event::Closed(CloseReason::TimedOut))), "{event:?}");
}

/// Keys change every 20 datagrams, on a link that loses a third, doubles and reorders: everything arrives,
/// no connection is closed, and no number is used twice with a key.
#[test]
fn t18_keys_change_under_loss_and_reordering() {
    for keyed in BOTH {
        for seed in 0..20 {
            let small = connection().with_datagrams_per_key(20);
            let server = server_config(keyed).with_connection(small);
            let client = client_config(keyed).with_connection(small);
            let mut town = Town::with(server, client, 400_000);
            let mut rng = Rng::new(seed);
            let mut seen = Seen::new();
            let mut late: Vec<Shot> = Vec::new();
            town.on_path(move |from, to, datagram, out| {
                note(&mut seen, datagram);
                match rng.below(10) {
                    0..=2 => datagram.clear(),
                    3 => out.push(Shot::spoofed(from, to, datagram.clone())),
                    4 => late.push(Shot::spoofed(from, to, std::mem::take(datagram))),
                    _ => {}
                }
                // What is late overtakes nothing for a while.
                if late.len() > 12 {
                    out.append(&mut late);
                }
            });
            town.assert_joins(ms(60_000));
            assert!(town.is_open(), "{keyed:?} {seed}: {:?}", last(town.client()));
            let host = town.client().client.as_ref().unwrap();
            let updates = host.connection().unwrap().stats().key_updates;
            assert_eq!(keyed == Keyed::Secret, updates >= 3, "{updates} updates");
        }
    }
}
