//! The screen: totals and the curve of the rate, a table of transfers, the map of the selected one, the last
//! lines of the command.
//!
//! The invariant: it draws on any size, also one that has no room for anything.

use std::collections::{BTreeMap, VecDeque};

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline, Table, TableState};

use super::moment::{Cell, Map, Moment, Row};
use crate::look::Title;
use crate::report::Lines;
use crate::units::show_bytes;

/// Moments in the large curve, and in that of a row.
const MOMENTS: usize = 400;
const ROW_MOMENTS: usize = 12;

/// The columns that a table can be sorted by.
const ORDERS: [&str; 3] = ["as they came", "by rate", "by progress"];

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What is drawn.
#[derive(Debug)]
pub(super) struct Screen {
    title: String,
    /// The last transfer is shown after its end, too.
    stays: bool,
    lines: Lines,
    now: Moment,
    rates: VecDeque<u64>,
    histories: BTreeMap<u64, VecDeque<u64>>,
    /// The last map of a transfer, which stays when its block is done.
    maps: BTreeMap<u64, Map>,
    selected: Option<u64>,
    order: usize,
    table: TableState,
}

impl Screen {
    pub(super) fn new(title: Title<'_>, lines: Lines) -> Self {
        Self {
            title: title.text.to_owned(),
            stays: title.stays,
            lines,
            now: Moment::default(),
            rates: VecDeque::new(),
            histories: BTreeMap::new(),
            maps: BTreeMap::new(),
            selected: None,
            order: 0,
            table: TableState::default(),
        }
    }

    /// A newer moment.
    pub(super) fn take(&mut self, mut now: Moment) {
        if self.stays && now.rows.is_empty() {
            let over = |row: &Row| Row { block: None, map: None, rate_bps: 0, ..row.clone() };
            now.rows = self.now.rows.iter().map(over).collect();
        }
        let is_here = |id: &u64| now.rows.iter().any(|row| row.id == *id);
        self.histories.retain(|id, _| is_here(id));
        self.maps.retain(|id, _| is_here(id));
        for row in &now.rows {
            keep(self.histories.entry(row.id).or_default(), row.rate_bps, ROW_MOMENTS);
            match (&row.map, self.maps.get_mut(&row.id)) {
                (Some(map), _) => drop(self.maps.insert(row.id, map.clone())),
                (None, Some(map)) => finish(map),
                (None, None) => {}
            }
        }
        keep(&mut self.rates, now.sent_bps.max(now.received_bps), MOMENTS);
        match self.order {
            1 => now.rows.sort_by_key(|row| std::cmp::Reverse(row.rate_bps)),
            2 => now.rows.sort_by(|a, b| share(b).total_cmp(&share(a))),
            _ => {}
        }
        if !self.selected.is_some_and(|id| now.rows.iter().any(|row| row.id == id)) {
            self.selected = now.rows.first().map(|row| row.id);
        }
        self.now = now;
    }

    /// Moves the selection down by `by` rows.
    pub(super) fn select(&mut self, by: isize) {
        let at = self.place().unwrap_or_default();
        let last = self.now.rows.len().saturating_sub(1);
        let at = at.saturating_add_signed(by).min(last);
        self.selected = self.now.rows.get(at).map(|row| row.id);
    }

    pub(super) const fn sort_by_next(&mut self) {
        self.order = (self.order + 1) % ORDERS.len();
    }

    fn place(&self) -> Option<usize> {
        self.now.rows.iter().position(|row| Some(row.id) == self.selected)
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let lines = self.lines.last(3);
        let map_height = if area.height >= 20 { 8 } else { 0 };
        let [head, curve, table, map, log, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(if area.height >= 14 { 3 } else { 0 }),
            Constraint::Min(0),
            Constraint::Length(map_height),
            Constraint::Length(u16::try_from(lines.len()).unwrap_or(3)),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Paragraph::new(self.head()), head);
        self.draw_curve(frame, curve);
        self.draw_table(frame, table);
        self.draw_map(frame, map);
        let lines: Vec<Line<'_>> = lines.into_iter().map(|line| Line::from(line).dim()).collect();
        frame.render_widget(Paragraph::new(lines), log);
        let keys = format!("q ends  ↑↓ select  s sorts: {}", ORDERS[self.order]);
        frame.render_widget(Paragraph::new(keys).dim(), foot);
    }

