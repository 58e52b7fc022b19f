//! What the machine under us is and has: random bytes, AES or not, and time to make tables.

use std::io;
use std::sync::Once;
use std::thread;

use haulier_proto::bulk::repair;
use haulier_proto::{AesSupport, Platform};

/// 32 bytes fit for keys, from the operating system.
///
/// # Errors
/// When the system has none to give: then nothing that needs keys may run.
pub fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(seed)
}

/// What the system under us has: random bytes, and AES or not.
///
/// # Errors
/// As [`seed`].
pub fn platform() -> io::Result<Platform> {
    let aes = if has_aes() { AesSupport::Hardware } else { AesSupport::Software };
    Ok(Platform::new(seed()?, aes))
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

/// Makes the tables of the repair code in the background, once a process. They take 8 ms: nobody can wait for
/// them in the middle of a transfer, nor before the first datagram, but the round trip of a handshake is
/// mostly longer.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without a thread whoever needs the tables first makes them.
        let _thread = thread::Builder::new().name("haulier-tables".into()).spawn(repair::prepare);
    });
}
