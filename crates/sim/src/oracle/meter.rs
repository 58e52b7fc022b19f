//! What a machine allocates, counted where it is called.
//!
//! Every call of the machine under test goes through [`Meter::around`]. Allocations of one thread are
//! counted, and only during the call, so those of the simulator and of other hosts are not. The invariant:
//! what is allocated in one call and freed in another is counted in both. So events are read, and dropped,
//! inside of it.
//!
//! Without the feature `allocations` nothing is counted: a program with a global allocator of its own cannot
//! link a second one.

/// What was allocated in all calls so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Bytes allocated and not freed. Negative if more was freed that the machine had from before.
    pub held_bytes: i64,
    /// Bytes allocated, freed or not.
    pub allocated_bytes: u64,
    /// Allocations, freed or not.
    pub allocations: u64,
}

impl Meter {
    /// Calls `act`, and counts what it allocates.
    pub fn around<R>(&mut self, act: impl FnOnce() -> R) -> R {
        let mut outcome = None;
        self.count(|| outcome = Some(act()));
        outcome.expect("the call was made")
    }

    #[cfg(feature = "allocations")]
    fn count(&mut self, act: impl FnOnce()) {
        let counted = allocation_counter::measure(act);
        self.held_bytes += counted.bytes_current;
        self.allocated_bytes += counted.bytes_total;
        self.allocations += counted.count_total;
    }

    #[cfg(not(feature = "allocations"))]
    fn count(&mut self, act: impl FnOnce()) {
        let _ = self;
        act();
    }
}

#[cfg(all(test, feature = "allocations"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_later_was_held_until_then() {
        let mut meter = Meter::default();
        // Without `black_box` a compiler may leave out an allocation that is not used.
        let kept = meter.around(|| std::hint::black_box(vec![1u8; 1000]));
        let _uncounted = [1u8; 500].to_vec();
        assert_eq!((meter.held_bytes, meter.allocated_bytes, meter.allocations), (1000, 1000, 1));
        meter.around(|| drop(kept));
        assert_eq!((meter.held_bytes, meter.allocated_bytes, meter.allocations), (0, 1000, 1));
    }
}
