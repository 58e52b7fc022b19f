//! What a program may set: of a connection, of a client, of a server.
//!
//! The invariant: each struct begins with its size, and has its defaults from its `_init` function, so that a
//! later version may add settings at the end.

use core::ffi::{c_char, c_void};
use core::mem::offset_of;
use core::ptr::null;
use core::time::Duration;

use haulier::{ConnectionConfig, Delivery, Urgency};

use crate::block::haulier_block;
use crate::memory::{Versioned, put_sized, settings};
use crate::result::{Failure, border, haulier_result};
use crate::secret::{haulier_secret, haulier_token_key};

/// How much of the link blocks may take.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum haulier_urgency {
    /// They fill the link, with some milliseconds of delay: for a join, during a load screen.
    HAULIER_URGENCY_LOAD_SCREEN = 0,
    /// They yield to the game's own packets: for blocks that are sent during play.
    HAULIER_URGENCY_DURING_PLAY = 1,
}

/// In which form received blocks are handed out.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum haulier_delivery {
    /// Whole: HAULIER_EVENT_BLOCK. The memory is that of the largest block.
    HAULIER_DELIVERY_BLOCKS = 0,
    /// Each chunk of 256 KiB when it is verified, in any order: HAULIER_EVENT_CHUNK, and at last
    /// HAULIER_EVENT_BLOCK_COMPLETE. The memory is a window, however large the block.
    HAULIER_DELIVERY_CHUNKS = 1,
    /// As HAULIER_DELIVERY_CHUNKS, with the chunks of each block in their order.
    HAULIER_DELIVERY_IN_ORDER = 2,
}

/// What drives a client or a server.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum haulier_drive {
    /// A thread of its own, also while the program is busy.
    HAULIER_DRIVE_THREAD = 0,
    /// No thread: it works only while one of its _poll and _wait functions runs. Call one often: a client
    /// that is not polled for the idle timeout is disconnected.
    HAULIER_DRIVE_INLINE = 1,
}

/// The settings of a connection. Fill them with haulier_connection_settings_init(), then change some.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct haulier_connection_settings {
    /// sizeof(haulier_connection_settings); set by haulier_connection_settings_init().
    pub struct_size: usize,
    /// The highest rate at which this end sends blocks, in bit/s. Default UINT64_MAX, no limit: the sender
    /// finds out what the link has. At least 4000.
    pub max_rate_bps: u64,
    /// The lowest rate of blocks, in bit/s, whatever the delay and loss. Default 200000; at most 10000000.
    pub min_rate_bps: u64,
    /// The largest block that is accepted, in bytes. Default 64 MiB; 0: no blocks are accepted.
    pub max_block_bytes: u64,
    /// Bytes of received blocks that may wait to be read. Default 64 MiB; beyond it the peer waits.
    pub max_unread_block_bytes: u64,
    /// Bytes of received packets that may wait to be read. Default 1 MiB; beyond it the oldest are dropped.
    pub max_unread_packet_bytes: u64,
    /// Bytes of packets that may wait to be sent. Default 1 MiB.
    pub max_queued_packet_bytes: u64,
    /// Bytes of received messages that a channel may hold unread. Default 131072, which is the least.
    pub max_channel_bytes: u64,
    /// A block that takes more than 60 s longer than its size at this rate, in bit/s, closes the connection.
    /// Default 16000; 0: no limit.
    pub min_block_rate_bps: u64,
    /// Bytes of messages that may wait to be sent or acknowledged on each channel. Default 256 KiB.
    pub max_queued_message_bytes: u32,
    /// Blocks that may wait to be sent. Default 64; at least 1.
    pub max_queued_blocks: u32,
    /// Channels of messages that are accepted, 1 to 256. Default 16.
    pub max_channels: u32,
    /// The largest datagram, in bytes of UDP payload, 1200 to 65507. Default 1200, which stands for what the
    /// system can send; 1201 keeps it at that.
    pub max_datagram_bytes: u32,
    /// Silence after which the connection ends, in ms. Default 15000; at least 1000.
    pub idle_timeout_ms: u32,
    /// How long a handshake may take, in ms. Default 10000; not 0.
    pub handshake_timeout_ms: u32,
    /// A block that makes no progress for this time closes the connection, in ms. Default 15000.
    pub no_progress_timeout_ms: u32,
    /// A haulier_urgency: how much of the link blocks may take. Default HAULIER_URGENCY_LOAD_SCREEN.
    pub urgency: u32,
    /// A haulier_delivery: in which form blocks are received. Default HAULIER_DELIVERY_BLOCKS.
    pub delivery: u32,
}

// SAFETY: repr(C), the size is first, and all fields are numbers.
unsafe impl Versioned for haulier_connection_settings {
    const NAME: &str = "haulier_connection_settings";
    const FIRST_BYTES: usize = size_of::<Self>();

