//! A scene as a moving picture: the slices of each sender fill up in slow motion, over and over.
//!
//! SVG's own animation, so that a page shows it without a script. What changes at the same moment is one
//! path: a thousand slices are some hundred elements.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::plot::{Figure, Ink};
use crate::scenes::{Kind, Outcome, Scene, Sender, Take};

const INKS: [Ink; 4] = [
    ("empty", "#e9e5dc", "#2b3340"),
    ("slice", "#2f6db5", "#6aa5ea"),
    ("again", "#d98324", "#f0a552"),
    ("repair", "#3a9a5b", "#62c585"),
];

const WIDTH: f64 = 720.0;
const MARGIN: f64 = 16.0;

/// A cell of the map with its gap, and how many are in a row.
const CELL: f64 = 8.0;
const ROW: usize = 86;

/// From a lane's first line of text to its map, and from the end of its bar to the next lane.
const MAP: f64 = 10.0;
const AFTER_LANE: f64 = 34.0;

/// The picture moves in steps of `STEP_MS` of the link's time. It plays for `PLAYS` seconds, then it stands
/// still for `STANDS` seconds.
const STEP_MS: u64 = 8;
const PLAYS: f64 = 9.0;
const STANDS: f64 = 3.0;

/// Draws these takes of a scene.
pub fn scene(scene: &Scene, takes: &[Take]) -> String {
    let heights = takes.iter().map(lane_height).sum::<f64>();
    let heading = format!(
        "{} KiB over {} Mbit/s, {} ms, {} % loss, in slow motion",
        scene.bytes >> 10,
        scene.rate_bps as f64 / 1e6,
        scene.rtt_ms,
        scene.loss as f64 / 100.0,
    );
    let about = "The slices of a block arrive, one sender below the other.";
    let mut figure = Figure::new(WIDTH, 56.0 + heights, &heading, about, &INKS);
    let ends = takes.iter().filter_map(|take| take.whole).max().unwrap_or_default();
    let ends = ends.max(scene.limit()).mul_f64(1.02);
    let clock = Clock { ends };
    let mut y = 58.0;
    for take in takes {
        lane(&mut figure, take, scene.limit(), &clock, y);
        y += lane_height(take);
    }
    figure.finish()
}

fn lane_height(take: &Take) -> f64 {
    MAP + rows(take) as f64 * CELL + 12.0 + AFTER_LANE
}

fn rows(take: &Take) -> usize {
    (take.slices.iter().sum::<u32>() as usize).div_ceil(ROW)
}

fn lane(figure: &mut Figure, take: &Take, limit: Duration, clock: &Clock, y: f64) {
    figure.text("strong dark", (MARGIN, y), name(take.sender));
    let top = y + MAP;
    let cells = take.slices.iter().sum::<u32>() as usize;
    figure.path("empty", &squares((0..cells).collect(), top));
    for (at, (class, changed)) in changes(take) {
        figure.appears(class, &squares(changed, top), clock.part(at));
    }
    let (bar, width) = (top + rows(take) as f64 * CELL + 8.0, WIDTH - 2.0 * MARGIN);
    let x = |at: Duration| MARGIN + width * clock.link_part(at);
    let whole = take.whole.unwrap_or(clock.ends);
    figure.line("grid", [Some((MARGIN, bar)), Some((MARGIN + width, bar))]);
    figure.grows("slice", (MARGIN, bar - 2.0), x(whole) - MARGIN, clock.part(whole));
    figure.line("dark bold", [Some((x(limit), bar - 6.0)), Some((x(limit), bar + 6.0))]);
    let times = whole.as_secs_f64() / limit.as_secs_f64();
    let says = format!("whole after {} ms, {times:.2} times the limit", whole.as_millis());
    figure.text_appears("plain", (MARGIN + 230.0, y), &says, clock.part(whole));
}

const fn name(sender: Sender) -> &'static str {
    match sender {
        Sender::Haulier => "haulier/1",
        Sender::Article => "the article's sender",
        Sender::ArticlePaced => "the article's, without its burst",
        Sender::Fragments => "fragments of one packet",
        Sender::SlowStart => "slow start (TCP)",
    }
}