    fn head(&self) -> Vec<Line<'static>> {
        let now = &self.now;
        let busy = now.rows.iter().filter(|row| row.block.is_some()).count();
        let line =
            if now.in_line > 0 { format!(", {} in line", now.in_line) } else { String::new() };
        let drops = match &now.drops {
            (_, 0) => String::new(),
            (reason, count) => format!("  {count} not used, most: {reason}"),
        };
        vec![
            Line::from(vec!["haulier ".bold(), Span::from(self.title.clone()).dim()]),
            Line::from(vec![
                format!("{busy} on their way of {} connected{line}  ", now.connections).into(),
                format!("↑ {}  ", rate(now.sent_bps)).fg(Color::Blue),
                format!("↓ {}  ", rate(now.received_bps)).fg(Color::Green),
                format!("{} lost  {}", now.lost, show_bytes(now.memory_bytes)).into(),
                drops.fg(Color::Yellow),
            ]),
        ]
    }

    fn draw_curve(&self, frame: &mut Frame<'_>, area: Rect) {
        let skip = self.rates.len().saturating_sub(area.width.into());
        let shown: Vec<u64> = self.rates.iter().skip(skip).copied().collect();
        frame.render_widget(Sparkline::default().data(shown).fg(Color::Blue), area);
    }

    fn draw_table(&mut self, frame: &mut Frame<'_>, area: Rect) {
        // Narrow ones have what matters most.
        let columns = match area.width {
            0..50 => 3,
            50..96 => 4,
            96..124 => 6,
            _ => 8,
        };
        let head = ["client", "progress", "rate", "", "delay", "loss", "in flight", "memory"];
        let is_narrow = columns == 3;
        let widths = [0, if is_narrow { 7 } else { 28 }, 12, 12, 9, 7, 9, 10];
        let rows = self.now.rows.iter().map(|row| {
            let cells = self.cells(row, is_narrow);
            let style = if row.block.is_some() { Style::new() } else { Style::new().dim() };
            ratatui::widgets::Row::new(cells.into_iter().take(columns)).style(style)
        });
        let widths = widths.iter().take(columns).map(|&width| match width {
            0 => Constraint::Fill(1),
            width => Constraint::Length(width),
        });
        let head = ratatui::widgets::Row::new(head.into_iter().take(columns)).dim();
        let table = Table::new(rows, widths)
            .header(head)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let place = self.place();
        self.table.select(place);
        frame.render_stateful_widget(table, area, &mut self.table);
        if self.now.unlisted > 0 && area.height > 1 {
            let last = Rect { y: area.bottom() - 1, height: 1, ..area };
            let more = format!("and {} more, who are in the totals alone", self.now.unlisted);
            frame.render_widget(Paragraph::new(more).dim(), last);
        }
    }

    fn cells(&self, row: &Row, is_narrow: bool) -> [String; 8] {
        let way = if row.is_received { '↓' } else { '↑' };
        let progress = match row.block {
            Some(_) if is_narrow => format!("{way} {:.0} %", share(row) * 100.0),
            Some((_, length)) => format!("{way} {} {}", bar(share(row), 10), show_bytes(length)),
            None if row.state == "connected" => "all done".into(),
            None => row.state.into(),
        };
        let history = self.histories.get(&row.id);
        [
            row.name.clone(),
            progress,
            rate(row.rate_bps),
            history.map_or_else(String::new, small_curve),
            row.rtt.map_or_else(|| "-".into(), |rtt| format!("{:.1} ms", rtt.as_secs_f64() * 1e3)),
            format!("{:.1} %", row.loss * 100.0),
            row.in_flight.to_string(),
            show_bytes(row.memory_bytes),
        ]
    }

    fn draw_map(&self, frame: &mut Frame<'_>, area: Rect) {
        let row = self.place().and_then(|place| self.now.rows.get(place));
        let Some(row) = row.filter(|_| area.height > 0) else { return };
        let [sent, again, repair] = row.slices;
        let says = format!(
            "{} {} for {} s: {sent} slices sent, {repair} repair, {again} again",
            row.name,
            row.state,
            row.age.as_secs()
        );
        let mut lines = vec![Line::from(says).bold()];
        if let Some(map) = self.maps.get(&row.id) {
            lines.extend(map_lines(map, area.width.into()));
        }
        let legend = "█ arrived  ▒ on its way  × missing  · to come";
        lines.truncate(usize::from(area.height).saturating_sub(1));
        lines.push(Line::from(legend).dim());
        frame.render_widget(Paragraph::new(lines), area);
    }
}

