//! The web server for people: pages that are in the program, and events as they happen.
//!
//! It answers GET and HEAD, and nothing else. A request that names another host than the one it came to is
//! refused, so that a page from elsewhere, whose name somebody points at this machine, reads nothing here.
//! The invariant: whatever viewers do, it holds a bounded number of connections, and one snapshot.

mod events;
mod site;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

pub(crate) use events::{Events, Viewers};
pub use site::Site;
pub(crate) use site::{Guard, full};

/// What an answer consists of.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Connections at a time, of viewers and of who reads one page: more are closed at once.
const MAX_CONNECTIONS: usize = 64;

/// A request has to be there after this time.
const MAX_HEADER_TIME: Duration = Duration::from_secs(10);

/// Answers one request.
pub(crate) trait Answers: Clone + Send + 'static {
    fn answer(&self, request: &Request<Incoming>) -> Response<Body>;
}

/// Serves connections, in tasks of their own.
#[derive(Debug)]
pub(crate) struct Door {
    seats: Arc<Semaphore>,
}

impl Door {
    pub(crate) fn new() -> Self {
        Self { seats: Arc::new(Semaphore::new(MAX_CONNECTIONS)) }
    }

    /// Serves this connection, if there is room.
    pub(crate) fn serve(&self, stream: TcpStream, answers: impl Answers) {
        let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() else { return };
        let answer = move |request| {
            let answers = answers.clone();
            async move { Ok::<_, Infallible>(answers.answer(&request)) }
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(MAX_HEADER_TIME)
            .serve_connection(TokioIo::new(stream), service_fn(answer));
        tokio::spawn(async move {
            // What a browser breaks off.
            let _gone = connection.await;
            drop(seat);
        });
    }
}

/// Accepts a connection; `None` after `max`, or if one was gone before it was accepted.
pub(crate) async fn accept(
    listener: &tokio::net::TcpListener,
    max: Duration,
) -> Option<(TcpStream, SocketAddr)> {
    tokio::time::timeout(max, listener.accept()).await.ok()?.ok()
}
