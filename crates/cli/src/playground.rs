//! `haulier playground`: the page with the simulator in it, for a browser on this machine.
//!
//! The page is computed where it is shown: this serves a few files, and learns nothing of what is done with
//! them. They are in the program if it was built with them (`build.rs`).

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use haulier::trace::key_log_line;
use haulier_capture::CaptureWriter;
use haulier_capture::layers::UdpDatagram;
use haulier_lab::figures;
use haulier_lab::scenes::{Kind, Scene, Take};
use haulier_view::Site;
use serde_json::{Value, json};

use crate::args::PlaygroundArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::report::Report;
use crate::units::in_millis;

/// The port of both ends in a capture: that of the examples, which Wireshark knows nothing else of.
const CAPTURED_PORT: u16 = 4016;

include!(concat!(env!("OUT_DIR"), "/playground.rs"));

pub(crate) fn run(args: &PlaygroundArgs, report: &Report) -> Result<(), Failure> {
    if let Some(scene) = &args.scene {
        return play(scene, args, report);
    }
    if FILES.is_empty() {
        return Err(Failure::Usage(
            "this program was built without the playground: `cargo xtask playground` in the repository \
             builds one with it"
                .into(),
        ));
    }
    let listener = TcpListener::bind(args.bind)
        .map_err(|error| Failure::socket(&format!("cannot wait at {}", args.bind), &error))?;
    let at = listener
        .local_addr()
        .map_err(|error| Failure::socket("the socket has no address", &error))?;
    let address = format!("http://{at}/");
    let text = format!("the playground is at {address} (Ctrl-C ends it)");
    report.event("playground", json!({ "address": address }), &text);
    let served = Site::new(FILES).serve(listener, interrupt::requested);
    served.map_err(|error| Failure::socket("the web server cannot go on", &error))
}

/// What the page would show of a scene at its end.
fn play(scene: &Scene, args: &PlaygroundArgs, report: &Report) -> Result<(), Failure> {
    let limit = in_millis(scene.limit());
    let text = format!("{scene}\nthe physical limit is {limit:.0} ms");
    report.event("scene", json!({ "scene": scene.to_string(), "limit_ms": limit }), &text);
    let takes = scene.play();
    for take in &takes {
        report.event("take", fields(take), &sentence(take, limit));
    }
    if let Some(path) = &args.svg {
        let picture = figures::scene(scene, &takes);
        fs::write(path, picture).map_err(|error| Failure::file(path, &error))?;
    }
    if let Some(path) = &args.pcap {
        let keys =
            capture(scene, args.sealed, path).map_err(|error| Failure::file(path, &error))?;
        if let Some(path) = &args.keylog {
            fs::write(path, keys).map_err(|error| Failure::file(path, &error))?;
        }
    }
    report.event("done", json!({ "ok": true }), "");
    Ok(())
}

/// Writes the datagrams of all senders in the order of their times. The simulation begins in 1970. Returns
/// the key log, of which there is nothing to hide: the seed has it too.
fn capture(scene: &Scene, is_sealed: bool, path: &Path) -> io::Result<String> {
    let (mut all, mut keys) = (Vec::new(), String::new());
    for (lane, &sender) in (0..).zip(&scene.senders) {
        let [server, client] =
            [1, 2].map(|host| SocketAddr::from(([10, 0, lane, host], CAPTURED_PORT)));
        let captured = scene.capture(sender, is_sealed);
        keys.extend(captured.secrets.iter().map(key_log_line));
        all.extend(captured.datagrams.into_iter().map(|captured| match captured.is_down {
            true => (captured.at, server, client, captured.datagram),
            false => (captured.at, client, server, captured.datagram),
        }));
    }
    all.sort_by_key(|captured| captured.0);
    let mut writer = CaptureWriter::new(BufWriter::new(File::create(path)?))?;
    for (at, source, destination, payload) in &all {
        let (traffic_class, hops) = (0, 64);
        let (source, destination) = (*source, *destination);
        let datagram = UdpDatagram { source, destination, traffic_class, hops, payload };
        writer.write(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX), &datagram)?;
    }
    writer.finish()?;
    Ok(keys)
}

fn fields(take: &Take) -> Value {
    json!({
        "sender": take.sender.name(),
        "whole_ms": take.whole.map(in_millis),
        "over_ms": take.over.map(in_millis),
        "slices": take.slices.iter().sum::<u32>(),
        "sent": take.sent(Kind::Slice),
        "sent_again": take.sent(Kind::Again),
        "repair": take.sent(Kind::Repair),
        "hash": format!("{:016x}", take.hash),
    })
}

fn sentence(take: &Take, limit: f64) -> String {
    let slices = take.slices.iter().sum::<u32>();
    let sent = [Kind::Slice, Kind::Again, Kind::Repair].map(|kind| take.sent(kind));
    let whole = match take.whole.map(in_millis) {
        Some(whole) => format!("whole after {whole:.0} ms, {:.2} times the limit", whole / limit),
        None => "not whole".into(),
    };
    let [once, again, repair] = sent;
    format!(
        "{:<14} {whole}; {slices} slices, sent {once}, again {again}, repair {repair}; {:016x}",
        take.sender.name(),
        take.hash,
    )
}
