//! The attackers, which want to prevent the joins: junk and forged requests at a rate, and hostile clients
//! with the key, all from one socket.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Moment};

use haulier::proto::Instant;
use haulier_sim::Rng;
use haulier_sim::attack::{Hostile, HostileKind, Mind};

use super::server;

/// How often attackers act.
const TICK: Duration = Duration::from_millis(2);

/// Hostile clients act this often, each.
const EVERY: Duration = Duration::from_millis(500);

/// Forged datagrams that are made ahead, for their keys cost more than to send them.
const FORGED: usize = 64;

/// The id in what a client receives, and in its requests.
const RECEIVED_ID: std::ops::Range<usize> = 1..9;
const REQUESTED_ID: std::ops::Range<usize> = 5..13;

/// Attacks until `stop`. Returns how many datagrams that were.
pub(super) fn run(
    to: SocketAddr,
    hostile: u32,
    junk_per_s: u32,
    stop: &AtomicBool,
) -> io::Result<u64> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    let (began, mut rng) = (Moment::now(), Rng::new(1));
    let forever = Instant::from_nanos(u64::MAX);
    let mut mind = |kind| Hostile::new(kind, to, server::secret(), rng.next_u64(), EVERY, forever);
    let all = HostileKind::ALL.iter().cycle().take(hostile as usize);
    let mut minds: Vec<Hostile> = all.map(|&kind| mind(kind)).collect();
    let mut junk = Vec::new();
    for kind in [HostileKind::Junk, HostileKind::Forger] {
        let mut mind = mind(kind);
        (0..FORGED as u64)
            .for_each(|n| mind.wake(Instant::from_millis((n + 1) * 1_000), &mut junk));
    }
    let (mut by_id, mut out, mut sent, mut of_junk) = (HashMap::new(), Vec::new(), 0, 0_u64);
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let elapsed = began.elapsed();
        let now = Instant::ZERO + elapsed;
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let datagram = &buffer[..length];
            let id = datagram.get(RECEIVED_ID).map(<[u8]>::to_vec);
            if let Some(&at) = id.and_then(|id| by_id.get(&id)) {
                let mind: &mut Hostile = &mut minds[at];
                mind.receive(now, from, datagram, &mut out);
                sent += send(&socket, to, at, &mut out, &mut by_id);
            }
        }
        for (at, mind) in minds.iter_mut().enumerate() {
            mind.wake(now, &mut out);
            sent += send(&socket, to, at, &mut out, &mut by_id);
        }
        let due = (elapsed.as_secs_f64() * f64::from(junk_per_s)) as u64;
        for shot in
            junk.iter().cycle().skip(of_junk as usize % junk.len()).take((due - of_junk) as usize)
        {
            sent += u64::from(socket.send_to(&shot.bytes, to).is_ok());
        }
        of_junk = due;
        std::thread::sleep(TICK);
    }
    Ok(sent)
}

/// Sends what the hostile client at this place shoots, from the one address there is.
fn send(
    socket: &UdpSocket,
    to: SocketAddr,
    at: usize,
    out: &mut Vec<haulier_sim::Shot>,
    by_id: &mut HashMap<Vec<u8>, usize>,
) -> u64 {
    let mut sent = 0;
    for shot in out.drain(..) {
        if shot.bytes.first() == Some(&0x04)
            && let Some(id) = shot.bytes.get(REQUESTED_ID)
        {
            by_id.insert(id.to_vec(), at);
        }
        sent += u64::from(socket.send_to(&shot.bytes, to).is_ok());
    }
    sent
}
