//! A row compared with the run with everything on: each number with its scatter, and what they say.

use super::battery::{Cell, Cells};
use super::paired::{Mean, quantile};

/// A difference beyond this many standard errors is no chance.
/// Of some hundred numbers a few are beyond two of them
/// by chance.
const ERRORS: f64 = 3.0;

/// Less is of no use to anybody: percent, and points.
const LEAST: f64 = 0.2;

/// A cell has changed that takes longer or shorter by this part.
const CHANGED: f64 = 0.05;

/// Cells by what they are called in a table.
pub(super) const LINKS: [(&str, &str); 2] = [("link 262144", "256 KiB"), ("link 4194304", "4 MiB")];
pub(super) const CROWDS: [(&str, &str); 2] = [("each", "a server each"), ("one", "one server")];

/// One number of a row.
pub(super) struct Number {
    /// The name of the number, such as "4 MiB: time".
    pub(super) of: String,
    pub(super) mean: Mean,
    /// More of it is worse.
    is_cost: bool,
}

impl Number {
    fn is_beyond(&self) -> bool {
        self.mean.is_beyond(ERRORS, LEAST)
    }

    pub(super) fn plain(&self) -> String {
        let Mean { mean, error, is_same, .. } = self.mean;
        if is_same { "0".to_owned() } else { format!("{mean:+.1} ± {error:.1}") }
    }

    /// The number and its error as text, bold if it is not chance.
    pub(super) fn text(&self) -> String {
        if self.is_beyond() { format!("**{}**", self.plain()) } else { self.plain() }
    }
}

/// A comparison of two cells, and whether more is worse.
type Compare = (&'static str, fn(&Cell, &Cell) -> f64, bool);

/// In percent of the base, by logarithms: of twice and half as much the mean is nothing.
fn percent(base: f64, row: f64) -> f64 {
    if base > 0.0 && row > 0.0 { 100.0 * (row / base).ln() } else { 0.0 }
}

pub(super) const OF_LINKS: &[Compare] = &[
    ("time", |base, row| percent(base.last, row.last), true),
    ("bytes", |base, row| percent(base.offered, row.offered), true),
    ("dropped", |base, row| 100.0 * (row.dropped - base.dropped), true),
];

pub(super) const OF_CROWDS: &[Compare] = &[
    ("dropped", |base, row| 100.0 * (row.dropped - base.dropped), true),
    ("last", |base, row| percent(base.last, row.last), true),
    ("mean", |base, row| percent(base.mean, row.mean), true),
    ("Jain", |base, row| 100.0 * (row.jain - base.jain), false),
];

/// The cells of a kind, beside those of the base.
fn pairs<'a>(base: &'a Cells, row: &'a Cells, kind: &str) -> Vec<(&'a Cell, &'a Cell)> {
    let of = |cells: &'a Cells| cells.of.get(kind).map(Vec::as_slice).unwrap_or_default();
    of(base).iter().zip(of(row)).collect()
}

pub(super) fn numbers(base: &Cells, row: &Cells) -> Vec<Number> {
    let links = LINKS.iter().map(|kind| (kind, OF_LINKS));
    let kinds = links.chain(CROWDS.iter().map(|kind| (kind, OF_CROWDS)));
    let of_kind = |((kind, shown), compares): (&(&str, &str), &'static [Compare])| {
        let pairs = pairs(base, row, kind);
        let number = |&(name, compare, is_cost): &Compare| {
            let differences: Vec<f64> = pairs.iter().map(|(a, b)| compare(a, b)).collect();
            Number { of: format!("{shown}: {name}"), mean: Mean::of(&differences), is_cost }
        };
        compares.iter().map(number).collect::<Vec<Number>>()
    };
    kinds.flat_map(of_kind).chain([slower_than_faster(base, row)]).collect()
}

/// The links that take longer by a twentieth, less those that take shorter by a twentieth, in percent of all
/// links. If it is chance, each link that has changed is one or the other.
fn slower_than_faster(base: &Cells, row: &Cells) -> Number {
    let (slower, faster, all) = slower_and_faster(base, row);
    let part = |count: f64| 100.0 * count / all.max(1.0);
    let mean = Mean {
        mean: part(slower - faster),
        error: part((slower + faster).sqrt()),
        count: all as usize,
        is_same: slower + faster == 0.0,
    };
    Number { of: "links slower rather than faster".to_owned(), mean, is_cost: true }
}

/// All pairs of cells, with their names.
fn named<'a>(base: &'a Cells, row: &'a Cells) -> Vec<(String, &'a Cell, &'a Cell)> {
    let kinds = LINKS.iter().map(|&(kind, shown)| (kind, "link", shown));
    let kinds = kinds.chain(CROWDS.iter().map(|&(kind, shown)| (kind, "crowd", shown)));
    let of_kind = |(kind, what, shown): (&str, &'static str, &'static str)| {
        let pairs = pairs(base, row, kind).into_iter().enumerate();
        pairs.map(move |(n, (a, b))| (format!("{what}:{n}, {shown}"), a, b)).collect::<Vec<_>>()
    };
    kinds.flat_map(of_kind).collect()
}

