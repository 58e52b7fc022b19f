//! The settings of a connection, and what each one trades for what.

use core::time::Duration;

use haulier_control::Urgency;

use super::protection::KeyLimits;
use super::trace::TraceLevel;
use crate::channels::MAX_CHANNELS;
use crate::incoming::{Delivery, IncomingConfig, MAX_BLOCKS};
use crate::outgoing::OutgoingConfig;
use crate::settings;
use crate::wire::EndParameters;
use crate::wire::parameters::REED_SOLOMON;

/// The maximum of datagrams per key (STANDARD-1, H-2.3a): half of what RFC 9001 §6.6 allows for AES-GCM.
const MAX_DATAGRAMS_PER_KEY: u64 = 1 << 22;

settings! {
    /// The settings of a connection. The default is for a join: a load screen, one large block, then a game.
    ///
    /// # Examples
    /// ```
    /// use core::time::Duration;
    /// use haulier_proto::connection::{ConnectionConfig, Delivery};
    ///
    /// // A client on a phone that fetches 2 GB to its disk.
    /// let config = ConnectionConfig::default()
    ///     .with_delivery(Delivery::Chunks)
    ///     .with_max_block_bytes(2 << 30)
    ///     .with_max_unread_block_bytes(16 << 20)
    ///     .with_idle_timeout(Duration::from_secs(30));
    /// assert_eq!(config.max_channels, 16); // the rest is as it was
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ConnectionConfig {
        /// The maximum rate of this end's blocks, in bits per second including headers: a server's value
        /// applies to each client's download, a client's to its uploads. Default `u64::MAX`, no limit,
        /// because the sender measures what the link can carry. At least 4000.
        max_rate_bps: u64 = u64::MAX, with_max_rate_bps;
        /// How much of the link a block may take while it is sent. Default [`Urgency::LoadScreen`].
        urgency: Urgency = Urgency::LoadScreen, with_urgency;
        /// The minimum rate of blocks, in bits per second, whatever the delay and loss: below it a game
        /// could not be played either. Default 200 kbit/s; at most 10 Mbit/s.
        min_rate_bps: u64 = 200_000, with_min_rate_bps;
        /// Silence after which the connection ends. Both ends use the smaller value of the two. Default 15
        /// s; at least 1 s. After a third of it without sending, an end sends a ping.
        idle_timeout: Duration = Duration::from_secs(15), with_idle_timeout;
        /// How long a handshake may take. Default 10 s; not 0.
        handshake_timeout: Duration = Duration::from_secs(10), with_handshake_timeout;
        /// The largest block accepted from the peer, in bytes; up to 2^50 - 262144. Default 64 MiB. Memory
        /// is allocated as data arrives, for a whole block unless [`delivery`](Self::with_delivery) is of
        /// chunks.
        max_block_bytes: u64 = 64 << 20, with_max_block_bytes;
        /// In which form received blocks are handed out: whole, or chunk by chunk. Default
        /// [`Delivery::Blocks`].
        delivery: Delivery = Delivery::Blocks, with_delivery;
        /// Bytes of received blocks that may wait to be read. Default 64 MiB. Beyond it nothing more is
        /// accepted until the application reads, however long that takes. With [`Delivery::Chunks`] and
        /// [`Delivery::InOrder`] this is all the memory of received blocks, with what is in progress; at
        /// least 1.3 MB. The rate of 1 Gbit/s and a round trip of 100 ms take 20 MB.
        max_unread_block_bytes: u64 = 64 << 20, with_max_unread_block_bytes;
        /// Bytes of received packets that may wait to be read. Default 1 MiB; beyond it the oldest are
        /// dropped, because they are out of date.
        max_unread_packet_bytes: usize = 1 << 20, with_max_unread_packet_bytes;
        /// Blocks that may wait to be sent. Default 64; at least 1.
        max_queued_blocks: usize = 64, with_max_queued_blocks;
        /// Bytes of packets that may wait to be sent. Default 1 MiB.
        max_queued_packet_bytes: usize = 1 << 20, with_max_queued_packet_bytes;
        /// Bytes of messages that may wait to be sent or acked on each channel. Default 256 KiB.
        max_queued_message_bytes: u32 = 256 << 10, with_max_queued_message_bytes;
        /// Channels of messages that are accepted, 1 to 256. Default 16: each may hold `max_channel_bytes`.
        max_channels: u16 = 16, with_max_channels;
        /// Bytes of messages that a channel may hold unread, at least 131,072, which is the default.
        max_channel_bytes: u64 = 131_072, with_max_channel_bytes;
        /// Chunks of 256 KiB that may be on the way at once, if memory allows: it limits how fast blocks
        /// come over a long path. Default 1024, and at most that; at least 1.
        max_receive_window: u32 = 1024, with_max_receive_window;
        /// A block that makes no progress for this long closes the connection; or for the idle timeout, if
        /// that is longer: a peer that is heard is there, and the way to it may be down. Default 15 s.
        no_progress_timeout: Duration = Duration::from_secs(15), with_no_progress_timeout;
        /// A block that takes longer than 60 s plus its size at this rate, in bits per second, closes the
        /// connection: a peer that crawls holds memory that others need. Default 16 kbit/s; 0 disables it.
        min_block_rate_bps: u64 = 16_000, with_min_block_rate_bps;
        /// The largest datagram, in bytes of UDP payload, that this end accepts and may send. Default 1200,
        /// which every path carries, and is all that a transport of one's own can promise; 1200 to 65,507.
        /// With more than 1391 this end finds out what the path carries, up to this and to what its peer
        /// accepts (STANDARD-1, 5.6): only for a transport that forbids fragmentation by IP. `Client` and
        /// `Server` use 9000 in place of 1200 where the system can forbid it; 1201 keeps them from it.
        max_datagram_bytes: u16 = 1200, with_max_datagram_bytes;
        /// Bytes of full datagrams that can wait for this end to read them before the system drops some:
        /// what its socket's buffer holds. The peer sends no more than that in the time by which this end
        /// reads late. Default 0: not known, and nothing is limited. `Client` and `Server` ask the system.
        receive_buffer_bytes: u64 = 0, with_receive_buffer_bytes;
        /// Whether datagrams are marked as ECN-capable, so that a router can say that a queue is long
        /// without dropping them (STANDARD-1, 4.1). Default true: after ten of them only where the peer's
        /// counts show that it works.
        ecn: bool = true, with_ecn;
        /// Whether parameters and frames without meaning are sent now and then, so that no peer comes to
        /// depend on their absence (STANDARD-1, H-1.3). Default true.
        grease: bool = true, with_grease;
        /// How much a connection writes down about itself, for `poll_trace`
        /// ([`trace`](super::trace)). Default [`TraceLevel::Off`]: what is not taken is kept, up to about 1
        /// MiB for each connection.
        trace: TraceLevel = TraceLevel::Off, with_trace;
        /// Whether the keys of a connection are in its trace, whatever its level. **Dangerous**: whoever gets
        /// them can read all of the connection and forge it. For the analysis of captures, and nothing else.
        /// Default false.
        trace_secrets: bool = false, with_trace_secrets;
        /// Datagrams after which the key is updated. Default and maximum 2^22; less is for tests.
        #[doc(hidden)]
        datagrams_per_key: u64 = MAX_DATAGRAMS_PER_KEY, with_datagrams_per_key;
        /// Datagrams that may fail to open before the connection is closed. Default and maximum: what the
        /// cipher suite endures; less is for tests.
        #[doc(hidden)]
        max_failed_openings: u64 = u64::MAX, with_max_failed_openings;
        /// Time after which the key is updated. Default 120 s; less is for tests.
        #[doc(hidden)]
        key_lifetime: Duration = Duration::from_secs(120), with_key_lifetime;
    }
}

