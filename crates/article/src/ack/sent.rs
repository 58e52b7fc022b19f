//! The send window: which packets are acked or lost, and the round-trip time.

use core::time::Duration;

use super::{AckBits, MEASURED_TIME, Measured, PACKET_WINDOW};
use crate::{Instant, Sequence, SequenceBuffer, SequenceNumber};

/// A packet without an ack for this long is lost: the article's value, and the longest round trip it
/// expects. At 30 packets a second the ack would have been repeated 30 times by then.
const LOSS_TIMEOUT: Duration = Duration::from_secs(1);

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketFate {
    /// Neither acked nor lost.
    InFlight,
    /// It arrived.
    Acked,
    /// It probably did not arrive. A later ack changes nothing.
    Lost,
}

/// What changes a [`PacketFate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketTrigger {
    /// An ack includes it.
    Ack,
    /// No ack for longer than the loss timeout.
    TimedOut,
    /// 256 packets were sent after it.
    LeftWindow,
}

impl PacketFate {
    /// Every fate.
    pub const ALL: [Self; 3] = [Self::InFlight, Self::Acked, Self::Lost];

    /// The fate after `news`; `None` where that changes nothing. A fate other than in flight is final, so
    /// each packet is reported once.
    #[must_use]
    pub const fn next(self, news: PacketTrigger) -> Option<Self> {
        match (self, news) {
            (Self::InFlight, PacketTrigger::Ack) => Some(Self::Acked),
            (Self::InFlight, PacketTrigger::TimedOut | PacketTrigger::LeftWindow) => {
                Some(Self::Lost)
            }
            (Self::Acked | Self::Lost, _) => None,
        }
    }
}

impl PacketTrigger {
    /// Every trigger.
    pub const ALL: [Self; 3] = [Self::Ack, Self::TimedOut, Self::LeftWindow];
}

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    sent_at: Instant,
    bytes: u32,
    fate: PacketFate,
}

impl SentPacket {
    /// Returns whether the fate changed.
    fn on_news(&mut self, news: PacketTrigger) -> bool {
        let next = self.fate.next(news);
        self.fate = next.unwrap_or(self.fate);
        next.is_some()
    }
}

/// The result of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentSequence<S = Sequence> {
    /// Its sequence.
    pub sequence: S,
    /// The packet that left the window for it without an ack, and its bytes on the wire: it is lost.
    pub pushed_out: Option<(S, usize)>,
}

/// The result of one ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckTrigger<S = Sequence> {
    /// Newly acked, newest first.
    sequences: [S; 33],
    len: u8,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// The RTT sample, if the newest packet of the ack is among them (STANDARD A-9.4c).
    pub rtt_sample: Option<Duration>,
}

impl<S: SequenceNumber> AckTrigger<S> {
    /// The packets that it acked for the first time, newest first.
    #[must_use]
    pub fn acked(&self) -> &[S] {
        self.sequences.get(..usize::from(self.len)).unwrap_or_default()
    }

    fn push(&mut self, sequence: S, bytes: u32) {
        if let Some(place) = self.sequences.get_mut(usize::from(self.len)) {
            *place = sequence;
            self.len += 1;
            self.bytes += u64::from(bytes);
        }
    }
}

/// The newest 256 packets sent.
#[derive(Clone, Debug)]
pub struct SentPackets<S = Sequence> {
    window: SequenceBuffer<SentPacket, { PACKET_WINDOW as usize }, S>,
    next: S,
    /// No packet before this one is in flight. Packets time out in the order in which they were sent, so
    /// each is passed once.
    first_unsettled: S,
    in_flight: u32,
    loss_timeout: Duration,
}

