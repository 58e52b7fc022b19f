//! A game over the article's packet layer.
//!
//! [`GamePackets`] remembers everything: what it sent and what it was told of it, what it received and
//! when. So it can say whether a promise was broken, and what a player would have felt.

use std::time::Duration;

use haulier_article::congestion::{GoodBad, GoodBadConfig};
use haulier_article::endpoint::{Endpoint, EndpointConfig, EndpointEvent};
use haulier_article::fragment::{FragmentPool, FragmentPoolConfig};
use haulier_article::time::earliest;
use haulier_article::{Instant, PacketDropReason, Sequence};

use crate::{Probability, Rng};

/// What a game sends.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// From one packet to the next; `None` as the congestion controller advises.
    pub interval: Option<Duration>,
    /// When the first packet goes out.
    pub starts: Instant,
    /// When no more do.
    pub ends: Option<Instant>,
    /// Bytes of an ordinary packet: from, to.
    pub bytes: (usize, usize),
    /// How often a packet is a large one instead.
    pub large: Probability,
    /// Bytes of a large packet: from, to.
    pub large_bytes: (usize, usize),
    /// How often the application does not accept a packet.
    pub refuse: Probability,
}

/// Bytes at the start of every payload: its number and when it was sent.
pub const PAYLOAD_MIN: usize = 16;

/// What became of a packet sent, as far as its sender was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing yet.
    Nothing,
    /// That it arrived.
    Acked,
    /// That it is lost.
    Lost,
}

/// A packet sent.
#[derive(Clone, Copy, Debug)]
pub struct SentRecord {
    /// When.
    pub at: Instant,
    /// Bytes of its payload.
    pub bytes: usize,
    /// The number it had on the wire.
    pub sequence: Sequence,
    /// How often its sender had crashed before.
    pub crashes: u32,
    /// What its sender was told of it.
    pub told: Told,
    /// When.
    pub told_at: Instant,
}

/// A packet accepted.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedRecord {
    /// Its number, counted by its sender from 0.
    pub number: u64,
    /// When it was accepted.
    pub at: Instant,
    /// How long it was under way.
    pub delay: Duration,
}

/// The packet layer with a game round it.
#[derive(Clone, Debug)]
pub struct GamePackets {
    /// The endpoint, to look at.
    pub endpoint: Endpoint<GoodBad>,
    /// Its pool, to look at.
    pub pool: FragmentPool,
    /// What was sent, by number.
    pub sent: Vec<SentRecord>,
    /// What was accepted, in that order.
    pub received: Vec<ReceivedRecord>,
    /// By number, when it was accepted.
    accepted: Vec<Option<Instant>>,
    /// The first thing that must not happen and did.
    pub wrong: Option<String>,
    traffic: Traffic,
    next_send: Option<Instant>,
    /// While the program is down, after a crash.
    down_until: Instant,
    /// How often it has crashed.
    crashes: u32,
    modes: GoodBadConfig,
    rng: Rng,
}

impl GamePackets {
    /// A game that has sent nothing.
    ///
    /// # Panics
    /// If a configuration cannot work.
    #[must_use]
    pub fn new(
        config: EndpointConfig,
        modes: GoodBadConfig,
        pool: FragmentPoolConfig,
        traffic: Traffic,
        seed: u64,
    ) -> Self {
        let endpoint = Endpoint::with_controller(config, GoodBad::new(modes));
        Self {
            endpoint: endpoint.expect("an endpoint that can work"),
            pool: FragmentPool::new(pool).expect("a pool that can work"),
            sent: Vec::new(),
            received: Vec::new(),
            accepted: Vec::new(),
            wrong: None,
            next_send: Some(traffic.starts),
            down_until: Instant::ZERO,
            crashes: 0,
            modes,
            traffic,
            rng: Rng::new(seed),
        }
    }

    /// Whether the packet with this number was accepted here.
    #[must_use]
    pub fn has_accepted(&self, number: usize) -> bool {
        self.accepted_at(number).is_some()
    }

    /// When the packet with this number was accepted here, if it was.
    #[must_use]
    pub fn accepted_at(&self, number: usize) -> Option<Instant> {
        self.accepted.get(number).copied().flatten()
    }

    /// No more packets after `at`; no more refusals from now on.
    pub fn end_at(&mut self, at: Instant) {
        self.traffic.ends = Some(at);
        self.traffic.refuse = Probability::NEVER;
    }

    /// The program crashes, and restarts at `until` with no memory: `back` numbers before the one that would
    /// have been next, or at any number. What it had sent has no fate then; it counts as lost.
    ///
    /// # Panics
    /// If the configuration cannot work, and it did before.
    pub fn crash(&mut self, until: Instant, back: Option<u16>) {
        let any = Sequence::new(self.rng.next_u64() as u16);
        let first_sequence = back.map_or(any, |back| self.endpoint.next_sequence().minus(back));
        let config = (*self.endpoint.config()).with_first_sequence(first_sequence);
        let old = std::mem::replace(
            &mut self.endpoint,
            Endpoint::with_controller(config, GoodBad::new(self.modes)).expect("as before"),
        );
        old.close(&mut self.pool);
        let unsettled = self.sent.iter_mut().filter(|packet| packet.told == Told::Nothing);
        unsettled.for_each(|packet| packet.told = Told::Lost);
        self.down_until = until;
        self.crashes += 1;
        self.next_send = self.next_send.map(|at| at.max(until));
    }

