//! The round-trip time, three ways: the article's filter, the four values of RFC 9002, and a history
//! from which jitter is read.

mod article;
mod history;
mod rfc9002;

pub use article::ArticleRtt;
pub use history::{RttHistory, RttSpread};
pub use rfc9002::RttEstimator;
