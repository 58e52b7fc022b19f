//! SVG drawing for figures: colours for light and dark themes, a few shapes, a logarithmic axis.
//!
//! A figure needs no embedded font, no script and no other file. It has its own background, light or dark by
//! the reader's preference, so that it is readable on any page. Positions have one digit after the point:
//! the same numbers make the same bytes, whatever the last bit of a logarithm.
//!
//! Why no library: `docs/decisions/0013-one-world.md`.

use std::fmt::Write as _;

/// A colour: its class name, and its values in the light and the dark theme.
pub(crate) type Ink = (&'static str, &'static str, &'static str);

/// Inks of every figure.
const INKS: [Ink; 5] = [
    ("ground", "#fff", "#0d1117"),
    ("base", "#8c959f", "#6e7681"),
    ("grid", "#dde2e7", "#2f363f"),
    ("plain", "#57606a", "#9198a1"),
    ("dark", "#1f2328", "#f0f6fc"),
];

const STYLE: &str = "\
text{font:12px system-ui,-apple-system,\"Segoe UI\",Helvetica,Arial,sans-serif;fill:currentColor}\
.head{font-size:15px}.small{font-size:10px}.head,.strong{font-weight:600}\
.end{text-anchor:end}.middle{text-anchor:middle}\
rect,path,circle{fill:currentColor;stroke:currentColor}.line{fill:none;stroke-linejoin:round}\
.faint{stroke-width:.6;opacity:.6}.bold{stroke-width:2}.bolder{stroke-width:3}.dots{stroke-dasharray:2 4}";

/// The shape at a point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Marker {
    Disc,
    Ring,
    Square,
    Box,
    Diamond,
    Up,
    Down,
    Cross,
    /// An upright stroke.
    Tick,
}

/// A figure being drawn.
pub(crate) struct Figure(String);

impl Figure {
    /// An empty figure with a heading; `about` is its text description.
    pub(crate) fn new(width: f64, height: f64, heading: &str, about: &str, inks: &[Ink]) -> Self {
        let inks = || INKS.iter().chain(inks);
        let light: String =
            inks().map(|(name, ink, _)| format!(".{name}{{color:{ink}}}")).collect();
        let dark: String = inks().map(|(name, _, ink)| format!(".{name}{{color:{ink}}}")).collect();
        let (_, light_ground, dark_ground) = INKS[0];
        let mut figure = Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
             <title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n\
             <style>{STYLE}.open{{fill:{light_ground}}}{light}\n\
             @media(prefers-color-scheme:dark){{.open{{fill:{dark_ground}}}{dark}}}</style>\n\
             <rect class=\"ground\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n",
            escaped(heading),
            escaped(about),
        ));
        figure.text("head dark", (16.0, 26.0), heading);
        figure
    }

    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), words: &str) {
        let words = escaped(words);
        let _infallible =
            writeln!(self.0, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
    }

    /// A line through points. A `None` between two points breaks it.
    pub(crate) fn line(
        &mut self,
        class: &str,
        points: impl IntoIterator<Item = Option<(f64, f64)>>,
    ) {
        let (mut path, mut command) = (String::new(), 'M');
        for point in points {
            if let Some((x, y)) = point {
                let _infallible = write!(path, "{command}{x:.1} {y:.1}");
            }
            command = if point.is_some() { 'L' } else { 'M' };
        }
        self.path(&format!("line {class}"), &path);
    }

    /// A marker of radius `r`.
    pub(crate) fn marker(&mut self, class: &str, marker: Marker, (x, y): (f64, f64), r: f64) {
        let (l, u, e, d) = (x - r, y - r, x + r, y + r);
        let box_path = format!("M{l:.1} {u:.1}H{e:.1}V{d:.1}H{l:.1}Z");
        let open = format!("{class} open");
        match marker {
            Marker::Disc | Marker::Ring => {
                let class = if matches!(marker, Marker::Ring) { &open } else { class };
                let _infallible = writeln!(
                    self.0,
                    "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\"/>"
                );
            }
            Marker::Square => self.path(class, &box_path),
            Marker::Box => self.path(&open, &box_path),
            Marker::Diamond => {
                self.path(
                    class,
                    &format!("M{l:.1} {y:.1}L{x:.1} {u:.1}L{e:.1} {y:.1}L{x:.1} {d:.1}Z"),
                );
            }
            Marker::Up => self.path(class, &format!("M{l:.1} {d:.1}H{e:.1}L{x:.1} {u:.1}Z")),
            Marker::Down => self.path(class, &format!("M{l:.1} {u:.1}H{e:.1}L{x:.1} {d:.1}Z")),
            Marker::Cross => {
                self.path(
                    class,
                    &format!("M{l:.1} {u:.1}L{e:.1} {d:.1}M{l:.1} {d:.1}L{e:.1} {u:.1}"),
                );
            }
            Marker::Tick => self.path(class, &format!("M{x:.1} {u:.1}V{d:.1}")),
        }
    }

    /// An element as it is.
    pub(crate) fn raw(&mut self, element: &str) {
        self.0.push_str(element);
        self.0.push('\n');
    }

    /// The finished SVG.
    pub(crate) fn finish(self) -> String {
        self.0 + "</svg>\n"
    }

    pub(crate) fn path(&mut self, class: &str, path: &str) {
        let _infallible = writeln!(self.0, "<path class=\"{class}\" d=\"{path}\"/>");
    }
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;")
}

