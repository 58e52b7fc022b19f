//! Throughput over time, and its fairness.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::Event;
use haulier_sim::hosts::Listener;

/// The length of a window: shorter than all but one round trip of the profiles.
pub const WINDOW: Duration = Duration::from_millis(100);

/// Bytes by windows of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throughput {
    windows: Vec<u64>,
}

impl Throughput {
    /// Counts bytes at this time.
    pub fn add(&mut self, now: Instant, bytes: u64) {
        let place = window_of(now);
        if self.windows.len() <= place {
            self.windows.resize(place + 1, 0);
        }
        self.windows[place] += bytes;
    }

    /// Bytes of each window of [`WINDOW`], from time zero to the last byte.
    pub fn windows(&self) -> &[u64] {
        &self.windows
    }

    /// Bytes in the windows that begin from `from` on and before `to`.
    pub fn between(&self, from: Instant, to: Instant) -> u64 {
        let end = window_of(to).min(self.windows.len());
        self.windows.get(window_of(from)..end).map_or(0, |windows| windows.iter().sum())
    }

    /// The mean rate between these two times, in bits per second.
    pub fn bps(&self, from: Instant, to: Instant) -> f64 {
        self.between(from, to) as f64 * 8.0 / to.since(from).as_secs_f64()
    }
}

/// The block bytes that a client received, by time. A block's first progress event includes earlier bytes.
#[derive(Clone, Debug, Default)]
pub struct Goodput {
    /// Bytes, by time.
    pub throughput: Throughput,
    /// Whether the connection was closed.
    pub is_over: bool,
    /// Bytes of the block in progress that are counted.
    counted: u64,
}

impl Listener for Goodput {
    fn on_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::BlockProgress { received, .. } => {
                self.throughput.add(now, received.saturating_sub(self.counted));
                self.counted = self.counted.max(received);
            }
            Event::Block { data, .. } => {
                self.throughput.add(now, (data.len() as u64).saturating_sub(self.counted));
                self.counted = 0;
            }
            Event::Closed(_) => self.is_over = true,
            _ => {}
        }
    }
}

fn window_of(at: Instant) -> usize {
    (at.as_nanos() / WINDOW.as_nanos() as u64) as usize
}

/// Jain's index of fairness: 1 if all have the same, 1/n if one has everything (Jain, Chiu, Hawe 1984).
/// It is 1 if all have nothing.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// The value below which `percent` per cent of the values lie; zero if `values` is empty. Sorts the values.
pub fn percentile(values: &mut [Duration], percent: usize) -> Duration {
    values.sort_unstable();
    let place = (values.len() * percent / 100).min(values.len().saturating_sub(1));
    values.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_their_windows() {
        let mut throughput = Throughput::default();
        let ms = Instant::from_millis;
        throughput.add(ms(0), 1);
        throughput.add(ms(99), 2);
        throughput.add(ms(250), 4);
        assert_eq!(throughput.windows(), [3, 0, 4]);
        assert_eq!(throughput.between(ms(0), ms(100)), 3);
        assert_eq!(throughput.between(ms(100), ms(9_000)), 4);
        assert_eq!(throughput.between(ms(8_000), ms(9_000)), 0);
    }

    #[test]
    fn jains_index_is_as_in_the_paper() {
        assert!((jain(&[5.0, 5.0, 5.0]) - 1.0).abs() < 1e-12);
        assert!((jain(&[9.0, 0.0, 0.0]) - 1.0 / 3.0).abs() < 1e-12);
        assert!((jain(&[3.0, 1.0]) - 0.8).abs() < 1e-12);
    }
}
