//! Server-sent events: every viewer gets the newest snapshot, as text that was made once for all.
//!
//! The invariant: there is one text, the newest. A viewer that reads slowly skips those in between, and
//! costs nothing more than one that reads quickly.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use hyper::{Response, StatusCode};
use tokio::sync::watch;

use super::Body;
use super::site::{plain, with_body};

/// The maximum number of viewers at a time: each has a page open. Further ones are refused.
pub(crate) const MAX_VIEWERS: usize = 32;

/// The one writer.
#[derive(Debug)]
pub(crate) struct Events {
    newest: watch::Sender<Bytes>,
}

/// Accepts viewers.
#[derive(Clone, Debug)]
pub(crate) struct Viewers {
    newest: watch::Sender<Bytes>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { newest: watch::Sender::new(Bytes::new()) }
    }

    pub(crate) fn viewers(&self) -> Viewers {
        Viewers { newest: self.newest.clone() }
    }

    /// Whether there is a viewer.
    pub(crate) fn has_viewers(&self) -> bool {
        self.newest.receiver_count() > 0
    }

    /// Sends one line of JSON to all.
    pub(crate) fn send(&self, json: &str) {
        self.newest.send_replace(Bytes::from(format!("data: {json}\n\n")));
    }
}

impl Viewers {
    /// A viewer comes, and first sees `first`.
    pub(crate) fn answer(&self, first: &str) -> Response<Body> {
        if self.newest.receiver_count() >= MAX_VIEWERS {
            let what = "there are 32 viewers already: close a page, or wait";
            return plain(StatusCode::SERVICE_UNAVAILABLE, what);
        }
        let mut receiver = self.newest.subscribe();
        receiver.mark_unchanged();
        // A page that was cut off asks again after a second.
        let first = Bytes::from(format!("retry: 1000\ndata: {first}\n\n"));
        let body = Stream { first: Some(first), next: Box::pin(next(receiver)) };
        with_body(StatusCode::OK, "text/event-stream", body.boxed_unsync())
    }
}

type Next = (watch::Receiver<Bytes>, Option<Bytes>);

/// The newest text, once it is another one.
async fn next(mut receiver: watch::Receiver<Bytes>) -> Next {
    let newest = receiver.changed().await.ok().map(|()| receiver.borrow_and_update().clone());
    (receiver, newest)
}

struct Stream {
    first: Option<Bytes>,
    next: Pin<Box<dyn Future<Output = Next> + Send>>,
}

impl hyper::body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let Poll::Ready((receiver, text)) = self.next.as_mut().poll(context) else {
            return Poll::Pending;
        };
        self.next = Box::pin(next(receiver));
        Poll::Ready(text.map(|text| Ok(Frame::data(text))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &mut Body) -> Option<Bytes> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            _ => None,
        }
    }

    use hyper::body::Body as _;

    /// One that reads slowly must not make the server keep what it has not read.
    #[test]
    fn a_slow_viewer_skips_to_the_newest() {
        let events = Events::new();
        let mut body = events.viewers().answer("0").into_body();
        assert_eq!(read(&mut body).unwrap(), "retry: 1000\ndata: 0\n\n");
        assert_eq!(read(&mut body), None);
        (1..=9).for_each(|number| events.send(&number.to_string()));
        assert_eq!(read(&mut body).unwrap(), "data: 9\n\n");
        assert_eq!(read(&mut body), None);
    }

    #[test]
    fn viewers_are_bounded_and_one_that_leaves_makes_room() {
        let events = Events::new();
        let viewers = events.viewers();
        assert!(!events.has_viewers());
        let mut here: Vec<_> = (0..MAX_VIEWERS).map(|_| viewers.answer("0")).collect();
        assert!(here.iter().all(|answer| answer.status() == StatusCode::OK));
        assert_eq!(viewers.answer("0").status(), StatusCode::SERVICE_UNAVAILABLE);
        here.pop();
        assert_eq!(viewers.answer("0").status(), StatusCode::OK);
    }
}
