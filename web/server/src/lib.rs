//! Browsers as players: WebTransport as one more transport of a [`haulier::Server`].
//!
//! A page has no UDP, but WebTransport has datagrams. [`WebServer`] takes the sessions of browsers, and hands
//! what they carry to the gateway of a server, so that players of both kinds are its clients alike: the same
//! ticket or token, one desk, one stream of events. The game does nothing for it but start one.
//!
//! ```
//! use haulier::{Server, ServerConfig, ServerCredentials};
//! use haulier_web::{Certificate, WebServer};
//!
//! let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
//! let server = Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials))?;
//! let certificate = Certificate::self_signed(["localhost", "127.0.0.1"]);
//! let web = WebServer::start("127.0.0.1:0", certificate, &server)?;
//! // A page needs the address, and the hash of a certificate that nobody has signed.
//! println!("https://{}/ {:?}", web.local_addr(), web.certificate_hashes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One thread does all of it: QUIC and TLS for all browsers, and nothing of haulier beside handing datagrams
//! over. The README of `web/` has the page's side.

mod certificate;
mod limits;
mod server;
mod session;
mod transport;

pub use certificate::{Certificate, CertificateError};
pub use limits::WebLimits;
pub use server::{WebError, WebServer, WebStats};
