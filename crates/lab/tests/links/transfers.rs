//! The soak of files: a short one, and the seeds that once failed (docs/FILES.md, "The soak").

use haulier_lab::transfers::{TransferScenario, run_scenario};
use haulier_sim::soak::{self, Budget, Report, Verdict};

fn soak(seed: u64, scenarios: u64) -> Report {
    let count = |report: &Report| report.scenarios;
    soak::run_with(seed, Budget::Transfers(scenarios), count, run_scenario, |_| true)
}

#[test]
fn a_short_soak_of_files_finds_nothing() {
    let report = soak(1, 25);
    for failure in &report.failures {
        let (seed, what) = (failure.scenario, &failure.what);
        println!("replay: haulier-lab soak --layers files --scenario {seed:#018x}   ({what})");
    }
    println!("{} files, {} tries more", report.transfers, report.restarts);
    assert!(report.is_ok(), "{} hangs, {} mismatches", report.hangs, report.mismatches);
    assert!(report.restarts > 10 && report.transfers > 25, "{report:?}");
}

/// Blocks that are a chunk, or a byte more or less, or nothing.
#[test]
fn files_of_every_length_arrive_over_all_that_fails() {
    const CHUNK: u64 = 1 << 18;
    for bytes in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK, 4 * CHUNK + 1] {
        for seed in 0..4 {
            let outcome = TransferScenario::draw(seed).with_one_file(bytes).run();
            assert_eq!(outcome.verdict, Verdict::Finished, "{bytes} bytes, seed {seed}");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_soak_of_files() {
    assert_eq!(soak(5, 6), soak(5, 6));
    assert_ne!(soak(5, 3).trace_hash, soak(6, 3).trace_hash);
}

/// Scenarios that failed once. They stay.
#[test]
fn seeds_of_files_that_once_failed() {
    const SEEDS: &[u64] = &[
        60,
        217,
        222,
        0x2000_383f_010b_cdb7,
        // A file like the offered one was asked for its root, and the rest that came unasked was waited for.
        0xaa7e_9568_ac81_8dcc,
        0x6387_f4ab_5cde_02b1,
        // No fault: a slow disk cut two files, for longer than the soak waited.
        0xaead_7fc6_3a3a_8f42,
        // No fault of the files: the simulated client never heard that its connection had ended while its
        // disk was behind.
        0xe15c_3962_def0_afcb,
        // Of two files with one content one was resumed, and the other waited for what the connection took
        // for here.
        0x6497_e2ce_def3_8dce,
        0x8783_94c1_3002_55f3,
        // The data of a file that had changed was gone, and its old journal was not.
        0x9a9e_ded7_6443_b037,
        // A file whose root was asked for changed without a trace, and that ended the whole transfer.
        0xa015_4d94_cb3a_be32,
        // A journal whose sync had failed was gone on with, and a loss of power took all of it.
        0xe2ff_a52f_6442_d53b,
    ];
    for &seed in SEEDS {
        assert_eq!(run_scenario(seed).verdict, Verdict::Finished, "{seed:#018x}");
    }
}
