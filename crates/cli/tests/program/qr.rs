//! `--qr`: what a camera reads is the line on standard output.

use crate::qr_reader::{read_drawing, read_svg};
use crate::support::{Dir, Program, haulier};

/// The drawing among the lines on standard error.
fn drawing(stderr: &str) -> String {
    let is_drawn =
        |line: &&str| line.chars().count() > 24 && line.chars().all(|c| "█▀▄ ".contains(c));
    stderr.lines().filter(is_drawn).collect::<Vec<_>>().join("\n")
}

#[test]
#[cfg(unix)]
fn the_ticket_of_a_server_can_be_scanned() {
    let dir = Dir::new();
    let file = dir.file("world.bin", b"world");
    for args in [&["serve", &file][..], &["recv", "-o", &dir.path("got")]] {
        let program = Program::start(&[args, &["--bind", "127.0.0.1:0", "--qr"]].concat());
        let ticket = format!("haulier1:{}", program.line("haulier1:"));
        program.signal("INT");
        let run = program.finish();
        assert_eq!(read_drawing(&drawing(&run.stderr)), ticket, "{}", run.what);
        assert_eq!(run.text().trim_end(), ticket, "and nothing else: {}", run.what);
    }
}

#[test]
fn a_token_can_be_scanned_from_a_file_of_its_owner() {
    let dir = Dir::new();
    let (key, svg) = (dir.path("key"), dir.path("token.svg"));
    assert_eq!(haulier(&["keygen", "--token", "-o", &key]).code, Some(0));
    let issue = ["token", "issue", "--token-key", &key, "--client-id", "7", "--expires", "60"];
    let issue = [&issue[..], &["--server", "192.0.2.7:4016", "--json"]].concat();
    let run = haulier(&[&issue[..], &[&format!("--qr={svg}")]].concat());
    assert_eq!(read_svg(&std::fs::read_to_string(&svg).unwrap()), run.done()["token"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&svg).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "who has the picture has the token");
    }
    let again = haulier(&[&issue[..], &[&format!("--qr={svg}")]].concat()).error(5);
    assert!(again.contains("exists"), "{again}");
    let message = haulier(&[&issue[..], &["--qr"]].concat()).error_of(2, "usage");
    assert!(message.contains("--qr=FILE.svg"), "{message}");
}
