//! How a connection behaves: its knobs, and what each trades.

use core::time::Duration;

use crate::urgency::Urgency;

/// Datagrams that one key may seal (STANDARD-1, H-2.3a): half of what RFC 9001 §6.6 allows AES-GCM.
const DATAGRAMS_PER_KEY: u64 = 1 << 22;

/// How a connection behaves. The default is for a join: a load screen, one large block, a game after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// The most that blocks of this end may use of the link, in bits per second, headers counted: a server's
    /// value is for each client's download, a client's for its uploads. What the link has is found out, so
    /// the default is no limit.
    pub rate_bps: u64,
    /// How much a block may take of the link while it is sent. Default [`Urgency::LoadScreen`].
    pub urgency: Urgency,
    /// What blocks use at least, in bits per second, however long others fill the queue or whatever gets
    /// lost: below it nobody can play either. Default 200 kbit/s.
    pub floor_bps: u64,
    /// Silence after which the connection is over. Both ends use the smaller of their two. Default 15 s; at
    /// least 1 s. A third of it without sending brings a ping.
    pub idle_timeout: Duration,
    /// How long a handshake may take. Default 10 s.
    pub handshake_timeout: Duration,
    /// The largest block taken from the peer, in bytes. Default 64 MiB. Memory follows what arrives.
    pub largest_block: u64,
    /// Bytes of finished blocks that may wait for the application. Default 64 MiB. Beyond it the peer is
    /// held back, and in the end times out.
    pub unread_block_bytes: u64,
    /// Bytes of received packets that may wait for the application. Default 1 MiB; the oldest are dropped
    /// beyond it, for they are out of date.
    pub unread_packet_bytes: usize,
    /// Blocks that may wait to be sent. Default 64.
    pub queued_blocks: usize,
    /// Bytes of packets that may wait to be sent. Default 1 MiB.
    pub queued_packet_bytes: usize,
    /// Bytes of messages that may wait to be sent or acked. Default 256 KiB.
    pub queued_message_bytes: u32,
    /// A block that makes no progress for this long ends the connection. Default 15 s.
    pub no_progress_timeout: Duration,
    /// A block that takes longer than 60 s and its size at this rate, in bits per second, ends the
    /// connection: who crawls holds memory that others need. Default 16 kbit/s; 0 waits for ever.
    pub least_block_rate_bps: u64,
    /// Datagrams after which a new key is used. Default and most 2^22.
    pub datagrams_per_key: u64,
    /// Time after which a new key is used. Default 120 s.
    pub key_lifetime: Duration,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            rate_bps: u64::MAX,
            urgency: Urgency::LoadScreen,
            floor_bps: 200_000,
            idle_timeout: Duration::from_secs(15),
            handshake_timeout: Duration::from_secs(10),
            largest_block: 64 << 20,
            unread_block_bytes: 64 << 20,
            unread_packet_bytes: 1 << 20,
            queued_blocks: 64,
            queued_packet_bytes: 1 << 20,
            queued_message_bytes: 256 << 10,
            no_progress_timeout: Duration::from_secs(15),
            least_block_rate_bps: 16_000,
            datagrams_per_key: DATAGRAMS_PER_KEY,
            key_lifetime: Duration::from_secs(120),
        }
    }
}

/// A setting that cannot work. The message names it, and says what would.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Nothing could ever be sent.
    #[error(
        "`rate_bps` is 0, so no block could be sent: at least {MIN_RATE_BPS} bit/s, or u64::MAX for no limit"
    )]
    NoRate,
    /// A floor that no link carries would flood it, whatever is lost.
    #[error(
        "`floor_bps` is above {MAX_FLOOR_BPS} bit/s: blocks are sent at that rate whatever is lost"
    )]
    FloorTooHigh,
    /// Both ends take the smaller idle time-out, and it is at least a second.
    #[error("`idle_timeout` is below 1 s")]
    IdleTimeoutTooShort,
    /// No handshake could be completed.
    #[error("`handshake_timeout` is 0")]
    NoHandshakeTimeout,
    /// No block could ever wait to be sent.
    #[error("`queued_blocks` is 0: no block could be sent")]
    NoQueuedBlocks,
}

/// The least limit that blocks can be sent under: a full datagram takes 10 s.
const MIN_RATE_BPS: u64 = 1_000;

/// The highest floor: what the slowest link on which a game is played still carries several of.
const MAX_FLOOR_BPS: u64 = 10_000_000;

impl ConnectionConfig {
    /// Whether it can work. Both machines ask this when they are made.
    ///
    /// # Errors
    /// The first setting that cannot.
    pub fn check(&self) -> Result<(), ConfigError> {
        let faults = [
            (self.rate_bps < MIN_RATE_BPS, ConfigError::NoRate),
            (self.floor_bps > MAX_FLOOR_BPS, ConfigError::FloorTooHigh),
            (self.idle_timeout < Duration::from_secs(1), ConfigError::IdleTimeoutTooShort),
            (self.handshake_timeout.is_zero(), ConfigError::NoHandshakeTimeout),
            (self.queued_blocks == 0, ConfigError::NoQueuedBlocks),
        ];
        faults.into_iter().find(|(is_wrong, _)| *is_wrong).map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The idle time-out both ends use, given the peer's wish.
    pub(crate) fn agreed_idle_timeout(&self, theirs: Duration) -> Duration {
        self.idle_timeout.min(theirs).max(Duration::from_secs(1))
    }

    pub(crate) fn datagrams_per_key(&self) -> u64 {
        self.datagrams_per_key.clamp(1, DATAGRAMS_PER_KEY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rate of 0 closed every block after 15 s, and a floor without bound sent 522 MB for one.
    #[test]
    fn a_setting_that_cannot_work_is_refused_by_name() {
        let refused = |change: fn(&mut ConnectionConfig)| {
            let mut config = ConnectionConfig::default();
            change(&mut config);
            config.check().unwrap_err()
        };
        assert_eq!(ConnectionConfig::default().check(), Ok(()));
        assert_eq!(refused(|config| config.rate_bps = 0), ConfigError::NoRate);
        assert_eq!(refused(|config| config.floor_bps = u64::MAX), ConfigError::FloorTooHigh);
        let short = Duration::from_millis(999);
        assert_eq!(refused(|config| config.queued_blocks = 0), ConfigError::NoQueuedBlocks);
        let config = ConnectionConfig { idle_timeout: short, ..ConnectionConfig::default() };
        let error = config.check().unwrap_err();
        assert!(alloc::format!("{error}").contains("idle_timeout"), "{error}");
    }
}
