//! Cold joins over seventeen links in virtual time: the README's figure, a panel for each size of the block.

use super::plot::{Figure, Ink, LogAxis, Marker, spread};
use crate::joins::{JoinLink, Joiner};

/// One size of the block.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What was sent, as "256 KiB".
    pub title: String,
    /// The median times in L over each of the links; infinite where a join failed, none where there was none.
    pub medians: Vec<(Joiner, Vec<Option<f64>>)>,
}

const WIDTH: f64 = 1_060.0;
const LEFT: f64 = 44.0;
/// To the right of it are the labels. A column is as wide as its widest note, "100 Mbit/s".
const RIGHT: f64 = 932.0;
/// Between the links of the first kind and those of the second.
const GAP: f64 = 12.0;
/// From the top of the figure to the first panel, and what a panel takes: its title, its axis, a pause.
const TOP: f64 = 62.0;
const TITLE: f64 = 32.0;
const AXIS: f64 = 180.0;
const PAUSE: f64 = 20.0;
/// What the names of the links and their notes take.
const FOOT: f64 = 84.0;
/// The position of a failure, above the axis.
const FAILED: f64 = 14.0;
/// The minimum range of an axis, so that figures of good results look like others.
const MIN_AXIS: f64 = 5.0;

/// A label, a marker, an ink, and the class of its line's width.
const fn series(joiner: Joiner) -> (&'static str, Marker, Ink, &'static str) {
    match joiner {
        Joiner::Token => ("haulier, token", Marker::Disc, ("s0", "#0757c2", "#6cb6ff"), "bolder"),
        Joiner::Ticket => ("haulier, ticket", Marker::Ring, ("s1", "#2f81f7", "#9ecbff"), "bold"),
        Joiner::Article => ("the article", Marker::Disc, ("s2", "#b35900", "#f0a04b"), ""),
        Joiner::Bbr => ("TCP BBR", Marker::Up, ("s3", "#7d6a9c", "#ab9bc9"), ""),
        Joiner::Cubic => ("TCP CUBIC", Marker::Down, ("s4", "#9c6a7f", "#cf9db1"), ""),
    }
}

/// Draws it.
pub fn links(panels: &[Panel]) -> String {
    let links = JoinLink::all();
    let height = TOP + (TITLE + AXIS + PAUSE) * panels.len() as f64 + FOOT;
    let inks = Joiner::ALL.map(|joiner| series(joiner).2);
    let heading = "From the first packet to the whole block";
    let mut figure = Figure::new(WIDTH, height, heading, &about(panels), &inks);
    let lead = "Median time as a multiple of the link\u{2019}s physical limit; lower is better. Simulated: \
                the machines of haulier and of the article, models of TCP";
    figure.text("plain", (16.0, 46.0), lead);
    let mut top = TOP;
    for panel in panels {
        draw(&mut figure, panel, top);
        top += TITLE + AXIS + PAUSE;
    }
    for (index, link) in links.iter().enumerate() {
        figure.text("dark strong small middle", (x(index), top + 4.0), link.name);
        for (line, note) in (1..).zip(&link.notes) {
            figure.text("plain small middle", (x(index), top + 4.0 + 12.0 * f64::from(line)), note);
        }
    }
    figure.finish()
}

/// In words, for those who do not see it.
fn about(panels: &[Panel]) -> String {
    let of = |panel: &Panel| {
        let means = panel.medians.iter().map(|(joiner, medians)| {
            format!("{} {:.2}", series(*joiner).0, geometric_mean(medians))
        });
        format!("{}: {}", panel.title, means.collect::<Vec<_>>().join(", "))
    };
    let means: Vec<String> = panels.iter().map(of).collect();
    format!(
        "How long a cold join takes over seventeen simulated links: median times as multiples of the \
         physical limit of each link, on logarithmic axes; 1 is the limit. Geometric means of {}.",
        means.join("; ")
    )
}

