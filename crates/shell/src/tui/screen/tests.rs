//! Moments that were recorded, drawn.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

fn row(id: u64, done: u64, states: &str) -> Row {
    let cell = |char| match char {
        'a' => Cell::Arrived,
        's' => Cell::OnTheWay,
        'm' => Cell::Missing,
        _ => Cell::Waiting,
    };
    Row {
        id,
        name: format!("client {id}"),
        state: "connected",
        age: Duration::from_secs(7),
        block: Some((done, 1 << 20)),
        rate_bps: 1_000_000 * id,
        rtt: Some(Duration::from_micros(40_200)),
        loss: 0.021,
        in_flight: 12,
        memory_bytes: 2048,
        slices: [90, 2, 9],
        map: Some(Map { chunks: 4, done: 1, open: vec![(1, states.chars().map(cell).collect())] }),
        ..Row::default()
    }
}

fn moment(rows: Vec<Row>) -> Moment {
    let (connections, drops) = (rows.len(), ("bad tag".to_owned(), 3));
    Moment { sent_bps: 12_300_000, connections, lost: 5, drops, rows, ..Moment::default() }
}

fn screen() -> Screen {
    Screen::new("serving world.bin".into(), Lines::default())
}

fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn fifty_transfers_and_the_map_of_one() {
    let mut screen = screen();
    screen.lines.push("client 1 at 192.0.2.1:5000 asks for world.bin");
    screen.take(moment((1..=50).map(|id| row(id, id << 14, "aaamss..")).collect()));
    let text = drawn(&mut screen, 120, 40);
    assert!(text.contains("50 on their way of 50 connected  ↑ 12.3 Mbit/s"), "{text}");
    assert!(text.contains("5 lost") && text.contains("3 not used, most: bad tag"), "{text}");
    assert!((1..=20).all(|id| text.contains(&format!("client {id} "))), "{text}");
    assert!(
        text.contains("1.0 MiB") && text.contains("40.2 ms") && text.contains("2.1 %"),
        "{text}"
    );
    assert!(
        text.contains("client 1 connected for 7 s: 90 slices sent, 9 repair, 2 again"),
        "{text}"
    );
    assert!(text.contains("chunks 1 of 4: █···"), "{text}");
    assert!(text.contains("    1 ███×▒▒··"), "{text}");
    assert!(text.contains("asks for world.bin"), "the command's own lines");
}

/// The selection stays in view and on its transfer, whatever the order.
#[test]
fn one_moves_through_the_table() {
    let mut screen = screen();
    let rows = || moment((1..=50).map(|id| row(id, id << 14, "a")).collect());
    screen.take(rows());
    screen.select(1);
    screen.select(10);
    assert_eq!(screen.selected, Some(12));
    screen.sort_by_next();
    screen.take(rows());
    assert_eq!((screen.selected, screen.now.rows[0].id), (Some(12), 50), "the fastest first");
    screen.select(isize::MAX / 2);
    assert_eq!(screen.selected, Some(1));
    assert!(drawn(&mut screen, 100, 24).contains("client 1 "));
    screen.select(isize::MIN / 2);
    assert_eq!(screen.selected, Some(50));
    screen.take(moment(vec![row(3, 0, "")]));
    assert_eq!(screen.selected, Some(3), "who was selected is gone");
}

/// A short transfer is over before one looks: its map stays, and is full.
#[test]
fn a_map_stays_when_its_block_is_done() {
    let over = Row { map: None, block: None, ..row(1, 0, "") };
    // In a demo also when its connection is gone.
    for (stays, last) in [(false, vec![over]), (true, vec![])] {
        let mut screen = Screen::new(Title { text: "", stays }, Lines::default());
        screen.take(moment(vec![row(1, 9000, "aamsss..")]));
        screen.take(moment(last));
        let text = drawn(&mut screen, 100, 30);
        assert!(text.contains("chunks 4 of 4") && text.contains("    1 ████████"), "{text}");
        assert!(text.contains("all done"), "{text}");
    }
}

/// Windows are dragged through every size.
#[test]
fn it_draws_on_any_size() {
    let mut screen = screen();
    for _ in 0..5 {
        screen.lines.push("a line that is longer than the window is wide");
    }
    let mut now = moment((1..=50).map(|id| row(id, id << 14, &"a".repeat(256))).collect());
    now.unlisted = 70;
    screen.take(now);
    for width in [1, 2, 7, 30, 49, 50, 89, 90, 200] {
        for height in [1, 2, 3, 6, 13, 14, 20, 60] {
            drawn(&mut screen, width, height);
        }
    }
    assert!(drawn(&mut screen, 40, 12).contains("client 1"), "what matters most is there");
    assert!(drawn(&mut screen, 90, 30).contains("and 70 more"));
}

#[test]
fn nobody_is_there() {
    let mut screen = screen();
    screen.take(Moment::default());
    screen.select(1);
    let text = drawn(&mut screen, 80, 24);
    assert!(text.contains("0 on their way of 0 connected") && text.contains("q ends"), "{text}");
}
