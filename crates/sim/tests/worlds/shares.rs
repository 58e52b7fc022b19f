//! What several blocks, and messages beside them, get of a link: by priority and weight, wherever the
//! connection's own rate or window limits all of them; and how messages go where nothing is measured.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{
    Block, BlockHandle, BlockOptions, Connection, ConnectionConfig, Event, Lane, Order, Source,
};
use haulier_sim::hosts::{App, ClientHost, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, HostId, LinkConfig, Rng, World, address};

const SEED: u64 = 0x5eed_0577;

/// Bytes of each message.
const MESSAGE_BYTES: usize = 1_000;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Sends these blocks at once, and keeps the queues of these channels full.
#[derive(Clone, Debug, Default)]
struct Sending {
    blocks: Vec<(usize, BlockOptions)>,
    lanes: Vec<(Source, Lane)>,
    channels: Vec<u8>,
    /// A single message is sent then.
    once: Option<Instant>,
    handles: Vec<BlockHandle>,
    sent: Vec<BlockHandle>,
    acked: u64,
    next: Instant,
}

impl App for Sending {
    fn hear(&mut self, _: Instant, event: Event) {
        match event {
            Event::BlockSent { handle } => self.sent.push(handle),
            Event::MessageAcked { .. } => self.acked += 1,
            _ => {}
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        let has_work = !self.channels.is_empty() || self.handles.len() < self.blocks.len();
        has_work.then_some(self.next).or(self.once)
    }

    fn act(&mut self, now: Instant, connection: &mut Connection) {
        self.next = now + Duration::from_millis(5);
        self.lanes.drain(..).for_each(|(source, lane)| connection.set_lane(source, lane));
        for n in self.handles.len()..self.blocks.len() {
            let (bytes, options) = self.blocks[n];
            let block = Block::new(n as u64, Rng::stream(SEED, n as u64).bytes(bytes));
            self.handles.push(connection.send_block_with(now, &block, options).expect("room"));
        }
        if self.once.take_if(|at| *at <= now).is_some() {
            connection.send_message(vec![7; 100]).expect("room");
        }
        for &channel in &self.channels {
            let message = || vec![channel; MESSAGE_BYTES];
            while connection.send_message_on(channel, Order::Unordered, message()).is_ok() {}
        }
    }
}

/// A server that sends to a client over this link.
struct Line {
    world: World,
    server: HostId<ServerHost<Sending>>,
    client: HostId<ClientHost>,
}

impl Line {
    fn new(link: &LinkConfig, sending: Sending) -> Self {
        println!("seed {SEED:#x}");
        let connection = ConnectionConfig::default().with_max_channel_bytes(1 << 20);
        let (server, client) = configs(Keyed::Secret, connection);
        let mut world = World::new(SEED);
        let host = ServerHost::new(move |_, _| sending.clone(), server, SEED);
        let server = world.add(host, address(1), &Access::default());
        let host = ClientHost::new(Script::idle(), client, ms(0), SEED + 1);
        let client = world.add(host, address(2), &Access::from(link.clone()));
        Self { world, server, client }
    }

    fn app(&self) -> &Sending {
        self.world.host(self.server).apps.values().next().expect("a connection")
    }

