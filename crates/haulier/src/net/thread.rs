//! A driver on a thread of its own.

use std::io;
use std::sync::Arc;
use std::thread;

use haulier_udp::{WakeUp, keep_time, wait};

use super::driver::{Driver, Next, Stops};
use super::error::NetworkError;
use super::shared::End;

/// Starts the thread. It ends when the driver is stopped or fails.
pub(crate) fn spawn<E: End>(driver: Driver<E>, wake_up: Arc<WakeUp>) -> io::Result<()> {
    let driver = Stops(driver);
    thread::Builder::new().name(E::THREAD.into()).spawn(move || run(driver, &wake_up)).map(drop)
}

fn run<E: End>(mut stops: Stops<E>, wake_up: &WakeUp) {
    let driver = &mut stops.0;
    driver.shared.lock().driver_thread = Some(thread::current().id());
    keep_time();
    let mut is_first = true;
    while driver.round() == Next::Continue {
        if std::mem::take(&mut is_first) {
            driver.make_ready();
        }
        driver.prepare();
        let pause = driver.pause();
        if let Err(error) = wait(&driver.interests(), Some(wake_up), pause) {
            return driver.shared.lock().fail(NetworkError::Socket(error.into()));
        }
    }
}
