//! A driver in a task of tokio's.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use haulier_udp::Readiness;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::driver::{Driver, Goes, Stops};
use super::error::NetworkError;
use super::shared::End;

/// Starts it on the runtime that this is called in. Returns whether there is one.
pub(crate) fn spawn<E: End>(driver: Driver<E>) -> bool {
    let Ok(runtime) = Handle::try_current() else { return false };
    runtime.spawn(run(Stops(driver)));
    true
}

async fn run<E: End>(mut stops: Stops<E>) {
    let driver = &mut stops.0;
    // The readiness of each socket, by its address: a socket may be replaced.
    let mut ready = Vec::new();
    let mut is_first = true;
    loop {
        ready.iter().for_each(|(_, readiness): &(_, Readiness)| readiness.clear());
        if driver.round() == Goes::Over {
            return;
        }
        if std::mem::take(&mut is_first) {
            E::prepare();
        }
        if let Err(error) = wait(driver, &mut ready).await {
            return driver.shared.lock().fail(NetworkError::Socket(error.into()));
        }
    }
}

type Ready = Vec<(std::net::SocketAddr, Readiness)>;

async fn wait<E: End>(driver: &Driver<E>, ready: &mut Ready) -> io::Result<()> {
    let pause = driver.pause();
    if pause.is_zero() {
        tokio::task::yield_now().await;
        return Ok(());
    }
    let interests = driver.interests();
    ready.retain(|(local, _)| interests.iter().any(|interest| interest.local_addr() == *local));
    for interest in &interests {
        if !ready.iter().any(|(local, _)| *local == interest.local_addr()) {
            ready.push((interest.local_addr(), Readiness::new(interest)?));
        }
    }
    let mut sleep = pin!(sleep(pause));
    let is_due = |context: &mut Context<'_>| {
        let mut state = driver.shared.lock();
        state.set_driver(context.waker());
        let is_called = state.is_called();
        drop(state);
        if is_called || sleep.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        for interest in &interests {
            let own = ready.iter().find(|(local, _)| *local == interest.local_addr());
            if let Some((_, readiness)) = own
                && let Poll::Ready(ready) = readiness.poll(context, interest)
            {
                return Poll::Ready(ready);
            }
        }
        Poll::Pending
    };
    poll_fn(is_due).await
}
