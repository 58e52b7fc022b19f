//! The figure of `haulier bench grid`: for each strategy the ratio to the physical limit, on an axis of
//! powers, at 50, 95 and 99 of 100 runs.
//!
//! It needs no font but the reader's, no script and no file beside it. It brings its own ground, white or,
//! for who prefers it, dark: on a page of the other kind it is readable all the same. The same numbers make
//! the same bytes.

use std::fmt::Write as _;

use super::Measured;

const WIDTH: f64 = 800.0;
/// Empty ground on each side.
const MARGIN: f64 = 14.0;
const ROW: f64 = 34.0;
const TOP: f64 = 58.0;
/// Where the axis begins and ends; names stand before it, numbers behind it.
const LEFT: f64 = 196.0;
const RIGHT: f64 = 608.0;
/// Where the columns of numbers end.
const NUMBERS: [f64; 3] = [668.0, 728.0, 788.0];

const STYLE: &str = "\
.ground{fill:#fff}text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2328}\
.small{font-size:11px;fill:#59636e}.end{text-anchor:end}.middle{text-anchor:middle}\
.axis{stroke:#d1d9e0}.limit{stroke:#1a7f37}.limit-word{font-size:11px;fill:#1a7f37}\
.ours{stroke:#0969da;fill:#0969da}.theirs{stroke:#6e7781;fill:#6e7781}\
.hollow{fill:none}.strong{font-weight:600}\
@media(prefers-color-scheme:dark){.ground{fill:#0d1117}\
text{fill:#e6edf3}.small{fill:#9198a1}.axis{stroke:#3d444d}\
.limit{stroke:#3fb950}.limit-word{fill:#3fb950}.ours{stroke:#4493f8;fill:#4493f8}\
.theirs{stroke:#9198a1;fill:#9198a1}.hollow{fill:none}}";

/// The figure.
pub(super) fn draw(all: &[Measured]) -> String {
    let most = all.iter().map(|measured| measured.summary.p99).fold(2.0, f64::max);
    let ticks: Vec<u32> = ticks(most);
    let last = f64::from(ticks.last().copied().unwrap_or(2));
    // Who beats the limit by luck stands on it.
    let x = |ratio: f64| LEFT + (RIGHT - LEFT) * ratio.max(1.0).ln() / last.ln();
    let bottom = TOP + ROW * all.len() as f64;
    let height = bottom + 40.0;
    let (full_width, full_height) = (WIDTH + 2.0 * MARGIN, height + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" \
         viewBox=\"-{MARGIN} -{MARGIN} {full_width} {full_height}\" \
         role=\"img\" width=\"{full_width}\" height=\"{full_height}\">\n\
         <title>Time to deliver 256 KiB, in multiples of the physical limit of the link</title>\n\
         <style>{STYLE}</style>\n\
         <rect class=\"ground\" x=\"-{MARGIN}\" y=\"-{MARGIN}\" width=\"{full_width}\" \
         height=\"{full_height}\" rx=\"6\"/>\n"
    );
    text(
        &mut out,
        0.0,
        16.0,
        "strong",
        "Time to deliver 256 KiB, in multiples of the link's physical limit",
    );
    for (right, (word, mark)) in
        NUMBERS.into_iter().zip([("p50", "\u{25cf}"), ("p95", "|"), ("p99", "\u{25cb}")])
    {
        text(&mut out, right, TOP - 14.0, "small end", &format!("{mark} {word}"));
    }
    for tick in ticks {
        let (at, is_limit) = (x(tick.into()), tick == 1);
        let class = if is_limit { "limit" } else { "axis" };
        line(&mut out, class, 1, (at, TOP - 8.0), (at, bottom + 4.0));
        text(&mut out, at, bottom + 20.0, "small middle", &tick.to_string());
    }
    text(&mut out, x(1.0), TOP - 14.0, "limit-word middle", "the limit");
    text(&mut out, RIGHT, bottom + 36.0, "small end", "less is better");
    for (row, measured) in all.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        let summary = &measured.summary;
        let (class, weight) =
            if measured.strategy.is_ours() { ("ours", "strong") } else { ("theirs", "") };
        let (p50, p95, p99) = (x(summary.p50), x(summary.p95), x(summary.p99));
        text(&mut out, 0.0, y + 4.5, weight, measured.strategy.title());
        line(&mut out, class, 2, (p50, y), ((p99 - 4.5).max(p50), y));
        line(&mut out, class, 2, (p95, y - 8.0), (p95, y + 8.0));
        circle(&mut out, &format!("{class} hollow"), (p99, y), 4.5);
        circle(&mut out, class, (p50, y), 5.0);
        for (right, ratio) in NUMBERS.into_iter().zip([summary.p50, summary.p95, summary.p99]) {
            text(&mut out, right, y + 4.5, &format!("{weight} end"), &number(ratio));
        }
    }
    out += "</svg>\n";
    out
}

/// 1, 2, 5, 10 and so on, until one is not below `most`.
fn ticks(most: f64) -> Vec<u32> {
    let steps = (0..6).flat_map(|power| [1, 2, 5].map(|step| step * 10_u32.pow(power)));
    let mut ticks = Vec::new();
    for step in steps {
        ticks.push(step);
        if f64::from(step) >= most {
            break;
        }
    }
    ticks
}

/// Three digits that count, or all before the point.
fn number(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 10.0 => format!("{ratio:.2}"),
        ratio if ratio < 100.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

fn text(out: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let class = class.trim();
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _infallible =
        writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{words}</text>");
}

fn line(out: &mut String, class: &str, width: u32, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _infallible = writeln!(
        out,
        "<line class=\"{class}\" stroke-width=\"{width}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" \
         y2=\"{y2:.1}\"/>"
    );
}

fn circle(out: &mut String, class: &str, at: (f64, f64), radius: f64) {
    let (x, y) = at;
    let _infallible = writeln!(
        out,
        "<circle class=\"{class}\" stroke-width=\"2\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>"
    );
}

#[cfg(test)]
mod tests {
    use haulier_lab::grid::{Strategy, Summary};

    use super::*;

    fn measured(strategy: Strategy, p50: f64, p95: f64, p99: f64) -> Measured {
        let summary = Summary { p50, p95, p99, ..Summary::default() };
        Measured { strategy, cells: Vec::new(), summary }
    }

    /// Nothing is drawn outside, whatever the numbers: better than the limit, or two hangs.
    #[test]
    fn everything_is_inside_the_picture() {
        let all = [
            measured(Strategy::Warm, 0.98, 1.1, 1.5),
            measured(Strategy::Article, 4.0, 26.5, 48.0),
            measured(Strategy::SlowStart, 7.4, 110.0, 2_300.0),
        ];
        let svg = draw(&all);
        assert_eq!(svg, draw(&all));
        for part in svg.split(['x', 'y']).filter_map(|part| part.split('"').nth(1)) {
            if let Ok(number) = part.parse::<f64>() {
                assert!((-MARGIN..=WIDTH).contains(&number), "{number} in {svg}");
            }
        }
        assert!(svg.contains(">5000<") && svg.contains(">2300<"), "{svg}");
        assert!(svg.contains("haulier/1, connected"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 6);
    }

    #[test]
    fn ticks_reach_the_largest() {
        assert_eq!(ticks(1.5), [1, 2]);
        assert_eq!(ticks(2.0), [1, 2]);
        assert_eq!(ticks(48.0), [1, 2, 5, 10, 20, 50]);
    }
}