/// Cells that have changed in any way, and all.
pub(super) fn moved(base: &Cells, row: &Cells) -> (usize, usize) {
    let named = named(base, row);
    (named.iter().filter(|(_, a, b)| a != b).count(), named.len())
}

/// The largest and the least ratio of times, and where.
pub(super) fn extremes(base: &Cells, row: &Cells) -> [String; 2] {
    let named = named(base, row);
    let ratio = |(_, a, b): &&(String, &Cell, &Cell)| b.last / a.last.max(1e-9);
    let text = |it: Option<&(String, &Cell, &Cell)>| {
        it.map_or_else(String::new, |it| format!("{:.2} ({})", ratio(&it), it.0))
    };
    let by_ratio = |a: &&_, b: &&_| ratio(a).total_cmp(&ratio(b));
    [text(named.iter().max_by(by_ratio)), text(named.iter().min_by(by_ratio))]
}

/// Links that take longer and shorter by more than a twentieth, and all.
fn slower_and_faster(base: &Cells, row: &Cells) -> (f64, f64, f64) {
    let pairs: Vec<_> = LINKS.iter().flat_map(|(kind, _)| pairs(base, row, kind)).collect();
    let count =
        |is: fn(f64) -> bool| pairs.iter().filter(|(a, b)| is(b.last / a.last)).count() as f64;
    (count(|it| it > 1.0 + CHANGED), count(|it| it < 1.0 - CHANGED), pairs.len() as f64)
}

/// The 95th percentile of the time over the limit, as a part of that of the base.
pub(super) fn p95(base: &Cells, row: &Cells, kind: &str) -> String {
    let of = |cells: &Cells| {
        quantile(cells.of.get(kind).into_iter().flatten().map(|cell| cell.limits), 0.95)
    };
    format!("{:.2}", of(row) / of(base).max(1e-9))
}

pub(super) fn failures(cells: &Cells) -> f64 {
    cells.of.values().flatten().map(|cell| cell.failures).sum()
}

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Buys,
    Both,
    Costs,
    Nothing,
    Never,
    Broken,
}

pub(super) fn verdict(base: &Cells, row: &Cells) -> (Verdict, String) {
    if let Some(why) = &row.broken {
        return (Verdict::Broken, why.clone());
    }
    if moved(base, row).0 == 0 {
        return (Verdict::Never, String::new());
    }
    let numbers = numbers(base, row);
    let beyond: Vec<&Number> = numbers.iter().filter(|it| it.is_beyond()).collect();
    let is_worse = |it: &Number| (it.mean.mean > 0.0) == it.is_cost;
    let mut words: Vec<String> =
        beyond.iter().map(|it| format!("{} {}", it.of, it.plain())).collect();
    let more = failures(row) - failures(base);
    if more != 0.0 {
        words.push(format!("{more:+} joins without a block"));
    }
    let words = words.join("; ");
    let (worse, better) =
        (beyond.iter().any(|it| is_worse(it)), beyond.iter().any(|it| !is_worse(it)));
    let verdict = match (worse, better) {
        (true, true) => Verdict::Both,
        (true, false) => Verdict::Buys,
        (false, true) => Verdict::Costs,
        (false, false) => Verdict::Nothing,
    };
    (verdict, words)
}

/// In percent of the links; bold if that is no chance.
pub(super) fn slower_and_faster_text(base: &Cells, cells: &Cells) -> String {
    let (slower, faster, all) = slower_and_faster(base, cells);
    let part = |count: f64| 100.0 * count / all.max(1.0);
    let text = format!("{:.0} / {:.0}", part(slower), part(faster));
    if slower_than_faster(base, cells).is_beyond() { format!("**{text}**") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(times: &[f64]) -> Cells {
        let cell = |&last: &f64| Cell { last, limits: last, offered: 1.0, ..Cell::default() };
        let mut cells = Cells::default();
        cells.of.insert(LINKS[0].0.to_owned(), times.iter().map(cell).collect());
        cells
    }

    #[test]
    fn what_is_beyond_the_scatter_is_said() {
        let base = cells(&[1.0, 2.0, 3.0, 4.0, 1.0, 1.0]);
        let verdict = |times: &[f64]| verdict(&base, &cells(times)).0;
        assert_eq!(verdict(&[1.0, 2.0, 3.0, 4.0, 1.0, 1.0]), Verdict::Never);
        assert_eq!(verdict(&[1.1, 2.2, 3.31, 4.4, 1.1, 1.1]), Verdict::Buys);
        assert_eq!(verdict(&[0.9, 1.8, 2.71, 3.6, 0.9, 0.9]), Verdict::Costs);
        assert_eq!(verdict(&[1.1, 1.8, 3.0, 4.0, 1.0, 1.0]), Verdict::Nothing);
        assert_eq!(
            slower_and_faster_text(&base, &cells(&[1.1, 1.8, 3.3, 4.0, 1.0, 1.0])),
            "33 / 17"
        );
        let (base, slower) = (cells(&[1.0; 10]), cells(&[1.1; 10]));
        assert_eq!(slower_and_faster_text(&base, &slower), "**100 / 0**");
    }
}
