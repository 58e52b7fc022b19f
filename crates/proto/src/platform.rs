//! What a machine needs from the system it runs on: random bytes, and whether the processor has AES.

/// What a [`ClientMachine`](crate::client::ClientMachine) or a
/// [`ServerMachine`](crate::server::ServerMachine) needs from the system it runs on. A seed converts into one
/// without AES in hardware.
#[derive(Clone, Copy)]
pub struct Platform {
    /// 32 bytes fit for keys, never used before. All random values of the machine are derived from them.
    pub(crate) seed: [u8; 32],
    /// Whether the processor has AES instructions.
    pub(crate) has_aes: bool,
}

impl Platform {
    /// With these random bytes. Without AES in hardware, ChaCha20-Poly1305 is used.
    #[must_use]
    pub const fn new(seed: [u8; 32], aes: AesSupport) -> Self {
        Self { seed, has_aes: matches!(aes, AesSupport::Hardware) }
    }
}

impl From<[u8; 32]> for Platform {
    fn from(seed: [u8; 32]) -> Self {
        Self::new(seed, AesSupport::Software)
    }
}

// The seed is as secret as the keys that are derived from it.
crate::debug_as! { Platform: |platform| has_aes = platform.has_aes }

/// How the processor does AES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AesSupport {
    /// With AES instructions: AES-256-GCM is the fastest cipher there.
    Hardware,
    /// Without, or that is not known.
    Software,
}
