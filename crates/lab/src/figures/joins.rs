//! Cold joins over ten links on real sockets, compared with other protocols: a figure, and its table.
//!
//! The times are measured in the lab and kept in `docs/lab/joins.json`; this draws them. A time is given as
//! a multiple of *L*, the [physical limit](join_limit) of its link, so that ten very different links fit on
//! one axis, and no sender is expected to be below 1.

use std::collections::BTreeMap;

use haulier_sim::Profile;
use haulier_sim::profile::join_limit;
use serde_json::Value;

use super::plot::{Figure, Ink, LogAxis, Marker, spread};

/// The size of the block that the figure is about; joins of other sizes may be in the file as well.
const BLOCK_BYTES: u64 = 256 * 1024;

/// The maximum value of a cell in a geometric mean, and that of a failed one. It is worse than nearly every
/// measured one, but finite, so that one failure does not hide the other results of a peer.
const MAX_RATIO_COUNTED: f64 = 100.0;

const LINKS: usize = Profile::ALL.len();

/// The joins of one peer over one link, as multiples of *L*, the fastest first; infinite where one failed.
struct Cell(Vec<f64>);

impl Cell {
    fn of(profile: &Profile, times_ms: &[f64]) -> Self {
        let limit_ms = limit_ms(profile);
        let mut ratios: Vec<f64> = times_ms.iter().map(|time| time / limit_ms).collect();
        ratios.sort_by(f64::total_cmp);
        Self(ratios)
    }

    /// Of an even number of joins the lower of the middle two, which is a time that was measured: between
    /// a success and a failure there is no mean.
    fn median(&self) -> f64 {
        self.0[(self.0.len() - 1) / 2]
    }

    /// The smallest time within which 95 of 100 joins were done.
    fn p95(&self) -> f64 {
        self.0[(self.0.len() * 95).div_ceil(100) - 1]
    }

    /// "1.52 / 2.10": the median and the 95th percentile, and how many succeeded if not all did.
    fn text(&self) -> String {
        let ratio = |x: f64| if x.is_finite() { format!("{x:.2}") } else { "fail".into() };
        let (good, all) = (self.0.iter().filter(|x| x.is_finite()).count(), self.0.len());
        let counts = if good == all { String::new() } else { format!(" ({good}/{all})") };
        format!("{} / {}{counts}", ratio(self.median()), ratio(self.p95()))
    }
}

/// *L* of a link.
fn limit_ms(profile: &Profile) -> f64 {
    join_limit(&profile.link(), BLOCK_BYTES).as_secs_f64() * 1e3
}

/// Every cell of one peer, in the order of the profiles; `None` where it was not measured.
struct Peer {
    name: String,
    cells: [Option<Cell>; LINKS],
}

impl Peer {
    fn medians(&self) -> impl Iterator<Item = Option<f64>> {
        self.cells.iter().map(|cell| cell.as_ref().map(Cell::median))
    }

    /// The geometric mean of the medians, which weighs "twice as slow" alike on every link.
    fn mean(&self) -> f64 {
        let medians = self.medians().flatten().map(|median| median.min(MAX_RATIO_COUNTED));
        let logarithms: Vec<f64> = medians.map(f64::ln).collect();
        (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
    }
}

/// Measured joins, by peer, the fastest first.
pub struct Joins(Vec<Peer>);

impl Joins {
    /// Reads what the lab writes: a JSON array with an object for each join.
    ///
    /// # Errors
    /// What is wrong, and where. Nothing is silently left out of a figure.
    pub fn read(text: &str) -> Result<Self, String> {
        let rows: Vec<Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut times = BTreeMap::<String, [Vec<f64>; LINKS]>::new();
        for (number, row) in (1..).zip(&rows) {
            let (peer, link, bytes, time_ms) =
                join(row).map_err(|what| format!("row {number}: {what}"))?;
            if bytes == BLOCK_BYTES {
                times.entry(peer).or_default()[link].push(time_ms);
            }
        }
        let cell = |(profile, times): (&Profile, &Vec<f64>)| {
            (!times.is_empty()).then(|| Cell::of(profile, times))
        };
        let peer = |(name, times): (String, [Vec<f64>; LINKS])| {
            let mut cells = Profile::ALL.iter().zip(&times).map(cell);
            Peer { name, cells: std::array::from_fn(|_| cells.next().flatten()) }
        };
        let mut peers: Vec<Peer> = times.into_iter().map(peer).collect();
        peers.sort_by(|a, b| a.mean().total_cmp(&b.mean()));
        Ok(Self(peers))
    }

