//! What is drawn is what a reader of QR codes reads: another program's, of another author.

use std::path::PathBuf;

use super::*;

#[path = "../../tests/program/qr_reader.rs"]
#[allow(unreachable_pub, reason = "it is a file of the test program, too")]
mod qr_reader;

use qr_reader::{read_drawing, read_svg};

/// As long as tickets and tokens are, from the shortest to the longest.
fn texts() -> impl Iterator<Item = String> {
    [20, 130, 400, 1_500].into_iter().map(|length| {
        let text: String = (0..length).map(|i| char::from(b'A' + (i * 7 % 26) as u8)).collect();
        format!("haulier1:{text}")
    })
}

#[test]
fn a_reader_reads_what_is_drawn() {
    for text in texts() {
        let modules = Modules::of(&text).unwrap();
        assert_eq!(read_drawing(&modules.draw(false)), text);
        assert_eq!(read_svg(&modules.to_svg()), text);
    }
}

/// Each line has its colours to itself: what scrolls or is cut off does not colour the rest.
#[test]
fn in_a_terminal_it_is_black_on_white() {
    let modules = Modules::of("haulier1:AbCd").unwrap();
    let (plain, coloured) = (modules.draw(false), modules.draw(true));
    assert!(!plain.contains('\u{1b}'));
    assert!(coloured.lines().all(|line| line.starts_with(INK) && line.ends_with(RESET)));
    assert_eq!(coloured.replace(INK, "").replace(RESET, ""), plain);
    assert_eq!(plain.lines().count(), modules.size().div_ceil(2));
    assert!(plain.lines().all(|line| line.chars().count() == modules.size()));
}

#[test]
fn a_small_terminal_is_told_what_it_lacks() {
    assert_eq!(too_small(57, None), None, "a pipe has no end");
    assert_eq!(too_small(57, Some((57, 29))), None);
    let narrow = too_small(57, Some((56, 50))).unwrap();
    assert!(narrow.contains("needs 57 columns and 29 lines"), "{narrow}");
    assert!(narrow.contains("has 56 and 50") && narrow.contains("--qr=FILE.svg"), "{narrow}");
    assert!(too_small(57, Some((80, 28))).is_some());
}

#[test]
fn what_cannot_be_drawn_is_refused_at_once() {
    let args = |qr: Option<&str>| QrArgs { qr: Some(qr.map(PathBuf::from)) };
    let (text, json) = (Report::new("haulier", false, false), Report::new("haulier", true, false));
    assert!(check(&args(None), &text).is_ok() && check(&args(Some("a.svg")), &json).is_ok());
    assert!(check(&args(None), &json).unwrap_err().to_string().contains("--qr=FILE.svg"));
    assert!(check(&args(Some("ticket.png")), &text).is_err());
    assert!(Modules::of(&"x".repeat(4_000)).is_err());
}
