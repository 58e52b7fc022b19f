//! The world of haulier: links with faults, virtual time, and everything from one seed.
//!
//! A [`World`] holds [`Node`]s (machines of `haulier-proto` with a bit of application round them) and the
//! [`Link`]s between them, and moves from event to event without waiting. Every random choice comes
//! from the seed, all arithmetic is in integers, and the [`Trace`] of two runs with the same seed has the
//! same hash, on any machine.
//!
//! ```
//! use haulier_article::{ArticleConfig, ArticlePeer};
//! use haulier_sim::{PeerNode, Profile, World};
//!
//! let mut world = World::new(42);
//! let server = world.add(PeerNode::new(ArticlePeer::new(ArticleConfig::default())));
//! let client = world.add(PeerNode::new(ArticlePeer::new(ArticleConfig::default())));
//! world.connect(server, client, &Profile::named("mobile").unwrap().link());
//!
//! world.node_mut(server).peer.send_chunk(vec![1; 100_000])?;
//! world.run_until(|world| world.node(client).peer.receiver().unread() > 0);
//! println!("{:?} later, trace {:016x}", world.now(), world.trace().hash());
//! # assert!(world.now() > haulier_article::Instant::from_millis(50));
//! # Ok::<(), haulier_article::chunk::SendChunkError>(())
//! ```
//!
//! * [`link`], [`shaping`], [`loss`], [`profile`], [`rng`], [`trace`], [`world`]: the world;
//! * [`soak`]: transfers under drawn faults, which must all finish once the faults stop;
//! * [`game`]: packets on frames beside a chunk, with a memory of what was promised;
//! * [`hostile`]: what a peer must survive, driven by the fuzzers and replayed by the tests.

pub mod game;
pub mod hostile;
pub mod internet;
pub mod join;
pub mod link;
pub mod loss;
pub mod nodes;
pub mod profile;
pub mod rng;
pub mod shaping;
pub mod soak;
pub mod trace;
pub mod world;

pub use internet::{Access, Host, HostId, Internet, SegmentId};
pub use link::{Fate, Link, LinkConfig, LinkStats};
pub use loss::Loss;
pub use nodes::{FrameNode, PeerNode};
pub use profile::Profile;
pub use rng::{Probability, Rng};
pub use shaping::{Excess, RateChange, TokenBucket};
pub use trace::Trace;
pub use world::{Node, NodeId, World};
