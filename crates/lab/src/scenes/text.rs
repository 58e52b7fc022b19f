//! A scene as text: the query of an address, `senders=haulier,article&rate=10M&rtt=100`.
//!
//! What is not said has its default. The invariant: what is written is read as the same scene.

use std::fmt;

use super::{Fault, Scene, Sender};

/// Why a text is no scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SceneError {
    /// The name of the value, such as `rate`.
    pub name: String,
    /// What it should be.
    pub should_be: &'static str,
}

impl fmt::Display for SceneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.should_be)
    }
}

impl std::error::Error for SceneError {}

const SENDERS: &str =
    "one to four of haulier, article, article-paced, fragments, slow-start, by commas";
const RATE: &str = "bits per second from 100k to 1G, such as 10M";
const RTT: &str = "a round trip in ms from 0 to 2000";
const LOSS: &str = "a share of packets in percent from 0 to 90, such as 5 or 0.1";
const BURST: &str = "the mean length of runs of losses, from 1 to 50";
const QUEUE: &str = "bytes from 2k to 16M, such as 256k";
const JITTER: &str = "ms from 0 to 500";
const BYTES: &str = "bytes from 1 to 1M, such as 256k";
const SEED: &str = "a number";
const BUDGET: &str = "bits per second from 16k to 1G, such as 256k";
const WITHOUT: &str = "duplicates, unread, previous or repair";
const LASTS: &str = "ms from 100 to 60000";

impl Scene {
    /// Reads a scene, with or without a `?` before it.
    ///
    /// # Errors
    /// [`SceneError`] for a value that is unknown, or not what it should be.
    pub fn parse(text: &str) -> Result<Self, SceneError> {
        let mut scene = Self::default();
        let text = text.trim_start_matches('?');
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // What a browser writes for a comma or a percent sign.
            let value = value.replace("%2C", ",").replace("%25", "%");
            scene.set(name, &value).map_err(|should_be| {
                let name = name.chars().take(20).collect();
                SceneError { name, should_be }
            })?;
        }
        Ok(scene)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        match name {
            "senders" => self.senders = senders(value).ok_or(SENDERS)?,
            "rate" => self.rate_bps = sized(value, 1e3, 100_000, 1_000_000_000).ok_or(RATE)?,
            "rtt" => self.rtt_ms = number(value, 0, 2_000).ok_or(RTT)?,
            "loss" => self.loss = percent(value).ok_or(LOSS)?,
            "burst" => self.burst = number(value, 1, 50).ok_or(BURST)? as u32,
            "queue" => self.queue_bytes = sized(value, 1024.0, 2_048, 16 << 20).ok_or(QUEUE)?,
            "jitter" => self.jitter_ms = number(value, 0, 500).ok_or(JITTER)?,
            "bytes" => self.bytes = sized(value, 1024.0, 1, 1 << 20).ok_or(BYTES)?,
            "seed" => self.seed = number(value, 0, u64::MAX).ok_or(SEED)?,
            "budget" if value.is_empty() => self.budget_bps = None,
            "budget" => {
                self.budget_bps = Some(sized(value, 1e3, 16_000, 1_000_000_000).ok_or(BUDGET)?);
            }
            "without" if value.is_empty() => self.without = None,
            "without" => self.without = Some(Fault::named(value).ok_or(WITHOUT)?),
            "lasts" => self.lasts_ms = number(value, 100, 60_000).ok_or(LASTS)?,
            _ => return Err("there is no such value"),
        }
        Ok(())
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let senders: Vec<&str> = self.senders.iter().map(|sender| sender.name()).collect();
        let Self { rate_bps, rtt_ms, burst, queue_bytes, jitter_ms, bytes, seed, lasts_ms, .. } =
            self;
        let loss = self.loss as f64 / 100.0;
        write!(
            f,
            "senders={}&rate={rate_bps}&rtt={rtt_ms}&loss={loss}&burst={burst}",
            senders.join(",")
        )?;
        write!(f, "&queue={queue_bytes}&jitter={jitter_ms}&bytes={bytes}&seed={seed}")?;
        if let Some(budget) = self.budget_bps {
            write!(f, "&budget={budget}")?;
        }
        if let Some(fault) = self.without {
            write!(f, "&without={}", fault.name())?;
        }
        write!(f, "&lasts={lasts_ms}")
    }
}

fn senders(text: &str) -> Option<Vec<Sender>> {
    let named = |name: &str| Sender::ALL.into_iter().find(|sender| sender.name() == name);
    let senders: Vec<Sender> = text.split(',').map(named).collect::<Option<_>>()?;
    (1..=4).contains(&senders.len()).then_some(senders)
}

fn number(text: &str, min: u64, max: u64) -> Option<u64> {
    text.parse().ok().filter(|number| (min..=max).contains(number))
}

/// A number, perhaps with k, M or G behind it, which are powers of `unit`.
fn sized(text: &str, unit: f64, min: u64, max: u64) -> Option<u64> {
    let units = [("k", unit), ("M", unit * unit), ("G", unit * unit * unit)];
    let unit = units.iter().find_map(|&(name, size)| Some((text.strip_suffix(name)?, size)));
    let (digits, factor) = unit.unwrap_or((text, 1.0));
    let size = (digits.parse::<f64>().ok()? * factor).round();
    (min as f64..=max as f64).contains(&size).then_some(size as u64)
}

/// Percent as parts of ten thousand.
fn percent(text: &str) -> Option<u64> {
    let parts = (text.trim_end_matches('%').parse::<f64>().ok()? * 100.0).round();
    (0.0..=9_000.0).contains(&parts).then_some(parts as u64)
}
