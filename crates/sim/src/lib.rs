//! The simulator of haulier: hosts and links with faults in virtual time, all from one seed.
//!
//! A [`World`] holds [`Host`]s (a machine, usually with an application) and the [`Link`]s
//! between them, and moves from event to event without waiting. Every random choice comes from the seed, all
//! arithmetic is in integers, and the [`Trace`] of two runs with the same seed has the same hash, on any
//! machine.
//!
//! ```
//! use haulier_article::{ArticleConfig, ArticlePeer, Instant, PeerMachine};
//! use haulier_sim::{Profile, World, address};
//!
//! let mut server = PeerMachine::connected(ArticlePeer::new(ArticleConfig::default()), address(2));
//! let client = PeerMachine::connected(ArticlePeer::new(ArticleConfig::default()), address(1));
//! server.peer.send_chunk(vec![1; 100_000])?;
//!
//! let mut world = World::new(42);
//! let link = Profile::named("mobile").unwrap().link();
//! let (_server, client) = world.pair(server, client, link.clone(), link);
//! let minute = Instant::from_millis(60_000);
//! assert!(world.run_until(minute, |world| world.host(client).peer.receiver().unread() > 0));
//! println!("{:?} later, trace {:016x}", world.now(), world.trace().hash());
//! # assert!(world.now() > Instant::from_millis(50));
//! # Ok::<(), haulier_article::chunk::SendChunkError>(())
//! ```
//!
//! * [`World`], [`Host`], [`Framed`], [`link`], [`codel`], [`shaping`], [`marking`], [`record`], [`Loss`],
//!   [`profile`], [`Rng`], [`Trace`]: the world; [`synthetic`] makes records;
//! * [`hosts`]: the two ends of haulier/1 and a peer of the article's wire, with applications;
//! * [`soak`]: transfers under random faults, which must all finish once the faults stop;
//! * [`attack`]: hostile hosts;
//! * [`oracle`]: bounds on memory and work that hold whatever a peer sends;
//! * [`hostile`]: input that a peer must survive, driven by the fuzzers and replayed by the tests.

pub mod attack;
pub mod codel;
mod framed;
mod host;
pub mod hostile;
pub mod hosts;
pub mod link;
mod loss;
pub mod marking;
pub mod oracle;
pub mod profile;
pub mod record;
mod rng;
pub mod shaping;
pub mod soak;
pub mod synthetic;
mod trace;
mod world;

pub use codel::CoDel;
pub use framed::Framed;
pub use host::{Host, Shot};
pub use link::{Fate, Link, LinkConfig, LinkStats};
pub use loss::Loss;
pub use marking::{EcnPath, Mtu};
pub use profile::Profile;
pub use record::{Record, RecordError, Recorded};
pub use rng::{Probability, Rng};
pub use shaping::{Excess, RateChange, TokenBucket};
pub use trace::Trace;
pub use world::{Access, HostId, SegmentId, Sight, Stage, World, address};

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
