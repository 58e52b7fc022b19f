//! A few threads that wait for the disk, so that the thread of the network never does.
//!
//! Urgent jobs, reads and writes of a transfer, go before idle ones: hashing again what a journal says,
//! cutting or hashing a file for a client that compares it. A pool is shared by all files of a program, so
//! that a thousand small files start no thousand threads.
//!
//! The invariant: at most [`MAX_QUEUED_WRITES`] chunks wait to be written, whatever the number of files;
//! what a reader may have waiting it counts itself. Idle jobs never hold the last two threads, and urgent
//! ones do not keep them waiting for ever. A job that panics ends alone: its thread goes on.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

/// Chunks that wait to be written, in all files: 8 MiB, a tenth of a second at 1 Gbit/s, so that a disk may
/// pause that long without slowing the sender.
pub const MAX_QUEUED_WRITES: usize = 32;

/// Threads if nothing else is asked for: enough to keep a disk's queue filled and to hash at 10 Gbit/s.
pub const DEFAULT_THREADS: usize = 4;

/// Threads that what is idle leaves to what is urgent: one reads and one writes while the others compute.
const URGENT_THREADS: usize = 2;

/// Urgent jobs in a row before an idle one goes: so a server that is never at rest still comes to the end of
/// what it hashes, for a tenth of a thread or so.
const MAX_URGENT_IN_A_ROW: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// What follows a sync that was done for several.
type Then = Box<dyn FnOnce(io::Result<()>) + Send>;

thread_local! {
    /// The pool of this thread, if it is one of a pool.
    static POOL: RefCell<Weak<Shared>> = const { RefCell::new(Weak::new()) };
}

/// Whether this is a thread of a pool that ends. Code that reads a file of any length checks this at every
/// read, so that a program that ends does not wait until 100 GB are hashed.
pub(crate) fn is_ending() -> bool {
    POOL.with_borrow(|pool| pool.upgrade().is_some_and(|it| it.gives_up.load(Ordering::Relaxed)))
}

/// The threads. They end when it is dropped, after what is urgent is done; what reads a source then fails
/// with [`ReadError::Stopped`](crate::errors::ReadError::Stopped).
#[derive(Debug)]
pub struct DiskPool {
    handle: PoolHandle,
    threads: Vec<JoinHandle<()>>,
}

impl DiskPool {
    /// Starts `threads` threads, at least one. They call `wake` when there is room again after a refusal for
    /// lack of room, when a reader has something to take, or when a writer has news.
    pub fn new(threads: usize, wake: Wake) -> io::Result<Self> {
        let max_idle = threads.saturating_sub(URGENT_THREADS).max(1);
        let shared = Arc::new(Shared { wake, max_idle, ..Shared::default() });
        let handle = PoolHandle { shared, own_wake: None };
        let mut pool = Self { handle, threads: Vec::new() };
        for _ in 0..threads.max(1) {
            let shared = Arc::clone(&pool.handle.shared);
            let thread = std::thread::Builder::new().name("haulier-disk".to_owned());
            pool.threads.push(thread.spawn(move || {
                POOL.set(Arc::downgrade(&shared));
                shared.work();
            })?);
        }
        Ok(pool)
    }

    /// What a file needs of it.
    pub const fn handle(&self) -> &PoolHandle {
        &self.handle
    }
}

impl Drop for DiskPool {
    fn drop(&mut self) {
        self.handle.shared.queues().is_ending = true;
        self.handle.shared.gives_up.store(true, Ordering::Relaxed);
        self.handle.shared.work_came.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A pool as its files see it. What is given to a pool that has ended is not done.
#[derive(Clone, Debug, Default)]
pub struct PoolHandle {
    shared: Arc<Shared>,
    own_wake: Option<Wake>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Queues>,
    work_came: Condvar,
    writes: AtomicUsize,
    /// Folders that are to be synced, with those who wait for it.
    unsynced: Mutex<BTreeMap<PathBuf, Vec<Then>>>,
    /// It ends, and what takes long is given up.
    gives_up: AtomicBool,
    /// A caller was refused for lack of room.
    is_awaited: AtomicBool,
    /// Idle jobs that may be done at a time.
    max_idle: usize,
    wake: Wake,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queues = self.queues();
        write!(f, "{} urgent jobs, {} idle ones", queues.urgent.len(), queues.idle.len())
    }
}

#[derive(Default)]
struct Queues {
    urgent: VecDeque<Job>,
    idle: VecDeque<Job>,
    /// Idle jobs that are being done.
    idle_running: usize,
    /// Urgent jobs that were begun since an idle one was.
    urgent_in_a_row: usize,
    is_ending: bool,
}

/// Which of the two queues a job was in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Urgency {
    Urgent,
    Idle,
}

