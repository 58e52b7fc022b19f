//! Both ends over a link that loses, doubles, reorders and misjudges, with the frames as bytes and the lanes
//! between them: as a connection puts the parts together.

use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::transit::SentLimit;

/// Bytes for frames in a datagram of 1200.
const ROOM: usize = 1171;

#[derive(Clone, Debug)]
enum Item {
    Part(SentPart),
    Limit(SentLimit),
}

/// A datagram in flight: frames as bytes, and the sender's record of it.
#[derive(Clone, Debug)]
struct Datagram {
    from: usize,
    bytes: Vec<u8>,
    items: Vec<Item>,
}

/// What the link does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Arrives,
    Lost,
    /// It arrives twice.
    Doubled,
    /// It arrives, but its sender takes it for lost.
    Misjudged,
}

struct End {
    sender: MessageSender,
    receiver: MessageReceiver,
    lanes: Lanes,
    /// The messages that were sent, and those that were read, on each channel.
    sent: BTreeMap<u8, Vec<Sent>>,
    read: BTreeMap<u8, Vec<Bytes>>,
    acked: usize,
}

#[derive(Clone, Debug)]
struct Sent {
    order: Order,
    data: Bytes,
}

impl End {
    fn new(channels: u16, window: u64) -> Self {
        Self {
            sender: MessageSender::new(channels, window, 40_000),
            receiver: MessageReceiver::new(channels, window),
            lanes: Lanes::new(),
            sent: BTreeMap::new(),
            read: BTreeMap::new(),
            acked: 0,
        }
    }

    /// A message with content of its own, if there is room for it.
    fn send(&mut self, channel: u8, order: Order, bytes: usize) -> bool {
        let sent = self.sent.entry(channel).or_default();
        let number = sent.len() as u32;
        let mut data = message(bytes).to_vec();
        data.splice(.., [&number.to_le_bytes()[..], &data[data.len().min(4)..]].concat());
        let data = Bytes::from(data);
        if self.sender.send(channel, order, data.clone()) != Ok(number.into()) {
            return false;
        }
        sent.push(Sent { order, data });
        true
    }

    /// Composes a datagram as a connection does: limits, then what the lanes say.
    fn compose(&mut self, from: usize, room: usize) -> Option<Datagram> {
        let (mut bytes, mut items) = (Vec::new(), Vec::new());
        while let Some(limit) = self.receiver.poll_limit(room - bytes.len(), &mut bytes) {
            items.push(Item::Limit(limit));
        }
        loop {
            let (before, room) = (bytes.len(), room - bytes.len());
            let due = self.sender.due().map(|(channel, least)| (Source::Channel(channel), least));
            let Some(Source::Channel(channel)) = self.lanes.next(room, due) else { break };
            let part = self.sender.poll(channel, room, &mut bytes).expect("what is due fits");
            self.lanes.on_sent(Source::Channel(channel), bytes.len() - before);
            items.push(Item::Part(part));
            self.check_invariants();
        }
        assert!(!self.sender.has_due() || !bytes.is_empty(), "something is due and does not go");
        (!items.is_empty()).then_some(Datagram { from, bytes, items })
    }

