//! A path that loses a fifth of all datagrams on its own: its losses must not be taken for those of a crowd.

use haulier_lab::joins::{JoinLink, Joiner, join};
use haulier_proto::connection::Block;
use haulier_sim::Rng;

/// 2 Mbit/s, 250 ms, a fifth is lost. The last datagram of a chunk is smaller and arrives sooner; as the base
/// delay it left a queue that never was. Each trial of the losses found that others fill it, and 7 of 20
/// blocks were not done in eight minutes.
#[test]
fn sixteen_mib_where_a_fifth_is_lost() {
    let (link, block) =
        (JoinLink::named("awful").unwrap(), Block::new(1, Rng::stream(1, 93).bytes(16 << 20)));
    for joiner in [Joiner::Token, Joiner::Ticket] {
        for seed in 1..=6 {
            let took = join(&link, joiner, &block, seed).in_limits();
            println!("{}: {took:.2} L, seed {seed}", joiner.name());
            assert!(took < 1.4, "{joiner:?}, seed {seed}: {took} L");
        }
    }
}
