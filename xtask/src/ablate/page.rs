//! Rows as tables, for a terminal and for a page.
//!
//! All numbers are differences from the run with everything on, in the same cells: a plus is more time,
//! bytes, drops or fairness without the mechanism.

use std::collections::BTreeMap;

use super::battery::{Battery, Cells, Row};
use super::compared::{
    CROWDS, LINKS, Number, OF_CROWDS, OF_LINKS, Verdict, extremes, failures, moved, numbers, p95,
    slower_and_faster_text, verdict,
};

/// A row in a line, for a terminal.
pub(super) fn line(row: &Row, base: &Cells, cells: &Cells) -> String {
    let (verdict, words) = verdict(base, cells);
    let (moved, all) = moved(base, cells);
    let times = numbers(base, cells);
    let time = |kind: &str| {
        let number = times.iter().find(|it| it.of == format!("{kind}: time"));
        number.map_or_else(String::new, Number::text)
    };
    format!(
        "{:<44} {verdict:?}, {moved} of {all} cells, 256 KiB {} %, 4 MiB {} %; {words}",
        row.name,
        time("256 KiB"),
        time("4 MiB"),
    )
}

/// Characters of a line: one with a table's marks may be longer, and prose not.
const WIDTH: usize = 108;

/// In which cells all of it was measured.
fn intro(battery: &Battery, base: &Cells) -> String {
    let Battery { seed, links, crowds } = battery;
    wrapped(&format!(
        "Seed {seed}: {links} links with 256 KiB and 4 MiB, {crowds} crowds with a server each and with one. \
         With everything on {} joins had no block in time.",
        failures(base)
    )) + "\n"
}

/// All that is shown of some rows, as Markdown.
pub(super) fn tables(battery: &Battery, base: &Cells, rows: &[(Row, Cells)]) -> String {
    let mut text = intro(battery, base);
    text += &lists(base, rows);
    text += "| over links, without | cells changed | 256 KiB: time, % | p95 | 4 MiB: time, % | p95 | \
             slower / faster, % of links | bytes, %: 256 KiB | 4 MiB | dropped, points: 256 KiB | 4 MiB | \
             slowest, times | fastest, times |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|---|\n";
    for (row, cells) in rows.iter().filter(|(_, cells)| has_numbers(base, cells)) {
        text += &link_row(row, base, cells);
    }
    text += "\n| in crowds, without | each: dropped, points | last, % | mean, % | Jain, points | \
             one: dropped, points | last, % | mean, % | Jain, points |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for (row, cells) in rows.iter().filter(|(_, cells)| has_numbers(base, cells)) {
        let numbers = numbers(base, cells);
        let of_crowds = numbers.iter().skip(LINKS.len() * OF_LINKS.len());
        let numbers = of_crowds.take(CROWDS.len() * OF_CROWDS.len()).map(Number::text);
        text += &format!("| `{}` | {} |\n", row.name, numbers.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// Whether there is anything to show in a table: not of what ends early or changes nothing.
fn has_numbers(base: &Cells, cells: &Cells) -> bool {
    cells.broken.is_none() && moved(base, cells).0 > 0
}

fn link_row(row: &Row, base: &Cells, cells: &Cells) -> String {
    let (moved, all) = moved(base, cells);
    let numbers = numbers(base, cells);
    let number = |at: usize| numbers.get(at).map_or_else(String::new, Number::text);
    let [slowest, fastest] = extremes(base, cells);
    let p95 = LINKS.map(|(kind, _)| p95(base, cells, kind));
    format!(
        "| `{}` | {moved} of {all} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {slowest} | {fastest} |\n",
        row.name,
        number(0),
        p95[0],
        number(3),
        p95[1],
        slower_and_faster_text(base, cells),
        number(1),
        number(4),
        number(2),
        number(5),
    )
}

/// What the rows say: those first that buy or cost something, a point for each.
fn lists(base: &Cells, rows: &[(Row, Cells)]) -> String {
    let verdicts: Vec<_> = rows.iter().map(|(_, cells)| verdict(base, cells)).collect();
    let mut text = String::new();
    for (wanted, title) in [
        (Verdict::Buys, "Worse without it"),
        (Verdict::Both, "Worse in one respect, better in another"),
        (Verdict::Costs, "Better without it"),
        (Verdict::Broken, "It does not run"),
        (Verdict::Nothing, "Nothing beyond the scatter"),
        (Verdict::Never, "It changes nothing in any of these cells"),
    ] {
        let of = rows.iter().zip(&verdicts).filter(|(_, (verdict, _))| *verdict == wanted);
        let points: Vec<String> =
            of.map(|((row, cells), (_, words))| point(base, row, cells, words)).collect();
        if !points.is_empty() {
            text += &format!("**{title}** ({}):\n\n{}\n", points.len(), points.concat());
        }
    }
    text
}

/// A point of a list: what is beyond the scatter, and the times in any case.
fn point(base: &Cells, row: &Row, cells: &Cells, words: &str) -> String {
    let what = if row.what.is_empty() { "" } else { ": " };
    let mut text = format!("* `{}`{what}{}", row.name, row.what);
    if !words.is_empty() {
        text += &format!(". {words}");
    }
    let (moved, all) = moved(base, cells);
    if cells.broken.is_none() && moved > 0 {
        let [slowest, fastest] = extremes(base, cells);
        let numbers = numbers(base, cells);
        let time = |at: usize| numbers.get(at).map_or_else(String::new, Number::plain);
        text += &format!(
            " (time: 256 KiB {} %, 4 MiB {} %; {moved} of {all} cells, {slowest} to {fastest} times)",
            time(0),
            time(OF_LINKS.len()),
        );
    }
    wrapped(&text)
}

/// What the rows of constants say: names alone of those that neither halved nor doubled show anything, and of
/// those that are not used.
fn constants_lists(base: &Cells, rows: &[(Row, Cells)], unused: &[String]) -> String {
    let verdicts: Vec<Verdict> = rows.iter().map(|(_, cells)| verdict(base, cells).0).collect();
    let is_silent = |it: &Verdict| matches!(it, Verdict::Nothing | Verdict::Never);
    let showing = rows.iter().zip(&verdicts).filter(|(_, verdict)| !is_silent(verdict));
    let showing: Vec<(Row, Cells)> = showing.map(|(row, _)| row.clone()).collect();
    let mut silent: BTreeMap<&str, Vec<Verdict>> = BTreeMap::new();
    for ((row, _), verdict) in rows.iter().zip(&verdicts) {
        let Some((name, _)) = row.name.split_once(" x ") else { continue };
        silent.entry(name).or_default().push(*verdict);
    }
    silent.retain(|_, both| both.iter().all(is_silent));
    let is_never = |both: &Vec<Verdict>| both.iter().all(|it| *it == Verdict::Never);
    let (never, nothing): (Vec<_>, Vec<_>) = silent.iter().partition(|(_, both)| is_never(both));
    let mut text = lists(base, &showing);
    for (title, names) in [
        ("Halved or doubled: nothing beyond the scatter", names(&nothing)),
        ("Halved or doubled: no change in any of these cells", names(&never)),
        ("Not used in these cells", unused.iter().map(String::as_str).collect()),
    ] {
        let joined = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        text += &format!("**{title}** ({}):\n\n{}\n", names.len(), wrapped(&(joined + ".")));
    }
    text
}

fn names<'a>(of: &[(&&'a str, &Vec<Verdict>)]) -> Vec<&'a str> {
    of.iter().map(|(name, _)| **name).collect()
}