    fn defaults() -> Self {
        let config = ConnectionConfig::default();
        Self {
            struct_size: size_of::<Self>(),
            max_rate_bps: config.max_rate_bps,
            min_rate_bps: config.min_rate_bps,
            max_block_bytes: config.max_block_bytes,
            max_unread_block_bytes: config.max_unread_block_bytes,
            max_unread_packet_bytes: config.max_unread_packet_bytes as u64,
            max_queued_packet_bytes: config.max_queued_packet_bytes as u64,
            max_channel_bytes: config.max_channel_bytes,
            min_block_rate_bps: config.min_block_rate_bps,
            max_queued_message_bytes: config.max_queued_message_bytes,
            max_queued_blocks: number(config.max_queued_blocks),
            max_channels: config.max_channels.into(),
            max_datagram_bytes: config.max_datagram_bytes.into(),
            idle_timeout_ms: ms(config.idle_timeout),
            handshake_timeout_ms: ms(config.handshake_timeout),
            no_progress_timeout_ms: ms(config.no_progress_timeout),
            urgency: haulier_urgency::HAULIER_URGENCY_LOAD_SCREEN as u32,
            delivery: haulier_delivery::HAULIER_DELIVERY_BLOCKS as u32,
        }
    }
}

/// Fills the settings of a connection with their defaults. struct_size: sizeof(haulier_connection_settings).
///
/// Returns HAULIER_ERROR_USAGE if the library knows no struct of that size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_connection_settings_init(
    settings: *mut haulier_connection_settings,
    struct_size: usize,
) -> haulier_result {
    // SAFETY: null, or `struct_size` bytes can be written there, as the caller promises.
    border(|| unsafe { put_sized(settings, struct_size, Versioned::defaults()) })
}

/// The settings of a client. Fill them with haulier_client_settings_init(), then change some. What they point
/// to is copied by the call that they are given to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_client_settings {
    /// sizeof(haulier_client_settings); set by haulier_client_settings_init().
    pub struct_size: usize,
    /// What the program asks the server for, up to 400 bytes, such as the name of its player: it may be
    /// replayed, and is not secret. None, the default.
    pub request: *const c_void,
    /// How many bytes of it there are.
    pub request_bytes: usize,
    /// Further addresses of the server, as text, the likeliest first: needed with a token that names none.
    /// The first to accept the client wins. None, the default.
    pub servers: *const *const c_char,
    /// How many there are.
    pub server_count: usize,
    /// The settings of the connection. Null, the default: its defaults.
    pub connection: *const haulier_connection_settings,
    /// The path of a file that is written with what the connection does, datagram by datagram, as qlog, the
    /// format of QUIC's tools; an existing file is replaced. It has no secrets. Null, the default: no file.
    pub qlog_path: *const c_char,
    /// The path of a file to which the keys of the connection are appended, for `haulier inspect` and
    /// Wireshark: whoever has it can read all of the connection. Null, the default: none.
    pub key_log_path: *const c_char,
    /// How long to wait in line while the server has no seat, in ms. Default 600000.
    pub max_time_in_line_ms: u32,
    /// Copies of the request that are sent at once, 1 to 10. Default 4.
    pub request_copies: u32,
    /// A haulier_drive. Default HAULIER_DRIVE_THREAD.
    pub drive: u32,
}

// SAFETY: repr(C), the size is first, and all fields are numbers and pointers.
unsafe impl Versioned for haulier_client_settings {
    const NAME: &str = "haulier_client_settings";
    const FIRST_BYTES: usize = size_of::<Self>();

    fn defaults() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            request: null(),
            request_bytes: 0,
            servers: null(),
            server_count: 0,
            connection: null(),
            qlog_path: null(),
            key_log_path: null(),
            max_time_in_line_ms: 600_000,
            request_copies: 4,
            drive: haulier_drive::HAULIER_DRIVE_THREAD as u32,
        }
    }
}

/// Fills the settings of a client with their defaults. struct_size: sizeof(haulier_client_settings).
///
/// Returns HAULIER_ERROR_USAGE if the library knows no struct of that size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_settings_init(
    settings: *mut haulier_client_settings,
    struct_size: usize,
) -> haulier_result {
    // SAFETY: null, or `struct_size` bytes can be written there, as the caller promises.
    border(|| unsafe { put_sized(settings, struct_size, Versioned::defaults()) })
}

