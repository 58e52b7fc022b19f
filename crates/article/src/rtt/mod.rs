//! The round-trip time, two ways: the article's filter, and a history from which jitter is read.

mod filter;
mod history;

pub use filter::ArticleRtt;
pub use history::{RttHistory, RttSpread};