/// Constants, each with what it does when it is halved and doubled.
pub(super) fn constants(
    battery: &Battery,
    base: &Cells,
    rows: &[(Row, Cells)],
    unused: &[String],
) -> String {
    let mut text = intro(battery, base) + &constants_lists(base, rows, unused);
    let columns =
        "cells | 256 KiB, % | 4 MiB, % | each: dropped | last, % | one: dropped | last, %";
    text += &format!(
        "| constant | halved: {columns} | doubled: {columns} |\n|---|{}\n",
        "--:|".repeat(14)
    );
    for (halved, _) in rows {
        let Some((name, "0.5")) = halved.name.split_once(" x ") else { continue };
        let columns = ["0.5", "2"].map(|by| {
            let wanted = format!("{name} x {by}");
            let row = rows.iter().find(|(row, _)| row.name == wanted);
            row.map_or_else(|| "| | | | | | ".to_owned(), |(_, cells)| columns_of(base, cells))
        });
        text += &format!("| `{name}` | {} |\n", columns.join(" | "));
    }
    text
}

/// What a constant does, in the columns of a table.
fn columns_of(base: &Cells, cells: &Cells) -> String {
    if let Some(why) = &cells.broken {
        return format!("{why} | | | | | | ");
    }
    let numbers = numbers(base, cells);
    let (links, crowd) = (OF_LINKS.len(), OF_CROWDS.len());
    let [each, one] = [2 * links, 2 * links + crowd];
    let shown = [0, links, each, each + 1, one, one + 1]
        .map(|at| numbers.get(at).map_or_else(String::new, Number::text));
    format!("{} | {}", moved(base, cells).0, shown.join(" | "))
}

/// A paragraph or the point of a list, broken before the width of a page.
fn wrapped(text: &str) -> String {
    let indent = if text.starts_with("* ") { "  " } else { "" };
    let (mut wrapped, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let chars = word.chars().count();
        if width > 0 && width + 1 + chars > WIDTH {
            wrapped += "\n";
            wrapped += indent;
            width = indent.len();
        } else if width > 0 {
            wrapped += " ";
            width += 1;
        }
        wrapped += word;
        width += chars;
    }
    wrapped + "\n"
}

/// The page with this part of it replaced: what is between the marks of its name.
pub(super) fn put(page: &str, part: &str, text: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- {part} -->\n"), format!("<!-- end of {part} -->\n"));
    let missing = || format!("{} has no part `{part}`", super::PAGE);
    let from = page.find(&begin).ok_or_else(missing)? + begin.len();
    let to = page.find(&end).filter(|&to| to >= from).ok_or_else(missing)?;
    Ok(format!("{}\n{}\n{}", &page[..from], text.trim_end(), &page[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_page_is_replaced() {
        let page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n";
        let expected = "a\n<!-- x -->\n\nnew\n<!-- end of x -->\nb\n";
        assert_eq!(put(page, "x", "new\n").as_deref(), Ok(expected));
        assert!(put(page, "y", "new").is_err());
    }
}
