//! The time that the news of an arrival takes, and its excess over the minimum: the queue of the way back,
//! which acks fill where that way is thin.
//!
//! The newest datagram that a report names was sent a round trip ago, less the queue that it met on its way,
//! which the report shows too. The rest is the time of the path there and back, the wait of the ack, and
//! the queue of the way back.

use crate::units::Span;

/// The time from sending a datagram to hearing of it, without the queue that it met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WayBack {
    least: Span,
    /// The sum of the times since the mean was asked for, and how many these are.
    sum: Span,
    count: u32,
}

impl WayBack {
    /// Nothing was heard.
    pub(crate) const fn new() -> Self {
        Self { least: Span(f64::INFINITY), sum: Span::ZERO, count: 0 }
    }

    /// It was heard at `now` that the datagram that was sent then has arrived, and met this queue.
    pub(crate) fn on_report(&mut self, now: Span, sent: Span, queue: Span) {
        let took = now - sent - queue;
        self.least = self.least.min(took);
        (self.sum, self.count) = (self.sum + took, self.count.saturating_add(1));
    }

    /// The path there has become longer.
    pub(crate) fn on_longer(&mut self, by: Span) {
        self.least += by;
    }

    /// By how much the reports since the last call were later than the best one in the mean.
    pub(crate) fn poll_queue(&mut self) -> Span {
        let (sum, count) = (self.sum, f64::from(self.count));
        (self.sum, self.count) = (Span::ZERO, 0);
        if count > 0.0 { 1.0 / count * sum - self.least } else { Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(way: &mut WayBack, took_ms: u16, queue_ms: u16) {
        let (took, queue) = (Span::from_millis(took_ms), Span::from_millis(queue_ms));
        way.on_report(Span::from_secs(1) + took, Span::from_secs(1), queue);
    }

    #[test]
    fn the_queue_of_the_way_there_is_not_that_of_the_way_back() {
        let mut way = WayBack::new();
        assert_eq!(way.poll_queue(), Span::ZERO, "nothing was heard");
        report(&mut way, 50, 0);
        report(&mut way, 90, 40);
        assert_eq!(way.poll_queue(), Span::ZERO);
        report(&mut way, 130, 40);
        report(&mut way, 100, 30);
        assert_eq!(way.poll_queue(), Span::from_millis(30), "the mean of 40 and 20");
        way.on_longer(Span::from_millis(30));
        report(&mut way, 80, 0);
        assert_eq!(way.poll_queue(), Span::ZERO);
    }
}
