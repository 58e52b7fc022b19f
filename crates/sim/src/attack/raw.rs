//! Two ends of haulier/1 for attackers: they complete the handshake correctly, and then seal arbitrary
//! bytes.
//!
//! Written from STANDARD-1 on the wire's types, without the machines. Attackers with the right keys use
//! them: hostile clients here, and hostile peers of the fuzzers.

use haulier_proto::Instant;
use haulier_proto::connection::Suite;
use haulier_proto::credentials::{ConnectToken, Secret};
use haulier_proto::internals::{
    AeadKey, COOKIE_BYTES, DataHeader, EndParameters, Entropy, Frame, Hello, Initiator, Mode,
    ReceivedDatagrams, RequestKeys, RequestParts, ResponseHeader, Role, Source, SplitSecrets,
    Suites, Versions, Welcome, WireId, open_check, open_tag, respond, verify_open_tag,
};

use crate::Rng;
use crate::hosts::PROTOCOL_ID;

const DATA_HEADER_BYTES: usize = 13;

enum Keys {
    Sealed { send: Box<AeadKey>, receive: Box<AeadKey> },
    Open { local: WireId, remote: WireId },
}

/// One end of a connection with its keys.
pub struct Link {
    role: Role,
    remote: WireId,
    keys: Keys,
    /// The number of the next datagram.
    pub next: u64,
    /// Received datagrams, to make valid acks.
    pub received: ReceivedDatagrams,
}

impl Link {
    /// Seals an arbitrary plaintext as the next datagram.
    pub fn seal(&mut self, plaintext: &[u8]) -> Vec<u8> {
        let number = self.next;
        self.next += 1;
        let mut out = Vec::new();
        let low = number as u32;
        DataHeader { from: self.role, phase: false, to: self.remote, number: low }.write(&mut out);
        self.finish(number, out, plaintext)
    }

    /// Seals frames.
    pub fn frames(&mut self, frames: &[Frame<'_>]) -> Vec<u8> {
        let mut plaintext = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut plaintext));
        self.seal(&plaintext)
    }

    fn finish(&self, number: u64, mut out: Vec<u8>, plaintext: &[u8]) -> Vec<u8> {
        let header_bytes = out.len();
        out.extend_from_slice(plaintext);
        match &self.keys {
            Keys::Sealed { send, .. } => {
                let (header, text) = out.split_at_mut(header_bytes);
                let tag = send.seal(number, header, text).expect("a datagram that fits");
                out.extend_from_slice(&tag);
            }
            Keys::Open { local, .. } => {
                let tag = open_tag(PROTOCOL_ID, local.0, &out);
                out.extend_from_slice(&tag);
            }
        }
        out
    }

    /// Opens a datagram for this end, and records its number.
    fn open(
        &mut self,
        now: Instant,
        low: u32,
        header_bytes: usize,
        datagram: &[u8],
    ) -> Option<Vec<u8>> {
        let number = self.received.expand(low);
        self.received.check(number).ok()?;
        let plaintext = match &self.keys {
            Keys::Sealed { receive, .. } => {
                let (covered, tag) = datagram.split_last_chunk::<16>()?;
                let (header, text) = covered.split_at_checked(header_bytes)?;
                let mut text = text.to_vec();
                receive.open(number, header, &mut text, tag).ok()?;
                text
            }
            Keys::Open { remote, .. } => {
                let (covered, tag) = datagram.split_last_chunk::<12>()?;
                let is_right = verify_open_tag(PROTOCOL_ID, remote.0, covered, tag);
                covered.get(header_bytes..).filter(|_| is_right)?.to_vec()
            }
        };
        self.received.on_verified(now, number, true);
        Some(plaintext)
    }

    /// Opens data of the other end.
    pub fn open_data(&mut self, now: Instant, datagram: &[u8]) -> Option<Vec<u8>> {
        let header = DataHeader::read(datagram).ok()?;
        self.open(now, header.number, DATA_HEADER_BYTES, datagram)
    }
}

fn sealed(role: Role, suite: Suite, secrets: &SplitSecrets) -> Keys {
    let key = |secret: &haulier_proto::internals::TrafficSecret| {
        Box::new(secret.key(suite).expect("a suite that is built in"))
    };
    let (ours, theirs) = match role {
        Role::Client => (&secrets.client_to_server, &secrets.server_to_client),
        Role::Server => (&secrets.server_to_client, &secrets.client_to_server),
    };
    Keys::Sealed { send: key(ours), receive: key(theirs) }
}

/// A client that sends what its caller decides.
pub struct RawClient {
    entropy: Entropy,
    /// Its own id.
    pub id: WireId,
    keys: Option<(RequestKeys, Initiator)>,
    mode: Mode,
    /// The part of its token that the server reads.
    token: Vec<u8>,
    hello_message: Vec<u8>,
    /// The cookie it received.
    pub cookie: Option<[u8; COOKIE_BYTES]>,
    /// Once the server's welcome was read.
    pub link: Option<Link>,
}

impl RawClient {
    /// A client with this secret, or of mode `open`.
    #[must_use]
    pub fn new(secret: Option<&Secret>, seed: u64) -> Self {
        let source = if secret.is_some() { Source::Secret } else { Source::Open };
        Self::from_source(source, secret, &[], seed)
    }

    /// A client with this token.
    #[must_use]
    pub fn with_token(token: &ConnectToken, seed: u64) -> Self {
        Self::from_source(Source::Token, Some(token.secret()), token.sealed(), seed)
    }

