//! What moves on a terminal: how much is done, how fast, and how long the rest will take.
//!
//! A line is never as long as the terminal is wide, however narrow that is, for one that wraps cannot be
//! taken back. The distance to the edge is what a user can make it narrower by between two drawings: a
//! terminal that wraps again what it shows has nothing to wrap then.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use terminal_size::{Width, terminal_size_of};

/// The longest line, in columns: what is farther apart is not read together.
const MAX_COLUMNS: usize = 90;

/// The maximum number of columns that stay empty at the edge.
const MAX_SLACK: usize = 10;

/// Columns between the parts of a line.
const GAP: usize = 2;

/// The minimum and maximum width of the bar itself, in columns.
const MIN_BAR: usize = 8;
const MAX_BAR: usize = 40;

/// Lines above the bar, at most: more would scroll.
const MAX_ABOVE: usize = 12;

/// How often it is drawn.
const INTERVAL: Duration = Duration::from_millis(50);

/// Where a terminal of no known width is wrapped.
const USUAL_COLUMNS: usize = 80;

/// What the line shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// From 0 to 1, if the end is known.
    pub(crate) share: Option<f64>,
    /// How much is done.
    pub(crate) amount: String,
    pub(crate) rate: String,
    /// How long the rest will take.
    pub(crate) remaining: Option<Duration>,
    /// The rest of the line, which a narrow terminal does not show.
    pub(crate) more: String,
    /// Lines above it.
    pub(crate) above: String,
}

/// Where it is drawn.
pub(crate) trait Screen {
    fn columns(&self) -> usize;
    fn put(&mut self, text: &str);
}

/// Standard error, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Stderr;

impl Stderr {
    pub(crate) fn is_terminal() -> bool {
        io::stderr().is_terminal()
    }
}

impl Screen for Stderr {
    fn columns(&self) -> usize {
        match terminal_size_of(io::stderr()) {
            Some((Width(columns), _)) if columns > 0 => columns.into(),
            _ => USUAL_COLUMNS,
        }
    }

    fn put(&mut self, text: &str) {
        // A terminal that is gone reads nothing.
        let _gone = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// What is drawn.
#[derive(Debug)]
pub(crate) struct Bar<S> {
    screen: S,
    /// Lines that are on the screen.
    lines: usize,
    drawn_at: Option<Instant>,
    turns: usize,
}

impl<S: Screen> Bar<S> {
    pub(crate) const fn new(screen: S) -> Self {
        Self { screen, lines: 0, drawn_at: None, turns: 0 }
    }

    /// Draws it, if that was long enough ago.
    pub(crate) fn draw(&mut self, shown: &Shown) {
        let now = Instant::now();
        if self.drawn_at.is_none_or(|at| now - at >= INTERVAL) {
            self.drawn_at = Some(now);
            self.draw_now(shown);
        }
    }

    fn draw_now(&mut self, shown: &Shown) {
        let columns = usable(self.screen.columns());
        let mut lines: Vec<String> =
            shown.above.lines().flat_map(|line| broken(line, columns)).take(MAX_ABOVE).collect();
        lines.push(line(shown, columns, self.turns));
        self.turns = self.turns.wrapping_add(1);
        let count = lines.len();
        let lines: Vec<String> = lines.into_iter().map(|line| format!("{line}\x1b[K")).collect();
        let text = format!("{}{}\x1b[J", self.to_start(), lines.join("\r\n"));
        self.lines = count;
        self.screen.put(&text);
    }

    /// Takes it off the screen. It is drawn again with the next change.
    pub(crate) fn clear(&mut self) {
        if self.lines > 0 {
            let text = format!("{}\x1b[J", self.to_start());
            self.screen.put(&text);
        }
        (self.lines, self.drawn_at) = (0, None);
    }

    /// To the beginning of its first line.
    fn to_start(&self) -> String {
        match self.lines {
            0 | 1 => "\r".into(),
            lines => format!("\r\x1b[{}A", lines - 1),
        }
    }
}

/// How many of these columns may be used.
fn usable(columns: usize) -> usize {
    columns.saturating_sub(1 + MAX_SLACK.min(columns / 6)).clamp(1, MAX_COLUMNS)
}

/// Breaks a line into as many lines as it needs: between words, or into equal parts if it has no spaces, like
/// a map.
fn broken(line: &str, columns: usize) -> Vec<String> {
    let mut left: Vec<char> = line.chars().collect();
    let mut lines = Vec::new();
    while left.len() > columns {
        let space = left[..=columns].iter().rposition(|&c| c == ' ').filter(|&at| at > 0);
        let end = space.unwrap_or_else(|| left.len().div_ceil(left.len().div_ceil(columns)));
        lines.push(left.drain(..end).collect::<String>().trim_end().to_owned());
        let spaces = left.iter().take_while(|&&c| c == ' ').count();
        left.drain(..spaces);
    }
    lines.push(left.into_iter().collect());
    lines
}

/// One line of at most `columns` columns. When there is no room, the least important part is left out first.
fn line(shown: &Shown, columns: usize, turns: usize) -> String {
    let share = shown.share.map(|share| share.clamp(0.0, 1.0));
    let percent = match share {
        Some(share) => format!("{:>3.0} %", (share * 100.0).floor()),
        None => ["-", "\\", "|", "/"][turns / 2 % 4].into(),
    };
    let eta = shown.remaining.map_or_else(String::new, eta);
    let mut parts = [&*percent, &shown.amount, &shown.rate, &eta, &shown.more];
    // More, the amount, the rate, the time that is left.
    for drop in [4, 1, 2, 3] {
        if width(&parts) > columns {
            parts[drop] = "";
        }
    }
    if parts[1..].iter().all(|part| part.is_empty()) && share.is_none() {
        parts[1] = &shown.amount;
    }
    let room = columns.saturating_sub(width(&parts) + GAP + 2);
    let bar = match share {
        Some(share) if room >= MIN_BAR => bar(share, room.min(MAX_BAR)) + "  ",
        _ => String::new(),
    };
    let parts = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let line: String = bar + &parts.join(&" ".repeat(GAP));
    line.chars().take(columns).collect()
}

fn width(parts: &[&str]) -> usize {
    let widths =
        parts.iter().filter(|part| !part.is_empty()).map(|part| part.chars().count() + GAP);
    widths.sum::<usize>().saturating_sub(GAP)
}

fn bar(share: f64, columns: usize) -> String {
    let done = (share * columns as f64) as usize;
    let head = if done < columns { ">" } else { "" };
    format!("[{}{head}{}]", "=".repeat(done), " ".repeat(columns - done - head.len()))
}

/// `ETA 0:12`, `ETA 1:02:03`.
pub(crate) fn eta(remaining: Duration) -> String {
    let seconds = remaining.as_secs_f64().ceil() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("ETA {minutes}:{seconds:02}"),
        hours => format!("ETA {hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
#[path = "bar_tests.rs"]
mod tests;