impl PoolHandle {
    /// A handle of this pool for which the pool calls `wake` with the news of its readers and writers: so a
    /// program with many transfers need not look at all of them. When there is room again, the pool calls its
    /// own wake, because the user of any handle may have waited for it.
    #[must_use]
    pub fn with_wake(&self, wake: Wake) -> Self {
        Self { shared: Arc::clone(&self.shared), own_wake: Some(wake) }
    }

    /// Does this soon, before what is idle. It may wait for the disk, and holds a thread as long as it takes.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        drop(self.shared.add(Box::new(job), |queues| &mut queues.urgent));
    }

    /// Syncs a folder soon, once for all who ask for it before that begins, and tells each: so a thousand
    /// files do not cost a thousand syncs of it.
    pub(crate) fn sync_together(
        &self,
        folder: &Path,
        sync: impl FnOnce(&Path) -> io::Result<()> + Send + 'static,
        then: impl FnOnce(io::Result<()>) + Send + 'static,
    ) {
        let mut unsynced = self.shared.unsynced();
        let waiting = unsynced.entry(folder.to_owned()).or_default();
        waiting.push(Box::new(then));
        let is_first = waiting.len() == 1;
        drop(unsynced);
        if !is_first {
            return;
        }
        let (pool, folder) = (self.clone(), folder.to_owned());
        let job = Box::new(move || {
            // A job that is added after this line has to wait for another sync.
            let waiting = pool.shared.unsynced().remove(&folder).unwrap_or_default();
            let synced = sync(&folder);
            for then in waiting {
                let synced = synced.as_ref().map_err(same_error).copied();
                // One that panics keeps nothing from the others.
                drop(catch_unwind(AssertUnwindSafe(|| then(synced))));
            }
        });
        // At the end of the pool nobody else will do it.
        if let Err(job) = self.shared.add(job, |queues| &mut queues.urgent) {
            job();
        }
    }

    /// Does this when nothing is urgent.
    pub fn run_when_idle(&self, job: impl FnOnce() + Send + 'static) {
        drop(self.shared.add(Box::new(job), |queues| &mut queues.idle));
    }

    /// Does this again and again while it says `true`, each time when nothing is urgent: for what computes
    /// long, in slices of some milliseconds.
    pub(crate) fn run_in_slices(&self, mut slice: impl FnMut() -> bool + Send + 'static) {
        let pool = self.clone();
        self.run_when_idle(move || {
            if slice() {
                pool.run_in_slices(slice);
            }
        });
    }

    /// A place among the chunks that wait to be written, if one is free.
    pub(crate) fn claim_write(&self) -> Option<WriteClaim> {
        let free = |writes| (writes < MAX_QUEUED_WRITES).then_some(writes + 1);
        let claimed = self.shared.writes.fetch_update(Ordering::AcqRel, Ordering::Acquire, free);
        self.shared.is_awaited.fetch_or(claimed.is_err(), Ordering::AcqRel);
        claimed.is_ok().then(|| WriteClaim(self.clone()))
    }

    /// There is news for the program.
    pub fn wake(&self) {
        self.own_wake.as_ref().unwrap_or(&self.shared.wake).wake();
    }

    /// Chunks that may be given to writers now.
    pub fn room(&self) -> usize {
        MAX_QUEUED_WRITES.saturating_sub(self.shared.writes.load(Ordering::Acquire))
    }
}

/// A place among the chunks that wait to be written, until it is dropped.
#[derive(Debug)]
pub(crate) struct WriteClaim(PoolHandle);

impl Drop for WriteClaim {
    fn drop(&mut self) {
        let shared = &self.0.shared;
        shared.writes.fetch_sub(1, Ordering::AcqRel);
        if shared.is_awaited.swap(false, Ordering::AcqRel) {
            shared.wake.wake();
        }
    }
}