    fn from_source(source: Source, secret: Option<&Secret>, token: &[u8], seed: u64) -> Self {
        let mode = Mode { source, identity: false };
        let mut entropy = Entropy::new(Rng::stream(seed, 79).key());
        let id = WireId(entropy.bytes());
        let mut hello = Vec::new();
        Hello {
            versions: Versions::OURS,
            suites: Suites::available(false),
            end: EndParameters { max_block_bytes: 64 << 20, ..EndParameters::default() },
            roots: &[],
            request: b"",
        }
        .write(&mut hello);
        let mut keys = None;
        if let Some(secret) = secret {
            let request = RequestKeys::new(secret, PROTOCOL_ID);
            let prologue = RequestParts::prologue(mode, id);
            let psk = request.noise_psk();
            let (initiator, message) =
                Initiator::new(psk, None, &prologue, entropy.next_secret(), &hello)
                    .expect("a hello");
            hello = message;
            keys = Some((request, initiator));
        }
        let token = token.to_vec();
        Self { entropy, id, keys, mode, token, hello_message: hello, cookie: None, link: None }
    }

    /// Its request, with its cookie if any.
    pub fn request(&mut self) -> Vec<u8> {
        let parts = RequestParts {
            mode: self.mode,
            client_id: self.id,
            cookie: self.cookie,
            token: &self.token,
            hello_message: &self.hello_message,
            checked: &[],
            check: [0; 16],
        };
        let mut out = Vec::new();
        assert!(parts.write(&mut out, |padding| self.entropy.fill(padding)), "it fits");
        let check = match &self.keys {
            Some((keys, _)) => keys.check(&out),
            None => open_check(PROTOCOL_ID, &out),
        };
        out.extend_from_slice(&check);
        out
    }

    /// Receives a datagram. Returns the plaintext, if it was a response or data for this client.
    pub fn handle(&mut self, now: Instant, datagram: &[u8]) -> Option<Vec<u8>> {
        match *datagram.first()? {
            0x05 if datagram.len() == 29 => {
                self.cookie = datagram.get(9..).and_then(|cookie| cookie.try_into().ok());
                None
            }
            0x07 => {
                let header = ResponseHeader::read(datagram).ok()?;
                if header.to != self.id {
                    return None;
                }
                if self.link.is_none() {
                    self.link = Some(self.welcome(header.welcome_message)?);
                }
                let header_bytes = ResponseHeader::bytes(header.welcome_message.len());
                self.link.as_mut()?.open(now, header.number, header_bytes, datagram)
            }
            _ => self.link.as_mut()?.open_data(now, datagram),
        }
    }

    fn welcome(&mut self, message: &[u8]) -> Option<Link> {
        let (welcome, keys) = match &mut self.keys {
            Some((_, initiator)) => {
                let (welcome, secrets) = initiator.finish(message).ok()?;
                let welcome = Welcome::read(&welcome).ok()?;
                let keys = sealed(Role::Client, welcome.suite, &secrets);
                (welcome, keys)
            }
            None => {
                let welcome = Welcome::read(message).ok()?;
                (welcome, Keys::Open { local: self.id, remote: welcome.server_id })
            }
        };
        let (remote, received) = (welcome.server_id, ReceivedDatagrams::new());
        Some(Link { role: Role::Client, remote, keys, next: 0, received })
    }
}

/// A server that sends what its caller decides.
pub struct RawServer {
    /// The connection's keys and numbers.
    pub link: Link,
    client_id: WireId,
    welcome_message: Vec<u8>,
}

impl RawServer {
    /// Answers a request that was made with this secret; `None` if it was not.
    #[must_use]
    pub fn answer(secret: Option<&Secret>, request: &[u8], seed: u64) -> Option<Self> {
        let mut rng = Rng::stream(seed, 80);
        let mut bytes = |count| rng.bytes(count);
        let parts = RequestParts::read(request).ok()?;
        let server_id = WireId(bytes(8).try_into().ok()?);
        let mut welcome = Vec::new();
        Welcome {
            server_id,
            suite: Suites::available(false).choose(Suites::available(false)),
            end: EndParameters { max_block_bytes: 64 << 20, ..EndParameters::default() },
        }
        .write(&mut welcome);
        let remote = parts.client_id;
        let keys = match secret {
            Some(secret) => {
                let keys = RequestKeys::new(secret, PROTOCOL_ID);
                let prologue = RequestParts::prologue(parts.mode, parts.client_id);
                let opened =
                    respond(keys.noise_psk(), None, &prologue, parts.hello_message).ok()?;
                let ephemeral = Secret::from_bytes(bytes(32).try_into().ok()?);
                let (message, secrets) = opened.answer(&ephemeral, &welcome).ok()?;
                welcome = message;
                sealed(
                    Role::Server,
                    Suites::available(false).choose(Suites::available(false)),
                    &secrets,
                )
            }
            None => Keys::Open { local: server_id, remote },
        };
        let received = ReceivedDatagrams::new();
        let link = Link { role: Role::Server, remote, keys, next: 0, received };
        Some(Self { link, client_id: remote, welcome_message: welcome })
    }

    /// A response with this plaintext.
    pub fn response(&mut self, plaintext: &[u8]) -> Vec<u8> {
        let number = self.link.next;
        self.link.next += 1;
        let mut out = Vec::new();
        let welcome_message = &self.welcome_message;
        ResponseHeader { to: self.client_id, welcome_message, number: number as u32 }
            .write(&mut out);
        self.link.finish(number, out, plaintext)
    }
}
