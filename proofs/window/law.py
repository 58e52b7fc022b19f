"""The whole window on floats: `Window` of `windowed/window.rs` and `Losses` of `windowed/losses.rs`.

Line by line the same state and the same order of operations, so that the golden trace agrees to the last
digits. What a round did is left in `did`, so that the trace can be asked whether it covers every rule.
"""

import math

import rules
from rules import FLOATS

MAX_EXCESS = 0.02
SIGMAS = 3.0
PRIOR = 50.0
RECENT = 256.0
ENDED = 0.4
TRIAL_LOST = 6.0
MAX_TRIAL = 200.0
KNOWN = 8
SINGLE = 2.0

# Of `window/larger.rs`.
LARGER = 1.5
CHANCE = 0.5
RESTS = (4, 256)
RARER = 4


class Seen:
    """`Seen`: what became of the datagrams of a round."""

    __slots__ = ("acked", "lost", "runs", "queue", "standing", "spread", "peak", "mean", "is_bunched")

    def __init__(
        self, acked, lost=0, runs=0, queue=math.inf, spread=0.0, standing=None, peak=0.0, mean=0.0,
        is_bunched=False,
    ):
        self.acked, self.lost, self.runs = acked, lost, runs
        self.queue, self.spread, self.peak = queue, spread, peak
        self.mean, self.is_bunched = mean, is_bunched
        self.standing = queue if standing is None else standing


class Losses:
    """`Losses`: which losses are the path's own."""

    __slots__ = ("usual_of", "recent", "runs")

    def __init__(self, lost=0.0, total=0.0):
        self.usual_of, self.recent, self.runs = (lost, total + PRIOR), (0.0, 0.0), (1.0, 1.0)

    def begin(self):
        self.recent = (0.0, 0.0)

    def usual(self):
        return self.usual_of[0] / self.usual_of[1]

    def run(self):
        return max(self.runs[0] / self.runs[1], 1.0)

    def chance(self, total):
        usual = self.usual()
        return math.sqrt(self.run() * usual * (1.0 - usual) * total)

    def on_spurious(self):
        self.recent = (max(self.recent[0] - 1.0, 0.0), self.recent[1])

    def excess(self, seen, is_trial):
        self.runs = (self.runs[0] + seen.lost, self.runs[1] + seen.runs)
        self.recent = (self.recent[0] + seen.lost, self.recent[1] + seen.acked + seen.lost)
        (lost, total), usual = self.recent, self.usual()
        spread = self.chance(total) * math.sqrt(1.0 + total / self.usual_of[1])
        expected = (usual + MAX_EXCESS) * total + SIGMAS * spread + self.run()
        if lost < usual * total - SIGMAS * self.chance(total) - self.run():
            self.learn()
        elif total > RECENT and not is_trial:
            self.recent = (lost / 2.0, total / 2.0)
        return lost / total - usual if lost > expected else None

    def goes_on(self, excess):
        (lost, total), run = self.recent, self.run()
        expected, more = excess * total, lost - self.usual() * total
        if more < ENDED * expected - 1.2 * run:
            return False
        is_told = expected >= TRIAL_LOST * run or total > MAX_TRIAL * run
        return more > ENDED * expected if is_told else None

    def learn(self):
        self.usual_of = self.recent
        self.begin()

    def copy(self):
        other = Losses.__new__(Losses)
        other.usual_of, other.recent, other.runs = self.usual_of, self.recent, self.runs
        return other


