//! What is drawn is what the takes have, at any moment and on any size.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::moment::{Cell, Moment};
use super::*;

const END: Duration = Duration::from_secs(60);

fn drawn(screen: &Screen<'_>, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(line).collect::<Vec<_>>().join("\n")
}

fn screen<'a>(scene: &'a Scene, takes: &'a [Take], at: Duration) -> Screen<'a> {
    Screen { title: "mobile".into(), scene, takes, at, slow: 10, is_paused: false }
}

fn count(moment: &Moment, cell: Cell) -> usize {
    moment.cells.iter().filter(|it| **it == cell).count()
}

/// What does not fit is said shorter, and not cut off.
#[test]
fn a_narrow_terminal_has_all_of_it() {
    let scene = Scene::default();
    let takes = scene.play();
    for at in [Duration::ZERO, END] {
        let text = drawn(&screen(&scene, &takes, at), 40, 24);
        for words in ["  L = 326 ms", "× lost · next", "+ -  r"] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
        assert!(!text.contains(" sent, "), "{text}");
    }
    let text = drawn(&screen(&scene, &takes, END), 80, 24);
    for words in
        ["the physical limit of this link is L = 326 ms", "sent again", " lost, ", "from the start"]
    {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    let table = table(&takes, &scene);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn a_lane_goes_from_nothing_to_all() {
    let takes = Scene::default().play();
    assert_eq!(takes.len(), 3);
    for take in &takes {
        let slices = take.slices.iter().sum::<u32>() as usize;
        let first = Moment::of(take, Duration::ZERO);
        assert_eq!((first.cells.len(), first.share()), (slices, 0.0), "{:?}", take.sender);
        let end = Moment::of(take, END);
        assert!(end.is_whole && end.share() == 1.0, "{:?}", take.sender);
        assert_eq!(end.wire_bytes, wire_bytes(take));
        let sent: usize =
            [Kind::Slice, Kind::Again, Kind::Repair].map(|k| take.sent(k)).iter().sum();
        assert_eq!(end.sent, sent);
        let mut before = 0.0;
        for ms in (0..5_000).step_by(50) {
            let share = Moment::of(take, Duration::from_millis(ms)).share();
            assert!(share >= before, "nothing that is here goes away: {:?} at {ms}", take.sender);
            before = share;
        }
    }
}

/// The article's sender loses some of its burst, and sends those again; haulier/1 repairs them.
#[test]
fn what_is_lost_is_seen_to_be_missing_and_then_mended() {
    let takes = Scene::default().play();
    for take in &takes[..2] {
        let moments: Vec<Moment> =
            (0..400).map(|ms| Moment::of(take, Duration::from_millis(5 * ms))).collect();
        assert!(moments.iter().any(|moment| count(moment, Cell::Missing) > 0), "{:?}", take.sender);
        assert!(moments.iter().any(|moment| count(moment, Cell::OnTheWay) > 0));
        let end = Moment::of(take, END);
        assert!(count(&end, Cell::Mended) > 0 && end.lost > 0, "{:?}", take.sender);
        assert_eq!(count(&end, Cell::Mended) + count(&end, Cell::Arrived), end.cells.len());
    }
    let lossless = Scene { loss: 0, queue_bytes: 1 << 24, ..Scene::default() };
    let end = Moment::of(&lossless.play()[0], END);
    assert_eq!(count(&end, Cell::Arrived), end.cells.len(), "nothing is mended that was not lost");
}

#[test]
fn the_numbers_are_those_of_the_takes() {
    let scene = Scene::default();
    let takes = scene.play();
    let (text, picture) = (table(&takes, &scene), drawn(&screen(&scene, &takes, END), 100, 30));
    for take in &takes {
        let time = in_words(take.whole, scene.limit());
        assert!(text.contains(&time) && text.contains(title_of(take.sender)), "{time} in {text}");
        assert!(picture.contains(&time) && picture.contains(title_of(take.sender)), "{picture}");
        assert_eq!(fields(take, &scene)["whole_ms"], in_millis(take.whole.unwrap()));
    }
    assert!(picture.contains("L = 326 ms") && picture.contains("10 times slower"), "{picture}");
    assert!(takes[0].whole < takes[1].whole && takes[1].whole < takes[2].whole, "{text}");
}

#[test]
fn a_moment_in_between_has_its_time_and_its_map() {
    let scene = Scene::default();
    let takes = scene.play();
    let picture = drawn(&screen(&scene, &takes, Duration::from_millis(200)), 100, 30);
    assert!(picture.contains("200 ms  10 times slower"), "{picture}");
    assert!(picture.contains("% after 200 ms") && picture.contains('▒'), "{picture}");
    let stopped = Screen { is_paused: true, ..screen(&scene, &takes, Duration::ZERO) };
    assert!(drawn(&stopped, 80, 24).contains("stopped"));
}

/// Windows are dragged through every size.
#[test]
fn it_draws_on_any_size() {
    let scene = Scene { bytes: 1 << 20, ..Scene::default() };
    let takes = scene.play();
    let mut screen = screen(&scene, &takes, Duration::from_millis(300));
    for width in [1, 2, 7, 30, 80, 200] {
        for height in [1, 2, 3, 5, 9, 14, 24, 60] {
            drawn(&screen, width, height);
        }
    }
    screen.at = END;
    let narrow = drawn(&screen, 40, 16);
    assert!(narrow.contains("haulier/1") && narrow.contains("slow start"), "{narrow}");
    assert!(
        narrow.contains('█') || narrow.contains('▓'),
        "1024 slices share what room there is: {narrow}"
    );
}

#[test]
fn keys_stop_it_slow_it_and_begin_again() {
    let scene = Scene::default();
    let takes: Vec<Take> = Vec::new();
    let mut screen = screen(&scene, &takes, END);
    for (key, goes_on) in [(' ', true), ('r', true), ('-', true), ('x', true), ('q', false)] {
        assert_eq!(on_key(&mut screen, KeyCode::Char(key), false), goes_on, "{key}");
    }
    assert!(screen.is_paused && screen.at.is_zero() && screen.slow == 20);
    for _ in 0..20 {
        on_key(&mut screen, KeyCode::Char('+'), false);
    }
    assert_eq!(screen.slow, 1);
    for _ in 0..20 {
        on_key(&mut screen, KeyCode::Char('-'), false);
    }
    assert_eq!(screen.slow, MAX_SLOW);
    assert!(!on_key(&mut screen, KeyCode::Char('c'), true), "Ctrl-C ends it");
}
