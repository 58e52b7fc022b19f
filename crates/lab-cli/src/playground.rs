//! `haulier-lab playground`: the page with the simulator in it, for a browser on this machine.
//!
//! The browser computes the page. This server only sends a few files, and does not learn how they are used.
//! They are in the program if it was built with them (`build.rs`).

use std::fs::{self, File};
use std::io::BufWriter;
use std::net::TcpListener;

use haulier::trace::key_log_line;
use haulier_lab::scenes::{Kind, Scene, Take};
use haulier_lab::{captures, figures};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use haulier_shell::units::in_millis;
use haulier_view::Site;
use serde_json::{Value, json};

use crate::args::PlaygroundArgs;

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
        let written = File::create(path)
            .and_then(|file| captures::write(scene, args.sealed, BufWriter::new(file)));
        let keys = written.map_err(|error| Failure::file(path, &error))?;
        if let Some(path) = &args.keylog {
            let keys: String = keys.iter().map(key_log_line).collect();
            fs::write(path, keys).map_err(|error| Failure::file(path, &error))?;
        }
    }
    report.event("done", json!({ "ok": true }), "");
    Ok(())
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
