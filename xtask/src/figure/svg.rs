//! The figure: the medians of a few peers over the ten links, on a logarithmic axis.
//!
//! One style for light and one for dark surroundings, on a ground of its own, since a page may be dark
//! where the system is light. Peers differ by the shape of their marker as well as by colour. Positions
//! are written with one digit, so that the bytes do not depend on the last bit of a logarithm.

use super::{PROFILES, Peer, Profile};

/// One line of the figure.
struct Series {
    /// The names it may have among the peers; the first that is there is drawn.
    names: &'static [&'static str],
    label: &'static str,
    marker: Marker,
    /// In light and in dark surroundings.
    colours: [&'static str; 2],
    width: f64,
}

#[derive(Clone, Copy)]
enum Marker {
    Disc,
    Square,
    Diamond,
    Up,
    Down,
    Box,
}

/// Ours is bold and blue, the sender it started from is next, the others are there to compare.
const SERIES: [Series; 7] = [
    series(&["haulier-token"], "haulier", Marker::Disc, ["#0757c2", "#6cb6ff"], 3.0),
    series(&["haulier-article"], "the article's sender", Marker::Disc, ["#b35900", "#f0a04b"], 1.8),
    series(&["quic-bbr"], "QUIC, BBR", Marker::Square, ["#4c7a5d", "#7fb393"], 1.0),
    series(&["tcp-bbr"], "TCP, BBR", Marker::Up, ["#7d6a9c", "#ab9bc9"], 1.0),
    series(&["tcp-cubic"], "TCP, CUBIC", Marker::Down, ["#9c6a7f", "#cf9db1"], 1.0),
    series(&["enet"], "ENet", Marker::Diamond, ["#6f7780", "#a3acb6"], 1.0),
    series(&["renet-60hz", "renet-1000hz"], "renet", Marker::Box, ["#84774a", "#bfb07c"], 1.0),
];

const fn series(
    names: &'static [&'static str],
    label: &'static str,
    marker: Marker,
    colours: [&'static str; 2],
    width: f64,
) -> Series {
    Series { names, label, marker, colours, width }
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 52.0;
/// To the right of it are the labels, the longest of which takes about 130.
const RIGHT: f64 = 706.0;
/// Where a failure is; the axis begins a little lower, so that no finite time looks like one.
const FAILED: f64 = 60.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 346.0;

/// The axis ends at 40, or at the first of those above it that is enough.
const TICKS: [f64; 12] = [1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 40.0, 100.0, 200.0, 500.0, 2000.0];
const TICKS_MIN: usize = 8;

/// Between the base lines of two labels.
const LABEL_STEP: f64 = 17.0;

/// Draws the peers that are among [`SERIES`]; at least one has to be.
pub(super) fn draw(peers: &[Peer]) -> Result<String, String> {
    let find = |series: &&Series| {
        let mut found =
            series.names.iter().filter_map(|name| peers.iter().find(|p| p.name == *name));
        found.next()
    };
    let drawn: Vec<(usize, &Series, &Peer)> = (0..)
        .zip(&SERIES)
        .filter_map(|(class, series)| Some((class, series, find(&series)?)))
        .collect();
    if drawn.is_empty() {
        return Err("none of the peers of the figure is in it".to_owned());
    }
    let axis = Axis::of(drawn.iter().map(|(.., peer)| *peer));
    let mut figure = head(&drawn);
    figure += &axis.grid();
    figure += &PROFILES.iter().enumerate().map(|(i, profile)| foot(i, profile)).collect::<String>();
    // The last is on top, and that is ours.
    for (class, series, peer) in drawn.iter().rev() {
        figure += &format!("<g class=\"s{class}\">\n{}</g>\n", axis.line(series, peer));
    }
    let ends: Vec<(f64, f64)> = drawn.iter().map(|(.., peer)| axis.end(peer)).collect();
    let heights: Vec<f64> = ends.iter().map(|end| end.1).collect();
    for (((class, series, _), end), y) in drawn.iter().zip(ends).zip(spread(&heights)) {
        let leader = format!("<path class=\"leader\" d=\"M{:.1} {:.1}L", end.0, end.1);
        figure += &format!("<g class=\"s{class}\">{leader}{:.1} {y:.1}\"/></g>\n", RIGHT + 8.0);
        let strong = if *class == 0 { " class=\"strong\"" } else { "" };
        let marker = marker(series.marker, RIGHT + 8.0, y, 3.5);
        let text = format!("<text x=\"{:.1}\" y=\"{:.1}\"{strong}>", RIGHT + 18.0, y + 4.0);
        figure += &format!("<g class=\"s{class}\">{marker}{text}{}</text></g>\n", series.label);
    }
    Ok(figure + "</svg>\n")
}

/// How multiples of *L* become heights.
struct Axis {
    ticks: &'static [f64],
}

impl Axis {
    fn of<'a>(peers: impl Iterator<Item = &'a Peer>) -> Self {
        let medians = peers.flat_map(|peer| peer.cells.iter().flatten()).map(|cell| cell.median());
        let max = medians.filter(|x| x.is_finite()).fold(0.0, f64::max);
        let enough =
            TICKS.iter().position(|&tick| tick >= max).map_or(TICKS.len(), |index| index + 1);
        Self { ticks: &TICKS[..enough.max(TICKS_MIN)] }
    }

    fn y(&self, ratio: f64) -> f64 {
        if ratio.is_infinite() {
            return FAILED;
        }
        let top = self.ticks[self.ticks.len() - 1];
        BOTTOM - (BOTTOM - TOP) * (ratio.clamp(1.0, top).ln() / top.ln())
    }

    fn grid(&self) -> String {
        let row = |name: &str, y: f64, class: &str| {
            format!(
                "<path class=\"{class}\" d=\"M{LEFT:.1} {y:.1}H{RIGHT:.1}\"/>\
                 <text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>\n",
                LEFT - 8.0,
                y + 4.0
            )
        };
        let ticks = self.ticks.iter().map(|&tick| {
            row(&format!("{tick}"), self.y(tick), if tick == 1.0 { "base" } else { "grid" })
        });
        row("fails", FAILED, "grid dots") + &ticks.collect::<String>()
    }

    /// The line of a peer, broken where it was not measured, and its markers: a cross for a failure.
    fn line(&self, series: &Series, peer: &Peer) -> String {
        let (mut path, mut markers, mut command) = (String::new(), String::new(), 'M');
        let size = if series.width > 2.0 { 4.5 } else { 3.2 };
        for (index, cell) in peer.cells.iter().enumerate() {
            let Some(cell) = cell else {
                command = 'M';
                continue;
            };
            let (x, y) = (x(index), self.y(cell.median()));
            path += &format!("{command}{x:.1} {y:.1}");
            command = 'L';
            markers += &match cell.median().is_finite() {
                true => marker(series.marker, x, y, size),
                false => {
                    let (l, u) = (x - 4.0, y - 4.0);
                    format!("<path class=\"cross\" d=\"M{l:.1} {u:.1}l8 8m-8 0l8 -8\"/>")
                }
            };
        }
        format!(
            "<path class=\"line\" stroke-width=\"{}\" d=\"{path}\"/>\n{markers}\n",
            series.width
        )
    }

    /// Where the line of a peer ends.
    fn end(&self, peer: &Peer) -> (f64, f64) {
        let last =
            peer.cells.iter().enumerate().rev().find_map(|(i, cell)| Some((i, cell.as_ref()?)));
        last.map_or((RIGHT, BOTTOM), |(index, cell)| (x(index), self.y(cell.median())))
    }
}

