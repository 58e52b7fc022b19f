//! The client's machine for a page, as `haulier.js` drives it: datagrams and milliseconds in; datagrams,
//! events and a deadline out.
//!
//! Nothing is decided here: it is [`ClientMachine`] with JavaScript's types. The module `haulier.js` brings
//! the clock (`performance.now`), the random seed (`crypto.getRandomValues`) and WebTransport's datagrams.
//! ChaCha20 is the only cipher, for WebAssembly has no instructions of AES.

mod blocks;
mod event;
mod settings;

use std::net::{Ipv4Addr, SocketAddr};

use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{CloseCode, Connection, ErrorKind, Order, SendError};
use haulier_proto::credentials::{ConnectToken, Ticket};
use haulier_proto::{AesSupport, Batch, Instant, Machine, Platform};
use js_sys::{Error, Object, Reflect, Uint8Array};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

pub use settings::Settings;

/// Stands for the server: WebTransport has one peer, and the address is never sent.
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1);

/// Datagrams that are handed to the page at a time.
const BATCH_DATAGRAMS: usize = 32;

/// A client and its one connection.
#[wasm_bindgen]
pub struct Player {
    machine: ClientMachine,
    batch: Batch,
}

#[wasm_bindgen]
impl Player {
    /// Starts a handshake with a ticket or a connect token.
    ///
    /// # Errors
    /// An `Error` with a `kind`: `credentials`, or `usage`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        now_ms: f64,
        credentials: &str,
        request: Vec<u8>,
        seed: &[u8],
        settings: &Settings,
    ) -> Result<Self, Error> {
        let fault = |kind: ErrorKind, text: String| error(kind, &text);
        let (protocol_id, credentials) =
            credentials_of(credentials).map_err(|text| fault(ErrorKind::Credentials, text))?;
        let seed: [u8; 32] = seed
            .try_into()
            .map_err(|_| fault(ErrorKind::Internal, "the seed has 32 bytes".into()))?;
        let config = ClientConfig::new(SERVER, protocol_id, credentials)
            .with_request(request)
            .with_connection(settings.connection);
        let platform = Platform::new(seed, AesSupport::Software);
        let machine = ClientMachine::new(at(now_ms), config, platform)
            .map_err(|refused| fault(ErrorKind::Usage, refused.to_string()))?;
        Ok(Self { machine, batch: Batch::new(BATCH_DATAGRAMS) })
    }

    /// Hands in a datagram that arrived.
    pub fn receive(&mut self, now_ms: f64, mut datagram: Vec<u8>) {
        let _counted = self.machine.handle_datagram(at(now_ms), SERVER, &mut datagram);
    }

    /// Acts on deadlines that have passed.
    pub fn wake(&mut self, now_ms: f64) {
        self.machine.handle_timeout(at(now_ms));
    }

    /// The next event, or `undefined`.
    pub fn event(&mut self, now_ms: f64) -> JsValue {
        let mut events = std::iter::from_fn(|| self.machine.poll_event(at(now_ms)));
        let mut objects = events.by_ref().map(event::object);
        objects.find(|object| !object.is_undefined()).unwrap_or(JsValue::UNDEFINED)
    }

    /// Calls `send` with each datagram that there is to send.
    ///
    /// # Errors
    /// What `send` throws.
    pub fn transmit(&mut self, now_ms: f64, send: &js_sys::Function) -> Result<(), JsValue> {
        loop {
            self.batch.clear();
            self.machine.poll_transmit(at(now_ms), &mut self.batch);
            for (_to, datagram) in self.batch.iter() {
                send.call1(&JsValue::NULL, &Uint8Array::from(datagram))?;
            }
            if !self.batch.is_full() {
                return Ok(());
            }
        }
    }

    /// The milliseconds until it has to be woken; `Infinity` if only a datagram can change anything.
    pub fn pause(&self, now_ms: f64) -> f64 {
        let due = self.machine.poll_timeout();
        due.map_or(f64::INFINITY, |due| due.since(at(now_ms)).as_secs_f64() * 1e3)
    }

    /// Sends a message, which arrives, once.
    ///
    /// # Errors
    /// An `Error` with a `kind`: `not-open`, `full`, `usage`.
    pub fn send_message(
        &mut self,
        data: Vec<u8>,
        channel: u8,
        is_ordered: bool,
    ) -> Result<f64, Error> {
        let order = if is_ordered { Order::Ordered } else { Order::Unordered };
        let connection = self.machine.connection_mut().ok_or(SendError::NotOpen);
        let sent = connection.and_then(|it| it.send_message_on(channel, order, data));
        sent.map(|number| number as f64).map_err(|refused| of_send(&refused))
    }

    /// Sends a packet, once.
    ///
    /// # Errors
    /// The errors of [`send_message`](Self::send_message).
    pub fn send_packet(&mut self, data: Vec<u8>) -> Result<f64, Error> {
        let connection = self.machine.connection_mut().ok_or(SendError::NotOpen);
        let sent = connection.and_then(|it| it.send_packet(data));
        sent.map(|sequence| f64::from(sequence.get())).map_err(|refused| of_send(&refused))
    }

    /// Changes the highest rate of blocks, in bit/s.
    pub fn set_max_rate_bps(&mut self, rate_bps: f64) {
        if let Some(connection) = self.machine.connection_mut() {
            connection.set_max_rate_bps(rate_bps as u64);
        }
    }

    /// Changes how much of the link blocks may take.
    ///
    /// # Errors
    /// An `Error` of kind `usage` for another word.
    pub fn set_urgency(&mut self, word: &str) -> Result<(), Error> {
        let urgency = settings::urgency(word)?;
        if let Some(connection) = self.machine.connection_mut() {
            connection.set_urgency(urgency);
        }
        Ok(())
    }

    /// There is another way to the server: it is sent something, so that it learns of it.
    pub fn moved(&mut self) {
        if let Some(connection) = self.machine.connection_mut() {
            connection.ping();
        }
    }

    /// Whether all blocks and messages of the page were acknowledged.
    pub fn all_acked(&self) -> bool {
        self.machine.connection().is_none_or(Connection::all_acked)
    }

    /// Closes the connection. Without a code it is `done`; an application's own codes begin at 256.
    ///
    /// # Errors
    /// An `Error` of kind `usage` for a code that is not the application's.
    pub fn close(&mut self, now_ms: f64, code: u32, reason: &str) -> Result<(), Error> {
        let code = match code {
            0 => CloseCode::DONE,
            code => CloseCode::application(code)
                .ok_or_else(|| error(ErrorKind::Usage, "codes of an application begin at 256"))?,
        };
        self.machine.close(at(now_ms), code, reason);
        Ok(())
    }

    /// Whether it has ended, and nothing is left to send.
    pub fn is_closed(&self) -> bool {
        self.machine.is_closed()
    }

    /// The statistics of the connection: `undefined` before it is open.
    pub fn stats(&self) -> JsValue {
        let Some(connection) = self.machine.connection() else { return JsValue::UNDEFINED };
        let (bytes, stats) = (self.machine.wire_bytes(), connection.stats());
        let object = Object::new();
        let rtt = stats.rtt.map_or(f64::NAN, |rtt| rtt.as_secs_f64() * 1e3);
        for (name, value) in [
            ("rttMs", rtt),
            ("receivedBytes", bytes.received as f64),
            ("sentBytes", bytes.sent as f64),
        ] {
            event::set(&object, name, value);
        }
        object.into()
    }
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player").field("machine", &self.machine).finish_non_exhaustive()
    }
}

/// The number of the protocol, and what proves that its holder may come in.
fn credentials_of(text: &str) -> Result<(u64, Credentials), String> {
    let text = text.trim();
    if text.starts_with("haulier-token") {
        let token = ConnectToken::parse(text).map_err(|error| error.to_string())?;
        return Ok((token.protocol_id(), Credentials::Token(token)));
    }
    let ticket = Ticket::parse(text).map_err(|error| error.to_string())?;
    Ok((ticket.protocol_id(), Credentials::from(&ticket)))
}

/// The machine's time: the page's clock, which begins when the page does.
fn at(now_ms: f64) -> Instant {
    Instant::from_nanos((now_ms.max(0.0) * 1e6) as u64)
}

fn of_send(refused: &SendError) -> Error {
    error(refused.kind(), &refused.to_string())
}

/// An `Error` with a `kind`, as `haulier.js` throws them.
fn error(kind: ErrorKind, text: &str) -> Error {
    let error = Error::new(text);
    let _always = Reflect::set(&error, &"kind".into(), &kind.name().into());
    error
}
