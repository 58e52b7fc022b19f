//! `haulier send`: a file, as a run of chunks, to a waiting `haulier recv`.
//!
//! It ends when the receiver's receipt says that the file is verified and stored, not when the last slice
//! is acked.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use haulier::file::{Header, Receipt, Status};
use haulier::udp::{Clock, Runner, Socket};
use haulier_article::chunk::{ChunkSenderEvent, MAX_CHUNK_BYTES, SLICE_BYTES, SendFailure};
use haulier_article::{ArticleConfig, ArticlePeer, PeerEvent, PeerMachine};
use serde_json::json;

use crate::args::SendArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::report::Report;
use crate::source::Source;
use crate::units::{in_millis, show_bytes};

/// How long one turn of the loop may sleep: the pace at which Ctrl-C and the progress bar are looked at.
const TURN: Duration = Duration::from_millis(20);

/// How long to stay after the receipt, to ack it again if its ack was lost. The receiver does not depend
/// on it: its file is stored.
const LINGER: Duration = Duration::from_millis(300);

/// Chunks in the queue behind the one in flight.
const QUEUED: usize = 2;

pub(crate) fn run(args: &SendArgs, report: &Report) -> Result<(), Failure> {
    let (header, reader) = open(args)?;
    let small = header.size.is_some_and(|size| size <= MAX_CHUNK_BYTES as u64);
    let mut config = ArticleConfig::default().with_protocol_id(args.wire.protocol_id);
    config.sender.rate_bps = args.rate;
    config.sender.burst = args.burst || (small && !args.no_burst);
    config.sender.give_up_after = Some(args.timeout);
    let socket = Socket::connect(args.addr)
        .map_err(|error| Failure::socket(&format!("cannot send to {}", args.addr), &error))?;
    if let Some(warning) = socket.buffers().warning() {
        report.warning(&warning);
    }
    let machine = PeerMachine::connected(ArticlePeer::new(config), args.addr);
    let driver = Runner::new(machine, socket, Clock::start());
    let start = json!({ "to": args.addr.to_string(), "name": header.name, "bytes": header.size });
    let text = format!("sending {} to {}{}", header.name, args.addr, patience(args, header.size));
    report.event("sending", start, &text);
    let mut transfer = Transfer {
        driver,
        size: header.size,
        source: Source::start(&header, reader),
        in_flight: Vec::new(),
        acked_bytes: 0,
        all_sent_at: None,
        args,
    };
    let started = Instant::now();
    let receipt = transfer.until_receipt(report)?;
    transfer.conclude(&receipt, started.elapsed(), report)
}

/// What the budget means for a file that will take a while.
fn patience(args: &SendArgs, size: Option<u64>) -> String {
    let seconds = size.unwrap_or(0) * 8 / args.rate.max(1);
    if seconds < 5 {
        return String::new();
    }
    let mbit = args.rate as f64 / 1e6;
    format!(": {seconds} s at least with a budget of {mbit} Mbit/s (--rate)")
}

/// The file's header, and its bytes.
fn open(args: &SendArgs) -> Result<(Header, Box<dyn Read + Send>), Failure> {
    let from_pipe = args.file.as_os_str() == "-";
    let own_name = || {
        let name = if from_pipe { Some("stdin".as_ref()) } else { args.file.file_name() };
        name.map(|name: &std::ffi::OsStr| name.to_string_lossy().into_owned())
    };
    let Some(name) = args.name.clone().or_else(own_name) else {
        return Err(Failure::Usage(format!("{} is not a file", args.file.display())));
    };
    if name.is_empty() {
        return Err(Failure::Usage(
            "--name is empty: a file needs a name of 1 to 255 bytes".into(),
        ));
    }
    if from_pipe {
        return Ok((Header { name, size: None }, Box::new(io::stdin())));
    }
    let fail = |error: &io::Error| Failure::file(&args.file, error);
    let file = File::open(&args.file).map_err(|error| fail(&error))?;
    let about = file.metadata().map_err(|error| fail(&error))?;
    if about.is_dir() {
        let hint = "is a directory: pack it first, as in `tar c DIR | haulier send - ADDR`";
        return Err(Failure::Usage(format!("{} {hint}", args.file.display())));
    }
    // Pipes and devices have no size that means anything.
    let size = about.is_file().then_some(about.len());
    Ok((Header { name, size }, Box::new(file)))
}

struct Transfer<'a> {
    driver: Runner<PeerMachine>,
    size: Option<u64>,
    source: Source,
    /// Sizes of the chunks that the peer has taken and not finished, oldest first.
    in_flight: Vec<usize>,
    acked_bytes: u64,
    all_sent_at: Option<Instant>,
    args: &'a SendArgs,
}