/// A setting that cannot work. The message names it, and the values that do.
///
/// # Examples
/// ```
/// use haulier_proto::connection::ConfigError;
///
/// // The message has the setting and the values that work.
/// assert!(ConfigError::Channels.to_string().contains("1 to 256"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `max_rate_bps` is so low that blocks could not be sent.
    #[error(
        "`max_rate_bps` must be at least {LOWEST_MAX_RATE_BPS} bit/s, or u64::MAX for no limit: below it no \
         block could be sent"
    )]
    MaxRateTooLow,
    /// A server's `max_uplink_bps` is so low that its clients could not join.
    #[error("`max_uplink_bps` must be at least 100000 bit/s, or u64::MAX for no limit")]
    MaxUplinkTooLow,
    /// `min_rate_bps` would flood most links.
    #[error(
        "`min_rate_bps` must be at most {HIGHEST_MIN_RATE_BPS} bit/s: blocks are sent at this rate whatever \
         is lost"
    )]
    MinRateTooHigh,
    /// `idle_timeout` is below a second.
    #[error("`idle_timeout` must be at least 1 s")]
    IdleTimeoutTooShort,
    /// `handshake_timeout` is 0: no handshake could succeed.
    #[error("`handshake_timeout` must not be 0")]
    NoHandshakeTimeout,
    /// `reset_secret` is also the secret of tickets, a token key or the identity: a client or another server
    /// that has one of these could end connections.
    #[error("`reset_secret` must be a key of its own, that no client and no other server has")]
    SharedResetSecret,
    /// `max_datagram_bytes` is less than every datagram may have, or more than UDP carries.
    #[error(
        "`max_datagram_bytes` must be 1200 to 65507: paths carry 1200, and UDP no more than 65507"
    )]
    DatagramBytes,
    /// `max_channels` is 0, or more than a channel's number counts.
    #[error("`max_channels` must be 1 to 256")]
    Channels,
    /// `max_channel_bytes` is so low that both ends could wait for ever.
    #[error("`max_channel_bytes` must be at least 131072: two messages of the largest size")]
    ChannelBytesTooFew,
    /// `max_receive_window` is 0, or more than the wire can say.
    #[error("`max_receive_window` must be 1 to 1024 chunks")]
    ReceiveWindow,
    /// `max_queued_blocks` is 0: no block could be sent.
    #[error("`max_queued_blocks` must be at least 1, or no block could be sent")]
    NoQueuedBlocks,
    /// A server's `remembered` is 0: it could accept nobody.
    #[error("`remembered` must be at least 1, or every request would be refused")]
    NothingRemembered,
    /// A server has 1 to 256 workers.
    #[error("a server has 1 to 256 workers")]
    Workers,
    /// The tag of a server's `first_block` is more than the wire can say.
    #[error("`first_block` must have a tag of at most 2^62 - 1, which is the largest on the wire")]
    FirstBlockTag,
    /// A server with token keys has no `addresses`: no token could name it.
    #[error(
        "`addresses` must have those at which clients reach the server, because tokens name them; or \
         `token_audience` must say that it accepts tokens for any server"
    )]
    NoServerAddress,
}