impl<S: SequenceNumber> SentPackets<S> {
    /// Nothing sent; the first packet has sequence 0, and a packet is lost after 1 s without an ack. The
    /// window is allocated here, and never again.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(S::default(), LOSS_TIMEOUT)
    }

    /// As [`new`](Self::new), with this first sequence and this loss timeout.
    #[must_use]
    pub fn starting_at(first: S, loss_timeout: Duration) -> Self {
        Self {
            window: SequenceBuffer::new(),
            next: first,
            first_unsettled: first,
            in_flight: 0,
            loss_timeout,
        }
    }

    /// A packet of `bytes` bytes on the wire is sent with the next sequence.
    pub fn on_sent(&mut self, now: Instant, bytes: usize) -> SentSequence<S> {
        let sequence = self.next;
        let oldest = sequence.minus(PACKET_WINDOW);
        let pushed_out = self
            .settle(oldest, PacketTrigger::LeftWindow)
            .map(|packet| (oldest, packet.bytes as usize));
        self.pass_settled();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let packet = SentPacket { sent_at: now, bytes, fate: PacketFate::InFlight };
        let _ = self.window.insert(sequence, packet);
        self.next = sequence.next();
        self.in_flight += 1;
        SentSequence { sequence, pushed_out }
    }

    /// Applies an ack. Sequences that were never sent, left the window, or were acked or lost before are
    /// ignored; so are those past their loss timeout, which [`next_lost`](Self::next_lost) returns.
    ///
    /// If the newest of them was never sent, the ack is for packets that this end sent before it restarted,
    /// or is forged: all of it is ignored.
    pub fn on_ack(&mut self, now: Instant, acks: AckBits<S>) -> AckTrigger<S> {
        let mut news =
            AckTrigger { sequences: [S::default(); 33], len: 0, bytes: 0, rtt_sample: None };
        if acks.ack.distance_from(self.next) >= 0 {
            return news;
        }
        // They are newest first, and those before `first_open` are settled.
        let first_open = self.first_unsettled;
        let is_open = |sequence: &S| sequence.distance_from(first_open) >= 0;
        for sequence in acks.sequences().take_while(is_open) {
            let is_late = self.window.get(sequence).is_some_and(|packet| self.is_lost(now, packet));
            let settled = if is_late { None } else { self.settle(sequence, PacketTrigger::Ack) };
            let Some(packet) = settled else { continue };
            news.push(sequence, packet.bytes);
            if sequence == acks.ack {
                news.rtt_sample = Some(now.since(packet.sent_at));
            }
        }
        self.pass_settled();
        news
    }

    /// The next packet that is lost by `now`, in sending order. Call it until it returns `None`.
    pub fn next_lost(&mut self, now: Instant) -> Option<S> {
        let (sequence, packet) = self.oldest_in_flight()?;
        if !self.is_lost(now, &packet) {
            // A clock that jumped ahead and back: the packet's timeout restarts.
            if let Some(packet) = self.window.get_mut(sequence) {
                packet.sent_at = packet.sent_at.min(now);
            }
            return None;
        }
        self.settle(sequence, PacketTrigger::TimedOut)?;
        self.pass_settled();
        Some(sequence)
    }

    /// When the oldest packet in flight will be lost: just after the loss timeout, because exactly at it the
    /// packet is still in flight.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (_, packet) = self.oldest_in_flight()?;
        Some(packet.sent_at + self.loss_timeout + Duration::from_nanos(1))
    }

    /// The fate of a packet; `None` if it was not sent or left the window.
    #[must_use]
    pub fn fate(&self, sequence: S) -> Option<PacketFate> {
        self.window.get(sequence).map(|packet| packet.fate)
    }

    /// Bytes on the wire of a packet of the window.
    #[must_use]
    pub fn bytes(&self, sequence: S) -> Option<usize> {
        self.window.get(sequence).map(|packet| packet.bytes as usize)
    }

    /// The number of packets neither acked nor lost.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The sequence of the next packet.
    #[must_use]
    pub const fn next_sequence(&self) -> S {
        self.next
    }

    /// Loss and bandwidth of the older half of the window, whose packets have had time to be acked. The
    /// window is that of the last 256 packets or the last [`MEASURED_TIME`], whichever is shorter.
    #[must_use]
    pub fn measure(&self, now: Instant) -> Measured {
        let mut measured = Measured::default();
        let Some(newest) = self.window.newest() else { return measured };
        let sent = |n: u16| self.window.get(newest.minus(n)).copied();
        let is_recent =
            |n| sent(n).is_some_and(|packet| now.since(packet.sent_at) <= MEASURED_TIME);
        let depth = (0..PACKET_WINDOW).find(|&n| !is_recent(n)).unwrap_or(PACKET_WINDOW);
        let half = depth / 2;
        for packet in (half..depth).filter_map(sent) {
            measured.packets += 1;
            measured.bytes += u64::from(packet.bytes);
            match packet.fate {
                PacketFate::Acked => {
                    measured.acked += 1;
                    measured.acked_bytes += u64::from(packet.bytes);
                }
                PacketFate::Lost => measured.lost += 1,
                PacketFate::InFlight => {}
            }
        }
        let first = depth.checked_sub(1).and_then(sent);
        let behind = half.checked_sub(1).and_then(sent);
        if let (Some(first), Some(behind)) = (first, behind) {
            measured.span = behind.sent_at.since(first.sent_at);
        }
        measured
    }

    fn is_lost(&self, now: Instant, packet: &SentPacket) -> bool {
        now.since(packet.sent_at) > self.loss_timeout
    }

    /// Applies a trigger to a packet of the window. Returns the packet if its fate changed.
    fn settle(&mut self, sequence: S, news: PacketTrigger) -> Option<SentPacket> {
        let packet = self.window.get_mut(sequence)?;
        let settled = packet.on_news(news).then_some(*packet)?;
        self.in_flight -= 1;
        Some(settled)
    }

    /// The oldest packet in flight; [`pass_settled`](Self::pass_settled) keeps it at the front.
    fn oldest_in_flight(&self) -> Option<(S, SentPacket)> {
        let packet = self.window.get(self.first_unsettled)?;
        (packet.fate == PacketFate::InFlight).then_some((self.first_unsettled, *packet))
    }

    fn pass_settled(&mut self) {
        while self.first_unsettled != self.next
            && self.fate(self.first_unsettled) != Some(PacketFate::InFlight)
        {
            self.first_unsettled = self.first_unsettled.next();
        }
    }

    /// Panics if the window contradicts itself. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        self.window.check_invariants();
        let numbers = (1..=PACKET_WINDOW).map(|n| self.next.minus(n));
        let in_flight = numbers.filter(|&s| self.fate(s) == Some(PacketFate::InFlight)).count();
        assert_eq!(in_flight, self.in_flight as usize, "packets in flight");
        let unsettled = self.next.distance_from(self.first_unsettled);
        assert!((0..=i64::from(PACKET_WINDOW)).contains(&unsettled), "{unsettled} unsettled");
        assert_eq!(self.oldest_in_flight().is_some(), self.in_flight > 0, "the oldest in flight");
    }
}

impl<S: SequenceNumber> Default for SentPackets<S> {
    fn default() -> Self {
        Self::new()
    }
}