    /// One row for each peer: its mean, and for each link its median and p95.
    pub fn table(&self) -> String {
        let names = Profile::ALL.map(|profile| profile.name).join(" | ");
        let limits = Profile::ALL.map(|profile| format!("{:.0}", limit_ms(&profile))).join(" | ");
        let mut table = format!("| median / p95, in L | mean | {names} |\n");
        table += &format!("|---|{}\n| *L, ms* | | {limits} |\n", "--:|".repeat(1 + LINKS));
        for peer in &self.0 {
            let cells = peer.cells.each_ref();
            let cells = cells.map(|cell| cell.as_ref().map_or_else(|| "-".into(), Cell::text));
            table += &format!("| {} | {:.2} | {} |\n", peer.name, peer.mean(), cells.join(" | "));
        }
        table
    }

    /// The medians of the figure's peers that were measured; at least one must be.
    ///
    /// # Errors
    /// If none is.
    pub fn figure(&self) -> Result<String, String> {
        let find = |series: &Series| {
            series.names.iter().find_map(|name| self.0.iter().find(|peer| peer.name == *name))
        };
        let drawn: Vec<(&Series, &Peer)> =
            SERIES.iter().filter_map(|series| Some((series, find(series)?))).collect();
        if drawn.is_empty() {
            return Err("none of the peers of the figure is in it".into());
        }
        Ok(draw(&drawn))
    }
}

/// The peer of a row, the number of its link, the bytes, and the time: infinite if the join failed, whatever
/// its time says.
fn join(row: &Value) -> Result<(String, usize, u64, f64), String> {
    let missing = |key: &str, what| format!("no {what} `{key}`");
    let text = |key| row[key].as_str().ok_or_else(|| missing(key, "text"));
    let time_ms = match row["ok"].as_bool().ok_or_else(|| missing("ok", "truth value"))? {
        true => row["total_ms"].as_f64().ok_or_else(|| missing("total_ms", "number"))?,
        false => f64::INFINITY,
    };
    let profile = text("profile")?;
    let link = Profile::ALL.iter().position(|known| known.name == profile);
    let link = link.ok_or_else(|| format!("`{profile}` is no known profile"))?;
    let bytes = row["bytes"].as_u64().ok_or_else(|| missing("bytes", "number"))?;
    Ok((text("peer")?.into(), link, bytes, time_ms))
}

/// One line of the figure.
struct Series {
    /// The names it may have among the peers; the first that is there is drawn.
    names: &'static [&'static str],
    label: &'static str,
    marker: Marker,
    ink: Ink,
    /// The class of its line's width.
    width: &'static str,
}

/// haulier is bold and blue, by token and by ticket, then the article's sender, then others for comparison.
const SERIES: [Series; 8] = [
    series(
        &["haulier-token"],
        "haulier, token",
        Marker::Disc,
        ("s0", "#0757c2", "#6cb6ff"),
        "bolder",
    ),
    series(
        &["haulier-ticket"],
        "haulier, ticket",
        Marker::Ring,
        ("s7", "#0757c2", "#6cb6ff"),
        "bold",
    ),
    series(
        &["haulier-article"],
        "the article's sender",
        Marker::Disc,
        ("s1", "#b35900", "#f0a04b"),
        "bold",
    ),
    series(&["quic-bbr"], "QUIC, BBR", Marker::Square, ("s2", "#4c7a5d", "#7fb393"), ""),
    series(&["tcp-bbr"], "TCP, BBR", Marker::Up, ("s3", "#7d6a9c", "#ab9bc9"), ""),
    series(&["tcp-cubic"], "TCP, CUBIC", Marker::Down, ("s4", "#9c6a7f", "#cf9db1"), ""),
    series(&["enet"], "ENet", Marker::Diamond, ("s5", "#6f7780", "#a3acb6"), ""),
    series(&["renet-60hz", "renet-1000hz"], "renet", Marker::Box, ("s6", "#84774a", "#bfb07c"), ""),
];