/// The middle of a link's column.
fn x(index: usize) -> f64 {
    let column = (RIGHT - LEFT) / PROFILES.len() as f64;
    LEFT + column * (index as f64 + 0.5)
}

/// What a link is, under its column.
fn foot(index: usize, profile: &Profile) -> String {
    let x = x(index);
    let loss = match profile.loss {
        0.0 => String::new(),
        // Rounded, because 0.001 * 100 is not quite 0.1.
        loss => format!("{}% loss", (loss * 1e4).round() / 100.0),
    };
    let details = [
        format!("{} Mbit/s", profile.rate_mbit),
        format!("{} ms", profile.rtt_ms),
        loss,
        profile.note.to_owned(),
    ];
    let mut foot = format!(
        "<text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
        BOTTOM + 18.0,
        profile.name
    );
    for (line, detail) in (0..).zip(details.iter().filter(|detail| !detail.is_empty())) {
        let y = BOTTOM + 31.0 + 12.0 * f64::from(line);
        foot += &format!("<text class=\"detail\" x=\"{x:.1}\" y=\"{y:.1}\">{detail}</text>");
    }
    foot + "\n"
}

/// Moves labels apart, as little as is simple: down from the top, then up again from the bottom.
fn spread(wanted: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = wanted.to_vec();
    let mut free = f64::NEG_INFINITY;
    for &index in &order {
        placed[index] = placed[index].max(free);
        free = placed[index] + LABEL_STEP;
    }
    let mut free = BOTTOM;
    for &index in order.iter().rev() {
        placed[index] = placed[index].min(free);
        free = placed[index] - LABEL_STEP;
    }
    placed
}

