//! Tickets, connect tokens and their keys. None of them prints its secret.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haulier::{Secret, TicketAccess, TokenClaims, TokenRate, TokenServers};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{Data, thirty_two};
use crate::failure::{Failure, Outcome};
use crate::waiting::duration;

/// A line to copy: where a server is, and what lets a client in. It is as secret as what it opens.
#[pyclass(module = "haulier", frozen)]
pub(crate) struct Ticket(pub(crate) haulier::Ticket);

#[pymethods]
impl Ticket {
    /// Parses a ticket, "haulier1:..."; `CredentialsError` if the text is not a ticket.
    #[staticmethod]
    fn parse(text: &str) -> Outcome<Self> {
        haulier::Ticket::parse(text).map(Self).map_err(Failure::credentials)
    }

    /// The addresses of the server, the likeliest first.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        texts(self.0.addresses())
    }

    /// The number of the application's protocol.
    #[getter]
    const fn protocol_id(&self) -> u64 {
        self.0.protocol_id()
    }

    /// Whether it is for a server without encryption.
    #[getter]
    const fn is_open(&self) -> bool {
        matches!(self.0.access(), TicketAccess::Open)
    }

    /// The BLAKE3 of the only file that is there, if there is but one.
    #[getter]
    fn digest<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.digest().map(|digest| PyBytes::new(py, digest))
    }

    /// The public key that the server must have, if it has one.
    #[getter]
    fn identity<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.identity().map(|identity| PyBytes::new(py, identity))
    }

    /// The line to copy, as `str` gives it.
    fn to_text(&self) -> String {
        self.0.to_text()
    }

    fn __str__(&self) -> String {
        self.0.to_text()
    }

    fn __repr__(&self) -> String {
        format!("<Ticket to {}>", self.addresses().join(", "))
    }
}

/// What lets one client in, once, for a limited time.
#[pyclass(module = "haulier", frozen)]
pub(crate) struct ConnectToken(pub(crate) haulier::ConnectToken);

#[pymethods]
impl ConnectToken {
    /// Parses a token, "haulier-token1:..."; `CredentialsError` if the text is not a token.
    #[staticmethod]
    fn parse(text: &str) -> Outcome<Self> {
        haulier::ConnectToken::parse(text).map(Self).map_err(Failure::credentials)
    }

    /// The addresses of the servers that it names.
    #[getter]
    fn servers(&self) -> Vec<String> {
        texts(self.0.servers())
    }

    /// The number of the application's protocol.
    #[getter]
    const fn protocol_id(&self) -> u64 {
        self.0.protocol_id()
    }

    /// When it expires, in Unix seconds.
    #[getter]
    const fn expiry_unix(&self) -> u64 {
        self.0.expiry_unix()
    }

    /// The line to hand over, as `str` gives it.
    fn to_text(&self) -> String {
        self.0.to_text()
    }

    fn __str__(&self) -> String {
        self.0.to_text()
    }

    fn __repr__(&self) -> String {
        format!("<ConnectToken to {}>", self.servers().join(", "))
    }
}

/// What a matchmaker and its servers share: 32 bytes, and a number to tell it from the next one.
#[pyclass(module = "haulier", frozen)]
pub(crate) struct TokenKey(pub(crate) haulier::TokenKey);

#[pymethods]
impl TokenKey {
    #[new]
    fn new(id: u32, key: Data) -> Outcome<Self> {
        let key = Secret::from_bytes(thirty_two(&key, "a token key")?);
        Ok(Self(haulier::TokenKey { id, key }))
    }

    /// Its number.
    #[getter]
    const fn id(&self) -> u32 {
        self.0.id
    }

    fn __repr__(&self) -> String {
        format!("<TokenKey {}>", self.0.id)
    }
}

/// 32 random bytes from the system: for a server, for a token key.
#[pyfunction]
pub(crate) fn random_secret(py: Python<'_>) -> Outcome<Bound<'_, PyBytes>> {
    let secret = haulier::random_secret()?;
    Ok(PyBytes::new(py, secret.as_bytes()))
}

/// Makes a connect token, as a matchmaker does: for the servers at these addresses, once each, or for every
/// server with the key. The server gets `client_id` and up to 256 bytes of `user_data` with the request.
/// It is issued now, or at `issued_unix`, in Unix seconds.
#[pyfunction]
#[pyo3(signature = (key, protocol_id, servers=Vec::new(), *, lifetime_s=60.0, issued_unix=None, client_id=0,
    client_address=None, max_rate_bps=None, user_data=None))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn issue_token(
    key: &TokenKey,
    protocol_id: u64,
    servers: Vec<String>,
    lifetime_s: f64,
    issued_unix: Option<u64>,
    client_id: u64,
    client_address: Option<String>,
    max_rate_bps: Option<u64>,
    user_data: Option<Data>,
) -> Outcome<ConnectToken> {
    let now = match issued_unix {
        Some(seconds) => Duration::from_secs(seconds),
        None => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
    };
    let expiry = now.saturating_add(duration(lifetime_s)?.max(Duration::from_secs(1)));
    let servers = match addresses(&servers)?.as_slice() {
        [] => TokenServers::Every,
        [one] => TokenServers::One(*one),
        several => TokenServers::Each(several.to_vec()),
    };
    let rate = max_rate_bps.map(|bps| {
        TokenRate::from_bps(bps).ok_or_else(|| Failure::usage("max_rate_bps is 1 to 34 Gbit/s"))
    });
    let claims = TokenClaims::new(now.as_secs(), expiry.as_secs(), servers)
        .with_client_id(client_id.to_le_bytes())
        .with_client_address(client_address.as_deref().map(address).transpose()?)
        .with_max_rate(rate.transpose()?)
        .with_user_data(user_data.map_or_else(Vec::new, |data| data.0.to_vec()));
    Ok(ConnectToken(haulier::issue_token(&key.0, protocol_id, &claims)?))
}

/// Addresses as Python has them.
pub(crate) fn texts(addresses: &[SocketAddr]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

/// An address, `203.0.113.9:4016` or `[2001:db8::7]:4016`.
pub(crate) fn address(text: &str) -> Outcome<SocketAddr> {
    text.parse().map_err(|_| {
        let what = "is no address with a port, such as 203.0.113.9:4016 or [2001:db8::7]:4016";
        Failure::usage(format!("{text:?} {what}"))
    })
}

/// All of them.
pub(crate) fn addresses(texts: &[String]) -> Outcome<Vec<SocketAddr>> {
    texts.iter().map(|text| address(text)).collect()
}

/// The addresses of a host by its name; it may take as long as the system's resolver takes.
pub(crate) fn resolve(text: &str) -> Outcome<Vec<SocketAddr>> {
    if let Ok(address) = text.parse() {
        return Ok(vec![address]);
    }
    if !text.contains(':') {
        return Err(Failure::usage(format!("{text:?} has no port: HOST:PORT is needed")));
    }
    let found = text.to_socket_addrs();
    found.map(Iterator::collect).map_err(|error| Failure::io(format!("{text}: {error}")))
}
