//! What a server says of itself beside name, port and addresses: the TXT record, a few short pairs of key and
//! value (DNS-SD, RFC 6763, section 6). What is not understood is left out, for anybody may have said it.

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The version of the wire: 1 is haulier/1.
    pub(crate) version: Option<u8>,
    /// Which clients are let in.
    pub(crate) lets_in: Option<LetsIn>,
    /// Files to fetch.
    pub(crate) files: Option<u32>,
    /// Whether files can be sent to it.
    pub(crate) takes_files: bool,
    /// The first bytes of the public identity, for a person who compares. It proves nothing.
    pub(crate) identity: Option<[u8; Self::IDENTITY_BYTES]>,
}

/// Which clients are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetsIn {
    /// Everybody, without encryption.
    Everybody,
    /// Clients with the ticket.
    Tickets,
    /// Clients with a connect token.
    Tokens,
    /// Clients with the ticket or a connect token.
    TicketsAndTokens,
}

impl LetsIn {
    const ALL: [Self; 4] = [Self::Everybody, Self::Tickets, Self::Tokens, Self::TicketsAndTokens];

    /// In the record, and in JSON.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Everybody => "open",
            Self::Tickets => "ticket",
            Self::Tokens => "token",
            Self::TicketsAndTokens => "ticket-or-token",
        }
    }

    /// For a person.
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Everybody => "everybody (--open)",
            Self::Tickets => "by ticket",
            Self::Tokens => "by token",
            Self::TicketsAndTokens => "by ticket or token",
        }
    }
}

impl Record {
    /// The wire that this program speaks.
    pub(crate) const VERSION: u8 = 1;

    /// How much of the identity is said: enough to tell servers apart.
    const IDENTITY_BYTES: usize = 8;

    /// Sets the identity to the first bytes of this public key.
    pub(crate) fn with_identity(mut self, public: &[u8; 32]) -> Self {
        self.identity = public.first_chunk().copied();
        self
    }

    /// As hex digits.
    pub(super) fn identity_hex(&self) -> Option<String> {
        let identity = self.identity.as_ref()?;
        Some(identity.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The pairs of the record.
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        pairs.extend(self.version.map(|version| ("v", version.to_string())));
        pairs.extend(self.lets_in.map(|lets_in| ("access", lets_in.word().to_owned())));
        pairs.extend(self.files.map(|files| ("files", files.to_string())));
        pairs.extend(self.takes_files.then(|| ("inbox", "1".to_owned())));
        pairs.extend(self.identity_hex().map(|hex| ("id", hex)));
        pairs
    }

    /// Reads a record by what `value` says of a key.
    pub(super) fn read<'a>(value: impl Fn(&str) -> Option<&'a [u8]>) -> Self {
        let text = |key: &str| value(key).and_then(|value| std::str::from_utf8(value).ok());
        Self {
            version: text("v").and_then(number),
            lets_in: text("access")
                .and_then(|word| LetsIn::ALL.into_iter().find(|it| it.word() == word)),
            files: text("files").and_then(number),
            takes_files: text("inbox") == Some("1"),
            identity: text("id").and_then(identity),
        }
    }
}

/// Digits alone: no sign.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Exactly as many hex digits as it has.
fn identity(hex: &str) -> Option<[u8; Record::IDENTITY_BYTES]> {
    let mut bytes = [0; Record::IDENTITY_BYTES];
    if hex.len() != 2 * bytes.len() || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}
