//! `--tui`: what goes on, as a screen in the terminal.
//!
//! A thread of its own draws and reads keys, while the command goes on; what that prints meanwhile is in the
//! last lines of the screen, and on the terminal afterwards. The invariant: however the command ends, by a
//! key, an error or a panic, the terminal is as it was.

mod moment;
mod screen;

use std::io::{self, IsTerminal as _};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haulier_view::{Names, Subject, Watch};
use ratatui::DefaultTerminal;
use ratatui::backend::Backend as _;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::moment::Moment;
use self::screen::Screen;
use crate::failure::{Failure, plain};
use crate::interrupt;
use crate::look::Title;
use crate::report::{Lines, Report};

/// How often it looks and draws: a short transfer is seen, too.
const INTERVAL: Duration = Duration::from_millis(100);

/// A screen, until it is dropped.
#[derive(Debug)]
pub(crate) struct Tui {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    lines: Lines,
}

impl Tui {
    /// Takes the terminal.
    pub(crate) fn start(
        subject: Subject,
        names: Names,
        title: Title<'_>,
        report: &Report,
    ) -> Result<Self, Failure> {
        let terminal = ratatui::try_init().map_err(|error| {
            Failure::Io(format!("this terminal cannot be drawn on: {}", plain(&error)))
        })?;
        let over = Arc::new(AtomicBool::new(false));
        restore_on_panic(&over);
        let lines = report.divert();
        let mut watch = Watch::new(subject).with_names(names);
        let mut screen = Screen::new(title, lines.clone());
        let (ended, guard, kept) = (Arc::clone(&over), Restored, lines.clone());
        let thread = thread::Builder::new().name("tui".into()).spawn(move || {
            // A terminal that cannot be drawn on ends the screen, not the transfer, which prints from
            // then on.
            let _gone = run(terminal, &mut watch, &mut screen, &ended);
            drop(guard);
            kept.release();
        });
        let thread = thread.map_err(|error| Failure::socket("no thread for the screen", &error))?;
        Ok(Self { over, thread: Some(thread), lines })
    }

    /// Leaves the last picture on the screen until the user has seen it.
    pub(crate) fn wait(&self, says: &str) {
        self.lines.push(says);
        while !interrupt::requested() && self.thread.as_ref().is_some_and(|it| !it.is_finished()) {
            thread::sleep(INTERVAL);
        }
        interrupt::forget();
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It has reported its panic, if there was one.
            let _ended = thread.join();
        }
        self.lines.release();
    }
}

/// Whether there is a terminal to draw on. `takes_output` if standard output is for the file.
pub(crate) fn check(takes_output: bool, report: &Report) -> Result<(), Failure> {
    let what = if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        "--tui needs a terminal, for its picture and its keys: leave it out, or look by --view 127.0.0.1:0"
    } else if report.is_json() {
        "--tui draws for people, and --json prints for programs: leave one out"
    } else if takes_output {
        "--tui draws on standard output, which -o - takes for the file: leave one out"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(what.into()))
}

/// Gives the terminal back when it is dropped.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// A panic of any thread is read on the terminal as it was, and not drawn over.
fn restore_on_panic(over: &Arc<AtomicBool>) {
    let (over, before) = (Arc::clone(over), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        over.store(true, Ordering::Release);
        ratatui::restore();
        before(info);
    }));
}

fn run(
    mut terminal: DefaultTerminal,
    watch: &mut Watch,
    screen: &mut Screen,
    over: &AtomicBool,
) -> io::Result<()> {
    // Some terminals have one screen alone, and what was on it. `Terminal::clear` asks where the cursor is,
    // which not every one answers.
    terminal.backend_mut().clear()?;
    let mut next = Instant::now();
    while !over.load(Ordering::Acquire) {
        let now = Instant::now();
        if now >= next {
            next = now + INTERVAL;
            screen.take(Moment::of(&watch.snapshot()));
            terminal.draw(|frame| screen.draw(frame))?;
        }
        if event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => on_key(screen, key),
                // Drawn anew at the size that it has now, at the next turn.
                Event::Resize(..) => next = Instant::now(),
                _ => {}
            }
        }
    }
    Ok(())
}

fn on_key(screen: &mut Screen, key: KeyEvent) {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if is_control => interrupt::request(),
        KeyCode::Char('q') | KeyCode::Esc => interrupt::request(),
        KeyCode::Down | KeyCode::Char('j') => screen.select(1),
        KeyCode::Up | KeyCode::Char('k') => screen.select(-1),
        KeyCode::PageDown => screen.select(10),
        KeyCode::PageUp => screen.select(-10),
        KeyCode::Home => screen.select(isize::MIN / 2),
        KeyCode::End => screen.select(isize::MAX / 2),
        KeyCode::Char('s') => screen.sort_by_next(),
        _ => {}
    }
}
