//! Constants of the search for the rate of a link that is faster than clocks can tell: `upward.rs`.

use crate::units::Span;

/// How much faster the next step is.
pub(crate) const STEP: f64 = 1.5;

/// A step came through if it arrived at this fraction of the rate at which it was sent: 0.1 ms of jitter in
/// [`MIN_TIME`] are less.
pub(crate) const CAME: f64 = 0.9;

/// The minimum time of a step, and that in ticks: the slices of one tick are then a small part of the step.
pub(crate) const MIN_TIME: Span = Span::from_millis(1);
pub(crate) const MIN_TICKS: f64 = 8.0;

/// A step that used less than this fraction of its rate was limited by something else, and shows nothing.
pub(crate) const USED: f64 = 0.75;

/// The fraction of the rate found that is used: the queue that the last step has made drains.
pub(crate) const SETTLED: f64 = 0.97;
