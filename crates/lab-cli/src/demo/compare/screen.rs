//! The screen of a comparison: three lanes, each with its time beside L, a bar and the map of its slices.
//!
//! The invariant: it draws on any size, also one that has no room for anything.

use std::time::Duration;

use haulier_lab::scenes::{Scene, Sender, Take};
use haulier_shell::units::{in_millis, show_bytes};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::moment::{Cell, Moment};
use super::{in_words, title_of};

/// What is drawn: the takes, and where in them the player is.
pub(super) struct Screen<'a> {
    pub(super) title: String,
    pub(super) scene: &'a Scene,
    pub(super) takes: &'a [Take],
    pub(super) at: Duration,
    pub(super) slow: u32,
    pub(super) is_paused: bool,
}

impl Screen<'_> {
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let [head, lanes, foot] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(0), Constraint::Length(2)])
                .areas(frame.area());
        let width = usize::from(frame.area().width);
        frame.render_widget(Paragraph::new(self.head(width)), head);
        let rows = Layout::vertical(vec![Constraint::Fill(1); self.takes.len()]).split(lanes);
        for (take, area) in self.takes.iter().zip(rows.iter()) {
            self.draw_lane(frame, *area, take);
        }
        let words = [
            [" arrived ", " repaired, or sent again ", " on its way ", " missing ", " to come"],
            [" here ", " again ", " sent ", " lost ", " next"],
        ];
        let legend = first_that_fits(width, words.map(legend));
        let keys =
            ["q ends  space stops  + - pace  r from the start", "q ends  space stops  + -  r"];
        let keys = first_that_fits(width, keys.map(Line::from)).dim();
        frame.render_widget(Paragraph::new(vec![legend, keys]), foot);
    }

    fn head(&self, width: usize) -> Vec<Line<'static>> {
        let pace = match (self.is_paused, self.slow) {
            (true, _) => "stopped".into(),
            (_, 1) => "as it happens".into(),
            (_, slow) => format!("{slow} times slower"),
        };
        let (at, limit) = (in_millis(self.at), in_millis(self.scene.limit()));
        let forms = ["the physical limit of this link is L", "L"];
        let forms = forms.map(|words| {
            let rest = format!("{pace}  {words} = {limit:.0} ms");
            Line::from(vec![format!("{at:>6.0} ms  ").bold(), rest.into()])
        });
        vec![
            Line::from(vec!["haulier-lab demo  ".bold(), self.title.clone().dim()]),
            first_that_fits(width, forms),
        ]
    }

    fn draw_lane(&self, frame: &mut Frame<'_>, area: Rect, take: &Take) {
        let moment = Moment::of(take, self.at);
        let width = usize::from(area.width);
        let mut lines = vec![self.lane_head(take, &moment, width), bar(moment.share(), width)];
        // A line stays free between two lanes.
        let room = usize::from(area.height).saturating_sub(lines.len() + 1);
        lines.extend(map(&moment.cells, width, room));
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn lane_head(&self, take: &Take, moment: &Moment, width: usize) -> Line<'static> {
        let colour = match take.sender {
            Sender::Haulier => Color::Green,
            _ => Color::Yellow,
        };
        let time = match take.whole.filter(|_| moment.is_whole) {
            Some(whole) => in_words(Some(whole), self.scene.limit()).fg(colour).bold(),
            None => {
                format!("{:.0} % after {:.0} ms", moment.share() * 100.0, in_millis(self.at)).into()
            }
        };
        let rest = format!(
            "  {} sent, {} lost, {}",
            moment.sent,
            moment.lost,
            show_bytes(moment.wire_bytes)
        );
        let name = format!("{:<21}", title_of(take.sender)).bold();
        let short = Line::from(vec![name.clone(), time.clone()]);
        first_that_fits(width, [Line::from(vec![name, time, rest.dim()]), short])
    }
}

/// What is cut off says something else. The last one is taken where none fits.
fn first_that_fits<const N: usize>(width: usize, forms: [Line<'static>; N]) -> Line<'static> {
    let last = forms.last().cloned().unwrap_or_default();
    forms.into_iter().find(|line| line.width() <= width).unwrap_or(last)
}

/// What the characters of a map stand for.
fn legend(words: [&'static str; 5]) -> Line<'static> {
    let cells = [Cell::Arrived, Cell::Mended, Cell::OnTheWay, Cell::Missing, Cell::Waiting];
    let pairs = cells.into_iter().zip(words);
    Line::from_iter(pairs.flat_map(|(cell, word)| [painted(cell, 1), word.into()]))
}

fn bar(share: f64, width: usize) -> Line<'static> {
    let filled = ((share * width as f64) as usize).min(width);
    Line::from(vec!["━".repeat(filled).fg(Color::Green), "─".repeat(width - filled).dim()])
}

/// The slices in `room` lines of this width. Where there are more, several share a character, which shows the
/// one of them that is furthest from being here.
fn map(cells: &[Cell], width: usize, room: usize) -> Vec<Line<'static>> {
    if width == 0 || room == 0 {
        return Vec::new();
    }
    let each = cells.len().div_ceil(width * room).max(1);
    let shown: Vec<Cell> =
        cells.chunks(each).filter_map(|several| several.iter().min().copied()).collect();
    let line = |row: &[Cell]| {
        let runs = row.chunk_by(|a, b| a == b);
        Line::from(runs.map(|run| painted(run[0], run.len())).collect::<Vec<_>>())
    };
    shown.chunks(width).map(line).collect()
}

fn painted(cell: Cell, count: usize) -> Span<'static> {
    let (text, style) = match cell {
        Cell::Arrived => ("█", Style::new().fg(Color::Blue)),
        Cell::Mended => ("▓", Style::new().fg(Color::Green)),
        Cell::OnTheWay => ("▒", Style::new().fg(Color::Blue)),
        Cell::Missing => ("×", Style::new().fg(Color::Red)),
        Cell::Waiting => ("·", Style::new().dim()),
    };
    Span::styled(text.repeat(count), style)
}
