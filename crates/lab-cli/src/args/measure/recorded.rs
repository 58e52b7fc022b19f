//! The arguments of `haulier-lab bench recorded`.

use std::path::PathBuf;
use std::time::Duration;

use haulier_lab::recorded::{RecordedLink, Sender};
use haulier_shell::units;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct RecordedArgs {
    /// Just these links: lte-like, evdo-like.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = link)]
    pub(crate) links: Vec<&'static str>,

    /// Your own record of the way down, instead of those links.
    #[arg(long, value_name = "FILE", conflicts_with = "links")]
    pub(crate) down: Option<PathBuf>,

    /// The record of the way up that belongs to it. By default the way up is the same as that down.
    #[arg(long, value_name = "FILE", requires = "down")]
    pub(crate) up: Option<PathBuf>,

    /// The round trip of your own record, in ms.
    #[arg(long, value_name = "MS", default_value = "60", value_parser = units::millis)]
    pub(crate) rtt: Duration,

    /// The queue before your own record, in bytes (k, M).
    #[arg(long, value_name = "BYTES", default_value = "512k", value_parser = units::bytes)]
    pub(crate) queue: u64,

    /// Just these: ours, cubic, bbr.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = sender)]
    pub(crate) only: Vec<Sender>,

    /// The length of a run in seconds, more than 5. By default twice the record.
    #[arg(long, value_name = "S", value_parser = lasts)]
    pub(crate) seconds: Option<Duration>,

    /// Runs of each sender over each link, each from another place in the record on.
    #[arg(
        long,
        value_name = "N",
        default_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    pub(crate) seeds: u64,
}

const HELP: &str = "\
One long transfer at a time crosses a link whose rate was recorded, in virtual time: by haulier/1, by a \
model of TCP CUBIC, and by one of BBR. A record is text, a line for each opportunity to deliver 1500 \
bytes: a whole number of milliseconds from its start. It repeats after the time of its last line. This is \
the form of Mahimahi, so its records can be used:
  lte-like   12 Mbit/s in the mean, 0.6 to 40 within seconds; 55 ms, a queue of 750 KiB
  evdo-like  0.8 Mbit/s in the mean, and nothing for up to 2.4 s at times; 120 ms, 300 KiB
These two come with the program. They are made from a seed, and like real ones.

Columns, medians of the seeds: the part of the link's opportunities that blocks used from second 5 on; \
what that is in Mbit/s; the median and the 95th percentile of the queueing delay, sampled each 10 ms, and \
what the latter is in an empty queue, for which nobody is to blame; what the full queue dropped.

Exit code 7 if a connection of ours ended before its run.

Examples:
  haulier-lab bench recorded
  haulier-lab bench recorded --links lte-like --only ours --seeds 20
  haulier-lab bench recorded --down LTE-driving.down --up LTE-driving.up --rtt 55 --queue 750k";

impl RecordedArgs {
    /// The senders that are measured, each once, in the order of the library.
    pub(crate) fn senders(&self) -> Vec<Sender> {
        let is_asked = |sender: &Sender| self.only.is_empty() || self.only.contains(sender);
        Sender::ALL.into_iter().filter(is_asked).collect()
    }
}

fn link(name: &str) -> Result<&'static str, String> {
    RecordedLink::NAMES.into_iter().find(|known| *known == name).ok_or_else(|| {
        let names = RecordedLink::NAMES.join(", ");
        format!("there is no record called {name}: there are {names}; --down FILE reads another")
    })
}

fn sender(name: &str) -> Result<Sender, String> {
    Sender::named(name).ok_or_else(|| {
        let names = Sender::ALL.map(Sender::name).join(", ");
        format!("there is no sender called {name}: there are {names}")
    })
}

fn lasts(text: &str) -> Result<Duration, String> {
    let lasts = units::seconds(text)?;
    if lasts > Duration::from_secs(5) {
        Ok(lasts)
    } else {
        Err(format!("{text} is too short: use is measured from second 5 on"))
    }
}