    fn receive(&mut self, bytes: &[u8]) {
        for frame in Frames::of(bytes) {
            match frame {
                Ok(Frame::Message(frame)) => {
                    self.receiver.receive(&frame).unwrap();
                }
                Ok(Frame::ChannelLimit(limit)) => self.sender.on_limit(limit).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        self.check_invariants();
    }

    fn on_fate(&mut self, items: &[Item], is_acked: bool) {
        for item in items {
            match (item, is_acked) {
                (Item::Part(part), true) => {
                    let events = self.sender.on_acked(*part);
                    self.acked +=
                        events.filter(|event| matches!(event, MessageEvent::Acked { .. })).count();
                }
                (Item::Part(part), false) => self.sender.on_lost(*part),
                (Item::Limit(_), true) => {}
                (Item::Limit(limit), false) => self.receiver.on_limit_lost(*limit),
            }
        }
        self.check_invariants();
    }

    fn read(&mut self, most: usize) {
        for (channel, data) in core::iter::from_fn(|| self.receiver.pop()).take(most) {
            self.read.entry(channel).or_default().push(data);
        }
        self.check_invariants();
    }

    fn check_invariants(&self) {
        self.sender.check_invariants();
        self.receiver.check_invariants();
    }
}

/// Two ends, and what is under way between them.
struct Link {
    ends: [End; 2],
    /// By the time of arrival, and a number that makes it unique.
    under_way: BTreeMap<(u64, usize), (Datagram, Fate, bool)>,
    carried: usize,
}

impl Link {
    fn new(channels: u16, window: u64) -> Self {
        let ends = [End::new(channels, window), End::new(channels, window)];
        Self { ends, under_way: BTreeMap::new(), carried: 0 }
    }

    /// What arrives and what is found out by `now`.
    fn arrive(&mut self, now: u64) {
        while let Some(entry) = self.under_way.first_entry() {
            if entry.key().0 > now {
                return;
            }
            let (datagram, fate, is_first) = entry.remove();
            if fate != Fate::Lost {
                self.ends[1 - datagram.from].receive(&datagram.bytes);
            }
            if is_first {
                let is_acked = matches!(fate, Fate::Arrives | Fate::Doubled);
                self.ends[datagram.from].on_fate(&datagram.items, is_acked);
            }
        }
    }

    /// Sends what both ends have, each datagram with the fate, the delay and the room that `draw` says.
    fn transmit(
        &mut self,
        now: u64,
        most: usize,
        mut draw: impl FnMut(usize) -> (Fate, u64, usize),
    ) {
        for from in 0..2 {
            for _ in 0..most {
                let (fate, delay, room) = draw(self.carried);
                let Some(datagram) = self.ends[from].compose(from, room) else { break };
                self.carried += 2;
                if fate == Fate::Doubled {
                    let again = (now + delay + 17, self.carried + 1);
                    self.under_way.insert(again, (datagram.clone(), Fate::Arrives, false));
                }
                self.under_way.insert((now + delay, self.carried), (datagram, fate, true));
            }
        }
    }

    /// Everything that one end sent was read by the other, once, and in order where it was ordered.
    fn check_delivered(&self, from: usize) {
        let sent = self.ends[from].sent.iter().filter(|(_, sent)| !sent.is_empty());
        let mut total = 0;
        for (channel, sent) in sent {
            let read = &self.ends[1 - from].read[channel];
            total += sent.len();
            let number = |data: &Bytes| u32::from_le_bytes(data[..4].try_into().unwrap()) as usize;
            let mut numbers: Vec<_> = read.iter().map(number).collect();
            assert!(read.iter().all(|data| *data == sent[number(data)].data), "other content");
            let ordered = numbers.iter().filter(|&&n| sent[n].order == Order::Ordered);
            assert!(ordered.is_sorted(), "channel {channel} out of order");
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..sent.len()), "each once on channel {channel}");
        }
        assert_eq!(self.ends[from].acked, total, "each reported once");
    }
}

