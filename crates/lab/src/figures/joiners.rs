//! A crowd that joins: how many have their block, over time, beside what links and uplink allow.

use std::time::Duration;

use super::plot::{Figure, Ink, spread};
use crate::joiners::{Joiners, JoinersReport};

const WIDTH: f64 = 828.0;
const LEFT: f64 = 56.0;
/// To the right of it are the labels.
const RIGHT: f64 = 628.0;
const TOP: f64 = 72.0;
const BOTTOM: f64 = 352.0;
const HEIGHT: f64 = 400.0;

/// Points of a curve: enough for its steps to be smaller than its line.
const POINTS: usize = 200;

/// Ticks of the axis of time, at least.
const MIN_TICKS: f64 = 4.0;

/// A label, an ink, and the class of its line.
type Series = (&'static str, Ink, &'static str);

const OURS: Series = ("haulier", ("s0", "#0757c2", "#6cb6ff"), "bolder");
const ALONE: Series = ("each link, were it alone", ("s1", "#1a7f37", "#3fb950"), "dots bold");
const EQUAL: Series = ("equal shares", ("s2", "#7d6a9c", "#ab9bc9"), "bold");
const IN_TURN: Series = ("first come, first served", ("s3", "#9c6a7f", "#cf9db1"), "bold");

/// Draws it.
#[must_use]
pub fn joiners(crowd: &Joiners, report: &JoinersReport) -> String {
    let joined: Vec<Duration> = report.times.iter().flatten().copied().collect();
    let curves = [
        (ALONE, Curve::new(&report.alone, crowd.clients)),
        (EQUAL, Curve::new(&report.limits, crowd.clients)),
        (IN_TURN, Curve::new(&report.in_turn, crowd.clients)),
        (OURS, Curve::new(&joined, crowd.clients)),
    ];
    let inks = curves.each_ref().map(|((_, ink, _), _)| *ink);
    let gbit = crowd.uplink_bps as f64 / 1e9;
    let heading = format!("{} players join at once, behind {gbit} Gbit/s", crowd.clients);
    let medians = curves.each_ref().map(|((label, ..), curve)| {
        format!("{label}: half after {:.2} s, 95 % after {:.2} s", curve.at(0.5), curve.at(0.95))
    });
    let mut figure = Figure::new(WIDTH, HEIGHT, &heading, &medians.join("; "), &inks);
    let lead = format!(
        "Part of them that have {} KiB, over time. Simulated, each behind one of the lab's ten links",
        crowd.bytes >> 10
    );
    figure.text("plain", (16.0, 46.0), &lead);
    let max = curves.iter().map(|(_, curve)| curve.at(0.995)).fold(0.1, f64::max);
    let step = tick_step(max);
    let x = |seconds: f64| LEFT + (RIGHT - LEFT) * (seconds / max).min(1.0);
    let y = |part: f64| BOTTOM - (BOTTOM - TOP) * part;
    for percent in [0_u32, 25, 50, 75, 95, 100] {
        let at = y(f64::from(percent) / 100.0);
        figure
            .line(if percent == 0 { "base" } else { "grid" }, [(LEFT, at), (RIGHT, at)].map(Some));
        figure.text("plain end", (LEFT - 8.0, at + 4.0), &format!("{percent} %"));
    }
    for tick in (0_u32..).map(|n| f64::from(n) * step).take_while(|&tick| tick <= max) {
        figure.text("plain middle", (x(tick), BOTTOM + 20.0), &format!("{} s", rounded(tick)));
    }
    for ((_, (ink, ..), class), curve) in &curves {
        let points = curve.points().map(|(seconds, part)| Some((x(seconds), y(part))));
        figure.line(&format!("{ink} {class}"), points);
    }
    let heights = curves.iter().map(|(_, curve)| {
        // Beside the middle of its curve, so that the labels are in the order of the curves.
        TOP + (BOTTOM - TOP) * 0.9 * (x(curve.at(0.5)) - LEFT) / (RIGHT - LEFT) + 20.0
    });
    let heights = spread(heights.collect(), BOTTOM);
    for (((label, (ink, ..), class), _), at) in curves.iter().zip(heights) {
        let start = RIGHT + 10.0;
        figure.line(
            &format!("{ink} {class}"),
            [(start, at - 4.0), (start + 22.0, at - 4.0)].map(Some),
        );
        figure.text(&format!("{ink} strong"), (start + 28.0, at), label);
    }
    figure.finish()
}

/// The times of a curve in ascending order, in seconds, and the number of all clients.
struct Curve {
    times: Vec<f64>,
    clients: f64,
}

impl Curve {
    fn new(times: &[Duration], clients: u32) -> Self {
        let mut times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
        times.sort_by(f64::total_cmp);
        Self { times, clients: f64::from(clients) }
    }

    /// When this part of all had it, or as many as had it at all.
    fn at(&self, part: f64) -> f64 {
        let place = ((self.clients * part).ceil() as usize).min(self.times.len());
        self.times.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let all = self.times.len() as f64 / self.clients;
        (0..=POINTS).map(move |n| {
            let part = all * n as f64 / POINTS as f64;
            (self.at(part), part)
        })
    }
}

/// Between the ticks: 1, 2 or 5 times a power of ten.
fn tick_step(max: f64) -> f64 {
    let power = 10_f64.powf((max / MIN_TICKS).log10().floor());
    [5.0, 2.0, 1.0]
        .map(|step| step * power)
        .into_iter()
        .find(|step| max / step >= MIN_TICKS)
        .unwrap_or(power)
}

/// To a thousandth: a sum of steps has no more digits than a step.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joiners::JoinBy;
    use crate::joiners::Told;

    #[test]
    fn a_figure_has_every_curve_and_its_numbers_in_words() {
        let crowd = Joiners {
            clients: 4,
            bytes: 256 << 10,
            uplink_bps: 10_000_000_000,
            told: Told::Rate,
            seats: None,
            by: JoinBy::Token,
            hostile: 0,
            junk_per_s: 0,
            seed: 1,
        };
        let seconds = |all: &[u64]| all.iter().map(|&ms| Duration::from_millis(ms)).collect();
        let times = [100, 300, 200].map(|ms| Some(Duration::from_millis(ms)));
        let report = JoinersReport {
            times: times.into_iter().chain([None]).collect(),
            alone: seconds(&[50, 60, 70, 80]),
            limits: seconds(&[400; 4]),
            in_turn: seconds(&[100, 200, 300, 400]),
            ..JoinersReport::default()
        };
        let figure = joiners(&crowd, &report);
        let words = "haulier: half after 0.20 s, 95 % after 0.30 s";
        assert!(figure.contains(words), "{figure}");
        for (label, ..) in [OURS, ALONE, EQUAL, IN_TURN] {
            assert_eq!(figure.matches(&format!(">{label}</text>")).count(), 1, "{label}");
        }
        assert!(figure.contains("4 players join at once, behind 10 Gbit/s"), "{figure}");
        assert!(figure.contains(">0.3 s</text>") && figure.ends_with("</svg>\n"), "{figure}");
        // Three of four have it: the curve ends at three quarters.
        let y = BOTTOM - (BOTTOM - TOP) * 0.75;
        assert!(figure.contains(&format!(" {y:.1}\"/>")), "{figure}");
    }

    #[test]
    fn ticks_are_round() {
        let steps = [0.7, 3.3, 22.0, 40.0].map(|max| rounded(tick_step(max)));
        assert_eq!(steps, [0.1, 0.5, 5.0, 10.0]);
    }
}
