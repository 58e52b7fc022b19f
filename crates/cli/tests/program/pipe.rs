//! The output of a running program: read as it comes, so that no program waits for its reader, and waited
//! for line by line.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use crate::support::HUNG;

/// What is kept; a program that says more is not listened to any longer.
const OUTPUT_MAX: usize = 16 << 20;

/// What a program writes, read by a thread as it comes.
pub struct Pipe(Arc<(Mutex<Written>, Condvar)>);

struct Written {
    bytes: Vec<u8>,
    ended: bool,
}

/// One that has ended.
impl Default for Pipe {
    fn default() -> Self {
        let written = Written { bytes: Vec::new(), ended: true };
        Self(Arc::new((Mutex::new(written), Condvar::new())))
    }
}

impl Pipe {
    pub fn read(mut from: impl Read + Send + 'static) -> Self {
        let pipe = Self::default();
        let shared = Arc::clone(&pipe.0);
        shared.0.lock().unwrap().ended = false;
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            let mut ended = false;
            while !ended {
                let read = from.read(&mut buffer).unwrap_or(0);
                let mut written = shared.0.lock().unwrap();
                written.bytes.extend_from_slice(&buffer[..read]);
                ended = read == 0 || written.bytes.len() > OUTPUT_MAX;
                written.ended = ended;
                shared.1.notify_all();
            }
        });
        pipe
    }

    /// What was written by now.
    pub fn so_far(&self) -> Vec<u8> {
        self.0.0.lock().unwrap().bytes.clone()
    }

    /// Everything, once it has ended.
    pub fn all(&self) -> Vec<u8> {
        let written = self.0.0.lock().unwrap();
        let (written, _) =
            self.0.1.wait_timeout_while(written, HUNG, |written| !written.ended).unwrap();
        written.bytes.clone()
    }

    /// The first complete line for which `find` finds something, waited for.
    pub fn line<T>(&self, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let until = Instant::now() + HUNG;
        let mut written = self.0.0.lock().unwrap();
        loop {
            let lines = written.bytes.split_inclusive(|&byte| byte == b'\n');
            let complete = lines.filter_map(|line| line.strip_suffix(b"\n"));
            let found = complete.filter_map(|line| std::str::from_utf8(line).ok()).find_map(&find);
            let left = until.saturating_duration_since(Instant::now());
            if found.is_some() || written.ended || left.is_zero() {
                return found;
            }
            written = self.0.1.wait_timeout(written, left).unwrap().0;
        }
    }
}