const fn series(
    names: &'static [&'static str],
    label: &'static str,
    marker: Marker,
    ink: Ink,
    width: &'static str,
) -> Series {
    Series { names, label, marker, ink, width }
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 52.0;
/// To the right of it are the labels, the longest of which takes about 130.
const RIGHT: f64 = 706.0;
/// The position of a failure; the axis begins a little lower, so that no finite time looks like one.
const FAILED: f64 = 60.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 346.0;
/// The minimum range of the axis, so that figures of good results look like others.
const MIN_AXIS: f64 = 40.0;

fn draw(drawn: &[(&Series, &Peer)]) -> String {
    let means = drawn.iter().map(|(series, peer)| format!("{} {:.2}", series.label, peer.mean()));
    let about = format!(
        "How long a cold join with 256 KiB takes over ten links: median times as multiples of the physical \
         limit of each link, on a logarithmic axis; lower is better and 1 is the limit. Geometric means: {}.",
        means.collect::<Vec<_>>().join(", ")
    );
    let inks: Vec<Ink> = drawn.iter().map(|(series, _)| series.ink).collect();
    let heading = "From the first packet to 256 KiB received";
    let mut figure = Figure::new(WIDTH, HEIGHT, heading, &about, &inks);
    let lead = "Median time as a multiple of the link's physical limit; lower is better";
    figure.text("plain", (16.0, 44.0), lead);
    let medians = drawn.iter().flat_map(|(_, peer)| peer.medians().flatten());
    let max = medians.filter(|median| median.is_finite()).fold(MIN_AXIS, f64::max);
    let axis = LogAxis::new((BOTTOM, TOP), &[1.0, 2.0, 3.0, 5.0], max);
    let height = |ratio: f64| if ratio.is_finite() { axis.at(ratio) } else { FAILED };
    let mut row = |name: &str, y: f64, class: &str| {
        figure.line(class, [(LEFT, y), (RIGHT, y)].map(Some));
        figure.text("plain end", (LEFT - 8.0, y + 4.0), name);
    };
    row("fails", FAILED, "grid dots");
    for &tick in &axis.ticks {
        row(&tick.to_string(), axis.at(tick), if tick == 1.0 { "base" } else { "grid" });
    }
    for (index, profile) in Profile::ALL.iter().enumerate() {
        foot(&mut figure, x(index), profile);
    }
    let points = |peer: &Peer| -> Vec<Option<(f64, f64)>> {
        let medians = peer.medians().enumerate();
        medians.map(|(index, median)| median.map(|median| (x(index), height(median)))).collect()
    };
    // The first series, haulier's, is drawn on top.
    for (series, peer) in drawn.iter().rev() {
        let class = format!("{} {}", series.ink.0, series.width);
        figure.line(&class, points(peer));
        for (point, median) in points(peer).into_iter().zip(peer.medians()) {
            let (Some(point), Some(median)) = (point, median) else { continue };
            if median.is_finite() {
                let size = if series.width == "bolder" { 4.5 } else { 3.2 };
                figure.marker(series.ink.0, series.marker, point, size);
            } else {
                figure.marker(&format!("{} bold", series.ink.0), Marker::Cross, point, 4.0);
            }
        }
    }
    let ends: Vec<(f64, f64)> = drawn
        .iter()
        .map(|(_, peer)| points(peer).into_iter().flatten().last().unwrap_or((RIGHT, BOTTOM)))
        .collect();
    let heights = spread(ends.iter().map(|end| end.1).collect(), BOTTOM);
    for (((series, _), end), y) in drawn.iter().zip(ends).zip(heights) {
        let (ink, start) = (series.ink.0, RIGHT + 8.0);
        figure.line(&format!("{ink} faint"), [Some(end), Some((start, y))]);
        figure.marker(ink, series.marker, (start, y), 3.5);
        let class = if series.width == "bolder" { "head" } else { "" };
        figure.text(&format!("{ink} {class}"), (start + 10.0, y + 4.0), series.label);
    }
    figure.finish()
}

/// The middle of a link's column.
fn x(index: usize) -> f64 {
    LEFT + (RIGHT - LEFT) / LINKS as f64 * (index as f64 + 0.5)
}

/// The properties of a link, under its column.
fn foot(figure: &mut Figure, x: f64, profile: &Profile) {
    figure.text("dark strong middle", (x, BOTTOM + 18.0), profile.name);
    let loss = profile.loss_permille as f64 / 10.0;
    let note = match profile.name {
        "wifi" => "reorders",
        "bloat" => "deep queue",
        "shallow" => "short queue",
        "burst" => "in bursts",
        _ => "",
    };
    let details = [
        format!("{} Mbit/s", profile.rate_mbit),
        format!("{} ms", profile.rtt_ms),
        if loss > 0.0 { format!("{loss}% loss") } else { String::new() },
        note.into(),
    ];
    for (line, detail) in (0..).zip(details.iter().filter(|detail| !detail.is_empty())) {
        figure.text("plain small middle", (x, BOTTOM + 31.0 + 12.0 * f64::from(line)), detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(peer: &str, profile: &str, total_ms: f64) -> Value {
        let ok = total_ms.is_finite();
        json!({ "peer": peer, "profile": profile, "bytes": BLOCK_BYTES, "ok": ok, "total_ms": total_ms })
    }

    fn joins(rows: &[Value]) -> Joins {
        Joins::read(&json!(rows).to_string()).unwrap()
    }

    #[test]
    fn a_failed_join_is_slower_than_any_other_whatever_its_row_says() {
        let failed = json!({
            "peer": "a", "profile": "fiber", "bytes": BLOCK_BYTES, "ok": false, "total_ms": 7
        });
        let rows =
            [failed.clone(), row("a", "fiber", 90.0), row("a", "fiber", 80.0), failed.clone()];
        let joins = |rows: &[Value]| joins(rows).0[0].cells[0].as_ref().unwrap().text();
        assert_eq!(joins(&rows), "2.17 / fail (2/4)");
        assert_eq!(joins(&[failed.clone(), row("a", "fiber", 90.0), failed]), "fail / fail (1/3)");
    }

    #[test]
    fn p95_of_twenty_is_the_second_slowest() {
        let cell = Cell((1..=20).map(f64::from).collect());
        assert_eq!((cell.median(), cell.p95()), (10.0, 19.0));
        assert_eq!(Cell(vec![3.0]).p95(), 3.0);
    }

    #[test]
    fn the_table_starts_with_the_fastest_and_has_only_the_block_of_the_figure() {
        let limit = limit_ms(&Profile::ALL[2]);
        let mut other_size = row("c", "wifi", 1.0);
        other_size["bytes"] = (1 << 24).into();
        let failed = row("a", "wifi", f64::INFINITY);
        let table = joins(&[failed, row("b", "wifi", 2.0 * limit), other_size]).table();
        let lines: Vec<&str> = table.lines().skip(3).collect();
        assert_eq!(lines[0], "| b | 2.00 | - | - | 2.00 / 2.00 | - | - | - | - | - | - | - |");
        assert!(lines[1].starts_with("| a | 100.00 | - | - | fail / fail (0/1) |"), "{table}");
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn what_is_missing_or_unknown_is_an_error_with_its_place() {
        let error = |rows: &str| Joins::read(rows).err().unwrap();
        let row = r#"{"peer": "a", "profile": "wifi", "bytes": 1, "ok": true}"#;
        assert_eq!(error(&format!("[{row}]")), "row 1: no number `total_ms`");
        assert!(
            error(&format!("[{}]", row.replace("wifi", "moon").replace("true", "false")))
                .contains("moon")
        );
        assert!(error("[\n{\"peer\": NaN}]").contains("line 2"));
    }

    #[test]
    fn a_failure_is_a_cross_above_every_time() {
        let rows = [row("haulier-token", "fiber", 60.0), row("tcp-cubic", "awful", f64::INFINITY)];
        let figure = joins(&rows).figure().unwrap();
        let cross = format!("M{:.1} {:.1}L", x(6) - 4.0, FAILED - 4.0);
        assert_eq!(figure.matches(&cross).count(), 1, "{figure}");
        assert!(FAILED < TOP && figure.contains(">haulier, token</text>"), "{figure}");
        assert!(figure.contains(">TCP, CUBIC</text>") && !figure.contains(">ENet</text>"));
        assert!(joins(&[]).figure().is_err());
    }

    #[test]
    fn the_axis_grows_with_what_it_has_to_show() {
        let last = |ratio: f64| {
            let time = ratio * limit_ms(&Profile::ALL[0]);
            let figure = joins(&[row("enet", "fiber", time)]).figure().unwrap();
            let ticks = [50, 100, 200].map(|tick| figure.contains(&format!(">{tick}<")));
            ticks.iter().filter(|is_there| **is_there).count()
        };
        assert_eq!([last(1.2), last(51.0), last(f64::INFINITY)], [1, 2, 1]);
    }
}
