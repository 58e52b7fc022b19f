//! Numbers as people write them, and back.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use clap::ValueEnum;
use haulier::file::is_invisible;

/// 64 bits, decimal or `0x` and hex digits.
fn integer(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A decimal number, and perhaps one of `units` behind it, by which it is multiplied.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let with_unit = |(unit, factor): &(&str, f64)| Some((text.strip_suffix(unit)?, *factor));
    let (number, factor) = units.iter().find_map(with_unit).unwrap_or((text, 1.0));
    Some(number.parse::<f64>().ok()? * factor)
}

/// Bits per second: `80M`, `1.5G`, `256k`, `9600`.
pub fn rate(text: &str) -> Result<u64, String> {
    let units = [("k", 1e3), ("K", 1e3), ("m", 1e6), ("M", 1e6), ("g", 1e9), ("G", 1e9)];
    let rate = quantity(text, &units).ok_or_else(|| {
        format!("{text} is no rate: write bits per second, such as 256k, 80M or 1.5G")
    })?;
    if !(1_000.0..=1e12).contains(&rate) {
        return Err(format!("{text} is out of range: a rate is from 1k to 1000G"));
    }
    Ok(rate as u64)
}

/// Seconds: `10`, `0.5`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = quantity(text, &[("s", 1.0)]).filter(|s| (0.05..=86_400.0).contains(s));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        format!("{text} is no time: write seconds from 0.05 to 86400, such as 10 or 0.5")
    })
}

/// Seconds, or none: `600`, `0`.
pub fn seconds_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { seconds(text) }
}

/// Milliseconds: `100`, `100ms`.
pub fn millis(text: &str) -> Result<Duration, String> {
    let millis = quantity(text, &[("ms", 1.0)]).filter(|ms| (0.0..=60_000.0).contains(ms));
    millis.map(|millis| Duration::from_secs_f64(millis / 1e3)).ok_or_else(|| {
        format!("{text} is no time: write milliseconds from 0 to 60000, such as 100")
    })
}

/// A probability in parts of a million: `5%`, `0.05`.
pub fn loss(text: &str) -> Result<u64, String> {
    let share = quantity(text, &[("%", 0.01)]).filter(|share| (0.0..=0.99).contains(share));
    share.map(|share| (share * 1e6).round() as u64).ok_or_else(|| {
        format!("{text} is no loss: write a share from 0 to 0.99, such as 0.05 or 5%")
    })
}

/// Bytes: `64k` (KiB), `1M` (MiB), `1000`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (kib, mib) = (1024.0, 1024.0 * 1024.0);
    let bytes = quantity(text, &[("k", kib), ("K", kib), ("m", mib), ("M", mib)]);
    match bytes {
        Some(bytes) if (1_200.0..=1e12).contains(&bytes) && bytes.fract() == 0.0 => {
            Ok(bytes as u64)
        }
        _ => Err(format!("{text} is no queue: write bytes from 1200 on, such as 64k or 1M")),
    }
}

/// How much of a disk: `500M` (MiB), `2G` (GiB), `1T`.
pub fn size(text: &str) -> Result<u64, String> {
    size_from(text, 4096.0).ok_or_else(|| {
        format!("{text} is no size: write bytes from 4k to 1024T, such as 500M or 2G")
    })
}

/// How much memory: `500M` (MiB), `2G` (GiB).
pub fn memory(text: &str) -> Result<u64, String> {
    size_from(text, 1024.0 * 1024.0).ok_or_else(|| {
        format!("{text} is too little memory, or no size: write bytes from 1M on, such as 500M")
    })
}

fn size_from(text: &str, least: f64) -> Option<u64> {
    let kib = 1024.0_f64;
    let units =
        [("k", kib), ("K", kib), ("M", kib.powi(2)), ("G", kib.powi(3)), ("T", kib.powi(4))];
    let bytes = quantity(text, &units).filter(|bytes| (least..=kib.powi(5)).contains(bytes));
    bytes.map(|bytes| bytes as u64)
}

/// A protocol id of haulier/1: `0x11223344` or decimal.
pub fn wide_id(text: &str) -> Result<u64, String> {
    integer(text).ok_or_else(|| format!("{text} is no number of 64 bits: write it as 42 or 0x2a"))
}

/// A seed: decimal or `0x` and hex digits.
pub fn seed(text: &str) -> Result<u64, String> {
    integer(text).ok_or_else(|| format!("{text} is no seed: write a number, such as 1 or 0x2a"))
}

/// The word for a value on the command line.
pub fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// An IP address whose port does not matter: `192.0.2.9`, `192.0.2.9:4016`, `::1`.
pub fn place(text: &str) -> Result<SocketAddr, String> {
    let ip = text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 0));
    ip.or_else(|_| text.parse()).map_err(|_| format!("{text} is no IP address, as in 192.0.2.9"))
}

/// Words of a stranger, without what a terminal would obey, and without what reads as something else than
/// it is: changes of direction, and characters without width.
pub fn show_words(text: &str) -> String {
    let obeyed = |c: char| c.is_control() || is_invisible(c);
    text.chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

/// A size for a person.
pub fn show_bytes(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".into(),
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// A duration in milliseconds, rounded to a tenth, for JSON.
pub fn in_millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e4).round() / 10.0
}

/// The number of files with its noun, as "1 file" or "2 files".
pub fn count(files: u64) -> String {
    if files == 1 { "1 file".into() } else { format!("{files} files") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(rate("80M"), Ok(80_000_000));
        assert_eq!(rate("1.5G"), Ok(1_500_000_000));
        assert_eq!(rate("256k"), Ok(256_000));
        assert_eq!(rate("9600"), Ok(9_600));
        for bad in ["", "M", "fast", "-1M", "0", "1", "NaN", "inf", "80MB", "9999999G"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_times_sizes_and_ids() {
        assert_eq!((loss("5%"), loss("0.05")), (Ok(50_000), Ok(50_000)));
        assert!(loss("1").is_err() && loss("-1%").is_err() && loss("NaN").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(seconds("0").is_err() && seconds("-3").is_err());
        assert_eq!(millis("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(bytes("64k"), Ok(65_536));
        assert!(
            bytes("10").is_err() && bytes("1200.5").is_err() && bytes("99999999999999M").is_err()
        );
        assert_eq!((size("2G"), size("0.5M")), (Ok(2 << 30), Ok(512 << 10)));
        assert!(size("1k").is_err() && size("all").is_err());
        assert_eq!(seed("0xff"), Ok(255));
        assert_eq!((wide_id("0xffffffffffffffff"), wide_id("7")), (Ok(u64::MAX), Ok(7)));
        assert_eq!(place("192.0.2.9"), place("192.0.2.9:0"));
        assert!(place("host").is_err() && wide_id("-1").is_err());
    }

    #[test]
    fn a_terminal_obeys_no_words_of_a_stranger() {
        assert_eq!(show_words("a\u{1b}[2Jb\u{9b}"), "a\u{fffd}[2Jb\u{fffd}");
        // Overrides, embeddings and isolates of the direction, marks of it, nothing, and new lines.
        let hidden = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        let hidden = hidden.chain("\u{200e}\u{200f}\u{61c}\u{200b}\u{200d}\u{2060}".chars());
        for c in hidden.chain("\u{feff}\u{ad}\u{2028}\u{2029}\u{e0041}".chars()) {
            assert_eq!(show_words(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        // An accent of its own, as macOS writes names, a wide space, a flag.
        for text in ["e\u{301}", "a\u{3000}b", "\u{1f1ea}\u{1f1fa}", "\u{645}\u{631}"] {
            assert_eq!(show_words(text), text);
        }
    }
}
