//! Scenes as text, the takes that they play, the tables of the articles, and the lessons.

use std::collections::BTreeSet;

use super::*;

fn scene(text: &str) -> Scene {
    Scene::parse(text).unwrap()
}

fn play(text: &str) -> Take {
    scene(text).play().remove(0)
}

#[test]
fn a_scene_is_read_as_it_is_written() {
    for text in [
        "",
        "budget=256k&without=repair",
        "?senders=slow-start&rate=1G&rtt=0&loss=0.1&without=previous&seed=7",
    ] {
        let scene = scene(text);
        assert_eq!(Scene::parse(&scene.to_string()), Ok(scene));
    }
    let mobile = scene("rate=10M&rtt=100&loss=5%25&queue=256k&bytes=256k");
    assert_eq!(mobile, Scene::default());
    assert_eq!(scene("senders=article%2Chaulier").senders, [Sender::Article, Sender::Haulier]);
}

#[test]
fn what_is_wrong_is_named() {
    for (text, name) in [
        ("rate=fast", "rate"),
        ("rtt=-1", "rtt"),
        ("loss=95", "loss"),
        ("senders=", "senders"),
        ("senders=haulier,udp", "senders"),
        ("queue=1", "queue"),
        ("without=acks", "without"),
        ("bytes=2M", "bytes"),
        ("color=red", "color"),
        ("lasts=1", "lasts"),
        ("budget=1k", "budget"),
    ] {
        let error = Scene::parse(text).unwrap_err();
        assert_eq!(error.name, name, "{text}");
        assert!(error.to_string().len() > name.len() + 4);
    }
}

/// The rows account for everything: each slice that the client has arrived as a source slice, or is made of
/// as many repair slices.
#[test]
fn a_take_has_every_datagram() {
    // At 5 % of loss a packet of 256 fragments never arrives.
    for sender in Sender::ALL.into_iter().filter(|&sender| sender != Sender::Fragments) {
        let scene = Scene { senders: vec![sender], ..Scene::default() };
        let take = scene.play().remove(0);
        assert!(take.whole.is_some(), "{sender:?}");
        assert_eq!(take.over.is_some(), sender != Sender::SlowStart, "{sender:?}");
        assert!(take.rows.is_sorted_by_key(|row| row.sent), "{sender:?}");
        assert!(take.rows.iter().all(|row| row.sent <= row.ends), "{sender:?}");
        let whole = take.whole.unwrap();
        let arrived = take
            .rows
            .iter()
            .filter(|row| row.is_down && row.outcome == Outcome::Arrived && row.ends <= whole);
        let of = |kinds: [Kind; 2]| {
            let rows = arrived.clone().filter(|row| kinds.contains(&row.kind));
            rows.map(|row| (row.chunk, row.index)).collect::<BTreeSet<_>>().len() as u32
        };
        let slices = of([Kind::Slice, Kind::Again]) + of([Kind::Repair; 2]);
        let needed: u32 = take.slices.iter().sum();
        assert!(slices >= needed, "{sender:?}: {slices} of {needed}");
        assert!(take.rows.iter().any(|row| !row.is_down && row.kind == Kind::Ack), "{sender:?}");
        assert!(take.rows.iter().any(|row| row.outcome == Outcome::Lost), "{sender:?}");
    }
}

/// The runs that the page is compared with, in a browser too. They change when a machine or the simulator
/// does.
#[test]
fn a_scene_is_one_run_on_every_machine() {
    let hashes = |text: &str| scene(text).play().iter().map(|take| take.hash).collect::<Vec<_>>();
    assert_eq!(hashes("seed=2"), hashes("seed=2"));
    assert_ne!(hashes("seed=2"), hashes("seed=3"));
}

#[test]
fn nobody_is_faster_than_the_limit() {
    let limit = scene("loss=0").limit();
    for take in scene("loss=0&senders=haulier,article,article-paced,slow-start").play() {
        let times = take.whole.unwrap().as_secs_f64() / limit.as_secs_f64();
        // A slice of the article's has fewer bytes than the packets of the limit, and each its header.
        assert!((0.99..20.0).contains(&times), "{:?} {times}", take.sender);
    }
}