    /// Takes in a datagram.
    ///
    /// # Errors
    /// Why it was not used.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Result<(), PacketDropReason> {
        if now < self.down_until {
            return Ok(());
        }
        let delivery = self.endpoint.handle_datagram(now, datagram, &mut self.pool)?;
        let refuses = self.rng.chance(self.traffic.refuse);
        if let Some(delivery) = delivery.filter(|_| !refuses) {
            let (sequence, payload) = (delivery.sequence(), delivery.accept());
            match check(payload) {
                Ok((number, sent_at)) => {
                    let delay = now.since(sent_at);
                    self.received.push(ReceivedRecord { number, at: now, delay });
                    let place = number as usize;
                    self.accepted.resize(self.accepted.len().max(place + 1), None);
                    if self.accepted[place].replace(now).is_some() {
                        self.wrong.get_or_insert(format!("packet {number} was delivered twice"));
                    }
                }
                Err(what) => {
                    self.wrong.get_or_insert(format!("{what}, as {sequence:?}"));
                }
            }
        }
        self.listen(now);
        Ok(())
    }

    /// Acts on deadlines, and sends when it is time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.listen(now);
        if self.next_send.is_some_and(|at| at <= now) {
            self.send(now);
        }
    }

    /// When to wake it next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.endpoint.poll_timeout(), self.next_send)
    }

    /// Panics if the machine contradicts itself.
    pub fn check_invariants(&self) {
        self.endpoint.check_invariants();
    }

    fn send(&mut self, now: Instant) {
        let is_large = self.rng.chance(self.traffic.large);
        let (from, to) = if is_large { self.traffic.large_bytes } else { self.traffic.bytes };
        let bytes = self.rng.between(from.max(PAYLOAD_MIN) as u64, to.max(PAYLOAD_MIN) as u64);
        let payload = payload(self.sent.len() as u64, now, bytes as usize);
        match self.endpoint.send(now, &payload) {
            Ok(sequence) => self.sent.push(SentRecord {
                at: now,
                bytes: payload.len(),
                sequence,
                crashes: self.crashes,
                told: Told::Nothing,
                told_at: now,
            }),
            Err(error) => {
                self.wrong.get_or_insert(format!("a packet was not sent: {error}"));
            }
        }
        let interval = self.traffic.interval.unwrap_or_else(|| self.endpoint.send_interval());
        let next = now + interval;
        self.next_send = (self.traffic.ends.is_none_or(|end| next <= end)).then_some(next);
    }

    fn listen(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            let (sequence, told) = match event {
                EndpointEvent::Acked { sequence } => (sequence, Told::Acked),
                EndpointEvent::Lost { sequence } => (sequence, Told::Lost),
                _ => continue,
            };
            let number = self.number_of(sequence);
            let Some(record) = number.and_then(|number| self.sent.get_mut(number)) else {
                self.wrong.get_or_insert(format!("{event:?} of a packet never sent"));
                continue;
            };
            if record.told != Told::Nothing {
                self.wrong.get_or_insert(format!("{event:?} after {:?}", record.told));
            }
            (record.told, record.told_at) = (told, now);
        }
    }

    /// The number of the newest packet with this sequence.
    fn number_of(&self, sequence: Sequence) -> Option<usize> {
        let back = self.endpoint.next_sequence().get().wrapping_sub(sequence.get());
        self.sent.len().checked_sub(usize::from(back))
    }
}

/// Byte `offset` of the packet with this number.
fn filling(number: u64, offset: usize) -> u8 {
    (number.wrapping_mul(31) as usize + offset * 7 + (offset >> 8)) as u8
}

fn payload(number: u64, now: Instant, bytes: usize) -> Vec<u8> {
    let mut payload: Vec<u8> = (0..bytes).map(|offset| filling(number, offset)).collect();
    payload[..8].copy_from_slice(&number.to_le_bytes());
    payload[8..16].copy_from_slice(&now.as_nanos().to_le_bytes());
    payload
}

/// The number of a payload and when it was sent, if every byte is as it was sent.
fn check(payload: &[u8]) -> Result<(u64, Instant), String> {
    let (Some(number), Some(sent_at)) = (payload.first_chunk::<8>(), payload.get(8..16)) else {
        return Err(format!("a payload of {} bytes", payload.len()));
    };
    let number = u64::from_le_bytes(*number);
    let sent_at = u64::from_le_bytes(sent_at.try_into().unwrap_or_default());
    let wrong = (PAYLOAD_MIN..payload.len()).find(|&at| payload[at] != filling(number, at));
    match wrong {
        Some(at) => Err(format!("byte {at} of packet {number} is another")),
        None => Ok((number, Instant::from_nanos(sent_at))),
    }
}
