//! `haulier recv`: waits for a file, verifies it, stores it, and reports to the sender.

use std::path::Path;
use std::time::{Duration, Instant};

use haulier::file::{Digest, FileError, Finished, Incoming, Receipt, Status};
use haulier::udp::{Clock, Runner, Socket};
use haulier_article::chunk::SLICE_BYTES;
use haulier_article::{ArticleConfig, ArticlePeer, PeerMachine};
use serde_json::json;

use crate::args::RecvArgs;
use crate::failure::{Failure, plain};
use crate::interrupt;
use crate::output::Output;
use crate::report::Report;
use crate::send::show_path;
use crate::units::{in_millis, show_bytes};

/// How long one turn of the loop may sleep.
const TURN: Duration = Duration::from_millis(20);

/// How long a transfer may stand still when `--timeout` does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the receipt is offered. The file is safe by then; a sender that is gone misses only the news.
const RECEIPT: Duration = Duration::from_secs(3);

/// How long to stay after everything is said, to ack late slices: a sender whose last ack was lost would
/// hang otherwise.
const LINGER: Duration = Duration::from_millis(300);

pub(crate) fn run(args: &RecvArgs, report: &Report) -> Result<(), Failure> {
    let stored = |error: std::io::Error| Failure::Io(plain(&error));
    // What cannot be stored is reported before waiting for a sender.
    Output::new(&args.output, args.force).check().map_err(stored)?;
    let socket = Socket::bind(args.bind)
        .map_err(|error| Failure::socket(&format!("cannot wait at {}", args.bind), &error))?;
    if let Some(warning) = socket.buffers().warning() {
        report.warning(&warning);
    }
    let driver = Runner::new(PeerMachine::new(new_peer(args)), socket, Clock::start());
    let addr = driver.carrier().local_addr();
    report.event("listening", json!({ "addr": addr.to_string() }), &format!("waiting at {addr}"));
    let mut wait = Wait { driver, args, report };
    if !args.stay {
        return wait.one_file();
    }
    let mut files = 0;
    loop {
        match wait.one_file() {
            Ok(()) => files += 1,
            Err(Failure::Interrupted) if wait.driver.machine.remote().is_none() => {
                report.done(
                    json!({ "ok": true, "files": files }),
                    &format!("{files} files received"),
                );
                return Ok(());
            }
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            // One bad transfer is no reason to stop waiting for the next.
            Err(failure) => report.warning(&failure.to_string()),
        }
        wait.driver.machine.replace_peer(new_peer(args));
    }
}

fn new_peer(args: &RecvArgs) -> ArticlePeer {
    let timeout = args.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let mut config = ArticleConfig::default().with_protocol_id(args.wire.protocol_id);
    config.receiver.abandon_after = Some(timeout);
    config.sender.give_up_after = Some(RECEIPT);
    ArticlePeer::new(config)
}

struct Wait<'a> {
    driver: Runner<PeerMachine>,
    args: &'a RecvArgs,
    report: &'a Report,
}

/// How a run of chunks ended without a file.
enum Stopped {
    File(FileError),
    Failure(Failure),
}

impl From<FileError> for Stopped {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Wait<'_> {
    /// Receives one file to the end, good or bad.
    fn one_file(&mut self) -> Result<(), Failure> {
        let mut output = Output::new(&self.args.output, self.args.force);
        let received = self.receive(&mut output);
        let elapsed = received.as_ref().map_or(Duration::ZERO, |(_, elapsed)| *elapsed);
        let (receipt, outcome) = match received {
            Ok((finished, _)) => match output.commit() {
                Ok(()) => (receipt(Status::Stored, finished.digest, ""), Ok(finished)),
                Err(error) => not_stored(FileError::Io(error), output.path()),
            },
            Err(Stopped::File(error)) => not_stored(error, output.path()),
            Err(Stopped::Failure(failure)) => {
                (receipt(Status::Interrupted, zero(), &failure.to_string()), Err(failure))
            }
        };
        // Whatever was not committed goes now, before any more waiting.
        let (path, rename) = (output.path().to_owned(), output.show_rename());
        drop(output);
        self.report.finish_bar();
        // A sender that is gone needs no receipt.
        let is_gone = matches!(outcome, Err(Failure::TimeOut(_)));
        if self.driver.machine.remote().is_some() && !is_gone {
            self.send_receipt(&receipt);
        }
        let finished = outcome?;
        let text = format!(
            "received {} in {:.3} s and verified: {}{rename}\nblake3 {}",
            show_bytes(finished.bytes),
            elapsed.as_secs_f64(),
            show_path(&path),
            finished.digest.to_hex(),
        );
        let fields = json!({
            "ok": true,
            "file": show_path(&path),
            "name": finished.header.name,
            "bytes": finished.bytes,
            "blake3": finished.digest.to_hex().as_str(),
            "total_ms": in_millis(elapsed),
        });
        if self.args.stay {
            self.report.finish_bar();
            self.report.event("file", fields, &text);
        } else {
            self.report.done(fields, &text);
        }
        Ok(())
    }