/// The settings of a server. Fill them with haulier_server_settings_init(), then say whom it lets in: with
/// secret, token_keys or is_open. What they point to is copied by the call that they are given to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_server_settings {
    /// sizeof(haulier_server_settings); set by haulier_server_settings_init().
    pub struct_size: usize,
    /// Clients with this secret, which is in its ticket, are let in. Null, the default: none are by a secret.
    pub secret: *const haulier_secret,
    /// The private key by which the server proves itself to clients that require it. Null, the default: none.
    pub identity: *const haulier_secret,
    /// Lets clients notice at once that the server was restarted: kept by it, and by no other. Null, the
    /// default: they notice by the idle timeout.
    pub reset_secret: *const haulier_secret,
    /// Clients with a token of one of these keys are let in. None, the default.
    pub token_keys: *const haulier_token_key,
    /// How many there are.
    pub token_key_count: usize,
    /// Addresses of the server that tokens may name beside the one it listens at, as text: those of a router
    /// in front of it. None, the default.
    pub addresses: *const *const c_char,
    /// How many there are.
    pub address_count: usize,
    /// The settings of its connections. Null, the default: their defaults.
    pub connection: *const haulier_connection_settings,
    /// The path of a file that is written with what all connections do, datagram by datagram, as qlog, the
    /// format of QUIC's tools; an existing file is replaced. It has no secrets. Null, the default: no file.
    pub qlog_path: *const c_char,
    /// The path of a file to which the keys of all connections are appended, for `haulier inspect` and
    /// Wireshark: whoever has it can read all of them. Null, the default: none.
    pub key_log_path: *const c_char,
    /// What it sends in all, in bit/s, at least 100000: what its own uplink has. Clients take turns with
    /// blocks, packets go before them. Default UINT64_MAX, no limit.
    pub max_uplink_bps: u64,
    /// Bytes that all clients together may make it hold. Default 1 GiB.
    pub max_memory_bytes: u64,
    /// Connections, handshakes among them. Default 0: one for each 64 KiB of max_memory_bytes.
    pub max_connections: u32,
    /// Clients that wait in line while all seats are taken. Default 16384.
    pub max_in_line: u32,
    /// Connections from one source prefix, such as a house. Default 256.
    pub max_connections_per_prefix: u32,
    /// Handshakes in progress. Default 12288.
    pub max_handshakes: u32,
    /// Handshakes in progress from one source prefix. Default 64.
    pub max_handshakes_per_prefix: u32,
    /// Its threads, each with a part of the connections, 1 to 256. Default 1; more on Linux and Android only.
    pub workers: u32,
    /// A haulier_drive. Default HAULIER_DRIVE_THREAD.
    pub drive: u32,
    /// Not 0: every client is let in, without encryption. For a LAN and for tests. Default 0.
    pub is_open: u32,
    /// Not 0: tokens are accepted whatever server they name, as behind a load balancer. Default 0.
    pub accepts_any_token: u32,
    /// Not 0: tokens that were issued before the server was started are accepted. Default 0.
    pub accepts_earlier_tokens: u32,
    /// Not 0: without max_uplink_bps the server finds out what its uplink has. Default 0: each connection
    /// finds out what its own link has.
    pub finds_out_uplink: u32,
    /// A block that each client is sent with the answer to its request, whenever the program looks: the world
    /// that players join. It is not copied, and may be freed after the call. A client that accepts only
    /// smaller blocks is closed with HAULIER_CLOSE_NOT_ACCEPTED. Null, the default: none.
    pub first_block: *const haulier_block,
}

// SAFETY: repr(C), the size is first, and all fields are numbers and pointers.
unsafe impl Versioned for haulier_server_settings {
    const NAME: &str = "haulier_server_settings";
    const FIRST_BYTES: usize = offset_of!(Self, first_block);

    fn defaults() -> Self {
        let limits = haulier::ServerLimits::default();
        Self {
            struct_size: size_of::<Self>(),
            secret: null(),
            identity: null(),
            reset_secret: null(),
            token_keys: null(),
            token_key_count: 0,
            addresses: null(),
            address_count: 0,
            connection: null(),
            qlog_path: null(),
            key_log_path: null(),
            max_uplink_bps: u64::MAX,
            max_memory_bytes: limits.memory_bytes as u64,
            max_connections: 0,
            max_in_line: number(limits.line),
            max_connections_per_prefix: number(limits.connections_per_prefix),
            max_handshakes: number(limits.handshakes),
            max_handshakes_per_prefix: number(limits.handshakes_per_prefix),
            workers: 1,
            drive: haulier_drive::HAULIER_DRIVE_THREAD as u32,
            is_open: 0,
            accepts_any_token: 0,
            accepts_earlier_tokens: 0,
            finds_out_uplink: 0,
            first_block: null(),
        }
    }
}

/// Fills the settings of a server with their defaults, which let nobody in. struct_size:
/// sizeof(haulier_server_settings).
///
/// Returns HAULIER_ERROR_USAGE if the library knows no struct of that size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_settings_init(
    settings: *mut haulier_server_settings,
    struct_size: usize,
) -> haulier_result {
    // SAFETY: null, or `struct_size` bytes can be written there, as the caller promises.
    border(|| unsafe { put_sized(settings, struct_size, Versioned::defaults()) })
}

