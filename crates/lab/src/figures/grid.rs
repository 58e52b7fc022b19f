//! The figure of the grid: for each strategy the ratio to the physical limit, at 50, 95 and 99 of 100 runs.

use super::plot::{Figure, Ink, LogAxis, Marker};
use crate::grid::{Strategy, Summary};

const WIDTH: f64 = 828.0;
const ROW: f64 = 34.0;
const TOP: f64 = 74.0;
/// The positions of the names, of both ends of the axis, and of the columns of numbers.
const NAMES: f64 = 16.0;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 622.0;
const NUMBERS: [f64; 3] = [682.0, 742.0, 802.0];

const INKS: [Ink; 3] = [
    ("ours", "#0969da", "#4493f8"),
    ("theirs", "#6e7781", "#9198a1"),
    ("limit", "#1a7f37", "#3fb950"),
];

/// Draws it.
pub fn grid(all: &[(Strategy, Summary)]) -> String {
    let max = all.iter().map(|(_, summary)| summary.p99).fold(2.0, f64::max);
    let axis = LogAxis::new((LEFT, RIGHT), &[1.0, 2.0, 5.0], max);
    let bottom = TOP + ROW * all.len() as f64;
    let heading = "Time to deliver 256 KiB, in multiples of the link's physical limit";
    let medians = all
        .iter()
        .map(|(strategy, summary)| format!("{} {}", strategy.title(), digits(summary.p50)));
    let about = format!("Medians: {}.", medians.collect::<Vec<_>>().join(", "));
    let mut figure = Figure::new(WIDTH, bottom + 54.0, heading, &about, &INKS);
    for (right, word) in NUMBERS.into_iter().zip(["\u{25cf} p50", "| p95", "\u{25cb} p99"]) {
        figure.text("plain end", (right, TOP - 14.0), word);
    }
    for &tick in &axis.ticks {
        let (x, class) = (axis.at(tick), if tick == 1.0 { "limit" } else { "grid" });
        figure.line(class, [(x, TOP - 8.0), (x, bottom + 4.0)].map(Some));
        figure.text("plain middle", (x, bottom + 20.0), &tick.to_string());
    }
    figure.text("limit middle", (LEFT, TOP - 14.0), "the limit");
    figure.text("plain end", (RIGHT, bottom + 38.0), "less is better");
    for (row, (strategy, summary)) in all.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        let (ink, words) =
            if strategy.is_ours() { ("ours", "dark strong") } else { ("theirs", "dark") };
        let ratios = [summary.p50, summary.p95, summary.p99];
        let [p50, p95, p99] = ratios.map(|ratio| axis.at(ratio));
        let bold = format!("{ink} bold");
        figure.text(words, (NAMES, y + 4.5), strategy.title());
        figure.line(&bold, [(p50, y), (p99, y)].map(Some));
        figure.marker(&bold, Marker::Tick, (p95, y), 8.0);
        figure.marker(&bold, Marker::Ring, (p99, y), 4.5);
        figure.marker(&bold, Marker::Disc, (p50, y), 5.0);
        for (right, ratio) in NUMBERS.into_iter().zip(ratios) {
            figure.text(&format!("{words} end"), (right, y + 4.5), &digits(ratio));
        }
    }
    figure.finish()
}

/// Three significant digits, or all before the point.
fn digits(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 10.0 => format!("{ratio:.2}"),
        ratio if ratio < 100.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is drawn outside, whatever the numbers: below the limit, or two hangs.
    #[test]
    fn everything_is_inside_the_picture() {
        let measured =
            |strategy, p50, p95, p99| (strategy, Summary { p50, p95, p99, ..Summary::default() });
        let all = [
            measured(Strategy::Warm, 0.98, 1.1, 1.5),
            measured(Strategy::Article, 4.0, 26.5, 48.0),
            measured(Strategy::SlowStart, 7.4, 110.0, 2_300.0),
        ];
        let svg = grid(&all);
        assert_eq!(svg, grid(&all));
        for part in svg.split(['x', 'y']).filter_map(|part| part.split('"').nth(1)) {
            if let Ok(number) = part.parse::<f64>() {
                assert!((0.0..=WIDTH).contains(&number), "{number} in {svg}");
            }
        }
        assert!(svg.contains(">5000<") && svg.contains(">2300<"), "{svg}");
        assert!(svg.contains("haulier/1, connected"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 6);
    }
}
