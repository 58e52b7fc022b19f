//! What an uplink and the links behind it allow, computed: as a fluid, without packets or machines.
//!
//! Each flow begins to take of the uplink when its request has arrived, no more than its own link has, and is
//! done when the last of it has arrived. Both ways of dividing lose no capacity: what one cannot take goes to
//! the others.

use std::time::Duration;

/// A client.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Of its link, one way.
    pub delay: Duration,
    /// What its own link has, in bits per second.
    pub max_bps: f64,
    /// What has to be sent to it, with what will be lost.
    pub bytes: f64,
}

impl Flow {
    /// When it has its bytes if it is the only flow.
    #[must_use]
    pub fn alone(&self) -> Duration {
        self.delay * 2 + Duration::from_secs_f64(self.bytes * 8.0 / self.max_bps)
    }
}

/// The seconds that are computed at once: less than a transfer takes on any of the links, and a small part
/// of the time that all take together.
const MIN_STEP: f64 = 0.001;
const STEPS: f64 = 20_000.0;

/// When each has its bytes if all share the uplink equally, and what one cannot take the others divide.
#[must_use]
pub fn equal(flows: &[Flow], uplink_bps: f64) -> Vec<Duration> {
    // In the order of what they can take: then one pass divides the uplink.
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by(|&a, &b| flows[a].max_bps.total_cmp(&flows[b].max_bps));
    divide(flows, uplink_bps, order, |active, rates| {
        let (mut free, mut left) = (uplink_bps, active.len());
        for (&flow, rate) in active.iter().zip(rates) {
            *rate = flows[flow].max_bps.min(free / left as f64);
            free -= *rate;
            left -= 1;
        }
    })
}

/// When each has its bytes if the first come first: each takes what its link has, while there is some.
#[must_use]
pub fn in_turn(flows: &[Flow], uplink_bps: f64) -> Vec<Duration> {
    divide(flows, uplink_bps, (0..flows.len()).collect(), |active, rates| {
        let mut free = uplink_bps;
        for (&flow, rate) in active.iter().zip(rates) {
            *rate = flows[flow].max_bps.min(free);
            free -= *rate;
        }
    })
}

/// Step by step, with rates that `share` gives to those that are there, in this order.
fn divide(
    flows: &[Flow],
    uplink_bps: f64,
    order: Vec<usize>,
    share: impl Fn(&[usize], &mut [f64]),
) -> Vec<Duration> {
    let mut left: Vec<f64> = flows.iter().map(|flow| flow.bytes * 8.0).collect();
    let step = (left.iter().sum::<f64>() / uplink_bps / STEPS).max(MIN_STEP);
    let mut done = vec![Duration::MAX; flows.len()];
    let (mut waiting, mut at) = (order, 0.0);
    while !waiting.is_empty() {
        let has_begun = |&&flow: &&usize| flows[flow].delay.as_secs_f64() <= at;
        let active: Vec<usize> = waiting.iter().filter(has_begun).copied().collect();
        let mut rates = vec![0.0; active.len()];
        share(&active, &mut rates);
        for (&flow, rate) in active.iter().zip(rates) {
            if left[flow] <= rate * step {
                done[flow] = Duration::from_secs_f64(at + left[flow] / rate) + flows[flow].delay;
            }
            left[flow] -= rate * step;
        }
        waiting.retain(|&flow| done[flow] == Duration::MAX);
        at += step;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 Mbit/s for one of 2 and two of any rate, 1 Mbit each: the slow one takes 0.5 s, the others have 4
    /// each until they are done after 0.25 s.
    #[test]
    fn what_a_slow_link_leaves_is_for_the_others() {
        let flow = |max_bps| Flow { delay: Duration::ZERO, max_bps, bytes: 125_000.0 };
        let flows = [flow(1e9), flow(2e6), flow(1e9)];
        let near = |times: Vec<Duration>, expected: [f64; 3]| {
            for (time, expected) in times.iter().zip(expected) {
                assert!((time.as_secs_f64() - expected).abs() < 0.003, "{times:?}");
            }
        };
        near(equal(&flows, 10e6), [0.25, 0.5, 0.25]);
        near(in_turn(&flows, 10e6), [0.1, 0.6, 0.225]);
    }
}