fn marker(marker: Marker, x: f64, y: f64, r: f64) -> String {
    let (l, u, e, d) = (x - r, y - r, x + r, y + r);
    match marker {
        Marker::Disc => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\"/>"),
        Marker::Square => format!("<path d=\"M{l:.1} {u:.1}H{e:.1}V{d:.1}H{l:.1}Z\"/>"),
        Marker::Box => format!("<path class=\"open\" d=\"M{l:.1} {u:.1}H{e:.1}V{d:.1}H{l:.1}Z\"/>"),
        Marker::Diamond => {
            format!("<path d=\"M{l:.1} {y:.1}L{x:.1} {u:.1}L{e:.1} {y:.1}L{x:.1} {d:.1}Z\"/>")
        }
        Marker::Up => format!("<path d=\"M{l:.1} {d:.1}H{e:.1}L{x:.1} {u:.1}Z\"/>"),
        Marker::Down => format!("<path d=\"M{l:.1} {u:.1}H{e:.1}L{x:.1} {d:.1}Z\"/>"),
    }
}

fn head(drawn: &[(usize, &Series, &Peer)]) -> String {
    let colours = |dark: usize| -> String {
        drawn
            .iter()
            .map(|(class, series, _)| format!(".s{class}{{color:{}}}", series.colours[dark]))
            .collect()
    };
    let means =
        drawn.iter().map(|(_, series, peer)| format!("{} {:.2}", series.label, peer.mean()));
    let means = means.collect::<Vec<_>>().join(", ");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">How long a cold join with 256 KiB takes over ten links</title>\n\
         <desc id=\"desc\">Median times as multiples of the physical limit of each link, on a logarithmic \
         axis; lower is better and 1 is the limit. Geometric means over the links: {means}.</desc>\n\
         <style>\n\
         text{{font:12px system-ui,-apple-system,\"Segoe UI\",Helvetica,Arial,sans-serif;fill:#57606a}}\n\
         .ground{{fill:#fff}}.grid{{stroke:#e3e7eb}}.base{{stroke:#8c959f}}.dots{{stroke-dasharray:2 4}}\n\
         .head{{font-size:15px;font-weight:600;fill:#1f2328}}.name{{font-weight:600;fill:#1f2328}}\n\
         .name,.detail{{text-anchor:middle}}.detail{{font-size:10px}}.end{{text-anchor:end}}\n\
         g text{{fill:currentColor}}.strong{{font-size:14px;font-weight:700}}\n\
         g path,g circle{{fill:currentColor;stroke:currentColor}}g .line,g .cross,g .leader{{fill:none}}\n\
         g .line{{stroke-linejoin:round}}g .leader{{stroke-width:.6;opacity:.6}}\n\
         g .cross{{stroke-width:2}}g .open{{fill:#fff;stroke-width:1.5}}\n\
         {}\n\
         @media (prefers-color-scheme:dark){{\n\
         text{{fill:#9198a1}}.ground,g .open{{fill:#0d1117}}.grid{{stroke:#262c36}}.base{{stroke:#6e7681}}\n\
         .head,.name{{fill:#f0f6fc}}g text{{fill:currentColor}}\n\
         {}\n\
         }}\n\
         </style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\"/>\n\
         <text class=\"head\" x=\"16\" y=\"24\">From the first packet to 256 KiB received</text>\n\
         <text x=\"16\" y=\"42\">Median time as a multiple of the link's physical limit; \
         lower is better</text>\n",
        colours(0),
        colours(1),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, peers, rows::Row};
    use super::*;

    fn two_peers() -> Vec<Peer> {
        let row = |peer: &str, profile: &str, total_ms| Row {
            peer: peer.to_owned(),
            profile: profile.to_owned(),
            bytes: super::super::BLOCK_BYTES,
            total_ms,
        };
        let failed = row("tcp-cubic", "awful", f64::INFINITY);
        peers(vec![row("haulier-token", "fiber", 60.0), failed]).unwrap()
    }

    #[test]
    fn a_failure_is_a_cross_above_every_time() {
        let figure = draw(&two_peers()).unwrap();
        assert_eq!(figure.matches("class=\"cross\"").count(), 1);
        assert!(figure.contains(">haulier</text>") && figure.contains(">TCP, CUBIC</text>"));
        assert!(!figure.contains(">ENet</text>"));
        let axis = Axis::of(two_peers().iter());
        assert!(axis.y(f64::INFINITY) < axis.y(1e9) && axis.y(40.0) < axis.y(1.0));
        assert!(draw(&[]).is_err());
    }

    #[test]
    fn the_axis_grows_with_what_it_has_to_show() {
        let peer = |ratio| {
            let cells = std::array::from_fn(|_| Some(Cell { ratios: vec![ratio] }));
            Peer { name: String::new(), cells }
        };
        let top = |ratio| Axis::of([peer(ratio)].iter()).ticks.last().copied();
        assert_eq!(
            [top(1.2), top(40.1), top(f64::INFINITY)],
            [Some(40.0), Some(100.0), Some(40.0)]
        );
    }

    #[test]
    fn labels_keep_their_order_and_their_distance() {
        let placed = spread(&[340.0, 341.0, 100.0, 345.0]);
        assert_eq!(placed, [BOTTOM - 2.0 * LABEL_STEP, BOTTOM - LABEL_STEP, 100.0, BOTTOM]);
    }
}
