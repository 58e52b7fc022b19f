//! Measurements: haulier's machines and other senders over simulated links, against the physical limit.
//!
//! Nothing here is needed to use or test haulier; the world, the soaks and the attacks are in `haulier-sim`.
//! The numbers are those of `haulier-lab bench` and of `docs/PERFORMANCE.md`.
//!
//! * [`grid`]: a block over 2144 links, ours and others' strategies against the physical limit;
//! * [`share`]: transfers that share a link with each other, with TCP and with a game;
//! * [`crowd`]: 2 to 100 of them on 450 links, in five mixes;
//! * [`rush`]: finite joins at once on one bottleneck, of one server or of one each;
//! * [`random`]: links and crowds drawn from a seed, and their distributions;
//! * [`joins`]: cold joins over seventeen links, ours, the article's and TCP's;
//! * [`joiners`]: thousands who join one server at once, each behind a link of its own;
//! * [`recorded`]: long transfers over links whose rate was recorded;
//! * [`odd`]: links that are not one rate, one delay and a queue, and the article's sender on them;
//! * [`disorder`]: joins over links that deliver late, out of order, in bunches or not at all;
//! * [`transfers`]: the soak of files, from disk to disk over everything that fails;
//! * [`rivals`]: other senders, for comparison;
//! * [`scenes`]: a block over one link by several senders, and everything that can be seen of it;
//! * [`figures`]: measurements as SVG; [`captures`]: a scene as a capture;
//! * [`article_bench`]: the article's strategy on the links it was measured on before;
//! * [`fragment_bench`]: how many packets are lost with one fragment in a hundred.

pub mod article_bench;
#[cfg(feature = "captures")]
pub mod captures;
pub mod crowd;
pub mod disorder;
mod ends;
pub mod figures;
pub mod fragment_bench;
pub mod grid;
pub mod joiners;
pub mod joins;
pub mod odd;
pub mod random;
pub mod recorded;
pub mod rivals;
pub mod rush;
pub mod scenes;
pub mod share;
#[cfg(feature = "files")]
pub mod transfers;

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