/// The geometric mean of the medians that were measured and did not fail.
fn geometric_mean(medians: &[Option<f64>]) -> f64 {
    let logarithms: Vec<f64> = medians
        .iter()
        .flatten()
        .filter(|ratio| ratio.is_finite())
        .map(|ratio| ratio.ln())
        .collect();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

fn draw(figure: &mut Figure, panel: &Panel, top: f64) {
    let [from, bottom] = [top + TITLE, top + TITLE + AXIS];
    figure.text("dark strong", (LEFT, top + 6.0), &panel.title);
    let medians = panel.medians.iter().flat_map(|(_, medians)| medians.iter().flatten());
    let max = medians.copied().filter(|median| median.is_finite()).fold(MIN_AXIS, f64::max);
    let axis = LogAxis::new((bottom, from), &[1.0, 2.0, 3.0, 5.0], max);
    let failed = top + FAILED;
    let height = |ratio: f64| if ratio.is_finite() { axis.at(ratio) } else { failed };
    for &tick in &axis.ticks {
        let class = if tick == 1.0 { "base" } else { "grid" };
        figure.line(class, [(LEFT, axis.at(tick)), (RIGHT, axis.at(tick))].map(Some));
        figure.text("plain end", (LEFT - 6.0, axis.at(tick) + 4.0), &tick.to_string());
    }
    let points = |medians: &[Option<f64>]| -> Vec<Option<(f64, f64)>> {
        let medians = medians.iter().enumerate();
        medians.map(|(index, median)| median.map(|median| (x(index), height(median)))).collect()
    };
    // The first one is drawn on top.
    for (joiner, medians) in panel.medians.iter().rev() {
        let (_, marker, (ink, ..), width) = series(*joiner);
        let points = points(medians);
        let (first, second) = points.split_at(JoinLink::FIRST_KIND.min(points.len()));
        for kind in [first, second] {
            figure.line(&format!("{ink} {width}"), kind.iter().copied());
        }
        for (point, median) in points.iter().zip(medians) {
            let (Some(point), Some(median)) = (*point, median) else { continue };
            if median.is_finite() {
                let size = if width.is_empty() { 3.0 } else { 4.2 };
                figure.marker(ink, marker, point, size);
            } else {
                figure.marker(&format!("{ink} bold"), Marker::Cross, point, 4.0);
            }
        }
    }
    let end = |medians: &[Option<f64>]| points(medians).into_iter().flatten().last();
    let ends: Vec<_> =
        panel.medians.iter().map(|(joiner, medians)| (*joiner, end(medians))).collect();
    let heights = ends.iter().map(|(_, end)| end.map_or(bottom, |(_, y)| y)).collect();
    for ((joiner, end), y) in ends.iter().zip(spread(heights, bottom)) {
        let (label, marker, (ink, ..), width) = series(*joiner);
        let start = (RIGHT + 8.0, y);
        figure.line(&format!("{ink} faint"), [*end, Some(start)]);
        figure.marker(ink, marker, start, 3.5);
        let class = if width.is_empty() { "" } else { "strong" };
        figure.text(&format!("{ink} {class}"), (start.0 + 10.0, y + 4.0), label);
    }
}

/// The middle of a link's column.
fn x(index: usize) -> f64 {
    let gap = if index < JoinLink::FIRST_KIND { 0.0 } else { GAP };
    LEFT + gap + (RIGHT - GAP - LEFT) / JoinLink::COUNT as f64 * (index as f64 + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(title: &str, token: f64, cubic: f64) -> Panel {
        let over = |ratio| vec![Some(ratio); JoinLink::COUNT];
        Panel {
            title: title.into(),
            medians: vec![(Joiner::Token, over(token)), (Joiner::Cubic, over(cubic))],
        }
    }

    #[test]
    fn a_figure_has_every_link_and_the_means_in_words() {
        let figure = links(&[panel("256 KiB", 1.05, 4.0), panel("16 MiB", 1.01, 40.0)]);
        for link in JoinLink::all() {
            assert_eq!(
                figure.matches(&format!(">{}</text>", link.name)).count(),
                1,
                "{}",
                link.name
            );
        }
        let means = "256 KiB: haulier, token 1.05, TCP CUBIC 4.00; 16 MiB: haulier, token 1.01";
        assert!(figure.contains(means), "{figure}");
        assert_eq!(figure.matches(">haulier, token</text>").count(), 2);
        assert!(figure.contains(">50</text>") && !figure.contains("href"), "{figure}");
        assert!(figure.ends_with("</svg>\n"));
    }

    #[test]
    fn a_failure_is_a_cross_and_no_part_of_a_mean() {
        let mut panel = panel("256 KiB", 2.0, 4.0);
        panel.medians[1].1[3] = Some(f64::INFINITY);
        panel.medians[1].1[4] = None;
        let figure = links(&[panel]);
        let cross = format!("M{:.1} {:.1}L", x(3) - 4.0, TOP + FAILED - 4.0);
        assert_eq!(figure.matches(&cross).count(), 1, "{figure}");
        assert!(figure.contains("TCP CUBIC 4.00"), "{figure}");
    }
}
