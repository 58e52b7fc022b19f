//! What the system under a machine has to give: random bytes, and what its processor is good at.

/// What a [`ClientMachine`](crate::client::ClientMachine) or a
/// [`ServerMachine`](crate::server::ServerMachine) needs of the system it runs on. A seed alone becomes one
/// without AES in hardware.
#[derive(Clone, Copy)]
pub struct Platform {
    /// 32 bytes fit for keys, never used before. All that is random in the machine follows from them.
    pub(crate) seed: [u8; 32],
    /// Whether the processor encrypts AES by itself.
    pub(crate) has_aes: bool,
}

impl Platform {
    /// With these random bytes, on a processor with or without AES: without it, ChaCha20 is preferred.
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

/// The seed is as secret as the keys that come of it.
impl core::fmt::Debug for Platform {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Platform").field("has_aes", &self.has_aes).finish_non_exhaustive()
    }
}

/// How a processor encrypts AES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AesSupport {
    /// By instructions of its own: AES-256-GCM is the fastest cipher there.
    Hardware,
    /// It has none, or nobody has asked it.
    Software,
}