impl Transfer<'_> {
    fn until_receipt(&mut self, report: &Report) -> Result<Receipt, Failure> {
        loop {
            interrupt::check()?;
            self.feed()?;
            self.driver.turn(TURN).map_err(|error| Failure::socket("socket", &error))?;
            // A receipt comes first: a receiver that could not go on says why before it leaves.
            if let Some(receipt) = self.receipt() {
                return Ok(receipt);
            }
            self.listen()?;
            self.check_receipt_in_time()?;
            let done = self.progress();
            report.progress(done, self.size, String::new);
        }
    }

    /// Keeps the send queue filled.
    fn feed(&mut self) -> Result<(), Failure> {
        while self.driver.machine.peer.sender().queued() < QUEUED {
            let chunk = self.source.next();
            let chunk = chunk.map_err(|error| Failure::file(&self.args.file, &error))?;
            let Some(chunk) = chunk else { break };
            self.in_flight.push(chunk.len());
            if self.driver.machine.peer.send_chunk(chunk).is_err() {
                // The run has failed; its event says why.
                break;
            }
        }
        Ok(())
    }

    fn receipt(&mut self) -> Option<Receipt> {
        self.driver.machine.peer.pop_chunk().and_then(|chunk| Receipt::from_bytes(&chunk))
    }

    fn listen(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.driver.machine.peer.poll_event() {
            match event {
                PeerEvent::Sender(ChunkSenderEvent::Sent { .. }) => {
                    self.acked_bytes += self.in_flight.remove(0) as u64;
                }
                PeerEvent::Sender(ChunkSenderEvent::Failed { reason, .. }) => {
                    return Err(self.gave_up(reason));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn gave_up(&self, reason: SendFailure) -> Failure {
        let (to, timeout) = (self.args.addr, self.args.timeout.as_secs_f64());
        let received = self.driver.stats().received;
        Failure::TimeOut(match reason {
            SendFailure::PeerForgot => {
                format!("{to} lost what it had received: it was restarted, or waited too long")
            }
            _ if received == 0 && self.driver.stats().refused > 0 => {
                format!(
                    "nobody listens at {to}: start `haulier recv --bind ADDR -o FILE` there first"
                )
            }
            _ if received == 0 => format!(
                "no answer from {to} for {timeout} s: is `haulier recv` running there, with the same \
                 --protocol-id, and does the firewall let UDP through?"
            ),
            _ => format!("{to} stopped answering: nothing got through for {timeout} s"),
        })
    }

    /// Everything is acked, but does the file stand?
    fn check_receipt_in_time(&mut self) -> Result<(), Failure> {
        if self.source.has_ended() && self.in_flight.is_empty() {
            self.all_sent_at.get_or_insert_with(Instant::now);
        }
        match self.all_sent_at {
            Some(at) if at.elapsed() > self.args.timeout => Err(Failure::TimeOut(format!(
                "{} has the whole file but did not say within {} s that it is stored",
                self.args.addr,
                self.args.timeout.as_secs_f64()
            ))),
            _ => Ok(()),
        }
    }

    fn progress(&self) -> u64 {
        let current = self.driver.machine.peer.sender().progress();
        let slices =
            current.map_or(0, |progress| (progress.acked * SLICE_BYTES).min(progress.bytes));
        // Header and trailer are no bytes of the file.
        (self.acked_bytes + slices as u64).min(self.source.bytes())
    }

    fn conclude(
        &mut self,
        receipt: &Receipt,
        elapsed: Duration,
        report: &Report,
    ) -> Result<(), Failure> {
        self.linger();
        let message = &receipt.message;
        match receipt.status {
            Status::Stored => {}
            Status::VerificationFailed => return Err(Failure::Verification(message.clone())),
            Status::IoError => {
                return Err(Failure::Io(format!("the receiver could not store it: {message}")));
            }
            Status::Interrupted => {
                return Err(Failure::TimeOut("the receiver was interrupted".into()));
            }
        }
        if self.source.digest() != Some(receipt.digest) {
            let what = "the receiver stored something else: its BLAKE3 is not that of the file";
            return Err(Failure::Verification(what.into()));
        }
        let bytes = self.source.bytes();
        let stats = self.driver.machine.peer.sender().stats();
        let fields = json!({
            "ok": true,
            "bytes": bytes,
            "blake3": receipt.digest.to_hex().as_str(),
            "total_ms": in_millis(elapsed),
            "slices_sent": stats.slices_sent,
            "slices_resent": stats.slices_resent,
            "wire_bytes": stats.wire_bytes,
        });
        let text = format!(
            "sent {} in {:.3} s and stored there, verified ({} slices, {} again)\nblake3 {}",
            show_bytes(bytes),
            elapsed.as_secs_f64(),
            stats.slices_sent,
            stats.slices_resent,
            receipt.digest.to_hex(),
        );
        report.done(fields, &text);
        Ok(())
    }

    /// Acks the receipt again while the receiver asks for it.
    fn linger(&mut self) {
        let mut quiet_since = Instant::now();
        let mut received = self.driver.stats().received;
        while quiet_since.elapsed() < LINGER && !interrupt::requested() {
            if self.driver.turn(TURN).is_err() {
                return;
            }
            if self.driver.stats().received != received {
                received = self.driver.stats().received;
                quiet_since = Instant::now();
            }
        }
    }
}

/// What a path is called in a sentence.
pub(crate) fn show_path(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard output".into() } else { path.display().to_string() }
}
