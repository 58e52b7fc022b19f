//! What a command says: text for people, JSON lines for machines, a progress bar on a terminal.
//!
//! What was asked for goes to standard output, as text or JSON, or to standard error when the file itself
//! goes to standard output. How it goes meanwhile, warnings and errors always go to standard error as
//! text; in JSON they are lines like all others, and the last line has `"event":"done"` or
//! `"event":"error"`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bar::{self, Bar, Shown, Stderr};
use crate::failure::{Failure, plain};
use crate::units::show_bytes;

/// How often progress is reported without a terminal, as text and as JSON.
const LINE_INTERVAL: Duration = Duration::from_secs(2);
const JSON_INTERVAL: Duration = Duration::from_millis(250);

/// No guess before this.
const FIRST_ESTIMATE: Duration = Duration::from_secs(1);

/// How fast something goes.
#[derive(Debug, Default)]
pub struct Pace {
    /// In words, or empty.
    pub rate: String,
    /// Whether the time for the rest is measured; otherwise it is guessed.
    pub is_measured: bool,
    /// How long the rest takes.
    pub remaining: Option<Duration>,
    /// More about it, in one line.
    pub more: String,
    /// What is drawn above it, on a terminal alone.
    pub above: String,
}

/// Lines that a screen in the terminal shows in place of printing them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Lines(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// The terminal is the terminal again.
    is_released: bool,
    lines: VecDeque<String>,
}

/// Lines that are kept for afterwards: more than these have scrolled off any terminal.
const MAX_LINES: usize = 1000;

impl Lines {
    /// Keeps lines. Returns whether it does, and they do not have to be printed.
    pub fn push(&self, text: &str) -> bool {
        let mut kept = self.lock();
        if !kept.is_released {
            kept.lines.extend(text.lines().map(str::to_owned));
            let first = kept.lines.len().saturating_sub(MAX_LINES);
            kept.lines.drain(..first);
        }
        !kept.is_released
    }

    /// The last lines.
    pub fn last(&self, count: usize) -> Vec<String> {
        let kept = self.lock();
        let skip = kept.lines.len().saturating_sub(count);
        kept.lines.iter().skip(skip).cloned().collect()
    }

