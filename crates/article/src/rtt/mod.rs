//! The round-trip time, in two forms: the article's filter, and a history that gives the jitter.

mod filter;
mod history;

pub use filter::ArticleRtt;
pub use history::{RttHistory, RttSpread};
