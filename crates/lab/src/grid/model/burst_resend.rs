//! A burst of the whole block, then, on each ack that shows a loss, exactly the slices that are missing and
//! not in flight. It shows the effect of good acks without pacing and repair slices.

use std::time::Duration;

use super::receiver::AckPolicy;
use super::{ALL_SLICES, AckResult, Desk, Model};

pub(super) const ACKS: AckPolicy = AckPolicy { period: ACK_PERIOD, every: 32, is_eager: true };

const ACK_PERIOD: Duration = Duration::from_millis(10);

/// The allowance for the delay of the peer and the timers.
const SLACK: Duration = Duration::from_millis(10);

/// It has no state: the desk knows which slices are missing.
#[derive(Debug)]
pub(super) struct BurstResend;

/// Without an ack for 1.25 round trips all slices not acked are sent again.
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

    fn on_ack(&mut self, desk: &mut Desk, result: &AckResult) {
        if !result.lost.is_empty() {
            for slice in ALL_SLICES {
                if !desk.is_acked(slice) && !desk.is_on_the_way(slice) {
                    desk.send(slice);
                }
            }
        }
        arm(desk);
    }
}
