//! A client with the right keys that repeats one [`Lie`] datagram after datagram: a hostile host of the
//! [`World`](crate::World).

use std::net::SocketAddr;
use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::credentials::Secret;
use haulier_proto::internals::{Frame, Frames};

use super::{Liar, Lie};
use crate::attack::Mind;
use crate::attack::raw::RawClient;
use crate::{Rng, Shot};

/// Copies of a request that are sent at once: each lets the server send three datagrams.
const COPIES: usize = 3;

/// Datagrams of one liar: more than there are in a window of datagrams, or in 32 chunks.
const MAX_DATAGRAMS: u32 = 10_000;

/// How long it waits for a welcome, and after a close, before it starts over.
const ANEW: Duration = Duration::from_secs(2);

/// Its settings.
#[derive(Clone, Debug)]
pub struct LyingClient {
    /// What it does.
    pub lie: Lie,
    /// The server that it lies to.
    pub server: SocketAddr,
    /// What it proves; `None` for mode `open`.
    pub secret: Option<Secret>,
    /// The interval between its groups of datagrams.
    pub every: Duration,
    /// The number of datagrams in a group.
    pub at_once: u32,
    /// When it comes.
    pub from: Instant,
    /// When it leaves, with a close.
    pub until: Instant,
    /// The seed of all its random choices.
    pub seed: u64,
}

impl LyingClient {
    /// The host's mind.
    #[must_use]
    pub fn mind(self) -> impl Mind {
        let (wakes, rng) = (Some(self.from), Rng::stream(self.seed, 93));
        let liar = Liar::new(self.lie, self.seed);
        Running {
            settings: self,
            rng,
            liar,
            raw: None,
            left: MAX_DATAGRAMS,
            asked: Instant::ZERO,
            wakes,
        }
    }
}

struct Running {
    settings: LyingClient,
    rng: Rng,
    liar: Liar,
    raw: Option<RawClient>,
    /// Datagrams that it may still send: a lie that has not worked by then will not.
    left: u32,
    asked: Instant,
    wakes: Option<Instant>,
}

impl Running {
    fn ask(&mut self, now: Instant, out: &mut Vec<Shot>) {
        let (server, seed) = (self.settings.server, self.rng.next_u64());
        let mut raw = RawClient::new(self.settings.secret.as_ref(), seed);
        out.extend((0..COPIES).map(|_| Shot::own(server, raw.request())));
        self.liar = Liar::new(self.settings.lie, seed);
        (self.raw, self.asked) = (Some(raw), now);
    }
}

impl Mind for Running {
    fn wakes_at(&self) -> Option<Instant> {
        self.wakes
    }

    fn wake(&mut self, now: Instant, out: &mut Vec<Shot>) {
        let server = self.settings.server;
        let is_over = now >= self.settings.until || self.left == 0;
        self.wakes = (!is_over).then(|| now + self.settings.every);
        let Some(link) = self.raw.as_mut().and_then(|raw| raw.link.as_mut()) else {
            if !is_over && (self.raw.is_none() || now.since(self.asked) > ANEW) {
                self.ask(now, out);
            }
            return;
        };
        if is_over {
            out.push(Shot::own(server, link.frames(&[Frame::Close { code: 0, reason: "" }])));
            self.raw = None;
        } else {
            let count = self.settings.at_once.min(self.left);
            self.left -= count;
            out.extend((0..count).map(|_| Shot::own(server, self.liar.next(now, link))));
        }
    }

    fn receive(&mut self, now: Instant, _from: SocketAddr, datagram: &[u8], out: &mut Vec<Shot>) {
        let Some(raw) = &mut self.raw else { return };
        let had = raw.cookie;
        let plaintext = raw.handle(now, datagram).unwrap_or_default();
        self.liar.hear(&plaintext);
        if raw.cookie != had {
            out.push(Shot::own(self.settings.server, raw.request()));
        }
        if Frames::of(&plaintext).any(|frame| matches!(frame, Ok(Frame::Close { .. }))) {
            self.raw = None;
            self.wakes = self.wakes.map(|_| now + ANEW);
        }
    }
}