impl Shared {
    /// A job that comes after the end is given back: nobody would take it, and it may hold a handle of this
    /// pool.
    fn add(
        &self,
        job: Job,
        queue: impl FnOnce(&mut Queues) -> &mut VecDeque<Job>,
    ) -> Result<(), Job> {
        let mut queues = self.queues();
        if queues.is_ending {
            return Err(job);
        }
        queue(&mut queues).push_back(job);
        drop(queues);
        self.work_came.notify_one();
        Ok(())
    }

    fn work(&self) {
        while let Some((job, urgency)) = self.next_job() {
            // The panic has said why; whoever waits for the job hears of it when what the job held is
            // dropped.
            drop(catch_unwind(AssertUnwindSafe(job)));
            if urgency == Urgency::Idle {
                self.queues().idle_running -= 1;
                // One may have had to wait for this one.
                self.work_came.notify_one();
            }
        }
    }

    /// Waits for something to do; `None` at the end, when nothing urgent is left.
    fn next_job(&self) -> Option<(Job, Urgency)> {
        let mut queues = self.queues();
        loop {
            let may_idle = !queues.is_ending && queues.idle_running < self.max_idle;
            let is_idles_turn = may_idle && queues.urgent_in_a_row >= MAX_URGENT_IN_A_ROW;
            if (!is_idles_turn || queues.idle.is_empty())
                && let Some(job) = queues.urgent.pop_front()
            {
                queues.urgent_in_a_row += 1;
                return Some((job, Urgency::Urgent));
            }
            if queues.is_ending {
                // An idle job holds a handle of this pool: the two would keep each other.
                let idle = std::mem::take(&mut queues.idle);
                drop(queues);
                drop(idle);
                return None;
            }
            if may_idle && let Some(job) = queues.idle.pop_front() {
                (queues.idle_running, queues.urgent_in_a_row) = (queues.idle_running + 1, 0);
                return Some((job, Urgency::Idle));
            }
            queues = self.work_came.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsynced(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Vec<Then>>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy of a system error, because several waiting jobs get it.
fn same_error(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Tells a program that something is to be taken: called from the threads of the pool, so it must not block.
#[derive(Clone, Default)]
pub struct Wake(Option<Arc<dyn Fn() + Send + Sync>>);

impl Wake {
    /// Calls this.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(wake)))
    }

    pub(crate) fn wake(&self) {
        if let Some(wake) = &self.0 {
            wake();
        }
    }
}

impl std::fmt::Debug for Wake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Wake" } else { "no Wake" })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_is_urgent_goes_first_and_is_done_before_the_end() {
        let pool = DiskPool::new(1, Wake::default()).unwrap();
        let (done, seen) = channel();
        let (go, wait) = channel::<()>();
        pool.handle().run(move || wait.recv().unwrap());
        for urgent in [false, true, true] {
            let done = done.clone();
            let job = move || done.send(urgent).unwrap();
            if urgent { pool.handle().run(job) } else { pool.handle().run_when_idle(job) }
        }
        drop(done);
        go.send(()).unwrap();
        assert_eq!((seen.recv(), seen.recv()), (Ok(true), Ok(true)));
        drop(pool);
        assert!(seen.iter().all(|urgent| !urgent));
    }

    /// Its thread goes on, and the next job is done.
    #[test]
    fn a_job_that_panics_ends_alone() {
        let pool = DiskPool::new(1, Wake::default()).unwrap();
        let (done, seen) = channel();
        for is_urgent in [true, false, true] {
            let held = done.clone();
            let job = move || {
                let _held = held;
                panic!("a job of a test");
            };
            if is_urgent { pool.handle().run(job) } else { pool.handle().run_when_idle(job) }
        }
        pool.handle().run_when_idle(move || done.send(()).unwrap());
        assert_eq!((seen.recv().is_ok(), seen.recv().is_err()), (true, true));
    }

    /// Of four threads two compute at most, however many computations wait, and every job is done.
    #[test]
    fn what_is_idle_leaves_two_threads_and_comes_to_its_end() {
        const JOBS: usize = 200;
        let pool = DiskPool::new(4, Wake::default()).unwrap();
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let (done, seen) = channel();
        for _ in 0..JOBS {
            let (counts, done) = (Arc::clone(&counts), done.clone());
            let mut slices = 3;
            pool.handle().run_in_slices(move || {
                let running = counts.0.fetch_add(1, Ordering::SeqCst) + 1;
                counts.1.fetch_max(running, Ordering::SeqCst);
                (0..10).for_each(|_| std::thread::yield_now());
                counts.0.fetch_sub(1, Ordering::SeqCst);
                slices -= 1;
                if slices == 0 {
                    done.send(()).unwrap();
                }
                slices > 0
            });
        }
        // An urgent job that begins the next one, for ever: the queue is never empty.
        fn go_on(pool: PoolHandle, is_over: Arc<AtomicBool>) {
            let next = pool.clone();
            pool.run(move || {
                if !is_over.load(Ordering::SeqCst) {
                    go_on(next, is_over);
                }
            });
        }
        let is_over = Arc::new(AtomicBool::new(false));
        (0..6).for_each(|_| go_on(pool.handle().clone(), Arc::clone(&is_over)));
        assert!((0..JOBS).all(|_| seen.recv().is_ok()));
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(counts.1.load(Ordering::SeqCst), 2);
    }

    /// Ctrl-C while 100 GB are hashed or cut: within a chunk. This file has 256 GB.
    #[test]
    fn what_reads_a_file_is_let_go_of_at_the_end() {
        use crate::cut::cut_file;
        use crate::errors::ReadError;
        use crate::reader::{FileHasher, HashProgress, SourceFile, hash_file};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        std::fs::File::create(&path).unwrap().set_len(256 << 30).unwrap();
        let file = Arc::new(SourceFile::open(&path).unwrap());
        let pool = DiskPool::new(3, Wake::default()).unwrap();
        let (done, results) = channel();
        type Read = fn(&SourceFile) -> Option<ReadError>;
        let jobs: [Read; 3] = [
            |file| hash_file(file, 2, &HashProgress::default()).err(),
            |file| FileHasher::default().root(file).err(),
            |file| cut_file(file).err(),
        ];
        for job in jobs {
            let (done, file) = (done.clone(), Arc::clone(&file));
            pool.handle().run(move || done.send(job(&file)).unwrap());
        }
        drop(pool);
        for error in results.iter().take(3) {
            assert!(matches!(error, Some(ReadError::Stopped { .. })), "{error:?}");
        }
    }

    /// A program with many transfers learns which one has news.
    #[test]
    fn a_handle_has_a_wake_of_its_own() {
        let count = || {
            let count = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&count);
            (
                count,
                Wake::new(move || {
                    let _before = counted.fetch_add(1, Ordering::Relaxed);
                }),
            )
        };
        let ((all, wake), (own, own_wake)) = (count(), count());
        let pool = DiskPool::new(1, wake).unwrap();
        let handle = pool.handle().with_wake(own_wake);
        handle.wake();
        let claims: Vec<_> = (0..MAX_QUEUED_WRITES).map(|_| handle.claim_write()).collect();
        assert!(pool.handle().claim_write().is_none());
        assert_eq!([&all, &own].map(|it| it.load(Ordering::Relaxed)), [0, 1]);
        drop(claims);
        assert_eq!([&all, &own].map(|it| it.load(Ordering::Relaxed)), [1, 1]);
    }

    #[test]
    fn a_folder_is_synced_once_for_all_who_wait_and_again_for_who_comes_later() {
        static SYNCS: AtomicUsize = AtomicUsize::new(0);
        let sync = |_: &Path| {
            SYNCS.fetch_add(1, Ordering::Relaxed);
            Err(io::ErrorKind::StorageFull.into())
        };
        let pool = DiskPool::new(1, Wake::default()).unwrap();
        let (done, seen) = channel();
        let (go, wait) = channel::<()>();
        pool.handle().run(move || wait.recv().unwrap());
        let ask = || {
            let done = done.clone();
            let then = move |synced: io::Result<()>| done.send(synced.unwrap_err().kind()).unwrap();
            pool.handle().sync_together(Path::new("folder"), sync, then);
        };
        (0..100).for_each(|_| ask());
        go.send(()).unwrap();
        assert!((0..100).all(|_| seen.recv() == Ok(io::ErrorKind::StorageFull)));
        assert_eq!(SYNCS.load(Ordering::Relaxed), 1);
        ask();
        assert!(seen.recv().is_ok());
        assert_eq!(SYNCS.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn writes_are_claimed_and_given_back() {
        let pool = PoolHandle::default();
        let claims: Vec<_> = (0..MAX_QUEUED_WRITES).map(|_| pool.claim_write().unwrap()).collect();
        assert!(pool.claim_write().is_none() && pool.room() == 0);
        drop(claims);
        assert_eq!(pool.room(), MAX_QUEUED_WRITES);
    }
}