fn fate(draw: u8, loss: u8) -> Fate {
    match draw {
        draw if draw < loss => Fate::Lost,
        draw if draw % 16 == 3 => Fate::Doubled,
        draw if draw % 16 == 7 => Fate::Misjudged,
        _ => Fate::Arrives,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Both ends talk at once, on channels of all kinds. All of it arrives, once, in order where it is
    /// ordered, and both ends learn that it did.
    #[test]
    fn every_message_once_and_in_order(
        totals in [0..250usize, 0..250usize], channels in 1..9u8, loss in 0..128u8,
        window in 65_536..200_000u64, draws in prop::collection::vec(any::<u8>(), 1..500),
        kinds in prop::collection::vec((any::<u8>(), any::<bool>(), 4..2500usize), 1..60),
    ) {
        let mut link = Link::new(channels.into(), window);
        let mut sent = [0, 0];
        let draw_at = |n: usize| {
            let round = ((n / draws.len()) as u8).wrapping_mul(37);
            draws[n % draws.len()].wrapping_add(round)
        };
        for now in 0.. {
            prop_assert!(now < 200_000, "no progress: {sent:?} of {totals:?}");
            link.arrive(now);
            for from in 0..2 {
                while sent[from] < totals[from] {
                    let (channel, is_unordered, bytes) = kinds[(sent[from] * 7 + from) % kinds.len()];
                    let order = if is_unordered { Order::Unordered } else { Order::Ordered };
                    let bytes = if sent[from] % 50 == 49 { 65_536 } else { bytes };
                    if !link.ends[from].send(channel % channels, order, bytes) {
                        break;
                    }
                    sent[from] += 1;
                }
                link.ends[from].read(usize::from(draw_at(now as usize) % 8));
            }
            link.transmit(now, 20, |n| {
                let delay = 5 + u64::from(draw_at(n + 13) % 40);
                // The path changes, and other frames take some of it: what was lost is cut anew.
                let room = 600 + 4 * usize::from(draw_at(n + 29));
                (fate(draw_at(n), loss), delay, room)
            });
            let is_idle = |end: &End| end.sender.all_acked() && !end.receiver.has_next();
            if sent == totals && link.under_way.is_empty() && link.ends.iter().all(is_idle) {
                break;
            }
        }
        link.check_delivered(0);
        link.check_delivered(1);
    }
}

/// A channel all of whose datagrams are lost for a second, beside one whose are not: the second one is as
/// fast as alone.
#[test]
fn a_loss_on_one_channel_delays_no_other() {
    for is_beside in [false, true] {
        let mut link = Link::new(2, WINDOW);
        let mut late = 0;
        for now in 0..1000 {
            link.arrive(now);
            link.ends[1].read(usize::MAX);
            let read = link.ends[1].read.get(&1).map_or(0, Vec::len) as u64;
            // One message each millisecond, 30 ms on the way.
            late += u64::from(read < now.saturating_sub(30));
            if is_beside {
                while link.ends[0].send(0, Order::Ordered, 700) {}
                // Alone in its datagrams, so that the link can lose exactly those.
                let mut bytes = Vec::new();
                while let Some(part) = link.ends[0].sender.poll(0, ROOM, &mut bytes) {
                    let items = alloc::vec![Item::Part(part)];
                    let datagram = Datagram { from: 0, bytes: core::mem::take(&mut bytes), items };
                    link.carried += 2;
                    link.under_way.insert((now + 30, link.carried), (datagram, Fate::Lost, true));
                }
            }
            assert!(link.ends[0].send(1, Order::Ordered, 100));
            link.transmit(now, usize::MAX, |_| (Fate::Arrives, 30, ROOM));
        }
        assert_eq!(late, 0, "beside a lost channel: {is_beside}");
        assert!(!link.ends[1].read.contains_key(&0));
    }
}

/// Three channels that always have something, on a link that takes one datagram at a time: bytes go by
/// weight, and a higher priority goes before all of them.
#[test]
fn channels_share_a_link_by_weight() {
    let mut link = Link::new(4, WINDOW);
    for (channel, priority, weight) in [(0, 128, 1), (1, 128, 3), (2, 128, 1), (3, 129, 1)] {
        link.ends[0].lanes.set(Source::Channel(channel), Lane::new(priority, weight).unwrap());
    }
    for now in 0..2000 {
        link.arrive(now);
        for (channel, bytes) in [(0, 3000), (1, 200), (2, 50)] {
            while link.ends[0].send(channel, Order::Unordered, bytes) {}
        }
        if now % 10 == 0 {
            assert!(link.ends[0].send(3, Order::Ordered, 100));
        }
        link.transmit(now, 1, |_| (Fate::Arrives, 10, ROOM));
        link.ends[1].read(usize::MAX);
    }
    let read = |channel: u8| -> usize {
        link.ends[1].read[&channel]
            .iter()
            .map(|data| data.len() + if channel == 0 { 25 } else { 7 })
            .sum()
    };
    assert!(link.ends[1].read[&3].len() >= 198, "before all others");
    let (one, three, small) = (read(0) as f64, read(1) as f64, read(2) as f64);
    assert!((three / one - 3.0).abs() < 0.1, "{three} to {one}");
    assert!((small / one - 1.0).abs() < 0.1, "{small} to {one}");
}
