//! Everything at once, then, with each ack that shows a loss, exactly the slices that are missing and not on
//! the way. What a good ack buys without a pace and without repair slices.

use std::time::Duration;

use super::receiver::AckPolicy;
use super::{ALL_SLICES, Desk, Model, News};

pub(super) const ACKS: AckPolicy = AckPolicy { period: ACK_PERIOD, every: 32, is_eager: true };

const ACK_PERIOD: Duration = Duration::from_millis(10);

/// What the peer and the timers may be late by.
const SLACK: Duration = Duration::from_millis(10);

/// It remembers nothing: the desk knows what is missing.
#[derive(Debug)]
pub(super) struct BurstResend;

/// Without news for 1.25 round trips everything that is not acked goes out again.
fn arm(desk: &mut Desk) {
    desk.wake_at(desk.now + desk.rtt * 5 / 4 + ACK_PERIOD + SLACK);
}

impl Model for BurstResend {
    fn start(&mut self, desk: &mut Desk) {
        ALL_SLICES.for_each(|slice| desk.send(slice));
        arm(desk);
    }

    fn wake(&mut self, desk: &mut Desk) {
        for slice in ALL_SLICES {
            if !desk.is_acked(slice) {
                desk.send(slice);
            }
        }
        arm(desk);
    }

    fn on_ack(&mut self, desk: &mut Desk, news: &News) {
        if !news.lost.is_empty() {
            for slice in ALL_SLICES {
                if !desk.is_acked(slice) && !desk.is_on_the_way(slice) {
                    desk.send(slice);
                }
            }
        }
        arm(desk);
    }
}
