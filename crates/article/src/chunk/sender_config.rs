//! The settings of a chunk sender, what each of them trades, and the resend delay that they give.

use core::time::Duration;

use crate::chunk::ChunkId;
use crate::packet::article::SLICE_HEADER_BYTES;
use crate::settings;

/// The resend delay while no round trip was measured: "resend the slice if it hasn't been sent in the
/// last 100ms" (*Sending Large Blocks of Data*, "ChunkSender Implementation").
pub const INITIAL_RESEND_DELAY: Duration = Duration::from_millis(100);

/// The shortest resend delay, whatever is configured or measured: without any delay a sender whose budget
/// allows it would send the same slice again and again at the same time. A millisecond is what drivers can
/// resolve.
const MIN_RESEND_DELAY: Duration = Duration::from_millis(1);

/// The longest measured resend delay: 1.25 x the largest RTT that the articles expect, one second. An ack
/// that was delayed by an outage of seconds is a sample like any other, and without this bound the sender
/// would be silent for as long again.
const MAX_RESEND_DELAY: Duration = Duration::from_millis(1_250);

settings! {
    /// How the sender behaves. The default is the article's sender: one megabit per second, with the burst.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ChunkSenderConfig {
        /// The budget in bits per second, packet and UDP/IP headers counted. The article's choices: 256
        /// kbit/s conservative, 512 kbit/s middle, 1 Mbit/s aggressive. Default 1 Mbit/s.
        rate_bps: u64 = 1_000_000, with_rate_bps;
        /// Whether a chunk starts with all its slices back to back, before the budget rules. Default on.
        ///
        /// The article warns that a burst relies on the buffers of other people's routers. It is acceptable
        /// for a few hundred KiB while the player has nothing better to do with the link, that is on a load
        /// screen. Switch it off while a game is played (it adds delay and loss to everything else on the
        /// link), for runs of megabytes, and where queues are short: a queue of 64 KiB drops three quarters
        /// of a 256 KiB burst.
        burst: bool = true, with_burst;
        /// The pause between the burst and the first budgeted slice. Default 100 ms.
        burst_wait: Duration = Duration::from_millis(100), with_burst_wait;
        /// When an unacked slice is sent again. Default [`ResendDelay::Rtt`].
        resend_delay: ResendDelay = ResendDelay::Rtt, with_resend_delay;
        /// The peer's ack interval. The resend delay treats a shorter RTT as this long, because the ack of a
        /// slice may be delayed by it. Default 50 ms, the default of [`ChunkReceiverConfig`].
        ///
        /// [`ChunkReceiverConfig`]: super::ChunkReceiverConfig
        peer_ack_interval: Duration = Duration::from_millis(50), with_peer_ack_interval;
        /// A chunk fails after this long without a newly acked slice; `None` waits without limit. Default 15
        /// s, more than the 10 s after which a receiver drops an incomplete chunk, so that a receiver that
        /// was misled by a single forged slice recovers before its sender gives up. If the receiving
        /// application reads a chunk later than this, the next chunk fails.
        give_up_after: Option<Duration> = Some(Duration::from_secs(15)), with_give_up_after;
        /// Bytes on the wire besides a slice's data. Default 41: header and check of the packet (13), and UDP
        /// over IPv4 (28; 48 for IPv6).
        overhead_bytes: usize = SLICE_HEADER_BYTES + 28, with_overhead_bytes;
        /// Chunks that may wait behind the one in flight. Default 16, that is 4 MiB of full ones.
        max_queued: usize = 16, with_max_queued;
        /// The id of the first chunk; the receiver must expect the same. Default 0.
        first_chunk_id: ChunkId = ChunkId::new(0), with_first_chunk_id;
    }
}

/// The delay after which an unacked slice is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResendDelay {
    /// 1.25 x the smoothed RTT, but at least 1.25 x the peer's ack interval and at most 1.25 s;
    /// [`INITIAL_RESEND_DELAY`] before the first sample.
    Rtt,
    /// Always this delay, but at least a millisecond.
    Fixed(Duration),
}

impl ChunkSenderConfig {
    /// The resend delay with this smoothed RTT.
    pub(super) fn resend_delay(&self, smoothed_rtt: Option<Duration>) -> Duration {
        let rtt = match self.resend_delay {
            ResendDelay::Fixed(delay) => return delay.max(MIN_RESEND_DELAY),
            ResendDelay::Rtt => smoothed_rtt,
        };
        let Some(rtt) = rtt else { return INITIAL_RESEND_DELAY };
        // 1.25 x, as "RTT * 1.25" in the article, in integers.
        let wait = rtt.max(self.peer_ack_interval);
        wait.saturating_add(wait / 4).clamp(MIN_RESEND_DELAY, MAX_RESEND_DELAY)
    }
}
