//! What fragments do to loss: "if any fragment of that packet is lost then the entire packet is lost"
//! (*Packet Fragmentation and Reassembly*, "Sending Packet Fragments"). The article computes it; here the
//! packets really cross a link that loses datagrams.

use std::time::Duration;

use haulier_article::Instant;
use haulier_article::endpoint::{Endpoint, EndpointConfig};
use haulier_article::fragment::{FRAGMENT_BYTES, FragmentPool};
use haulier_article::packet::numbered::NUMBERED_HEADER_BYTES;

use haulier_sim::{Link, LinkConfig, Loss, Probability, Rng};

/// The numbers of fragments that the article lists.
pub const FRAGMENTS: [usize; 5] = [1, 2, 10, 100, 256];

/// The loss that the article computes with, in percent.
pub const LOSS_PERCENT: u64 = 1;

/// The standard deviation of the measured loss: half a point is then more than three of them.
const SCATTER: f64 = 0.0015;

/// Packets of this many fragments over a link with this loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Fragments a packet.
    pub fragments: usize,
    /// Datagrams lost, in percent.
    pub loss_percent: u64,
}

/// Every row of the article.
pub fn rows() -> impl Iterator<Item = Row> {
    FRAGMENTS.into_iter().map(|fragments| Row { fragments, loss_percent: LOSS_PERCENT })
}

impl Row {
    /// The share of lost packets by the article's formula: `1 - (1 - loss) ^ fragments`.
    pub fn expected(&self) -> f64 {
        let arrives = 1.0 - self.loss_percent as f64 / 100.0;
        1.0 - (0..self.fragments).map(|_| arrives).product::<f64>()
    }

    /// Packets to send so that the standard deviation of the loss is at most 0.15 points.
    pub fn packets(&self) -> u64 {
        let lost = self.expected();
        (lost * (1.0 - lost) / (SCATTER * SCATTER)).ceil() as u64
    }

    /// Sends `packets` packets, one every 16 ms, and returns the share that did not arrive. The receiver's
    /// ack packets cross a link with the same loss.
    ///
    /// # Panics
    /// If the endpoints send another number of fragments.
    pub fn lost(&self, packets: u64, seed: u64) -> f64 {
        let config = LinkConfig {
            loss: Loss::Independent(Probability::percent(self.loss_percent)),
            delay: Duration::from_millis(20),
            ..LinkConfig::default()
        };
        let seed = Rng::stream(seed, self.fragments as u64).next_u64();
        let mut there = Link::new(config.clone(), seed);
        let mut back = Link::new(config, seed ^ 1);
        let endpoint = || Endpoint::new(EndpointConfig::default());
        let (Ok(mut sender), Ok(mut receiver)) = (endpoint(), endpoint()) else {
            unreachable!("the default configuration works")
        };
        let (mut pool, mut no_pool) = (FragmentPool::default(), FragmentPool::default());
        let (mut datagram, payload) = (Vec::new(), vec![7; self.payload_bytes()]);
        // The last packet is given time to arrive.
        for step in 0..packets + 2 {
            let now = Instant::from_millis(step * 16);
            sender.handle_timeout(now);
            if step < packets {
                assert!(sender.send(now, &payload).is_ok(), "the queue is emptied each time");
            }
            while sender.poll_datagram(now, &mut datagram) {
                there.offer(now, &datagram);
            }
            while there.poll_delivery(now, &mut datagram) {
                if let Ok(Some(delivery)) = receiver.handle_datagram(now, &datagram, &mut pool) {
                    delivery.accept();
                }
            }
            while receiver.poll_datagram(now, &mut datagram) {
                back.offer(now, &datagram);
            }
            while back.poll_delivery(now, &mut datagram) {
                let _counted = sender.handle_datagram(now, &datagram, &mut no_pool);
            }
        }
        assert_eq!(there.stats().offered, packets * self.fragments as u64, "fragments a packet");
        1.0 - receiver.stats().packets_received as f64 / packets as f64
    }

    /// A payload for a packet of this many fragments, the last of them full. A packet of one datagram is not
    /// fragmented.
    const fn payload_bytes(&self) -> usize {
        self.fragments * FRAGMENT_BYTES - NUMBERED_HEADER_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_gives_the_numbers_of_the_article() {
        let percent: Vec<f64> =
            rows().map(|row| (row.expected() * 1000.0).round() / 10.0).collect();
        assert_eq!(percent, [1.0, 2.0, 9.6, 63.4, 92.4]);
    }

    /// The cheap rows of `haulier-lab bench fragments`, to within a point.
    #[test]
    fn the_simulation_agrees_with_the_formula() {
        for row in rows().filter(|row| row.fragments <= 10) {
            let lost = row.lost(8_000, 1);
            assert!((lost - row.expected()).abs() < 0.01, "{row:?}: {lost}");
        }
    }
}
