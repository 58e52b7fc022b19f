"""The golden trace: rounds of the window on paths that are formulas, as `trace.json`.

`python3 proofs/window/check.py --write-trace` writes it from `law.py`; a Rust test replays it through
`Window` and compares each round (`window/golden.rs`). What a round sees is whole datagrams, so
that both sides see the same."""

import json
import math
from pathlib import Path

from law import Losses, Seen, Window

FILE = Path(__file__).with_name("trace.json")

# What rounds do, and the trace has to show: every rule, and every outcome of a trial.
COVERED = {
    "stale", "far too large", "grows", "paces faster", "grows near the full one", "follows up",
    "follows down", "follows all the way", "stays", "cut", "cut for a trial", "tries on",
    "tries on with a queue", "tries again", "the queue was full", "others fill the queue", "learns",
    "undone", "marked", "leaves it to the pace",
    "has outgrown what it learned", "tries a larger one", "was jitter", "was its own queue",
}


class Scenario:
    """A path of one flow: a round sees the queue of what was in flight at its beginning."""

    def __init__(self, name, size, rate, trip, buffer=math.inf, own=0.0, in_flight=1, known=(0, 0)):
        self.rate, self.trip, self.buffer, self.own = rate, trip, buffer, own
        self.window = Window(size, in_flight, Losses(*map(float, known)))
        begin = {"size": size, "in_flight": in_flight, "lost": known[0], "total": known[1]}
        self.story = {"name": name, "begin": begin, "rounds": []}
        self.under_way = in_flight
        self.did = set()

    def run(self, rounds, jitter=lambda n: 0.0, spread=lambda n: 0.0, dropped=lambda n: 0):
        """So many rounds. `dropped` are losses by others' datagrams, `jitter` makes all late."""
        for n in range(rounds):
            holds = self.rate * self.trip
            waits = max(self.under_way - holds, 0.0)
            lost = max(math.ceil(waits - self.buffer), 0) if math.isfinite(self.buffer) else 0
            lost = min(lost + int((self.under_way - lost) * self.own) + dropped(n), self.under_way)
            queue = min(waits, self.buffer) / self.rate + jitter(n)
            self.judge(self.under_way - lost, lost, min(lost, 1 + lost // 4), queue, spread(n))
        return self

    def judge(
        self, acked, lost, runs, queue, spread=0.0, is_short=True, spurious=0, mark=None, standing=None,
        peak=0.0, mean=0.0, is_bunched=False,
    ):
        """A round that sees this. Spurious losses and a mark are heard of in it."""
        window = self.window
        for _ in range(spurious):
            window.on_spurious()
            self.did.add(window.did)
        if mark:
            window.on_mark(*mark)
            self.did.add(window.did)
        most = math.floor(window.size) if is_short else max(self.under_way - 1, 1)
        window.on_sent(most, is_short)
        seen = Seen(acked, lost, runs, queue, spread, standing, peak, mean, is_bunched)
        window.judge(seen, self.trip, most)
        self.under_way = most
        self.did.add(window.did)
        self.story["rounds"].append({
            "acked": acked, "lost": lost, "runs": runs, "queue": finite(queue),
            "standing": finite(seen.standing), "spread": spread, "peak": peak,
            "mean": mean, "is_bunched": is_bunched,
            "trip": self.trip, "in_flight": most, "is_short": is_short, "spurious": spurious,
            "mark": mark and dict(zip(("part", "queue"), mark)), "then": state(window),
        })
        return self


def state(window):
    return {
        "did": window.did, "size": window.size, "growth": window.growth, "full": window.full,
        "max_queue": finite(window.max_queue), "usual": window.losses.usual(),
        "has_met_queue": window.has_met_queue, "is_stale": window.is_stale,
        "is_tried": window.trial is not None,
    }


def finite(value):
    return value if math.isfinite(value) else None


def scenarios():
    """From a small beginning to every end of a trial."""
    yield Scenario("from a small window to the target", 4, 1_000.0, 0.05).run(60)
    yield Scenario("a far too large window", 1_000, 1_000.0, 0.05, in_flight=50).run(30)
    yield Scenario("a queue of 12 datagrams overflows and grows again", 20, 1_000.0, 0.05, 12).run(150)
    yield Scenario("a queue of 3 datagrams, where a trial shows a full queue", 20, 1_000.0, 0.05, 3).run(120)
    yield Scenario("a queue as long as the path, fast", 64, 10_000.0, 0.02, 200).run(120)
    yield Scenario("a twelfth lost by the path", 20, 1_000.0, 0.05, own=0.08).run(80)
    yield Scenario("a quarter lost, which takes two trials", 60, 1_000.0, 0.05, own=0.25).run(80)
    yield Scenario("a path whose losses are known", 40, 1_000.0, 0.05, own=0.1, known=(40, 400)).run(40)
    late = Scenario("jitter of 4 ms with a spread", 20, 1_000.0, 0.05)
    yield late.run(60, jitter=lambda n: 0.004 * (n * 7 % 5) / 4, spread=lambda n: 0.001 * (n % 4))
    taken = Scenario("jitter above the target is taken for a queue", 50, 10_000.0, 0.02)
    yield taken.run(60, jitter=lambda n: 0.006)
    others = Scenario("losses that meet others' queue", 50, 1_000.0, 0.05)
    yield others.run(20, jitter=lambda n: 0.003, dropped=lambda n: 0 if n % 3 == 2 else 10)
    held = Scenario("a pace holds it back", 20, 1_000.0, 0.05)
    for is_short in (False, False, False, False, True, True, False):
        held.judge(16, 0, 0, 0.0, is_short=is_short)
    yield held.judge(16, 0, 0, 0.004, is_short=False).judge(16, 0, 0, math.inf)
    undone = Scenario("late, not lost", 40, 1_000.0, 0.05).run(1)
    undone.judge(20, 20, 20, 0.0)
    yield undone.judge(40, 0, 0, 0.0, spurious=10).run(3)
    marked = Scenario("a mark", 40, 1_000.0, 0.05).run(2)
    yield marked.judge(40, 0, 0, 0.004, mark=(0.3, 0.004)).run(40)
    first = Scenario("most of the first round is lost", 350, 1_000.0, 0.05, in_flight=240)
    yield first.judge(40, 200, 40, 0.05).run(20)
    tried = Scenario("a trial with a queue", 50, 1_000.0, 0.05).run(1)
    tried.judge(40, 10, 10, 0.0).judge(40, 5, 5, 0.0)
    yield tried.judge(15, 1, 1, 0.006).judge(15, 4, 4, 0.006).run(20)
    yield Scenario("a fifth lost by a small window", 5, 1_000.0, 0.05, own=0.2).run(120)
    passing = Scenario("a queue that does not stand", 40, 1_000.0, 0.05, in_flight=40).run(1)
    passing.judge(40, 0, 0, 0.2, standing=0.0).judge(40, 0, 0, 0.2, standing=0.008)
    yield passing.judge(40, 0, 0, 0.2, standing=0.05).judge(30, 0, 0, 0.2)
    varying = Scenario("a rate that varies", 40, 1_000.0, 0.05, in_flight=40).run(1)
    varying.judge(40, 0, 0, 0.2, peak=20.0).judge(20, 0, 0, 0.2, peak=20.0).judge(20, 0, 0, 0.0, peak=40.0)
    varying.judge(40, 20, 20, 0.2, peak=60.0).judge(40, 0, 0, 0.0, peak=60.0).judge(40, 0, 0, 0.0, peak=60.0)
    yield varying.judge(50, 0, 0, 0.0)
    bunched = Scenario("bunches: jitter, then a queue, and losses of neither", 20, 1_000.0, 0.05)
    bunched.run(1)
    for mean in (0.02, 0.02, 0.02, 0.022, 0.02, 0.08, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.03, 0.09):
        bunched.judge(20, 0, 0, 0.015, mean=mean, is_bunched=True)
    bunched.judge(20, 0, 0, 0.015, mean=0.02, is_bunched=True, is_short=False)
    for lost in (5, 5, 5, 5, 5, 5, 5, 5, 5):
        bunched.judge(20, lost, lost, 0.015, mean=0.02, is_bunched=True)
    yield bunched.judge(20, 0, 0, 0.015, mean=0.02, is_bunched=True).run(20)
    few = Scenario("fewer than a window can pace", 5, 50.0, 0.05, in_flight=5).run(1)
    yield few.judge(2, 3, 3, 0.08).judge(1, 4, 4, 0.08).judge(2, 1, 1, 0.08).run(3)


def text():
    """The trace, a round a line."""
    stories, did = [], set()
    for scenario in scenarios():
        rounds = ",\n".join("  " + json.dumps(it) for it in scenario.story["rounds"])
        name, begin = json.dumps(scenario.story["name"]), json.dumps(scenario.story["begin"])
        stories.append(f'{{"name": {name}, "begin": {begin}, "rounds": [\n{rounds}\n]}}')
        did |= scenario.did
    if missing := COVERED - did:
        raise AssertionError(f"the trace lacks: {sorted(missing)}")
    return "[\n" + ",\n".join(stories) + "\n]\n"


def differs():
    """The first round in which the committed trace and this model differ, or `None`."""
    ours, theirs = json.loads(text()), json.loads(FILE.read_text())
    if len(ours) != len(theirs):
        return "another number of scenarios"
    for our, their in zip(ours, theirs):
        if (our["name"], our["begin"], len(our["rounds"])) != (
            their["name"], their["begin"], len(their["rounds"])
        ):
            return our["name"]
        for n, (one, other) in enumerate(zip(our["rounds"], their["rounds"])):
            if not is_same(one, other):
                return f"{our['name']}, round {n}"
    return None


def is_same(one, other):
    """The same, numbers within a rounding error: machines differ in the last digit of a root."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other
