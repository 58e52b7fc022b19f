"""The rules of the window, as `windowed/window.rs` has them.

One text serves three readers: `law.py` runs it on floats beside the Rust code (the golden trace), the
queries give it terms of Z3, and `flows.py` searches with it. What differs is the arithmetic that is handed
in: `FLOATS` here, `TERMS` in `terms.py`. Times are in seconds, windows in datagrams, as in the code."""

import math

QUEUED = 2.0
MIN_QUEUED = 4.0
IS_QUEUED = 0.5
SLACK = 0.001
FIRST_GROWTH = 1.0 / 16.0
MAX_FIRST_GROWTH = 1.0
MAX_GROWTH = 0.25
PACE = 1.0 / 16.0
LOW = 0.9
LATE_ROUNDS = 2
OF_FULL = 0.5
REGROWTH = 0.5
MIN_FULL = 2.0
ROUNDS = 8
MAX_JITTER = 0.2
MIN_WINDOW = 4.0
MAX_WINDOW = 1e6


class Floats:
    """Arithmetic on Python's floats, which are Rust's `f64`."""

    min = staticmethod(min)
    max = staticmethod(max)
    sqrt = staticmethod(math.sqrt)


FLOATS = Floats()


def queue(of, holds):
    """`queue`: the datagrams that a flow keeps in the queue, of which `holds` pass in a round trip."""
    return of.max(QUEUED * of.sqrt(holds), MIN_QUEUED)


def target(of, trip, passes):
    """`Route::target`: the same in seconds, and what ticks make."""
    return SLACK + queue(of, passes * trip) / passes


def is_queued(of, seen, target, full, jitter):
    """In `Window::verdict`: whether there is a queue."""
    return seen >= IS_QUEUED * of.min(target, full) + jitter


def wanted(of, trip, passes, growth, full=None):
    """`Window::wanted` in a round that is not low; `full` is `None` where no queue has overflowed."""
    holds = passes * trip
    kept = queue(of, holds)
    return holds * (1.0 + growth) + (kept if full is None else of.min(kept, full * passes))


def grown(of, growth, most):
    """In `Window::verdict`: the growth after a round without a queue and losses."""
    return of.min(of.max(2.0 * growth, FIRST_GROWTH), most)


def clamped(of, size):
    """`Window::set_size`."""
    return of.min(of.max(size, MIN_WINDOW), MAX_WINDOW)
