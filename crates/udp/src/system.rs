//! What the machine under us is and has: random bytes, AES or not, and datagrams that IP does not split.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use crate::Socket;

/// The largest datagram of an end whose sockets forbid fragmentation: more than fits a jumbo frame, which is
/// the largest that is probed.
const JUMBO_BYTES: u16 = 9000;

/// 32 bytes fit for keys, from the operating system.
///
/// # Errors
/// When the system has no random bytes: then nothing that needs keys may run.
pub fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(seed)
}

/// The `max_datagram_bytes` of connections on this system: 1200 if IP may split what its sockets send, and
/// 9000 otherwise. It asks the system once.
#[must_use]
pub fn max_datagram_bytes() -> u16 {
    sockets().0
}

/// The `receive_buffer_bytes` of connections on this system: what it grants each socket. It asks the system
/// once.
#[must_use]
pub fn receive_buffer_bytes() -> u64 {
    sockets().1
}

/// The largest datagram, and the bytes that may wait to be read; 0 if no socket could be opened.
fn sockets() -> (u16, u64) {
    static KNOWN: OnceLock<(u16, u64)> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let any = [(Ipv4Addr::LOCALHOST, 0).into(), (Ipv6Addr::LOCALHOST, 0).into()];
        let sockets: Vec<_> =
            any.into_iter().filter_map(|local| Socket::bind(local).ok()).collect();
        let is_forbidden = !sockets.is_empty() && sockets.iter().all(Socket::forbids_fragmentation);
        let buffers = sockets.iter().map(|socket| socket.buffers().payload_bytes());
        (if is_forbidden { JUMBO_BYTES } else { 1200 }, buffers.min().unwrap_or(0))
    })
}

/// Whether this machine encrypts AES in hardware.
#[must_use]
pub fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    {
        std::arch::is_x86_feature_detected!("aes")
            && std::arch::is_x86_feature_detected!("pclmulqdq")
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("aes")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
    {
        false
    }
}
