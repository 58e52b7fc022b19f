//! Moments of the code at which a test makes something happen: the disk is full, or a file changes.
//!
//! The invariant: what happens at a moment happens on the thread of the test, and not again within itself.

use std::cell::RefCell;
use std::io;

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// An unfinished file has its space.
    SpaceReserved,
    /// All chunks of a file were hashed.
    Hashed,
    /// The tree of a file is about to be kept.
    KeepsTree,
}

type Act = Box<dyn FnMut() -> io::Result<()>>;

thread_local! {
    static ACTS: RefCell<Vec<(Moment, Act)>> = const { RefCell::new(Vec::new()) };
}

/// Until it is dropped, something happens at a moment.
#[must_use]
pub(crate) struct Planned(Moment);

impl Drop for Planned {
    fn drop(&mut self) {
        ACTS.with_borrow_mut(|acts| acts.retain(|(moment, _)| *moment != self.0));
    }
}

/// Has this happen at a moment, each time it comes.
pub(crate) fn plan(moment: Moment, act: impl FnMut() -> io::Result<()> + 'static) -> Planned {
    ACTS.with_borrow_mut(|acts| acts.push((moment, Box::new(act))));
    Planned(moment)
}

/// A moment has come.
pub(crate) fn reach(moment: Moment) -> io::Result<()> {
    let planned = ACTS.with_borrow_mut(|acts| {
        let place = acts.iter().position(|(planned, _)| *planned == moment)?;
        Some(acts.swap_remove(place))
    });
    let Some((_, mut act)) = planned else { return Ok(()) };
    let outcome = act();
    ACTS.with_borrow_mut(|acts| acts.push((moment, act)));
    outcome
}
