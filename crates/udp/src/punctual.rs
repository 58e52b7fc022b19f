//! Waits that end on time, where that uses up no battery.
//!
//! Linux ends a thread's waits up to 50 us late, so that several threads wake up together. A tick of
//! pacing is 25 to 100 us on a fast link, of which this is a half or more. So a network thread may ask for
//! waits that end at most [`SLACK`] late: it does not wake up more often, but not together with others
//! either, so it does not ask while the machine runs on its battery. The invariant: only the calling thread's
//! waits change, so only a thread of our own asks. Spinning until the moment would be more exact by some
//! microseconds; it takes a core from the program, whose other end may need it.

use std::fs;
use std::path::Path;

/// The maximum time by which waits of a punctual thread end late, in nanoseconds: less than it takes to wake
/// up.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SLACK: std::num::NonZeroU64 = std::num::NonZeroU64::new(1_000).unwrap();

/// Where Linux lists what powers a machine.
const SUPPLIES: &str = "/sys/class/power_supply";

/// Makes the waits of this thread end on time from now on, unless the machine runs on its battery. On systems
/// other than Linux it does nothing.
pub fn keep_time() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if !is_on_battery(Path::new(SUPPLIES)) {
        // If the system refuses, the waits stay as they were.
        let _granted = rustix::thread::set_current_timer_slack(Some(SLACK));
    }
}

/// Whether one of these supplies is a battery of the whole machine that is being used up. A mouse has one,
/// too.
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), expect(dead_code))]
fn is_on_battery(supplies: &Path) -> bool {
    let Ok(supplies) = fs::read_dir(supplies) else { return false };
    supplies.flatten().any(|supply| {
        let is = |name: &str, value: &str| {
            fs::read_to_string(supply.path().join(name)).is_ok_and(|text| text.trim() == value)
        };
        is("type", "Battery") && is("status", "Discharging") && !is("scope", "Device")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_battery_of_the_machine_that_is_used_up_counts() {
        let root = std::env::temp_dir().join(format!("haulier-supplies-{}", std::process::id()));
        let supply = |name: &str, files: &[(&str, &str)]| {
            let path = root.join(name);
            fs::create_dir_all(&path).unwrap();
            files.iter().for_each(|(file, text)| fs::write(path.join(file), text).unwrap());
        };
        assert!(!is_on_battery(&root), "nothing is listed");
        supply("AC", &[("type", "Mains\n"), ("online", "1\n")]);
        supply("BAT1", &[("type", "Battery\n"), ("status", "Charging\n")]);
        let mouse = [("type", "Battery\n"), ("status", "Discharging\n"), ("scope", "Device\n")];
        supply("mouse", &mouse);
        assert!(!is_on_battery(&root));
        supply("BAT0", &[("type", "Battery\n"), ("status", "Discharging\n")]);
        assert!(is_on_battery(&root));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn the_waits_of_the_thread_that_asks_end_on_time() {
        let slack = || rustix::thread::current_timer_slack().unwrap();
        let before = slack();
        let asked = std::thread::spawn(move || {
            keep_time();
            slack()
        });
        let expected = if is_on_battery(Path::new(SUPPLIES)) { before } else { SLACK.get() };
        assert_eq!((asked.join().unwrap(), slack()), (expected, before));
    }
}
