//! A signal from one thread that ends the wait of another.

use std::io;
use std::sync::Arc;
use std::task::Wake;

#[cfg(any(target_os = "linux", target_os = "android"))]
use event as signal;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use loopback as signal;

/// Ends a [`wait`](crate::wait()) from another thread: the one under way, or else the next.
#[derive(Debug)]
pub struct WakeUp(signal::Signal);

impl WakeUp {
    /// A new, unset signal.
    ///
    /// # Errors
    /// As the system says, when it has no descriptors left.
    pub fn new() -> io::Result<Self> {
        signal::new().map(Self)
    }

    /// Ends the wait. Several before it count as one.
    pub fn notify(&self) {
        // It fails only when full of earlier ones, so that one more makes no difference.
        let _full = signal::set(&self.0);
    }

    pub(crate) fn clear(&self) {
        signal::clear(&self.0);
    }
}

impl Wake for WakeUp {
    fn wake(self: Arc<Self>) {
        self.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notify();
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for WakeUp {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsSocket for WakeUp {
    fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
        self.0.as_socket()
    }
}

/// An event descriptor: a counter in the kernel.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod event {
    use std::fs::File;
    use std::io::{self, Read, Write};

    use rustix::event::{EventfdFlags, eventfd};

    pub(super) type Signal = File;

    pub(super) fn new() -> io::Result<Signal> {
        Ok(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?.into())
    }

    pub(super) fn set(mut signal: &Signal) -> io::Result<usize> {
        signal.write(&1u64.to_ne_bytes())
    }

    pub(super) fn clear(mut signal: &Signal) {
        let _was_clear = signal.read(&mut [0; 8]);
    }
}

/// A socket on loopback, connected with itself: where there is nothing better. Tested everywhere.
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
mod loopback {
    use std::io;
    use std::net::{Ipv4Addr, UdpSocket};

    pub(super) type Signal = UdpSocket;

    pub(super) fn new() -> io::Result<Signal> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    pub(super) fn set(signal: &Signal) -> io::Result<usize> {
        signal.send(&[1])
    }

    pub(super) fn clear(signal: &Signal) {
        while signal.recv(&mut [0; 1]).is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Longer than any test may take.
    const MAX_WAIT: Duration = Duration::from_secs(3600);

    #[test]
    fn a_wait_ends_when_another_thread_says_so_and_each_signal_is_used_up() {
        let wake_up = Arc::new(WakeUp::new().unwrap());
        wake_up.notify();
        wake_up.notify();
        crate::wait(&[], Some(&wake_up), MAX_WAIT).unwrap();
        let other = Arc::clone(&wake_up);
        let thread = std::thread::spawn(move || other.notify());
        crate::wait(&[], Some(&wake_up), MAX_WAIT).unwrap();
        thread.join().unwrap();
        // Both were used up: this one ends by its time.
        crate::wait(&[], Some(&wake_up), Duration::from_millis(1)).unwrap();
    }

    #[test]
    fn a_socket_on_loopback_does_the_same() {
        let signal = loopback::new().unwrap();
        for _ in 0..2 {
            let empty = signal.recv(&mut [0; 1]).unwrap_err();
            assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
            for _ in 0..1000 {
                let _full = loopback::set(&signal);
            }
            loopback::clear(&signal);
        }
    }
}
