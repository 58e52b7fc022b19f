//! `--lan` between two hosts on a network of their own.
//!
//! The hosts are network namespaces, which end with the processes in them, and those with the first of them
//! (`--kill-child`): nothing is left, however the test ends.

use crate::ci::{Shell, Stop};

/// What the test needs of Debian.
const PACKAGES: &str = "hostname iproute2 python3 util-linux";

/// A place where hosts can be made. Root may, and others where the system lets them be root in a place of
/// their own.
const PLACE: &str = "unshare --net --uts --pid --fork --kill-child --mount-proc";
const OWN_PLACE: &str =
    "unshare --map-root-user --net --uts --pid --fork --kill-child --mount-proc";

/// What the test does first.
const CABLE: &str = "ip link add name a type veth peer name b";

/// A server in one is found from the other.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    let program = shell.tested_program()?;
    shell.need_debian(PACKAGES)?;
    let places = [PLACE, OWN_PLACE];
    let place = places.into_iter().find(|place| shell.succeeds(&format!("{place} {CABLE}")));
    let place = place.ok_or_else(|| {
        Stop::Skipped("no network namespaces can be made here, which takes root".to_owned())
    })?;
    shell.command(&format!("{place} python3 -B crates/cli/lan_test.py {}", program.display()), &[])
}