/// Each of the three: with its fix the sender ends, and without it never, although it goes on sending.
#[test]
fn the_three_hangs_hang() {
    for name in ["hang-1", "hang-2", "hang-3"] {
        let lesson = lesson(name);
        let right = play(lesson.scene);
        assert!(right.over.is_some() && right.whole.is_some(), "{name}");
        let hangs = play(lesson.switched.unwrap().0);
        assert_eq!(hangs.over, None, "{name}");
        let last = hangs.rows.iter().filter(|row| row.is_down).map(|row| row.sent).max();
        assert!(last > Some(Duration::from_secs(7)), "{name}: it still sends, {last:?}");
        assert!(hangs.sent(Kind::Again) > 2 * right.sent(Kind::Again), "{name}");
    }
}

fn lesson(name: &str) -> &'static Lesson {
    LESSONS.iter().find(|lesson| lesson.name == name).unwrap()
}

/// The packet is sent a dozen times, and each time but the last a fragment is missing.
#[test]
fn one_lost_fragment_loses_them_all() {
    let take = play(lesson("fragments").scene);
    assert!(take.whole.is_some() && take.over >= take.whole);
    assert_eq!(take.slices, [256; 12]);
    let came = |chunk: u32| {
        let rows = take.rows.iter().filter(|row| row.is_down && row.outcome == Outcome::Arrived);
        rows.filter(|row| row.chunk == chunk && row.kind < Kind::Ack).count()
    };
    assert!((0..11).all(|chunk| (240..256).contains(&came(chunk))));
    assert_eq!(came(11), 256);
    assert_eq!((take.sent(Kind::Slice), take.sent(Kind::Again)), (256, 11 * 256));
}

/// A block of several packets, some of which come twice because their ack was lost.
#[test]
fn fragments_of_several_packets_come_to_an_end() {
    let take = play("senders=fragments&bytes=600k&rate=100M&rtt=10&loss=0.3&queue=4M&seed=4");
    assert!(take.whole.is_some() && take.over.is_some(), "{:?}", take.slices);
    assert!(take.slices.len() > 3 && take.sent(Kind::Again) > 0, "{:?}", take.slices);
}

/// Nothing but the repair slices is gone, and what is lost then costs a round.
#[test]
fn without_repair_slices_a_loss_costs_a_round() {
    let (scene, (without, _)) = (lesson("repair").scene, lesson("repair").switched.unwrap());
    let (with, without) = (play(scene), play(without));
    assert!(with.sent(Kind::Repair) > 20 && with.sent(Kind::Again) == 0);
    assert!(without.sent(Kind::Repair) == 0 && without.sent(Kind::Again) > 20);
    assert!(without.whole.unwrap() > with.whole.unwrap() + Duration::from_millis(200));
}

/// The numbers of the articles: 92.4 %, 13.1 sends where the article says 10, and 2, 4 and 8 s.
#[test]
fn the_tables_of_the_articles_come_out() {
    let tables = tables(1);
    assert_eq!((tables.sends() * 10.0).round(), 131.0);
    for &(fragments, formula, measured) in &tables.fragments {
        assert!((measured - formula).abs() < 0.04, "{fragments}: {measured}, not {formula}");
    }
    for budget in tables.budgets {
        let seconds = budget.took.unwrap().as_secs_f64();
        // Headers count, too.
        let most = budget.article_s as f64 * 1.15;
        assert!((budget.article_s as f64..most).contains(&seconds), "{budget:?}");
    }
}

#[test]
fn every_lesson_is_a_scene() {
    let names: BTreeSet<&str> = LESSONS.iter().map(|lesson| lesson.name).collect();
    assert_eq!(names.len(), LESSONS.len());
    for lesson in LESSONS {
        let switched = lesson.switched.map(|(scene, _)| scene);
        for text in [Some(lesson.scene), switched].into_iter().flatten() {
            assert!(!scene(text).senders.is_empty(), "{}", lesson.name);
        }
    }
}
