//! Reads QR codes back, as drawn in a terminal and as written to a file. Its reader, `rqrr`, shares nothing
//! with what draws them.

use rqrr::PreparedImage;

/// Pixels to a module: readers look for edges.
const PIXELS: usize = 4;

/// What a code of half blocks says.
pub fn read_drawing(drawing: &str) -> String {
    let mut rows: Vec<Vec<bool>> = Vec::new();
    for line in drawing.lines() {
        rows.push(line.chars().map(|c| c == '█' || c == '▀').collect());
        rows.push(line.chars().map(|c| c == '█' || c == '▄').collect());
    }
    read(&rows)
}

/// What the code in an SVG file says: a square of one by one for each dark module.
pub fn read_svg(svg: &str) -> String {
    let size = svg.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split(' ').next());
    let size: usize = size.and_then(|size| size.parse().ok()).expect("a size");
    let path = svg.split("<path d=\"M").nth(1).and_then(|rest| rest.split('"').next());
    let mut rows = vec![vec![false; size]; size];
    for square in path.expect("a path").split('M') {
        let place = square.strip_suffix("h1v1h-1z").expect("a square");
        let (x, y) = place.split_once(' ').expect("a place");
        rows[y.parse::<usize>().expect("y")][x.parse::<usize>().expect("x")] = true;
    }
    read(&rows)
}

fn read(rows: &[Vec<bool>]) -> String {
    let (width, height) = (rows[0].len() * PIXELS, rows.len() * PIXELS);
    let mut image = PreparedImage::prepare_from_greyscale(width, height, |x, y| {
        if rows[y / PIXELS][x / PIXELS] { 0 } else { 255 }
    });
    let grids = image.detect_grids();
    assert_eq!(grids.len(), 1, "one code");
    grids[0].decode().expect("a code that can be read").1
}