    /// Prints what was kept, and all that follows.
    pub fn release(&self) {
        let mut kept = self.lock();
        kept.is_released = true;
        let mut out = io::stdout();
        for line in kept.lines.drain(..) {
            // A terminal that is gone reads nothing.
            let _gone = writeln!(out, "{line}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much a command says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loudness {
    /// Errors, and what was asked for.
    Quiet,
    /// What people want to know.
    #[default]
    Plain,
    /// What was decided, too.
    Verbose,
}

/// Prints what a command has to say.
#[derive(Debug)]
pub struct Report {
    /// The program that says it.
    program: &'static str,
    json: bool,
    loudness: Loudness,
    /// Standard output is taken by data.
    to_stderr: bool,
    /// A screen has the terminal.
    screen: RefCell<Option<Lines>>,
    bar: RefCell<Bar<Stderr>>,
    /// Why something that was asked for is not on standard output.
    unwritten: RefCell<Option<io::Error>>,
    last_progress: Cell<Option<Instant>>,
    /// When the bar was drawn first.
    progress_since: Cell<Option<Instant>>,
}

impl Report {
    /// What the program of this name says: as text, or as `json`; and `to_stderr` if standard output is for
    /// the file itself.
    #[must_use]
    pub fn new(program: &'static str, json: bool, to_stderr: bool) -> Self {
        let (screen, bar) = (RefCell::new(None), RefCell::new(Bar::new(Stderr)));
        let loudness = Loudness::default();
        let (last_progress, progress_since) = (Cell::new(None), Cell::new(None));
        let unwritten = RefCell::new(None);
        Self {
            program,
            json,
            loudness,
            to_stderr,
            screen,
            bar,
            unwritten,
            last_progress,
            progress_since,
        }
    }

    /// Sets how much the report prints.
    #[must_use]
    pub fn with_loudness(self, loudness: Loudness) -> Self {
        Self { loudness, ..self }
    }

    fn is_quiet(&self) -> bool {
        self.loudness == Loudness::Quiet
    }

    /// Whether details are printed. A caller asks this before it does work to find them out.
    pub fn is_verbose(&self) -> bool {
        self.loudness == Loudness::Verbose
    }

    /// A decision, if details are asked for. Its text goes to standard error.
    pub fn detail(&self, text: &str) {
        if !self.is_verbose() {
            return;
        }
        if self.json {
            self.event("detail", json!({ "message": text }), "");
        } else if !self.is_kept(text) {
            self.to_terminal(text);
        }
    }

    /// From now on lines are kept, until they are released.
    pub fn divert(&self) -> Lines {
        self.finish_bar();
        let lines = Lines::default();
        self.screen.replace(Some(lines.clone()));
        lines
    }

    /// Whether a screen shows this line.
    fn is_kept(&self, line: &str) -> bool {
        self.screen.borrow().as_ref().is_some_and(|lines| lines.push(line))
    }

    fn has_screen(&self) -> bool {
        self.screen.borrow().as_ref().is_some_and(|lines| !lines.lock().is_released)
    }

    /// Whether the lines are JSON.
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// An event: one line, as `text` or as `fields` with `"event": name` in front.
    pub fn event(&self, name: &str, fields: Value, text: &str) {
        if self.json {
            let mut line = json!({ "event": name });
            if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
                line.extend(fields);
            }
            self.print(&line.to_string());
        } else if !text.is_empty() && !self.is_quiet() {
            self.print(text);
        }
    }

    /// An event for a fault that was found. Its text is printed when quiet, too.
    pub fn finding(&self, name: &str, fields: Value, text: &str) {
        if self.json {
            self.event(name, fields, text);
        } else {
            self.print(text);
        }
    }

    /// An event that no script waits for. Its text goes to standard error.
    pub fn status(&self, name: &str, fields: Value, text: &str) {
        if self.json {
            self.event(name, fields, "");
        } else if !text.is_empty() && !self.is_quiet() && !self.is_kept(text) {
            self.to_terminal(text);
        }
    }

    /// A status of one of many things. Its text is printed only if details are asked for.
    pub fn each(&self, name: &str, fields: Value, text: &str) {
        self.status(name, fields, if self.is_verbose() { text } else { "" });
    }

    /// A line as it is: for output that is neither event nor sentence.
    pub fn print(&self, line: &str) {
        if self.is_kept(line) {
            return;
        }
        if self.to_stderr {
            return self.to_terminal(line);
        }
        self.bar.borrow_mut().clear();
        match writeln!(io::stdout(), "{line}") {
            // A reader that went away (`| head`) wants no more.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.unwritten.borrow_mut().get_or_insert(error);
            }
            _ => {}
        }
    }

    /// Fails if something that was asked for could not be written, as to a full disk. It is asked at the end:
    /// a transfer goes on without it.
    pub fn check_written(&self) -> Result<(), Failure> {
        match self.unwritten.borrow().as_ref() {
            Some(error) => Err(Failure::Io(format!(
                "standard output: {}; what is printed there is not complete",
                plain(error)
            ))),
            None => Ok(()),
        }
    }

    /// Something the user should know that does not stop anything.
    pub fn warning(&self, text: &str) {
        if self.json {
            self.event("warning", json!({ "message": text }), "");
        } else if !self.is_quiet() && !self.is_kept(&format!("warning: {text}")) {
            self.to_terminal(&format!("warning: {text}"));
        }
    }

    /// Several lines that were asked for, on standard error.
    pub fn picture(&self, lines: &str) {
        self.to_terminal(lines);
    }

    /// A line on standard error, beside the bar. It is lost if that is closed or full.
    fn to_terminal(&self, line: &str) {
        self.bar.borrow_mut().clear();
        let _gone = writeln!(io::stderr(), "{line}");
    }

    /// The end, with what was asked for: that is said in any case.
    pub fn answer(&self, fields: Value, text: &str) {
        self.finish_bar();
        match self.json {
            true => self.event("done", fields, ""),
            false => self.print(text),
        }
    }

    /// The end: the last line.
    pub fn done(&self, fields: Value, text: &str) {
        self.finish_bar();
        self.event("done", fields, text);
    }

    /// The end of a measurement: the last line if all is well, and otherwise a summary and `what` is not.
    pub fn verdict(&self, ok: bool, fields: Value, text: &str, what: &str) -> Result<(), Failure> {
        self.conclude((!ok).then(|| Failure::Negative(what.into())), fields, text)
    }

    /// The end of a command that may have failed: the last line, or a summary and `failure`.
    pub fn conclude(
        &self,
        failure: Option<Failure>,
        mut fields: Value,
        text: &str,
    ) -> Result<(), Failure> {
        fields["ok"] = failure.is_none().into();
        let Some(failure) = failure else {
            self.answer(fields, text);
            return Ok(());
        };
        match self.json {
            true => self.event("summary", fields, ""),
            false => self.print(text),
        }
        Err(failure)
    }

    /// The end that was not wanted.
    pub fn failure(&self, failure: &Failure) {
        self.finish_bar();
        if self.json {
            let code = failure.exit_code();
            let mut fields = json!({
                "ok": false, "kind": failure.kind(), "exit_code": code, "message": failure.to_string(),
            });
            if let Some(said) = failure.code() {
                fields["code"] = said.into();
            }
            self.event("error", fields, "");
        }
        if !self.json || self.unwritten.borrow().is_some() {
            self.to_terminal(&format!("{}: {failure}", self.program));
        }
    }

    /// What is waited for, on a terminal: it moves, so that the program does not seem dead.
    pub fn waiting(&self, text: &str) {
        if self.has_bar() {
            self.draw(&Shown { amount: text.to_owned(), ..Shown::default() });
        }
    }

    /// The other end does not answer, before anything is through.
    pub fn silence(&self, fields: Value, text: &str) {
        if self.has_bar() {
            self.waiting(text);
        } else if !self.has_screen() && self.is_progress_due() {
            self.status("waiting", fields, text);
        }
    }

    /// How many bytes are through; `pace` says how fast, if that is known.
    pub fn progress(&self, done: u64, total: Option<u64>, pace: impl Fn() -> Pace) {
        self.transfer((done, total), || json!({}), pace);
    }

    /// The progress of a transfer in bytes, as in [`progress`](Self::progress), with `fields` in the JSON.
    pub fn transfer(
        &self,
        (done, total): (u64, Option<u64>),
        fields: impl Fn() -> Value,
        pace: impl Fn() -> Pace,
    ) {
        if self.has_screen() || self.is_quiet() {
            return;
        }
        if self.has_bar() {
            return self.draw_share(done, total, show_bytes, pace());
        }
        if self.is_progress_due() {
            let mut all = json!({ "bytes": done, "total": total });
            if let (Value::Object(all), Value::Object(fields)) = (&mut all, fields()) {
                all.extend(fields);
            }
            let (text, pace) = (show_share(done, total, show_bytes), pace());
            let eta = pace.remaining.map_or_else(String::new, bar::eta);
            let said = [text, pace.rate, eta, pace.more];
            let said = said.iter().filter(|part| !part.is_empty());
            self.status("progress", all, &said.map(String::as_str).collect::<Vec<_>>().join(", "));
        }
    }

    /// How many of something countable are done.
    pub fn count(&self, done: u64, total: Option<u64>, what: &str) {
        if self.has_screen() || self.is_quiet() {
            return;
        }
        let show = |n| format!("{n} {what}");
        if self.has_bar() {
            return self.draw_share(done, total, show, Pace::default());
        }
        if self.is_progress_due() {
            let text = show_share(done, total, show);
            self.status("progress", json!({ what: done, "total": total }), &text);
        }
    }

    /// Whether there is a terminal for a bar.
    fn has_bar(&self) -> bool {
        !self.json && !self.is_quiet() && !self.has_screen() && Stderr::is_terminal()
    }

    /// Whether the last line of progress was long enough ago; then this one counts.
    fn is_progress_due(&self) -> bool {
        let interval = if self.json { JSON_INTERVAL } else { LINE_INTERVAL };
        let is_due = self.last_progress.get().is_none_or(|last| last.elapsed() >= interval);
        if is_due {
            self.last_progress.set(Some(Instant::now()));
        }
        is_due
    }

    fn draw_share(&self, done: u64, total: Option<u64>, show: impl Fn(u64) -> String, pace: Pace) {
        let since = self.progress_since.get().unwrap_or_else(Instant::now);
        self.progress_since.set(Some(since));
        let elapsed = since.elapsed();
        let share = total.filter(|&total| total > 0).map(|total| done as f64 / total as f64);
        let guess = || estimate(share?, elapsed);
        let amount = match total {
            Some(total) => format!("{} of {}", show(done), show(total)),
            None => show(done),
        };
        self.draw(&Shown {
            share,
            amount,
            rate: pace.rate,
            remaining: if pace.is_measured { pace.remaining } else { guess() },
            more: pace.more,
            above: pace.above,
        });
    }

    fn draw(&self, shown: &Shown) {
        self.bar.borrow_mut().draw(shown);
    }

    /// Takes the bar off the screen.
    pub fn finish_bar(&self) {
        self.bar.borrow_mut().clear();
        self.last_progress.set(None);
        self.progress_since.set(None);
    }
}

/// How long the rest takes if it goes on like this; not in the first second, which says little.
fn estimate(share: f64, elapsed: Duration) -> Option<Duration> {
    let is_known = share > 0.0 && elapsed >= FIRST_ESTIMATE;
    is_known.then(|| elapsed.mul_f64(((1.0 - share) / share).clamp(0.0, 1e6)))
}

fn show_share(done: u64, total: Option<u64>, show: impl Fn(u64) -> String) -> String {
    match total {
        Some(total) if total > 0 => {
            format!("{} of {} ({} %)", show(done), show(total), done * 100 / total)
        }
        _ => show(done),
    }
}