    /// Bytes that the client has of each block, and of messages, at this time.
    fn at(&mut self, millis: u64) -> (Vec<u64>, u64) {
        self.world.run_to(ms(millis));
        let host = self.world.host(self.server);
        let connection = host.connection().expect("a connection");
        let blocks = self.app().handles.iter().map(|&handle| {
            let progress = connection.sending_block(handle);
            progress.map_or(0, |progress| progress.done)
        });
        (blocks.collect(), self.app().acked * MESSAGE_BYTES as u64)
    }
}

fn link() -> LinkConfig {
    LinkConfig::new(20_000_000, Duration::from_millis(20)).with_queue(128 << 10)
}

fn weighted(weights: &[u16]) -> Vec<(usize, BlockOptions)> {
    weights.iter().map(|&w| (20_000_000, BlockOptions::default().with_weight(w))).collect()
}

/// Whether the two are as 1 to 3, within a tenth.
fn assert_one_to_three(one: u64, three: u64) {
    let share = one as f64 / (one + three) as f64;
    println!("{one} and {three}: {share:.3}");
    assert!((0.9 * 0.25..1.1 * 0.25).contains(&share), "{share}");
}

#[test]
fn two_blocks_share_a_link_by_weight() {
    let mut line = Line::new(&link(), Sending { blocks: weighted(&[1, 3]), ..Sending::default() });
    let (before, _) = line.at(1_000);
    let (after, _) = line.at(5_000);
    assert_one_to_three(after[0] - before[0], after[1] - before[1]);
    assert!(after[0] + after[1] - before[0] - before[1] > 8_000_000, "the link is used");
}

/// Blocks without a weight are one after the other, and have one share together.
#[test]
fn a_sequence_of_blocks_shares_with_a_weighted_one() {
    let mut line =
        Line::new(&link(), Sending { blocks: weighted(&[0, 0, 3]), ..Sending::default() });
    let (before, _) = line.at(1_000);
    let (after, _) = line.at(5_000);
    assert_eq!(after[1], 0, "it waits for the first");
    assert_one_to_three(after[0] - before[0], after[2] - before[2]);
}

#[test]
fn a_lower_priority_waits_until_the_higher_has_nothing_to_send() {
    let low = (3_000_000, BlockOptions::default().with_weight(100));
    let high = (3_000_000, BlockOptions::default().with_priority(1));
    let mut line = Line::new(&link(), Sending { blocks: vec![low, high], ..Sending::default() });
    // The first is begun before the second is known.
    let (begun, _) = line.at(200);
    let (after, _) = line.at(1_000);
    assert!(after[1] > 1_800_000 && after[0] <= begun[0] + 100_000, "{begun:?}, {after:?}");
    line.world.run_to(ms(4_000));
    let app = line.app();
    assert_eq!(app.sent, [app.handles[1], app.handles[0]]);
}

/// Messages beside a block: the connection's rate is for both of them.
#[test]
fn messages_and_blocks_share_a_link_by_weight() {
    let lanes = vec![
        (Source::Channel(2), Lane::new(64, 3).unwrap()),
        (Source::Blocks, Lane::new(64, 1).unwrap()),
    ];
    let blocks = weighted(&[0]);
    let mut line =
        Line::new(&link(), Sending { blocks, lanes, channels: vec![2], ..Sending::default() });
    let (before, messages_before) = line.at(1_000);
    let (after, messages) = line.at(5_000);
    assert_one_to_three(after[0] - before[0], messages - messages_before);
    let (_, down) = line.world.links(line.world.segment_of(line.client));
    let stats = down.stats();
    println!("{stats:?}");
    assert!(stats.queue_full * 200 < stats.offered, "{stats:?}");
}

/// As it is without other lanes: whatever there is of messages goes before the blocks, within the rate.
#[test]
fn messages_go_before_blocks() {
    let blocks = weighted(&[0]);
    let mut line = Line::new(&link(), Sending { blocks, channels: vec![0], ..Sending::default() });
    let (before, messages_before) = line.at(1_000);
    let (after, messages) = line.at(3_000);
    println!("{} of the block, {}", after[0] - before[0], messages - messages_before);
    assert!(messages - messages_before > 4_000_000);
    assert!(after[0] - before[0] < 300_000);
}

/// A burst of messages does not go out at once: ten datagrams, and more as they are acknowledged.
#[test]
fn a_burst_of_messages_is_spread_over_round_trips() {
    let link = LinkConfig::new(5_000_000, Duration::from_millis(25)).with_queue(64 << 10);
    let mut line = Line::new(&link, Sending { channels: vec![0, 1], ..Sending::default() });
    let segment = line.world.segment_of(line.client);
    let peak = |line: &mut Line, at| {
        line.world.run_to(ms(at));
        line.world.links(segment).1.stats().queue_bytes_max
    };
    let first = peak(&mut line, 95);
    println!("{first} bytes wait of the first burst");
    assert!((5_000..13_500).contains(&first), "{first}");
    let (_, messages) = line.at(4_000);
    println!("{messages} bytes in 4 s: {:?}", line.world.links(segment).1.stats());
    assert!(messages > 1_800_000, "{messages}");
}

/// The last message before a silence is lost, and nothing follows that would show it.
#[test]
fn a_probe_carries_the_message_that_was_lost() {
    let (sent_at, delay) = (ms(3_000), Duration::from_millis(50));
    let lost = ms(2_999)..ms(3_005);
    let link = LinkConfig { cut_outs: vec![lost], ..LinkConfig::new(20_000_000, delay) };
    let mut line = Line::new(&link, Sending { once: Some(sent_at), ..Sending::default() });
    line.world.run_to(ms(2_990));
    let stats = line.world.host(line.server).connection().expect("a connection").stats();
    let (rtt, variation) = (stats.rtt.expect("an RTT"), stats.rtt_variation.expect("an RTT"));
    let probe_timeout = rtt + 4 * variation + Duration::from_millis(20);
    let client = line.client;
    let has_message = |world: &World| {
        let heard = &world.host(client).app.heard;
        heard.iter().any(|(_, event)| matches!(event, Event::Message { .. }))
    };
    assert!(line.world.run_until(ms(10_000), has_message));
    let took = line.world.now().since(sent_at);
    println!("{took:?}, with a probe timeout of {probe_timeout:?}");
    assert!(took > delay + Duration::from_millis(20), "it was lost");
    assert!(took <= probe_timeout + delay + Duration::from_millis(3), "a round trip later");
    line.world.run_to(ms(11_000));
    let heard = &line.world.host(client).app.heard;
    let messages = heard.iter().filter(|(_, event)| matches!(event, Event::Message { .. }));
    assert_eq!((messages.count(), line.app().acked), (1, 1));
}
