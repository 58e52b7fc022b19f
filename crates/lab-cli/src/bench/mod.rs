//! `haulier-lab bench`: measurements that are commands. All but `join`, `joiners` and `peer` are in virtual
//! time.

mod article;
mod crowd;
mod ends;
mod fragments;
mod grid;
mod join;
mod joiners;
mod links;
mod peer;
mod random;
mod recorded;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::{Value, json};

use crate::args::{Bench, BenchArgs};

pub(crate) fn run(args: &BenchArgs, report: &Report) -> Result<(), Failure> {
    match &args.bench {
        Bench::Article { seeds } => article::run(*seeds, report),
        Bench::Crowd(args) => crowd::run(args, report),
        Bench::Fragments { packets, seed } => fragments::run(*packets, *seed, report),
        Bench::Grid(args) => grid::run(args, report),
        Bench::Join(args) => join::run(args, report),
        Bench::Joiners(args) => joiners::run(args, report),
        Bench::Links(args) => links::run(args, report),
        Bench::Peer(args) => peer::run(args, report),
        Bench::Random(args) => random::run(args, report),
        Bench::Recorded(args) => recorded::run(args, report),
    }
}

/// The results of `measure` for all jobs, in their order. It runs on every core and shows progress. After an
/// interrupt the remaining jobs have the default result.
fn on_every_core<J: Sync, R: Clone + Default + Send>(
    jobs: &[J],
    what: &str,
    report: &Report,
    measure: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let results = on_every_core_while(|| true, jobs, what, report, measure);
    results.into_iter().map(Option::unwrap_or_default).collect()
}

/// The results of `measure` for the jobs that begin while `goes_on`; a job that has begun is finished. The
/// result of a job that has not begun is `None`.
fn on_every_core_while<J: Sync, R: Clone + Send>(
    goes_on: impl Fn() -> bool + Sync,
    jobs: &[J],
    what: &str,
    report: &Report,
    measure: impl Fn(&J) -> R + Sync,
) -> Vec<Option<R>> {
    let results = Mutex::new(vec![None; jobs.len()]);
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { return };
            if interrupt::requested() || !goes_on() {
                return;
            }
            let result = measure(job);
            if let Ok(mut results) = results.lock() {
                results[at] = Some(result);
            }
            finished.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            let done = finished.load(Ordering::Relaxed) as u64;
            report.count(done, Some(jobs.len() as u64), what);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    results.into_inner().unwrap_or_default()
}

/// To four places, which is more than a seed is worth, and the same on every machine.
fn rounded(number: f64) -> Value {
    json!((number * 1e4).round() / 1e4)
}

fn store(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::file(path, &error))
}
