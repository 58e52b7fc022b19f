//! Strategies that exist only as models, without a wire format.
//!
//! A packet is a number and a slice, padded to the size of a slice of haulier/1. An ack is the largest
//! number that arrived and a bit for each one up to it, so a later ack replaces a lost one. [`Desk`] is what
//! a sender knows and may do; a [`Model`] decides.

mod burst_resend;
mod receiver;
mod slow_start;

use std::collections::VecDeque;
use std::time::Duration;

use haulier_proto::{Batch, FourTuple, Instant, Machine};
use haulier_sim::link::UDP_IP_OVERHEAD;
use haulier_sim::{Host, HostId, World};

use super::{SLICE_WIRE_BYTES, SLICES};
use crate::ends::{Ends, Homes, addresses};
use receiver::{AckPolicy, Receiver};

/// A burst, then the missing slices.
pub(super) fn burst_resend(world: &mut World, homes: Homes, rtt: Duration) -> Box<dyn Ends> {
    ends(world, homes, Sender::new(burst_resend::BurstResend, rtt), burst_resend::ACKS)
}

/// Like TCP.
pub(super) fn slow_start(world: &mut World, homes: Homes, rtt: Duration) -> Box<dyn Ends> {
    ends(world, homes, Sender::new(slow_start::SlowStart::default(), rtt), slow_start::ACKS)
}

fn ends<M: Model>(
    world: &mut World,
    homes: Homes,
    sender: Sender<M>,
    acks: AckPolicy,
) -> Box<dyn Ends> {
    let (at_server, at_client) = addresses();
    let sender = world.add_behind(sender, at_server, homes.server);
    let receiver = world.add_behind(Receiver::new(acks), at_client, homes.client);
    Box::new(Modelled { sender, receiver })
}

/// A slice of the block.
pub(super) type SliceIndex = u16;

const ALL_SLICES: std::ops::Range<SliceIndex> = 0..SLICES as SliceIndex;

/// Bytes of a packet without UDP and IP.
const PACKET_BYTES: usize = (SLICE_WIRE_BYTES - UDP_IP_OVERHEAD) as usize;

/// The decisions of a model.
trait Model: 'static {
    /// The block can be sent.
    fn start(&mut self, desk: &mut Desk);
    /// The time of [`Desk::wake_at`] has come.
    fn wake(&mut self, desk: &mut Desk);
    /// An ack settled these packets.
    fn on_ack(&mut self, desk: &mut Desk, result: &AckResult);
}

/// The packets settled by an ack: each is settled once, in sending order.
struct AckResult {
    /// The newest packet that arrived.
    largest: usize,
    received: usize,
    /// Packets that did not arrive although later ones did, in order.
    lost: Vec<usize>,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    slice: SliceIndex,
    at: Instant,
}

/// What a sender knows, and its outgoing packets.
#[derive(Default)]
struct Desk {
    now: Instant,
    /// The round trip without queueing, which models know.
    rtt: Duration,
    /// Every packet, by its number.
    sent: Vec<Sent>,
    /// The first packet that is not settled.
    next_unknown: usize,
    has: Vec<bool>,
    /// Copies of each slice in flight.
    copies: Vec<u32>,
    outbox: VecDeque<usize>,
    wake: Option<Instant>,
}

impl Desk {
    fn new(rtt: Duration) -> Self {
        let (has, copies) = (vec![false; SLICES as usize], vec![0; SLICES as usize]);
        Self { rtt, has, copies, ..Self::default() }
    }

    /// The number of packets not settled.
    fn in_flight(&self) -> usize {
        self.sent.len() - self.next_unknown
    }

    /// Whether the peer has this slice.
    fn is_acked(&self, slice: SliceIndex) -> bool {
        self.has[usize::from(slice)]
    }

    /// Whether a copy of it is in flight.
    fn is_on_the_way(&self, slice: SliceIndex) -> bool {
        self.copies[usize::from(slice)] > 0
    }

    fn send(&mut self, slice: SliceIndex) {
        self.copies[usize::from(slice)] += 1;
        self.outbox.push_back(self.sent.len());
        self.sent.push(Sent { slice, at: self.now });
    }

    /// Gives up every packet in flight; returns their slices in order.
    fn forget_flight(&mut self) -> Vec<SliceIndex> {
        let slices: Vec<SliceIndex> =
            self.sent[self.next_unknown..].iter().map(|sent| sent.slice).collect();
        slices.iter().for_each(|&slice| self.copies[usize::from(slice)] -= 1);
        self.next_unknown = self.sent.len();
        slices
    }

    /// Sets the time to be woken, instead of any set before.
    const fn wake_at(&mut self, at: Instant) {
        self.wake = Some(at);
    }

    /// Settles every packet up to the largest that arrived.
    fn read(&mut self, ack: &receiver::Ack<'_>) -> Option<AckResult> {
        if ack.largest < self.next_unknown {
            return None;
        }
        let mut result = AckResult { largest: ack.largest, received: 0, lost: Vec::new() };
        for number in self.next_unknown..=ack.largest {
            let slice = usize::from(self.sent[number].slice);
            self.copies[slice] -= 1;
            if ack.has(number) {
                result.received += 1;
                self.has[slice] = true;
            } else {
                result.lost.push(number);
            }
        }
        self.next_unknown = ack.largest + 1;
        Some(result)
    }
}

/// A sending end with its model.
struct Sender<M> {
    model: M,
    desk: Desk,
    is_done: bool,
}

impl<M: Model> Sender<M> {
    fn new(mut model: M, rtt: Duration) -> Self {
        let mut desk = Desk::new(rtt);
        model.start(&mut desk);
        Self { model, desk, is_done: false }
    }
}

impl<M: Model> Host for Sender<M> {}

impl<M: Model> Machine for Sender<M> {
    fn handle_datagram(&mut self, now: Instant, _path: FourTuple, datagram: &mut [u8]) {
        self.desk.now = now;
        let Some(ack) = receiver::Ack::read(datagram) else { return };
        if ack.is_whole {
            self.is_done = true;
            self.desk.wake = None;
        } else if let Some(result) = self.desk.read(&ack) {
            self.model.on_ack(&mut self.desk, &result);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.desk.now = now;
        if self.desk.wake.is_some_and(|at| at <= now) {
            self.desk.wake = None;
            self.model.wake(&mut self.desk);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, batch: &mut Batch) {
        while !batch.is_full()
            && let Some(number) = self.desk.outbox.pop_front()
        {
            let mut packet = [0; PACKET_BYTES];
            packet[..4].copy_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
            packet[4..6].copy_from_slice(&self.desk.sent[number].slice.to_le_bytes());
            batch.push(addresses().1.into(), &packet);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.desk.wake
    }
}

/// A model and its receiver.
struct Modelled<M> {
    sender: HostId<Sender<M>>,
    receiver: HostId<Receiver>,
}

impl<M: Model> Ends for Modelled<M> {
    fn received(&self, world: &World) -> (usize, Instant) {
        let whole = world.host(self.receiver).whole();
        (usize::from(whole.is_some()), whole.unwrap_or_default())
    }

    fn slices_sent(&self, world: &World) -> u64 {
        world.host(self.sender).desk.sent.len() as u64
    }

    fn is_done(&self, world: &World) -> bool {
        world.host(self.sender).is_done
    }
}