    /// Takes chunks until the file is whole. The time counts from the first slice.
    fn receive(&mut self, output: &mut Output) -> Result<(Finished, Duration), Stopped> {
        let mut incoming = Incoming::new();
        let waiting_since = Instant::now();
        let mut started = None;
        let (mut last_progress, mut slices) = (Instant::now(), 0);
        loop {
            interrupt::check()?;
            self.driver.turn(TURN).map_err(|error| Failure::socket("socket", &error))?;
            let now_received = self.driver.machine.peer.receiver().stats().slices_received;
            if now_received != slices {
                slices = now_received;
                last_progress = Instant::now();
                started.get_or_insert(last_progress);
            }
            while let Some(chunk) = self.driver.machine.peer.pop_chunk() {
                if let Some(finished) = incoming.push(&chunk, output)? {
                    let elapsed = started.map_or(Duration::ZERO, |at: Instant| at.elapsed());
                    return Ok((finished, elapsed));
                }
            }
            self.show(&incoming);
            self.check_time(started.map(|_| last_progress), waiting_since)?;
        }
    }

    fn show(&self, incoming: &Incoming) {
        let Some(header) = incoming.header() else {
            return;
        };
        let current = self.driver.machine.peer.receiver().progress();
        let slices = current.map_or(0, |progress| progress.received.len() * SLICE_BYTES);
        let bytes = incoming.bytes() + slices as u64;
        let bytes = header.size.map_or(bytes, |size| bytes.min(size));
        self.report.progress(bytes, header.size, String::new);
    }

    fn check_time(&self, progress: Option<Instant>, waiting: Instant) -> Result<(), Failure> {
        let timeout = self.args.timeout.unwrap_or(DEFAULT_TIMEOUT);
        match (progress, self.args.timeout) {
            (Some(at), _) if at.elapsed() > timeout => Err(Failure::TimeOut(format!(
                "the sender stopped: nothing new for {} s; nothing was stored",
                timeout.as_secs_f64()
            ))),
            (None, Some(timeout)) if waiting.elapsed() > timeout => Err(Failure::TimeOut(format!(
                "no sender came within {} s{}",
                timeout.as_secs_f64(),
                self.hint()
            ))),
            _ => Ok(()),
        }
    }

    /// Datagrams came, but not of this protocol.
    fn hint(&self) -> String {
        match self.driver.machine.peer.drops().hostile() {
            0 => String::new(),
            dropped => {
                format!("; {dropped} datagrams were dropped: is --protocol-id the same there?")
            }
        }
    }

    /// Reports to the sender what became of its file, and stays a little to ack its last slices.
    fn send_receipt(&mut self, receipt: &Receipt) {
        if self.driver.machine.peer.send_chunk(receipt.to_bytes()).is_err() {
            return;
        }
        let started = Instant::now();
        let mut quiet_since = Instant::now();
        let mut received = self.driver.stats().received;
        let mut settled = false;
        while started.elapsed() < RECEIPT && (!settled || quiet_since.elapsed() < LINGER) {
            if self.driver.turn(TURN).is_err() {
                return;
            }
            // Chunks that the sender still had under way are of no use, but must not hold it up.
            while self.driver.machine.peer.pop_chunk().is_some() {}
            settled |= self.driver.machine.peer.poll_event().is_some();
            if self.driver.stats().received != received {
                received = self.driver.stats().received;
                quiet_since = Instant::now();
            }
        }
    }
}

/// What is reported, to the sender and here, about a file that is not kept.
fn not_stored(error: FileError, path: &Path) -> (Receipt, Result<Finished, Failure>) {
    match error {
        FileError::Io(error) => {
            let (text, path) = (plain(&error), show_path(path));
            let what = if text.contains(&path) { text } else { format!("{path}: {text}") };
            (receipt(Status::IoError, zero(), &what), Err(Failure::Io(what)))
        }
        other => {
            let what = other.to_string();
            (receipt(Status::VerificationFailed, zero(), &what), Err(Failure::Verification(what)))
        }
    }
}

fn receipt(status: Status, digest: Digest, message: &str) -> Receipt {
    Receipt { status, digest, message: message.into() }
}

const fn zero() -> Digest {
    Digest::from_bytes([0; 32])
}
