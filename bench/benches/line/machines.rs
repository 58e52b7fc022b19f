//! The machines of both ends without sockets: a link of 20 Gbit/s and 100 us in virtual time between
//! them, and what each end's calls take of this thread's time. Datagrams go and come in batches as with GSO
//! and GRO.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

use haulier::{Block, ConnectionConfig, Credentials, Delivery, Event, Secret, ServerCredentials};
use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::server::{ServerConfig, ServerEvent, ServerMachine};
use haulier_proto::{AesSupport, Batch, Ecn, FourTuple, Instant, Machine, Platform};

use crate::table::{SLICE_BYTES, cpu};

/// Enough for a steady state.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

const DELAY: Duration = Duration::from_micros(100);
const RATE_BPS: u64 = 20_000_000_000;

/// Datagrams of a batch: what one call of the system takes.
const BATCH: usize = 44;

/// One way of the link: batches, and when the last datagram of each arrives.
#[derive(Default)]
struct Way {
    free_at: u64,
    batches: VecDeque<(Instant, Batch)>,
    spare: Vec<Batch>,
}

impl Way {
    /// Sends all that the machine has. Returns the time that it took for that.
    fn take(&mut self, now: Instant, machine: &mut impl Machine) -> Duration {
        let mut spent = Duration::ZERO;
        loop {
            let mut batch = self.spare.pop().unwrap_or_else(|| Batch::new(BATCH));
            batch.clear();
            let begun = cpu();
            machine.poll_transmit(now, &mut batch);
            spent += cpu() - begun;
            let (is_full, bytes) =
                (batch.is_full(), batch.iter().map(|(_, it)| it.len() + 28).sum::<usize>());
            if batch.is_empty() {
                self.spare.push(batch);
                return spent;
            }
            let takes = bytes as u64 * 8 * 1_000_000_000 / RATE_BPS;
            self.free_at = self.free_at.max(now.as_nanos()) + takes;
            self.batches.push_back((Instant::from_nanos(self.free_at) + DELAY, batch));
            if !is_full {
                return spent;
            }
        }
    }

    fn next_at(&self) -> Option<Instant> {
        self.batches.front().map(|(at, _)| *at)
    }

    /// Hands in what has arrived by now, each datagram at its own time.
    fn give(&mut self, now: Instant, from: FourTuple, machine: &mut impl Machine) -> Duration {
        let mut spent = Duration::ZERO;
        while self.next_at().is_some_and(|at| at <= now) {
            let (at, mut batch) = self.batches.pop_front().unwrap();
            let mut left = batch.len() as u64;
            let begun = cpu();
            for (_, datagram) in batch.iter_mut() {
                left -= 1;
                let before = left * datagram.len() as u64 * 8 * 1_000_000_000 / RATE_BPS;
                let arrived = Instant::from_nanos(at.as_nanos() - before);
                machine.handle_marked_datagram(arrived, from, Ecn::NotEct, datagram);
            }
            spent += cpu() - begun;
            self.spare.push(batch);
        }
        spent
    }
}

pub(crate) fn print(bytes: u64) {
    println!(
        "\n{:<36} {:>9} {:>9} {:>9} {:>9}",
        "machines alone, ns a slice", "sender", "hearing", "receiver", "answering"
    );
    for (name, is_encrypted) in
        [("encrypted, 1472 bytes", true), ("unencrypted, 1472 bytes", false)]
    {
        let mut best = [Duration::MAX; 4];
        for _ in 0..3 {
            let spent = run(bytes, is_encrypted);
            best = std::array::from_fn(|n| best[n].min(spent[n]));
        }
        let each = best.map(|it| it.as_nanos() as f64 * SLICE_BYTES as f64 / bytes as f64);
        let [hears, sends, receives, answers] = each;
        println!("{name:<36} {sends:>9.0} {hears:>9.0} {receives:>9.0} {answers:>9.0}");
    }
}

fn run(bytes: u64, is_encrypted: bool) -> [Duration; 4] {
    let secret = Secret::from_bytes([7; 32]);
    let (at_server, credentials) = match is_encrypted {
        true => (
            ServerCredentials::default().with_secret(secret.clone()),
            Credentials::Secret { secret, identity: None },
        ),
        false => (ServerCredentials::default().with_open_access(), Credentials::Open),
    };
    let connection = ConnectionConfig::default()
        .with_max_block_bytes(bytes)
        .with_max_datagram_bytes(1472)
        .with_delivery(Delivery::Chunks);
    let config = ServerConfig::new(7, at_server).with_connection(connection);
    let [at, from] = [1, 2].map(|port| std::net::SocketAddr::from(([192, 0, 2, 1], port)));
    let [to_server, to_client] = [from, at].map(FourTuple::new);
    let platform = |seed| Platform::new([seed; 32], AesSupport::Hardware);
    let mut now = Instant::from_millis(1_000);
    let mut server = ServerMachine::new(now, 0, config, platform(1)).unwrap();
    let mut config = ClientConfig::new(at, 7, credentials);
    config.connection = connection;
    let mut client = ClientMachine::new(now, config, platform(2)).unwrap();
    let block = Block::new(1, vec![7; bytes as usize]);
    let (mut down, mut up) = (Way::default(), Way::default());
    let (mut left, mut spent) = (bytes, [Duration::ZERO; 4]);
    while left > 0 {
        let times = [down.next_at(), up.next_at(), server.poll_timeout(), client.poll_timeout()];
        now = now.max(times.into_iter().flatten().min().unwrap());
        spent[0] += up.give(now, to_server, &mut server);
        let begun = cpu();
        while let Some((id, event)) = server.poll_event(now) {
            if let ServerEvent::Connecting { .. } = event {
                server.connection_mut(id).unwrap().send_block(now, &block).unwrap();
            }
        }
        server.handle_timeout(now);
        spent[0] += cpu() - begun;
        spent[1] += down.take(now, &mut server);
        spent[2] += down.give(now, to_client, &mut client);
        let begun = cpu();
        while let Some(event) = client.poll_event(now) {
            match black_box(event) {
                Event::Chunk { data, .. } => left -= data.len() as u64,
                Event::Closed(reason) => panic!("{reason}"),
                _ => {}
            }
        }
        client.handle_timeout(now);
        spent[2] += cpu() - begun;
        spent[3] += up.take(now, &mut client);
    }
    spent
}
