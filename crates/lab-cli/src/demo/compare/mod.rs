//! `demo --compare`: the same block over the same link by three senders, each alone on it, beside each other.
//!
//! They are not sent over sockets but computed in virtual time, by the engine of the playground, so that all
//! lose the same datagrams, and a second can last ten. In a terminal the takes are played; a pipe gets their
//! numbers.

mod moment;
mod screen;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use haulier_lab::scenes::{Kind, Outcome, Scene, Sender, Take};
use haulier_shell::failure::{Failure, plain};
use haulier_shell::report::Report;
use haulier_shell::units::in_millis;
use haulier_sim::LinkConfig;
use ratatui::backend::Backend as _;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};

use self::screen::Screen;
use crate::args::DemoArgs;

/// Between two pictures.
const FRAME: Duration = Duration::from_millis(33);

/// The slowest: a millisecond lasts a second.
const MAX_SLOW: u32 = 1000;

/// A bar of the table, at the slowest sender: a line has 80 columns at most.
const BAR: f64 = 36.0;

pub(super) fn run(
    args: &DemoArgs,
    link: &LinkConfig,
    bytes: usize,
    report: &Report,
) -> Result<(), Failure> {
    let scene = scene(args, link, bytes)?;
    let takes = scene.play();
    for take in &takes {
        report.event("take", fields(take, &scene), "");
    }
    let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    if is_terminal && !report.is_json() {
        play(args, &scene, &takes)?;
    }
    let done =
        json!({ "ok": true, "limit_ms": in_millis(scene.limit()), "scene": scene.to_string() });
    report.answer(done, &table(&takes, &scene));
    Ok(())
}

/// The scene that the arguments say, within the bounds of scenes.
fn scene(args: &DemoArgs, link: &LinkConfig, bytes: usize) -> Result<Scene, Failure> {
    let is_changed = args.loss.is_some();
    let scene = Scene {
        rate_bps: link.rate_bps.unwrap_or_default(),
        rtt_ms: u64::try_from((2 * link.delay).as_millis()).unwrap_or(u64::MAX),
        loss: (link.loss.mean().as_f64() * 1e4).round() as u64,
        burst: if is_changed { 1 } else { args.link.burst_length.max(1) },
        queue_bytes: link.queue_bytes.unwrap_or_default(),
        jitter_ms: args.link.jitter_ms,
        bytes: bytes as u64,
        seed: args.seed,
        budget_bps: args.budget,
        ..Scene::default()
    };
    Scene::parse(&scene.to_string())
        .map_err(|error| Failure::Usage(format!("this cannot be compared: {error}")))
}

/// What a sender is called for a person.
fn title_of(sender: Sender) -> &'static str {
    match sender {
        Sender::Haulier => "haulier/1",
        Sender::Article => "the article's sender",
        Sender::SlowStart => "slow start, as TCP",
        other => other.name(),
    }
}

/// When it was whole, beside the limit.
fn in_words(whole: Option<Duration>, limit: Duration) -> String {
    match whole {
        Some(whole) => {
            let ratio = whole.as_secs_f64() / limit.as_secs_f64();
            format!("{:.0} ms, {ratio:.2} L", in_millis(whole))
        }
        None => "not whole".into(),
    }
}

fn fields(take: &Take, scene: &Scene) -> Value {
    let limit = scene.limit().as_secs_f64();
    let ratio = take.whole.map(|whole| (whole.as_secs_f64() / limit * 1e3).round() / 1e3);
    json!({
        "sender": take.sender.name(),
        "whole_ms": take.whole.map(in_millis),
        "ratio": ratio,
        "slices": take.slices.iter().sum::<u32>(),
        "sent": take.sent(Kind::Slice),
        "sent_again": take.sent(Kind::Again),
        "repair": take.sent(Kind::Repair),
        "lost": lost(take),
        "wire_bytes": wire_bytes(take),
    })
}

/// Datagrams that did not reach the client.
fn lost(take: &Take) -> usize {
    let is_lost = |outcome| matches!(outcome, Outcome::Lost | Outcome::Dropped);
    take.rows.iter().filter(|row| row.is_down && is_lost(row.outcome)).count()
}

/// What went to the client, with headers.
fn wire_bytes(take: &Take) -> u64 {
    take.rows.iter().filter(|row| row.is_down).map(|row| u64::from(row.bytes)).sum()
}

/// A line for each sender, with a bar as long as it took.
fn table(takes: &[Take], scene: &Scene) -> String {
    let limit = scene.limit();
    let most = takes.iter().filter_map(|take| take.whole).max().unwrap_or(limit);
    let mut lines = Vec::new();
    for take in takes {
        let [sent, again, repair] =
            [Kind::Slice, Kind::Again, Kind::Repair].map(|kind| take.sent(kind));
        let time = in_words(take.whole, limit);
        let share = take.whole.map_or(1.0, |whole| whole.as_secs_f64() / most.as_secs_f64());
        let bar = "█".repeat((share * BAR).round().max(1.0) as usize);
        lines.push(format!(
            "{:<21} {time:>17}  {bar}\n{:21} {sent} slices once, {again} again, {repair} repair; {} lost",
            title_of(take.sender),
            "",
            lost(take),
        ));
    }
    lines.push(format!(
        "each alone on the link, in virtual time, with the same losses\n\
         the physical limit of this link, L, is {:.0} ms",
        in_millis(limit)
    ));
    lines.join("\n")
}

/// Gives the terminal back when it is dropped.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Plays the takes until the user has seen enough.
fn play(args: &DemoArgs, scene: &Scene, takes: &[Take]) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::Io(format!("this terminal cannot be drawn on: {}", plain(&error)))
    };
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let _restored = Restored;
    // A terminal with one screen only has other lines on it.
    terminal.backend_mut().clear().map_err(failed)?;
    let mut screen = Screen {
        title: format!("{} (seed {})", args.link.name, args.seed),
        scene,
        takes,
        at: Duration::ZERO,
        slow: args.slow.unwrap_or(1),
        is_paused: false,
    };
    let ends = takes.iter().map(last).max().unwrap_or_default();
    let mut before = Instant::now();
    loop {
        terminal.draw(|frame| screen.draw(frame)).map_err(failed)?;
        if event::poll(FRAME).map_err(failed)? {
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
                    if !on_key(&mut screen, key.code, is_control) {
                        return Ok(());
                    }
                }
                // Drawn anew at the size that it has now.
                _ => {}
            }
        }
        let now = Instant::now();
        if !screen.is_paused {
            screen.at = (screen.at + (now - before) / screen.slow).min(ends);
        }
        before = now;
    }
}

/// When nothing changes any more.
fn last(take: &Take) -> Duration {
    take.rows.iter().map(|row| row.ends).chain(take.whole).max().unwrap_or_default()
}

/// Whether it goes on.
fn on_key(screen: &mut Screen<'_>, key: KeyCode, is_control: bool) -> bool {
    match key {
        KeyCode::Char('c') if is_control => return false,
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char(' ') => screen.is_paused = !screen.is_paused,
        KeyCode::Char('r') | KeyCode::Home => screen.at = Duration::ZERO,
        KeyCode::Char('-') => screen.slow = (screen.slow * 2).min(MAX_SLOW),
        KeyCode::Char('+') => screen.slow = (screen.slow / 2).max(1),
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests;