fn keep(list: &mut VecDeque<u64>, value: u64, most: usize) {
    if list.len() >= most {
        list.pop_front();
    }
    list.push_back(value);
}

/// The block of a map is done: all of it has arrived.
fn finish(map: &mut Map) {
    map.done = map.chunks;
    map.open.iter_mut().for_each(|(_, cells)| cells.fill(Cell::Arrived));
}

fn share(row: &Row) -> f64 {
    row.block.map_or(-1.0, |(done, length)| done as f64 / length.max(1) as f64)
}

/// A bar of `width` characters, exact to an eighth of a character.
fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64) as usize;
    let partial = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    let bar = format!("{}{partial}", "█".repeat(eighths / 8));
    format!("{bar}{} {:>3.0} %", " ".repeat(width - bar.chars().count()), share * 100.0)
}

fn small_curve(history: &VecDeque<u64>) -> String {
    let most = history.iter().max().copied().unwrap_or_default().max(1);
    let bar = |value: &u64| BARS[usize::try_from(value * 7 / most).unwrap_or(7).min(7)];
    history.iter().map(bar).collect()
}

/// The chunks of a block in one line, then the slices of those on their way.
fn map_lines(map: &Map, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if map.chunks > 1 {
        let says = format!("chunks {} of {}: ", map.done, map.chunks);
        let room = width.saturating_sub(says.chars().count()).min(map.chunks as usize);
        let filled = room * map.done as usize / map.chunks as usize;
        lines.push(Line::from(vec![
            says.into(),
            "█".repeat(filled).fg(Color::Green),
            "·".repeat(room - filled).dim(),
        ]));
    }
    for (index, cells) in &map.open {
        let says = if map.chunks > 1 { format!("{index:>5} ") } else { String::new() };
        let indent = " ".repeat(says.chars().count());
        for (number, part) in cells.chunks(width.saturating_sub(indent.len()).max(1)).enumerate() {
            let first = if number == 0 { says.clone() } else { indent.clone() };
            let mut spans = vec![Span::from(first)];
            spans.extend(part.chunk_by(|a, b| a == b).map(|run| painted(run[0], run.len())));
            lines.push(Line::from(spans));
        }
    }
    lines
}

fn painted(cell: Cell, count: usize) -> Span<'static> {
    match cell {
        Cell::Arrived => "█".repeat(count).fg(Color::Blue),
        Cell::OnTheWay => "▒".repeat(count).fg(Color::Blue),
        Cell::Missing => "×".repeat(count).fg(Color::Red),
        Cell::Waiting => "·".repeat(count).dim(),
    }
}

fn rate(bps: u64) -> String {
    match bps {
        0..1_000 => format!("{bps} bit/s"),
        1_000..1_000_000 => format!("{:.1} kbit/s", bps as f64 / 1e3),
        _ => format!("{:.1} Mbit/s", bps as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests;
