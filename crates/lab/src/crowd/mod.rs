//! The crowd: many flows on one bottleneck, in virtual time, with the real machines at both ends.
//!
//! Every [`Cell`] is a number of flows, their link, and their [`Mix`]: ours alone, ours beside TCP with CUBIC
//! or BBR, with late joiners and leavers, upwards, and on links that are unequal or odd; TCP alone, to
//! compare with. A run is one cell and one seed; its [`Outcome`] says how fairly the flows shared the link,
//! how much of it they used, and what that did to its queue. A [`Summary`] combines the cells of a mix.
//!
//! Fairness is of the bytes of blocks that arrived, in the second half of the run. Drops and completion are
//! of the whole of it: how a crowd begins is a part of what it costs.

mod cell;
mod link;
mod mix;
mod outcome;
mod summary;

pub use cell::Cell;
pub use mix::{Mix, Role};
pub use outcome::{FlowOutcome, Outcome};
pub use summary::Summary;

use haulier_sim::Rng;

/// One run. The same cell and seed are the same run.
pub fn run(cell: &Cell, seed: u64) -> Outcome {
    let seed = Rng::stream(seed, 1 + u64::from(cell.number)).next_u64();
    Outcome::of(cell, &cell.share().run(seed))
}
