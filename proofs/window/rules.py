"""The rules of the window, each under the name of its function in `windowed/window.rs`.

One text serves three readers: `law.py` runs it on floats beside the Rust code (the golden trace), the
queries give it terms of Z3, and `flows.py` searches with it. What differs is the arithmetic that is handed
in: `FLOATS` here, `TERMS` in `terms.py`. Times are in seconds, windows in datagrams, as in the code."""

import math

MIN_TARGET = 0.001
TARGET = 0.006
TARGET_DATAGRAMS = 4.0
NO_QUEUE = 0.5
FIRST_QUEUE = (0.004, 0.016)
GAIN = 0.5
ADDED = 4.0
MIN_GROWTH = 1.0 / 16.0
FIRST_GROWTH = 1.0
MAX_GROWTH = 0.5
MAX_PACE = 0.25
NEAR_FULL = 0.8
MAX_CUT = 0.7
TRIAL_PART = 0.9
EMPTY = 0.0005
HEAVY = 0.15
TRIES = 2
OUTGROWN = 2.0
OF_FULL = 0.5
REGROWTH = 0.5
MIN_QUEUE = 0.0005
MIN_QUEUE_DATAGRAMS = 2.0
ROUNDS = 8
MAX_JITTER = 0.1
OVER = 1.25
MAX_USUAL = 0.3
MIN_WINDOW = 4.0
MIN_SPARSE = 1.0
MAX_WINDOW = 1e6


class Floats:
    """Arithmetic on Python's floats, which are Rust's `f64`."""

    min = staticmethod(min)
    max = staticmethod(max)
    sqrt = staticmethod(math.sqrt)

    @staticmethod
    def where(condition, then, otherwise):
        return then if condition else otherwise

    @staticmethod
    def both(one, other):
        return one and other


FLOATS = Floats()


def target(of, each):
    """`target`: the queue at which a flow that sends a datagram each `each` seconds rests."""
    return MIN_TARGET + of.max(TARGET * of.sqrt(1000.0 * each), TARGET_DATAGRAMS * each)


def first_queue(of, trip):
    """In `Window::next`: the queue that is none before one was seen."""
    return of.min(of.max(trip / 8.0, FIRST_QUEUE[0]), FIRST_QUEUE[1])


def is_queued(of, queue, first, aim):
    """In `Window::next`: whether there is a queue. `first` is 0 once one was seen."""
    return queue >= of.max(first, NO_QUEUE * aim)


def follow(of, size, queue, trip, aim, is_short, added=ADDED):
    """`Window::follow`: the next window, and whether the next round says nothing. `added` is another number
    where windows are counted in what the path holds."""
    is_stale = queue > 2.0 * aim
    gain = of.where(is_stale, 1.0, GAIN)
    step = gain * (aim - queue) / (trip + queue) * size
    step = of.min(step, added * (1.0 - queue / aim))
    return of.where(of.both(step > 0.0, not_(is_short)), size, size + step), is_stale


def grow(of, size, growth, full, acked, has_met_queue, least=0.0):
    """`Window::grow` where datagrams had to wait: the next window, and the next growth. It grows to `least`
    at once."""
    most = of.where(has_met_queue, MAX_GROWTH, FIRST_GROWTH)
    after = of.max(size + growth * acked, least)
    near = NEAR_FULL * full
    stops = of.both(size < near, near < after)
    is_near = of.both(near <= size, size < full)
    faster = of.where(is_near, MIN_GROWTH, of.min(2.0 * growth, most))
    return of.where(stops, near, after), of.where(stops, MIN_GROWTH, faster)


def cut(of, used, began, share, excess, queue, trip, aim):
    """`Window::cut`: what got through, with the part of the queue that may stand. `share` is what was lost of
    this round beyond the usual, `excess` the same lately; `began` is what was in flight a round before."""
    filled = of.min(used, began) * (1.0 - share)
    passed = of.min(used * (1.0 - excess), of.max(filled, MAX_CUT * used))
    return passed * (trip + of.min(aim, queue)) / (trip + queue)


def bounded(of, size, following, passed, has_met_queue, is_half_lost):
    """In `Window::judge`: no more than a quarter beyond what got through, unless the window is larger."""
    most = most_after(of, passed, has_met_queue)
    capped = of.min(following, of.max(size, most))
    return clamped(of, of.where(is_half_lost, of.min(capped, most), capped))


def most_after(of, passed, has_met_queue, least=MIN_WINDOW):
    """In `Window::judge`: how much more may be in flight than gets through."""
    return of.where(has_met_queue, OVER * passed + least, MAX_WINDOW)


def clamped(of, size):
    """`Window::set_size`."""
    return of.min(of.max(size, MIN_SPARSE), MAX_WINDOW)


def not_(value):
    """Not, of a value of Python; a flow whose program has nothing to send is not in the queries."""
    return not value