/// The lowest maximum rate that still works, in bit/s. At 2000 a block of 8 KB made no progress for 15 s, at
/// 4000 one of 20 KB takes 55 s.
pub(super) const LOWEST_MAX_RATE_BPS: u64 = 4_000;

/// What `max_datagram_bytes` may be: from what every path carries to what UDP does over IPv4.
const DATAGRAM_BYTES: core::ops::RangeInclusive<u16> = 1200..=65_507;

/// The highest minimum rate, in bit/s: above it, the links of many players would be flooded.
const HIGHEST_MIN_RATE_BPS: u64 = 10_000_000;

/// Chunks that may be opened before the first progress frame: 8 MiB, what 1 Gbit/s and 60 ms have on the
/// way.
const FIRST_CREDIT: u32 = 32;

/// The least bytes of a channel: with fewer, a message of the largest size may wait for ever.
const MIN_CHANNEL_BYTES: u64 = 131_072;

impl ConnectionConfig {
    /// The first setting that cannot work.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let faults = [
            (self.max_rate_bps < LOWEST_MAX_RATE_BPS, ConfigError::MaxRateTooLow),
            (self.min_rate_bps > HIGHEST_MIN_RATE_BPS, ConfigError::MinRateTooHigh),
            (self.idle_timeout < Duration::from_secs(1), ConfigError::IdleTimeoutTooShort),
            (self.handshake_timeout.is_zero(), ConfigError::NoHandshakeTimeout),
            (self.max_queued_blocks == 0, ConfigError::NoQueuedBlocks),
            (self.max_channels == 0 || self.max_channels > MAX_CHANNELS, ConfigError::Channels),
            (self.max_channel_bytes < MIN_CHANNEL_BYTES, ConfigError::ChannelBytesTooFew),
            (!(1..=1024).contains(&self.max_receive_window), ConfigError::ReceiveWindow),
            (!DATAGRAM_BYTES.contains(&self.max_datagram_bytes), ConfigError::DatagramBytes),
        ];
        faults.into_iter().find(|(is_wrong, _)| *is_wrong).map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The idle timeout that both ends use, given the one that the peer proposes.
    pub(crate) fn agreed_idle_timeout(&self, peers: Duration) -> Duration {
        self.idle_timeout.min(peers).max(Duration::from_secs(1))
    }

    /// What this end says about itself in the handshake.
    pub(crate) fn end_parameters(&self) -> EndParameters {
        EndParameters {
            idle_timeout: self.idle_timeout,
            max_block_bytes: self.max_block_bytes,
            max_datagram_bytes: self.max_datagram_bytes,
            credit: self.incoming(self.idle_timeout).first_credit(),
            receive_buffer_bytes: self.receive_buffer_bytes,
            channels: self.max_channels,
            channel_bytes: self.max_channel_bytes,
            repair_codes: REED_SOLOMON,
            announced_blocks: MAX_BLOCKS,
            ..EndParameters::default()
        }
    }

    /// How long a block may make no progress, given the idle timeout of both ends (H-5.1b).
    fn no_progress_time(&self, idle_timeout: Duration) -> Duration {
        self.no_progress_timeout.max(idle_timeout)
    }

    /// The settings of the receiving end of blocks, given the idle timeout of both ends.
    pub(crate) fn incoming(&self, idle_timeout: Duration) -> IncomingConfig {
        IncomingConfig {
            max_block_bytes: self.max_block_bytes,
            max_unread_bytes: self.max_unread_block_bytes,
            initial_credit: FIRST_CREDIT,
            max_window: self.max_receive_window,
            no_progress_timeout: self.no_progress_time(idle_timeout),
            idle_timeout,
            min_block_rate_bps: self.min_block_rate_bps,
            delivery: self.delivery,
        }
    }

    /// The settings of the sending end of blocks, given the idle timeout of both ends.
    pub(crate) fn outgoing(&self, idle_timeout: Duration) -> OutgoingConfig {
        OutgoingConfig {
            urgency: self.urgency,
            max_rate_bps: self.max_rate_bps,
            min_rate_bps: self.min_rate_bps,
            no_progress_timeout: self.no_progress_time(idle_timeout),
            idle_timeout_ms: u32::try_from(idle_timeout.as_millis()).unwrap_or(u32::MAX),
            min_block_rate_bps: self.min_block_rate_bps,
            max_queued_blocks: self.max_queued_blocks,
        }
    }

    /// When keys are updated.
    pub(super) fn key_limits(&self) -> KeyLimits {
        let datagrams = self.datagrams_per_key.clamp(1, MAX_DATAGRAMS_PER_KEY);
        KeyLimits { datagrams, lifetime: self.key_lifetime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A maximum rate of 0 closed the connection after 15 s, and an unbounded minimum sent 522 MB for a
    /// block.
    #[test]
    fn a_setting_that_cannot_work_is_refused_by_name() {
        let refused = |change: fn(&mut ConnectionConfig)| {
            let mut config = ConnectionConfig::default();
            change(&mut config);
            config.check().unwrap_err()
        };
        assert_eq!(ConnectionConfig::default().check(), Ok(()));
        assert_eq!(refused(|config| config.max_rate_bps = 0), ConfigError::MaxRateTooLow);
        assert_eq!(refused(|config| config.min_rate_bps = u64::MAX), ConfigError::MinRateTooHigh);
        let short = Duration::from_millis(999);
        assert_eq!(refused(|config| config.max_queued_blocks = 0), ConfigError::NoQueuedBlocks);
        for bytes in [1199, 65_508] {
            let config = ConnectionConfig::default().with_max_datagram_bytes(bytes);
            assert_eq!(config.check(), Err(ConfigError::DatagramBytes));
        }
        let config = ConnectionConfig { idle_timeout: short, ..ConnectionConfig::default() };
        let error = config.check().unwrap_err();
        assert!(alloc::format!("{error}").contains("idle_timeout"), "{error}");
    }
}