/// Between the base lines of two labels.
const LABEL_STEP: f64 = 17.0;

/// Moves labels apart: down from the top, then up again from the bottom.
pub(crate) fn spread(mut heights: Vec<f64>, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    let mut free = f64::NEG_INFINITY;
    for &index in &order {
        heights[index] = heights[index].max(free);
        free = heights[index] + LABEL_STEP;
    }
    let mut free = bottom;
    for &index in order.iter().rev() {
        heights[index] = heights[index].min(free);
        free = heights[index] - LABEL_STEP;
    }
    heights
}

/// A logarithmic axis of ratios from 1 on, between two positions in the figure.
#[derive(Clone, Debug)]
pub(crate) struct LogAxis {
    from: f64,
    to: f64,
    /// From 1 to the end of the axis.
    pub(crate) ticks: Vec<f64>,
}

impl LogAxis {
    /// With these ticks in each power of ten, up to the first that is not below `max`.
    pub(crate) fn new((from, to): (f64, f64), steps: &[f64], max: f64) -> Self {
        let all = (0..6).flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
        let mut ticks: Vec<f64> = Vec::new();
        for tick in all {
            if ticks.last().is_some_and(|&last| last > 1.0 && last >= max) {
                break;
            }
            ticks.push(tick);
        }
        Self { from, to, ticks }
    }

    /// The position of a ratio. Ratios below 1 are drawn at 1, and those beyond the end at the end.
    pub(crate) fn at(&self, ratio: f64) -> f64 {
        let last = self.ticks.last().copied().unwrap_or(2.0);
        self.from + (self.to - self.from) * (ratio.clamp(1.0, last).ln() / last.ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_reach_the_largest() {
        let ticks = |max| LogAxis::new((0.0, 1.0), &[1.0, 2.0, 5.0], max).ticks;
        assert_eq!(ticks(0.0), [1.0, 2.0]);
        assert_eq!(ticks(2.0), [1.0, 2.0]);
        assert_eq!(ticks(48.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
    }

    #[test]
    fn an_axis_is_even_in_powers_and_ends_where_it_ends() {
        let axis = LogAxis::new((100.0, 0.0), &[1.0], 100.0);
        assert_eq!(
            [0.5, 1.0, 10.0, 100.0, 1e9].map(|x| axis.at(x).round()),
            [100., 100., 50., 0., 0.]
        );
    }

    #[test]
    fn labels_keep_their_order_and_their_distance() {
        let placed = spread(vec![340.0, 341.0, 100.0, 345.0], 346.0);
        assert_eq!(placed, [346.0 - 2.0 * LABEL_STEP, 346.0 - LABEL_STEP, 100.0, 346.0]);
    }

    #[test]
    fn text_is_escaped() {
        let mut figure = Figure::new(10.0, 10.0, "a < b", "", &[]);
        figure.text("plain", (0.0, 0.0), "R&D");
        let figure = figure.finish();
        assert!(figure.contains(">a &lt; b<") && figure.contains(">R&amp;D<"), "{figure}");
    }
}
