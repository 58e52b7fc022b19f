//! A driver in a tokio task.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

use haulier_udp::Readiness;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::driver::{Driver, Next, Stops};
use super::error::NetworkError;
use super::shared::End;

/// Starts the driver on the current runtime. Returns whether there is one.
pub(crate) fn spawn<E: End>(driver: Driver<E>) -> bool {
    let Ok(runtime) = Handle::try_current() else { return false };
    runtime.spawn(run(Stops(driver)));
    true
}

async fn run<E: End>(mut stops: Stops<E>) {
    let driver = &mut stops.0;
    let mut ready = Readiness::default();
    loop {
        ready.clear();
        if driver.round() == Next::Stop {
            return;
        }
        driver.prepare();
        if let Err(error) = wait(driver, &mut ready).await {
            return driver.shared.lock().fail(NetworkError::Socket(error.into()));
        }
    }
}

async fn wait<E: End>(driver: &Driver<E>, ready: &mut Readiness) -> io::Result<()> {
    let pause = driver.pause();
    if pause.is_zero() {
        tokio::task::yield_now().await;
        return Ok(());
    }
    let interests = driver.interests();
    ready.watch(&interests)?;
    let mut sleep = pin!(sleep(pause));
    poll_fn(|context| {
        let mut state = driver.shared.lock();
        state.set_driver(context.waker());
        let is_called = state.is_called();
        drop(state);
        if is_called || sleep.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        ready.poll(context, &interests)
    })
    .await
}
