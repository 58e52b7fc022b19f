//! The bar: a crowd of hostile clients, with and without the key, and honest ones among them.

use haulier_sim::attack::crowd::{Crowd, CrowdReport};

fn judge(quiet: &CrowdReport, attacked: &CrowdReport) {
    let slow = attacked.slow_down(quiet);
    println!("{attacked}\nslower: {:.3} at p95, {:.3} the worst", slow.p95, slow.worst);
    assert_eq!(attacked.joined, attacked.honest, "honest joins that did not complete");
    assert!(attacked.worst_bytes <= 3.0 && attacked.worst_datagrams <= 3.0);
    assert!(slow.worst <= 1.2, "{slow:?}");
}

/// 10 honest clients of all speeds and 100 hostile ones of all kinds.
#[test]
fn a_hundred_hostile_clients_do_not_slow_ten_honest_ones() {
    let crowd = Crowd { honest: 10, hostile: 100, seed: 1 };
    judge(&Crowd { hostile: 0, ..crowd }.run(), &crowd.run());
}

/// The whole bar; a step of CI.
#[test]
#[ignore = "half a minute: the step `test-ignored` of CI"]
fn a_thousand_hostile_clients_do_not_slow_a_hundred_honest_ones() {
    let crowd = Crowd { honest: 100, hostile: 1000, seed: 1 };
    judge(&Crowd { hostile: 0, ..crowd }.run(), &crowd.run());
}
