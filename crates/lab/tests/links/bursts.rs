//! Losses in runs, as a radio has them.

use haulier_lab::joins::{JoinLink, Joiner, join};
use haulier_proto::connection::Block;
use haulier_sim::Rng;

/// A run of losses is one event, and no evidence of a full queue for each of its datagrams. When each
/// counted, 16 MiB by token took up to 6.1 L over `burst`, and 3.3 by ticket: the window was cut for each
/// long run.
#[test]
fn a_run_of_losses_is_one_event() {
    let block = Block::new(1, Rng::stream(1, 93).bytes(16 << 20));
    let link = JoinLink::named("burst").expect("a link of the lab");
    for joiner in [Joiner::Token, Joiner::Ticket] {
        for seed in 1..=6 {
            let took = join(&link, joiner, &block, seed).in_limits();
            println!("{joiner:?}: {took:.3} L, seed {seed}");
            assert!(took < 1.45, "{joiner:?}: {took} L, seed {seed}");
        }
    }
}
