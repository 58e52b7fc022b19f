//! `haulier inspect --pcap`: each datagram of either wire in a capture, and a summary.
//!
//! [`wires`] tells what a datagram is, [`summary`] counts. Memory does not grow with the capture: what is
//! kept of it has bounds.

mod summary;
mod wires;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read};
use std::path::Path;

use haulier_capture::layers::{self, Skipped, UdpDatagram};
use haulier_capture::{CaptureError, CaptureReader, CaptureWriter, KeyLog, KeyLogError, train};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::{Value, json};

use self::summary::Summary;
use self::wires::{Said, Wires};
use crate::args::InspectArgs;

/// Reads a capture, and says what is in it.
pub(super) fn run(args: &InspectArgs, path: &Path, report: &Report) -> Result<(), Failure> {
    let name = path.display();
    let wires = Wires::new(args, keys(args)?)?;
    let broken = |error: CaptureError| Failure::Io(format!("{name}: {error}"));
    let mut capture = CaptureReader::new(source(path)?).map_err(broken)?;
    let writer = args.write.as_deref().map(writer).transpose()?;
    let summary = Summary::default();
    let mut reading = Reading { args, report, wires, writer, summary, first_ns: None, number: 0 };
    let damage = loop {
        interrupt::check()?;
        match capture.next_packet() {
            Ok(Some(packet)) => {
                let datagram = layers::udp(packet.link, packet.bytes);
                reading.packet(packet.at_ns, datagram)?;
            }
            Ok(None) => break None,
            // Whoever captures has not written all of the last packet yet.
            Err(error @ CaptureError::Truncated) => {
                report.warning(&format!("{name}: {error}"));
                break None;
            }
            Err(error) => break Some(broken(error)),
        }
    };
    if let (Some(writer), Some(to)) = (reading.writer, &args.write) {
        writer.finish().map_err(|error| Failure::file(to, &error))?;
    }
    let summary = reading.summary;
    report.conclude(damage, summary.in_json(), &summary.in_words())
}

fn source(path: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    Ok(Box::new(BufReader::new(file)))
}

fn keys(args: &InspectArgs) -> Result<Option<KeyLog>, Failure> {
    let Some(path) = &args.keylog else { return Ok(None) };
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    let log = KeyLog::read(BufReader::new(file)).map_err(|error| match error {
        KeyLogError::Io(error) => Failure::file(path, &error),
        error => Failure::Usage(format!("{}: {error}", path.display())),
    })?;
    Ok(Some(log))
}

/// A capture of what was opened is for its owner alone.
fn writer(path: &Path) -> Result<CaptureWriter<BufWriter<File>>, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| Failure::file(path, &error))?;
    CaptureWriter::new(BufWriter::new(file)).map_err(|error| Failure::file(path, &error))
}

/// A capture that is being read.
struct Reading<'a> {
    args: &'a InspectArgs,
    report: &'a Report,
    wires: Wires,
    writer: Option<CaptureWriter<BufWriter<File>>>,
    summary: Summary,
    first_ns: Option<u64>,
    /// Of the packet in the capture, from 1, as Wireshark counts.
    number: u64,
}

impl Reading<'_> {
    fn packet(
        &mut self,
        at_ns: u64,
        datagram: Result<UdpDatagram<'_>, Skipped>,
    ) -> Result<(), Failure> {
        self.number += 1;
        let first = *self.first_ns.get_or_insert(at_ns);
        let after_ms = (i128::from(at_ns) - i128::from(first)) as f64 / 1e6;
        let datagram = match datagram {
            Ok(datagram) => datagram,
            Err(skipped) => {
                self.summary.skipped(skipped);
                if self.args.all {
                    self.say_skipped(after_ms, skipped);
                }
                return Ok(());
            }
        };
        let ports = [datagram.source.port(), datagram.destination.port()];
        if !self.args.port.is_empty() && !ports.iter().any(|port| self.args.port.contains(port)) {
            return Ok(());
        }
        for payload in train(datagram.payload) {
            let one = UdpDatagram { payload, ..datagram };
            let said = self.wires.read(&one);
            self.summary.count(&said, &one);
            if self.is_wanted(&said) {
                self.say(after_ms, &one, &said);
                self.write(at_ns, &one, &said)?;
            }
        }
        Ok(())
    }

    fn is_wanted(&self, said: &Said) -> bool {
        match said.packet() {
            None => self.args.all,
            Some(packet) => self.args.only.is_empty() || self.args.only.iter().any(|o| o == packet),
        }
    }

    fn say(&self, after_ms: f64, datagram: &UdpDatagram<'_>, said: &Said) {
        let UdpDatagram { source, destination, payload, .. } = datagram;
        if self.report.is_json() {
            let object = json!({
                "event": "datagram",
                "packet": self.number,
                "after_ms": after_ms,
                "source": source.to_string(),
                "destination": destination.to_string(),
                "direction": said.direction(),
                "bytes": payload.len(),
                "ecn": datagram.traffic_class & 3,
                "datagram": said.in_json(),
            });
            return self.report.print(&object.to_string());
        }
        let way = said.direction().map(|way| format!(" ({way})")).unwrap_or_default();
        let head = format!("{:>6} {after_ms:>12.3} ms  {source} > {destination}{way}", self.number);
        self.report.print(&format!("{head}  {}", said.in_words(payload)));
    }

    fn say_skipped(&self, after_ms: f64, skipped: Skipped) {
        let reason = skipped.name();
        if self.report.is_json() {
            let skipped: Value = json!({ "ok": false, "skipped": reason });
            let object = json!({
                "event": "datagram", "packet": self.number, "after_ms": after_ms, "datagram": skipped,
            });
            return self.report.print(&object.to_string());
        }
        let reason = reason.replace('_', " ");
        self.report.print(&format!("{:>6} {after_ms:>12.3} ms  not read: {reason}", self.number));
    }

    fn write(
        &mut self,
        at_ns: u64,
        datagram: &UdpDatagram<'_>,
        said: &Said,
    ) -> Result<(), Failure> {
        let (Some(writer), Some(path)) = (&mut self.writer, &self.args.write) else {
            return Ok(());
        };
        let payload = said.opened().unwrap_or(datagram.payload);
        let written = writer.write(at_ns, &UdpDatagram { payload, ..*datagram });
        written.map_err(|error| Failure::file(path, &error))
    }
}