class Window:
    """`Window`, and the round that is under way. A trial is a dictionary or `None`."""

    def __init__(self, size, in_flight, losses=None):
        self.size = rules.clamped(FLOATS, size)
        self.growth = rules.MIN_GROWTH
        self.has_met_queue = False
        self.max_queue, self.full = math.inf, 0.0
        self.losses = losses or Losses()
        self.trial = None
        self.spreads = [math.inf] * rules.ROUNDS
        self.learned = math.inf
        self.known, self.cuts = 0.0, 0
        self.larger, self.rests, self.next_rests = None, 0, RESTS[0]
        self.began_with = self.most = in_flight
        self.was_short, self.is_stale = False, True
        self.did = "begun"

    def copy(self):
        other = Window.__new__(Window)
        other.__dict__.update(self.__dict__)
        other.losses, other.spreads = self.losses.copy(), list(self.spreads)
        other.trial = dict(self.trial) if self.trial else None
        return other

    def gain(self):
        if self.larger:
            return LARGER
        return rules.TRIAL_PART if self.trial else 1.0 + self.growth

    def on_sent(self, in_flight, is_full):
        self.most = max(self.most, in_flight)
        self.was_short = self.was_short or is_full

    def on_mark(self, part, queue):
        self.full, self.growth, self.has_met_queue = self.size, rules.MIN_GROWTH, True
        self.max_queue = min(self.max_queue, rules.OF_FULL * max(queue, rules.MIN_QUEUE))
        self.size = rules.clamped(FLOATS, self.size * (1.0 - part))
        self.is_stale = True
        self.did = "marked"

    def on_spurious(self):
        self.losses.on_spurious()
        trial = self.trial
        if not trial:
            return
        trial["spurious"] += 1.0
        if 2.0 * trial["spurious"] < trial["lost"]:
            return
        self.size = rules.clamped(FLOATS, max(self.size, trial["size"]))
        self.full, self.has_met_queue, self.growth = 0.0, trial["had_met_queue"], trial["growth"]
        self.losses.begin()
        self.trial, self.cuts = None, 0
        self.did = "undone"

    def judge(self, seen, trip, in_flight):
        if self.size < rules.MIN_WINDOW:
            self.spreads = [seen.spread, *self.spreads[:-1]]
            self.losses.excess(seen, False)
            self.trial, self.larger, self.did = None, None, "leaves it to the pace"
            self.began_with, self.most, self.was_short = in_flight, in_flight, False
            return
        was_stale, self.is_stale = self.is_stale, False
        is_half_lost = seen.lost > seen.acked
        if not was_stale and math.isfinite(seen.queue) and seen.acked > 0:
            following = self.next(seen, trip)
            passed = seen.acked / (1.0 - min(self.losses.usual(), rules.MAX_USUAL))
            is_bound = self.has_met_queue and self.larger is None
            self.size = rules.bounded(FLOATS, self.size, following, passed, is_bound, is_half_lost)
        else:
            self.did = "stale"
        if was_stale and is_half_lost:
            most = rules.OVER * seen.acked + rules.MIN_WINDOW
            self.size = rules.clamped(FLOATS, min(self.size, most))
            self.did = "far too large"
        self.began_with, self.most, self.was_short = in_flight, in_flight, False

    def next(self, seen, trip):
        self.spreads = [seen.spread, *self.spreads[:-1]]
        jitter = self.least_spread()
        used = max(min(self.size, float(self.most)), 1.0)
        each = (trip + seen.queue) / used
        wanted = rules.target(FLOATS, each)
        aim = min(wanted, self.max_queue) + jitter / 2.0
        self.max_queue *= 1.0 + rules.REGROWTH * (trip + seen.queue)
        excess = self.losses.excess(seen, self.trial is not None)
        is_first = not self.has_met_queue and excess is None
        first = rules.first_queue(FLOATS, trip) if is_first else 0.0
        queued = rules.is_queued(FLOATS, seen.queue, first, aim)
        following = self.judge_larger(seen, trip, excess is not None)
        if following is not None:
            return following
        if self.trial is not None:
            return self.go_on(self.trial, seen, trip, aim if queued else None)
        if excess is None and self.has_outgrown():
            return self.try_once_more()
        if excess is not None:
            longest = seen.queue + seen.spread - jitter
            if longest > max(rules.MIN_QUEUE, rules.MIN_QUEUE_DATAGRAMS * each):
                self.max_queue = rules.OF_FULL * longest
            is_queue = seen.queue >= rules.NO_QUEUE * (wanted + jitter / 2.0)
            is_queue = is_queue and not self.is_doubtful(seen)
            is_plain = is_queue or self.is_known_full(used)
            self.did = "cut" if is_plain else "cut for a trial"
            return self.cut(excess, seen, trip, min(aim, self.max_queue), is_plain)
        if queued and self.may_try_larger(seen):
            return self.try_larger(seen, trip)
        return self.follow(seen, trip, aim) if queued else self.grow(seen)

    def judge_larger(self, seen, trip, is_lossy):
        self.rests = max(self.rests - 1, 0)
        tried, self.larger = self.larger, None
        if tried is None:
            return None
        size, time = tried
        if not is_lossy and trip + seen.mean < time * (1.0 + CHANCE * (LARGER - 1.0)):
            self.rests = 0
            self.did = "was jitter"
            return self.size
        self.rests, self.next_rests = self.next_rests, min(RARER * self.next_rests, RESTS[1])
        self.is_stale = True
        self.did = "was its own queue"
        return None if is_lossy else size

    def is_doubtful(self, seen):
        is_near_full = self.full > 0.0 and LARGER * self.size >= rules.NEAR_FULL * self.full
        return seen.is_bunched and not is_near_full

    def may_try_larger(self, seen):
        return self.was_short and self.rests == 0 and self.is_doubtful(seen)

    def try_larger(self, seen, trip):
        self.larger = (self.size, trip + seen.mean)
        self.has_met_queue, self.is_stale, self.growth = True, True, rules.MIN_GROWTH
        self.did = "tries a larger one"
        return LARGER * self.size

    def least_spread(self):
        return min(rules.MAX_JITTER, *self.spreads)

    def cut(self, excess, seen, trip, aim, is_plain):
        used = min(self.size, float(self.most))
        share = seen.lost / (seen.acked + seen.lost) - self.losses.usual()
        began = used if self.has_met_queue else self.began_with + 1.0
        passed = rules.cut(FLOATS, used, began, share, excess, seen.queue, trip, aim)
        self.trial = None if is_plain else {
            "size": used, "passed": passed, "excess": excess, "tries": 1, "met": (0.0, 0.0),
            "spurious": 0.0, "lost": self.losses.recent[0],
            "had_met_queue": self.has_met_queue, "growth": self.growth,
        }
        self.has_met_queue, self.growth = True, rules.MIN_GROWTH
        self.is_stale, self.full = True, used
        self.losses.begin()
        return passed if is_plain else rules.TRIAL_PART * passed

    def go_on(self, trial, seen, trip, queued):
        lost = float(seen.lost)
        trial["met"] = (trial["met"][0] + lost * seen.queue, trial["met"][1] + lost)
        is_lossy = self.losses.goes_on(trial["excess"])
        if is_lossy is None:
            if queued is None:
                self.did = "tries on"
                return self.size
            following = min(self.follow(seen, trip, queued), self.size)
            self.did = "tries on with a queue"
            return following
        self.trial = None
        if not is_lossy:
            self.losses.begin()
            self.known, self.cuts = trial["size"], KNOWN
            self.did = "the queue was full"
            return trial["passed"]
        is_empty = trial["met"][0] <= (rules.EMPTY + self.least_spread() / 2.0) * trial["met"][1]
        if not is_empty and not seen.is_bunched:
            self.did = "others fill the queue"
            return self.cut(trial["excess"], seen, trip, seen.queue, False)
        if trial["excess"] > rules.HEAVY and trial["tries"] < rules.TRIES:
            self.trial = dict(trial, tries=trial["tries"] + 1, met=(0.0, 0.0))
            self.is_stale = True
            self.losses.begin()
            self.did = "tries again"
            return min(self.size, float(self.most)) / 2.0
        self.losses.learn()
        self.growth, self.cuts = rules.MIN_GROWTH, 0
        self.learned = max(trial["size"], self.size)
        self.did = "learns"
        return self.learned

    def is_known_full(self, used):
        is_known = self.cuts > 0 and used >= rules.NEAR_FULL * self.known and self.losses.run() < SINGLE
        self.cuts -= is_known
        return is_known

    def has_outgrown(self):
        return self.size > rules.OUTGROWN * self.learned and self.losses.usual() > MAX_EXCESS

    def try_once_more(self):
        used, excess = min(self.size, float(self.most)), self.losses.usual()
        self.trial = {
            "size": used, "passed": used * (1.0 - excess), "excess": excess, "tries": rules.TRIES,
            "met": (0.0, 0.0), "spurious": 0.0, "lost": math.inf, "had_met_queue": True,
            "growth": self.growth,
        }
        self.losses = Losses()
        self.is_stale, self.growth, self.learned = True, rules.MIN_GROWTH, math.inf
        self.did = "has outgrown what it learned"
        return used / 2.0

    def follow(self, seen, trip, aim):
        self.has_met_queue, self.growth = True, rules.MIN_GROWTH
        before = self.size
        queue = min(seen.queue, max(seen.standing, aim))
        following, self.is_stale = rules.follow(FLOATS, before, queue, trip, aim, self.was_short)
        # Delay alone asks for no less than a window can pace, nor than what passes soon.
        least = max(rules.MIN_WINDOW, rules.OVER * seen.peak)
        following = max(following, min(least, before))
        directions = {-1: "follows down", 0: "stays", 1: "follows up"}
        self.did = directions[(following > before) - (following < before)]
        if self.is_stale:
            self.did = "follows all the way"
        return following

    def grow(self, seen):
        if not self.was_short:
            self.growth = max(self.growth, min(2.0 * self.growth, rules.MAX_PACE))
            self.did = "paces faster"
            return self.size
        before, near = self.size, rules.NEAR_FULL * self.full
        following, self.growth = rules.grow(
            FLOATS, before, self.growth, self.full, seen.acked, self.has_met_queue,
            rules.OVER * seen.peak,
        )
        is_near = near <= before < self.full or following == near
        self.did = "grows near the full one" if is_near else "grows"
        return following
