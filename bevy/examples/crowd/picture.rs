//! What the players saw, as an SVG: the level as the last of them loaded it with everyone in it, and a line
//! for each player through time.

use std::fmt::Write as _;

use crate::Times;
use crate::level::{Level, SIDE, Snapshot};
use crate::player::Report;

/// Pixels: of the map's side, of a row, of a frame, and where rows and frames begin.
const MAP: f32 = 420.0;
const ROW: f32 = 19.0;
const TOP: f32 = 44.0;
const LEFT: f32 = 500.0;
const WIDTH: f32 = 560.0;

/// Tiles of the level to one that is drawn.
const STEP: usize = 4;

const STYLE: &str = "text{font:12px sans-serif;fill:#333}.quiet{fill:#777}.wall{fill:#4a4458}\
                     .floor{fill:#ece6da}.load{fill:#e08a2c}.play{fill:#2f8f6b}.row{fill:#f1f1f1}\
                     .missed{fill:#c0183a}.me{fill:#c0183a;stroke:#fff}";

pub(crate) fn draw(times: &[Times], reports: &[Report], frames: u32) -> String {
    let height = TOP + ROW * reports.len() as f32 + 40.0;
    let width = LEFT + WIDTH + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\">\n\
         <style>{STYLE}</style>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    draw_map(&mut svg, reports);
    draw_rows(&mut svg, times, reports, frames);
    svg + "</svg>\n"
}

/// The level, and everyone where the last snapshot has them.
fn draw_map(svg: &mut String, reports: &[Report]) {
    let level = Level::cave();
    let scale = MAP / SIDE as f32;
    let right = reports.iter().filter(|report| report.is_level_right).count();
    let _ = writeln!(
        svg,
        "<text x=\"20\" y=\"28\">the level, 256 KiB, from the wire: right at {right} of {}</text>",
        reports.len()
    );
    let _ = writeln!(
        svg,
        "<g transform=\"translate(20 {TOP}) scale({scale})\"><rect class=\"floor\" width=\"{SIDE}\" \
         height=\"{SIDE}\"/>"
    );
    svg.push_str("<path class=\"wall\" d=\"");
    for y in (0..SIDE).step_by(STEP) {
        let is_wall = |x: usize| x < SIDE && level.is_wall(x, y);
        let mut x = 0;
        while x < SIDE {
            let run = (x..).step_by(STEP).take_while(|x| is_wall(*x)).count() * STEP;
            if run > 0 {
                let _ = write!(svg, "M{x} {y}h{run}v{STEP}h-{run}z");
            }
            x += run + STEP;
        }
    }
    svg.push_str("\"/>\n");
    let last = reports.iter().filter_map(|report| report.snapshots.last()).map(|(frame, _)| *frame);
    for [x, y] in Snapshot::of(last.max().unwrap_or(0)).places {
        let _ = write!(svg, "<circle class=\"me\" cx=\"{x}\" cy=\"{y}\" r=\"6\"/>");
    }
    svg.push_str("</g>\n");
}

/// A row for each player: the part of the level that it has, then its play, and each snapshot that it missed.
fn draw_rows(svg: &mut String, times: &[Times], reports: &[Report], frames: u32) {
    let at = |frame: u32| LEFT + WIDTH * frame as f32 / frames.max(1) as f32;
    let legend = [("load", "joining: the part of the level that is here"), ("play", "playing")];
    let mut x = LEFT;
    for (class, text) in legend.into_iter().chain([("missed", "a snapshot missed")]) {
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"18\" width=\"12\" height=\"12\"/>"
        );
        let _ = writeln!(svg, "<text x=\"{}\" y=\"28\">{text}</text>", x + 17.0);
        x += 40.0 + 6.2 * text.len() as f32;
    }
    for (row, report) in reports.iter().enumerate() {
        let (y, high) = (TOP + ROW * row as f32, ROW - 4.0);
        let asked = times[report.number].asked;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect class=\"row\" x=\"{:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{high}\"/>",
            LEFT - 8.0,
            y + high - 3.0,
            report.number + 1,
            at(asked),
            at(frames) - at(asked),
        );
        draw_snapshots(svg, report, at, y);
        svg.push('\n');
    }
    let y = TOP + ROW * reports.len() as f32 + 16.0;
    let _ = writeln!(
        svg,
        "<text class=\"quiet\" x=\"{LEFT}\" y=\"{y}\">one snapshot in each frame, 60 a second; \
         {frames} frames of the server</text>"
    );
}

/// A bar for each snapshot while it joins, one for each stretch in which it plays, and the gaps.
fn draw_snapshots(svg: &mut String, report: &Report, at: impl Fn(u32) -> f32, y: f32) {
    let (high, wide) = (ROW - 4.0, at(1) - at(0));
    svg.push_str("<path class=\"load\" d=\"");
    for (frame, part) in report.snapshots.iter().filter(|(_, part)| *part <= 1.0) {
        let part = high * part;
        let (x, y) = (at(*frame), y + high);
        let _ = write!(svg, "M{x:.1} {y:.1}v-{part:.1}h{:.2}v{part:.1}z", wide * 0.8);
    }
    svg.push_str("\"/>\n");
    let playing: Vec<u32> =
        report.snapshots.iter().filter(|(_, part)| *part > 1.0).map(|(frame, _)| *frame).collect();
    for run in playing.chunk_by(|before, next| before + 1 == *next) {
        let (x, wide) = (at(run[0]), wide * run.len() as f32);
        rect(svg, "play", [x, y, wide, high]);
    }
    for pair in report.snapshots.windows(2).filter(|pair| pair[0].0 + 1 < pair[1].0) {
        let (from, to) = (at(pair[0].0 + 1), at(pair[1].0));
        rect(svg, "missed", [from, y, to - from, high]);
    }
}

fn rect(svg: &mut String, class: &str, [x, y, wide, high]: [f32; 4]) {
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{wide:.1}\" height=\"{high}\"/>"
    );
}
