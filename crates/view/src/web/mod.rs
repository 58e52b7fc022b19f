//! The web server for people: pages that are in the program, and events as they happen.
//!
//! It answers GET and HEAD, and nothing else. A request that names another host than the one it came to is
//! refused: otherwise a foreign page could read the view through a name of its own that points at this
//! machine. The invariant: whatever viewers do, it holds a bounded number of connections, and one snapshot.

mod events;
mod site;

use std::convert::Infallible;
use std::io;
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

/// The maximum number of connections at a time, of viewers and for single pages: more are closed at once.
const MAX_CONNECTIONS: usize = 64;

/// The pause before the next accept after an error: ten tries a second cost nothing, and a viewer does not
/// notice the pause.
const PAUSE: Duration = Duration::from_millis(100);

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
    accept_by(max, || listener.accept()).await
}

/// Accepts with `accept`. An error may come again at once: without free descriptors the connection stays in
/// the system's queue, and a loop that asks again at once uses all of a core. So after an error it waits for
/// [`PAUSE`], or for `max` if that is shorter.
async fn accept_by<T, F>(max: Duration, accept: impl FnOnce() -> F) -> Option<T>
where
    F: Future<Output = io::Result<T>>,
{
    let accepted = tokio::time::timeout(max, accept()).await.ok()?;
    if accepted.is_err() {
        tokio::time::sleep(PAUSE.min(max)).await;
    }
    accepted.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without descriptors each try fails at once: a view asked again 200,000 times a second.
    #[test]
    fn a_system_without_descriptors_is_asked_ten_times_a_second() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(ask_for_a_second());
    }

    async fn ask_for_a_second() {
        let began = tokio::time::Instant::now();
        let mut tries = 0;
        while began.elapsed() < Duration::from_secs(1) {
            let refused = accept_by(Duration::from_millis(250), || {
                tries += 1;
                std::future::ready(Err::<(), _>(io::Error::other("no descriptors")))
            });
            assert!(refused.await.is_none());
            assert!(tries <= 20, "after {:?}", began.elapsed());
        }
        assert!(tries >= 10, "{tries}");
    }
}