/// Which cells change at which moment: those that arrive, and at the end those that repair slices stand for.
type Changes = BTreeMap<(Duration, &'static str), Vec<usize>>;

fn changes(take: &Take) -> impl Iterator<Item = (Duration, (&'static str, Vec<usize>))> {
    let starts: Vec<u32> = take
        .slices
        .iter()
        .scan(0, |sum, &count| Some(std::mem::replace(sum, *sum + count)))
        .collect();
    let mut changes = Changes::new();
    let mut here = BTreeSet::new();
    let mut arrived: Vec<_> = take
        .rows
        .iter()
        .filter(|row| {
            row.is_down
                && row.outcome == Outcome::Arrived
                && matches!(row.kind, Kind::Slice | Kind::Again)
        })
        .collect();
    arrived.sort_by_key(|row| row.ends);
    let whole = take.whole.unwrap_or(Duration::MAX);
    for row in arrived.into_iter().filter(|row| row.ends <= whole) {
        let Some(start) = starts.get(row.chunk as usize) else { continue };
        let cell = (start + row.index) as usize;
        if here.insert(cell) {
            let class = if row.kind == Kind::Again { "again" } else { "slice" };
            changes.entry((stepped(row.ends), class)).or_default().push(cell);
        }
    }
    let made = (0..take.slices.iter().sum::<u32>() as usize).filter(|cell| !here.contains(cell));
    if take.whole.is_some() {
        changes.entry((whole, "repair")).or_default().extend(made);
    }
    changes.into_iter().map(|((at, class), cells)| (at, (class, cells)))
}

fn stepped(at: Duration) -> Duration {
    Duration::from_millis((at.as_millis() as u64).div_ceil(STEP_MS) * STEP_MS)
}

fn squares(cells: Vec<usize>, top: f64) -> String {
    let square = |cell: usize| {
        let x = MARGIN + (cell % ROW) as f64 * CELL;
        let y = top + (cell / ROW) as f64 * CELL;
        format!("M{x:.0} {y:.0}h6v6h-6z")
    };
    cells.into_iter().map(square).collect()
}

/// From the link's time to that of the picture.
struct Clock {
    ends: Duration,
}

impl Clock {
    /// The part of the link's time.
    fn link_part(&self, at: Duration) -> f64 {
        at.as_secs_f64() / self.ends.as_secs_f64()
    }

    /// The part of the picture, which stands still at its end.
    fn part(&self, at: Duration) -> f64 {
        self.link_part(at).min(1.0) * PLAYS / (PLAYS + STANDS)
    }
}

impl Figure {
    /// A path that is there from this part of the picture on.
    fn appears(&mut self, class: &str, path: &str, part: f64) {
        let animate = from_part_on(part);
        self.raw(&format!(
            "<path class=\"{class}\" d=\"{path}\" stroke=\"none\" opacity=\"0\">{animate}</path>"
        ));
    }

    fn text_appears(&mut self, class: &str, (x, y): (f64, f64), words: &str, part: f64) {
        let animate = from_part_on(part);
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" opacity=\"0\"");
        self.raw(&format!("<text class=\"{class}\" {place}>{words}{animate}</text>"));
    }

    /// A bar that has its whole width at this part of the picture.
    fn grows(&mut self, class: &str, (x, y): (f64, f64), width: f64, part: f64) {
        let times = format!("keyTimes=\"0;{part:.4};1\" dur=\"{}s\"", PLAYS + STANDS);
        let values = format!("values=\"0;{width:.1};{width:.1}\"");
        let animate = format!(
            "<animate attributeName=\"width\" {values} {times} repeatCount=\"indefinite\"/>"
        );
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"0\" height=\"4\" stroke=\"none\"");
        self.raw(&format!("<rect class=\"{class}\" {place}>{animate}</rect>"));
    }
}

fn from_part_on(part: f64) -> String {
    format!(
        "<animate attributeName=\"opacity\" values=\"0;1\" keyTimes=\"0;{part:.4}\" dur=\"{}s\" \
         calcMode=\"discrete\" repeatCount=\"indefinite\"/>",
        PLAYS + STANDS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slice_of_every_sender_comes() {
        let played = Scene::default();
        let takes = played.play();
        for take in &takes {
            let cells: Vec<usize> = changes(take).flat_map(|(_, (_, cells))| cells).collect();
            assert_eq!(cells.len(), take.slices.iter().sum::<u32>() as usize, "each once");
        }
        let svg = scene(&played, &takes);
        assert_eq!(svg, scene(&played, &takes));
        assert!(svg.contains("haulier/1") && svg.contains("times the limit"));
        assert!(svg.len() < 150_000, "{} bytes", svg.len());
    }
}