/// The settings of a connection as Rust has them.
///
/// # Safety
/// `pointer` is null, or points to as many bytes as its first field says.
pub(crate) unsafe fn connection_config(
    pointer: *const haulier_connection_settings,
) -> Result<ConnectionConfig, Failure> {
    // SAFETY: the caller's promise.
    let set = unsafe { settings(pointer) }?;
    let wide = |name: &str| Failure::usage(format!("`{name}` is out of its range"));
    let mut config = ConnectionConfig::default();
    config.max_rate_bps = set.max_rate_bps;
    config.min_rate_bps = set.min_rate_bps;
    config.max_block_bytes = set.max_block_bytes;
    config.max_unread_block_bytes = set.max_unread_block_bytes;
    config.max_unread_packet_bytes = size(set.max_unread_packet_bytes);
    config.max_queued_packet_bytes = size(set.max_queued_packet_bytes);
    config.max_channel_bytes = set.max_channel_bytes;
    config.min_block_rate_bps = set.min_block_rate_bps;
    config.max_queued_message_bytes = set.max_queued_message_bytes;
    config.max_queued_blocks = size(set.max_queued_blocks.into());
    config.max_channels = set.max_channels.try_into().map_err(|_| wide("max_channels"))?;
    config.max_datagram_bytes =
        set.max_datagram_bytes.try_into().map_err(|_| wide("max_datagram_bytes"))?;
    config.idle_timeout = Duration::from_millis(set.idle_timeout_ms.into());
    config.handshake_timeout = Duration::from_millis(set.handshake_timeout_ms.into());
    config.no_progress_timeout = Duration::from_millis(set.no_progress_timeout_ms.into());
    config.urgency = urgency(set.urgency)?;
    config.delivery = match set.delivery {
        0 => Delivery::Blocks,
        1 => Delivery::Chunks,
        2 => Delivery::InOrder,
        other => return Err(Failure::usage(format!("{other} is no haulier_delivery"))),
    };
    Ok(config)
}

/// A `haulier_urgency` of C.
pub(crate) fn urgency(number: u32) -> Result<Urgency, Failure> {
    match number {
        0 => Ok(Urgency::LoadScreen),
        1 => Ok(Urgency::DuringPlay),
        other => Err(Failure::usage(format!("{other} is no haulier_urgency"))),
    }
}

/// Whether a `haulier_drive` of C is the one without a thread.
pub(crate) fn is_inline(number: u32) -> Result<bool, Failure> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Failure::usage(format!("{other} is no haulier_drive"))),
    }
}

/// A number of bytes; one that is larger than this system can have limits nothing.
pub(crate) fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn number(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn ms(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults of C are those of Rust, each of them: a field that was forgotten here would differ.
    #[test]
    fn the_defaults_are_those_of_rust() {
        // SAFETY: null is allowed.
        let config = unsafe { connection_config(null()) }.unwrap();
        assert_eq!(config, ConnectionConfig::default());
        let client =
            haulier::Connect::new(([127, 0, 0, 1], 1).into(), 7, haulier::Credentials::Open);
        let defaults = haulier_client_settings::defaults();
        assert_eq!(u128::from(defaults.max_time_in_line_ms), client.max_time_in_line.as_millis());
        assert_eq!(defaults.request_copies, u32::from(client.copies));
    }

    /// A program that was compiled before a field was added has the default for it; one that was compiled
    /// with a newer header gets an error.
    #[test]
    fn a_shorter_struct_has_defaults_at_its_end_and_a_longer_one_is_refused() {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Two {
            struct_size: usize,
            old: usize,
            new: usize,
        }
        // SAFETY: repr(C), the size is first, and all fields are numbers.
        unsafe impl Versioned for Two {
            const NAME: &str = "two";
            const FIRST_BYTES: usize = 2 * size_of::<usize>();

            fn defaults() -> Self {
                Self { struct_size: size_of::<Self>(), old: 1, new: 2 }
            }
        }
        let word = size_of::<usize>();
        // What lies behind it in the program's memory is not read.
        let older = Two { struct_size: 2 * word, old: 7, new: 7 };
        // SAFETY: a whole struct is there.
        let seen = unsafe { settings(&older) }.unwrap();
        assert_eq!((seen.old, seen.new), (7, 2));
        for wrong in [0, word, 4 * word, usize::MAX] {
            // SAFETY: a size that is not possible is refused before anything is read.
            assert!(unsafe { settings(&Two { struct_size: wrong, ..older }) }.is_err());
        }
        let mut written = Two { struct_size: 0, old: 0, new: 0 };
        // SAFETY: a whole struct is there.
        unsafe { put_sized(&mut written, 2 * word, Two::defaults()) }.unwrap();
        assert_eq!((written.struct_size, written.old, written.new), (2 * word, 1, 0));
    }
}
