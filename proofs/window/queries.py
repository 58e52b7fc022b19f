"""What is asked of Z3. Each function returns an answer; `check.py` has the list with the expected verdicts.

Where a link is any link, time is counted in round trips without a queue, and windows in what the path
holds: `trip` is 1, and the four datagrams of the rules are a number `added` between 0 and 0.4. A flow sees
the queue of what was in flight a round before, later by its jitter. Its target may be anything that is at
least the jitter and the time of four of its datagrams: that is what of `rules.target` these proofs need."""

import z3

import rules
from terms import Terms, ask

# The least use that is asked for.
USE = z3.Q(4, 5)


class Flow:
    """A flow in a round: its window, what it had in flight a round before, and all that it may see."""

    def __init__(self, name):
        self.size, self.before, self.jitter, self.aim, self.grown, self.added = (
            z3.Real(f"{what}_{name}")
            for what in ("window", "before", "jitter", "target", "grown", "added")
        )
        self.is_stale = z3.Bool(f"is_stale_{name}")

    def given(self, queue, max_jitter, added, times=1):
        """What a round may do to it. Growth is any that the rules allow, up to a half. The target is at least
        `times` what four datagrams take."""
        return [
            self.size > 0, self.before > 0, self.jitter >= 0, self.jitter <= max_jitter,
            self.aim > 0, self.aim * self.size >= times * added * (1 + queue + self.jitter),
            self.added == added, added > 0, added <= z3.Q(2, 5), self.grown >= self.size,
            self.grown <= self.size + rules.MAX_GROWTH * self.before,
        ]

    def judge(self, of, queue):
        """`Window::judge` without losses: the next window, and whether the next round says nothing."""
        seen = queue + self.jitter
        followed, is_far = rules.follow(of, self.size, seen, 1, self.aim, True, self.added)
        is_queued = rules.is_queued(of, seen, 0, self.aim)
        most = rules.most_after(of, self.before, True, self.added)
        following = of.where(is_queued, followed, self.grown)
        following = of.min(following, of.max(self.size, most))
        is_stale = z3.And(z3.Not(self.is_stale), is_queued, is_far)
        return of.where(self.is_stale, self.size, following), is_stale

    def show(self):
        shown = (self.size, self.before, self.jitter, self.aim, self.grown, self.is_stale)
        return {str(it): it for it in shown}


def total(terms):
    return z3.Sum(*terms) if len(terms) > 1 else terms[0]


def follow_is_bounded(seconds):
    """Every link, any state: one step of `follow` adds four datagrams at most, and leaves at least what makes
    the queue the target; at the target it leaves the window."""
    of = Terms()
    size, queue, trip, aim, given, shown = followed_state()
    following, _ = rules.follow(of, size, queue, trip, aim, True)
    led = size * (trip + aim) / (trip + queue)
    wrong = z3.Or(
        following > size + rules.ADDED, z3.And(queue > aim, following < led),
        z3.And(queue > aim, following > size), z3.And(queue < aim, following > led),
        z3.And(queue == aim, following != size),
    )
    return ask(given, wrong, seconds, shown, of)


def follow_goes_half(seconds):
    """The same: within twice the target the window goes half of the way to it."""
    of = Terms()
    size, queue, trip, aim, given, shown = followed_state()
    following, is_far = rules.follow(of, size, queue, trip, aim, True)
    half = size * (1 + rules.GAIN * (aim - queue) / (trip + queue))
    wrong = z3.And(queue > aim, z3.Not(is_far), following < half - 1, size >= 10)
    return ask([*given, aim == target_of(of, (trip + queue) / size)], wrong, seconds, shown, of)


def followed_state():
    """Any window and what it sees. The target is that of four datagrams at least."""
    size, queue, trip, aim = z3.Reals("window queue trip target")
    given = [size >= rules.MIN_WINDOW, queue >= 0, trip > 0]
    given += [aim * size >= rules.TARGET_DATAGRAMS * (trip + queue)]
    return size, queue, trip, aim, given, {str(it): it for it in (size, queue, trip, aim)}


class AtWorst:
    """What the rules leave of a window at worst, where `before` was in flight on the link. Targets are
    between `least` and `most` round trips, the jitter at most `least`, and targets `times` four
    datagrams."""

    def __init__(self, of, before, least, most, times):
        gain = 1 / z3.Q(min(times, 2), 1)
        queue = of.max(before - 1, z3.RealVal(0))
        part = 1 - gain * queue / (1 + queue + least)
        # Within twice the target; and beyond it, after which the next round says nothing.
        self.near = of.max(part, 1 - gain * most / (1 + 2 * most))
        self.far = (1 + least) / (1 + queue + least)
        self.may_be_far = before > 1 + least
        self.left = of.where(self.may_be_far, of.min(self.far, self.near), self.near)


def judge_at_worst(seconds, times=1, most_aim=z3.Q(1, 3)):
    """Every link, jitter up to the target: what a round leaves of the window of one flow of any number."""
    of = Terms()
    flow = Flow("1")
    before, max_jitter, added, least_aim = z3.Reals("before_all max_jitter added least_target")
    queue = of.max(before - 1, z3.RealVal(0))
    given = [*flow.given(queue, max_jitter, added, times), max_jitter >= 0, least_aim >= max_jitter]
    given += [least_aim > 0, flow.aim >= least_aim, flow.aim <= most_aim, before >= flow.before]
    after, is_stale = flow.judge(of, queue)
    worst = AtWorst(of, before, least_aim, most_aim, times)
    wrong = z3.Or(
        z3.And(flow.is_stale, z3.Or(after < flow.size, is_stale)),
        z3.And(is_stale, z3.Or(after < flow.size * worst.far, z3.Not(worst.may_be_far))),
        z3.And(z3.Not(flow.is_stale), z3.Not(is_stale), after < flow.size * worst.near),
    )
    shown = {**flow.show(), "before": before, "after": after, "least_target": least_aim, "added": added}
    return ask(given, wrong, seconds, shown, of)


def use(seconds, flows=None, bound=None, times=1, most_aim=z3.Q(1, 3), least=USE):
    """Every link, jitter up to the targets: once the windows hold `least` of what the path holds, and would
    after the worst that the rules do with what is seen next, they do so for good. By induction over a
    round, in which each flow does what `judge_at_worst` allows. Of one flow, or with `flows` `None` of any
    number, which together hold `bound` at most. What matters of flows is the sum of the windows for which
    this round says nothing, for which it is the next one, and of the others; and what they had in flight a
    round before."""
    of = Terms()
    before, resting, cut, others, least_aim = z3.Reals("before resting cut others least_target")
    had = z3.Reals("resting_before cut_before others_before")
    now = resting + cut + others
    worst = AtWorst(of, before, least_aim, most_aim, times)
    following = AtWorst(of, now, least_aim, most_aim, times)
    near = 1 - most_aim / (1 + 2 * most_aim) / min(times, 2)
    given = [it >= 0 for it in (resting, cut, others, *had)]
    given += [before == total(had), least_aim > 0, least_aim <= most_aim]
    given += [z3.Implies(cut > 0, worst.may_be_far), cut >= near * had[1], others >= near * had[2]]
    given += [now >= least, resting + worst.left * (cut + others) >= least]
    if bound is not None:
        far = (1 + least_aim) / (bound + least_aim)
        given += [before <= bound, now <= bound, resting >= far * had[0]]
    if flows == 1:
        given += [z3.Or(z3.And(cut + others == 0, had[1] + had[2] == 0),
                        z3.And(resting + cut == 0, had[0] + had[1] == 0),
                        z3.And(resting + others == 0, had[0] + had[2] == 0))]
    after = resting + worst.far * cut + worst.near * others
    at_worst = worst.far * cut + following.left * (resting + worst.near * others)
    shown = {str(it): it for it in (before, resting, cut, others, *had, least_aim)}
    wrong = z3.Or(after < least, at_worst < least)
    return ask(given, wrong, seconds, {**shown, "after": after, "at_worst": at_worst}, of)


def queue_is_bounded(seconds):
    """Every link: alone a window holds at most 1.25 (1 + target) of the path and four datagrams, by
    induction: so long is the queue at most."""
    of = Terms()
    flow = Flow("1")
    max_jitter, added, most_aim = z3.Reals("max_jitter added most_target")
    queue = of.max(flow.before - 1, z3.RealVal(0))
    given = [*flow.given(queue, max_jitter, added), max_jitter >= 0, flow.aim <= most_aim]
    bound = rules.OVER * (1 + most_aim) + added
    given += [flow.before <= bound, flow.size <= bound]
    after, _ = flow.judge(of, queue)
    return ask(given, after > bound, seconds, {**flow.show(), "after": after}, of)


def target_of(of, each):
    return rules.target(of, each)


def rest(max_ratio, part, seconds):
    """Every link, any number of flows: two that rest beside each other, although the queue seems longer
    to one by a jitter, and the other counts as jitter what is none. The jitter is at most `part` of the
    target of a flow that has the link alone, but for its first ms: their rates differ by `max_ratio` at
    most."""
    of = Terms()
    rate, jitter, queue = z3.Reals("rate jitter queue")
    each = [z3.Real(f"each_{n}") for n in (1, 2)]
    late = [z3.Real(f"late_{n}") for n in (1, 2)]
    spread = [z3.Real(f"spread_{n}") for n in (1, 2)]
    alone = of.sqrt(1000 / rate)
    given = [rate > 0, queue >= 0, jitter >= 0, jitter <= part * rules.TARGET * alone]
    for n in range(2):
        given += [each[n] > 0, each[n] * rate >= 1, late[n] >= 0, late[n] <= jitter]
        given += [spread[n] >= 0, spread[n] <= jitter]
        given += [queue + late[n] == target_of(of, each[n]) + spread[n] / 2]
    shown = {str(it): it for it in (rate, jitter, queue, *each, *late, *spread)}
    return ask(given, each[1] > max_ratio * each[0], seconds, shown, of)


def floor(seconds):
    """Every link without losses, any state and jitter: where the queue never seems longer than some time, no
    window falls below what keeps the rate whose target that is. One step."""
    of = Terms()
    size, trip, seen, longest, each, growth = z3.Reals("window trip seen longest each grown")
    root, own_root = z3.Reals("root own_root")
    own = z3.Real("own_each")
    given = [trip > 0, seen >= 0, seen <= longest, each > 0, size > 0, own > 0, root >= 0, own_root >= 0]
    given += [root * root == 1000 * each, own_root * own_root == 1000 * own]
    given += [own * size == trip + seen]
    at = lambda root, each: rules.MIN_TARGET + of.max(rules.TARGET * root, rules.TARGET_DATAGRAMS * each)
    aim = z3.Real("target")
    given += [longest == at(root, each), aim >= at(own_root, own), growth >= size]
    least = z3.Real("least")
    given += [least * each == trip + longest, size >= least]
    followed, _ = rules.follow(of, size, seen, trip, aim, True)
    after = of.where(rules.is_queued(of, seen, 0, aim), followed, growth)
    shown = {str(it): it for it in (size, trip, seen, longest, each, own, aim, least)}
    return ask(given, after < least, seconds, {**shown, "after": after}, of)


def cut_fits(seconds):
    """Every link with a queue that is seen: after an overflow the window is no larger than the path and
    half of the queue hold, in the parts in which it had grown since. So what follows is not lost again."""
    of = Terms()
    before, size, rate, trip, buffer = z3.Reals("before window rate trip buffer")
    holds = rate * (trip + buffer)
    given = [rate > 0, trip > 0, buffer > 0, before > holds, size >= before, size <= 2 * before]
    share = 1 - holds / before
    after = rules.cut(of, size, size, share, share, buffer, trip, rules.OF_FULL * buffer)
    fits = rate * (trip + rules.OF_FULL * buffer) * size / before
    given += [share <= 1 - rules.MAX_CUT]
    shown = {str(it): it for it in (before, size, rate, trip, buffer)}
    return ask(given, after > fits, seconds, {**shown, "after": after}, of)


def starved_by_jitter(seconds):
    """A link of 10 to 100 Mbit/s on which a flow alone rests below `USE`, and by what jitter."""
    of = Terms()
    rate, trip, late, size, jitter = z3.Reals("rate trip late window jitter")
    given = [rate >= 1000, rate <= 10000, trip >= z3.Q(1, 100), trip <= z3.Q(1, 10)]
    given += [late >= 0, late <= jitter, jitter <= z3.Q(6, 1000), size >= rules.MIN_WINDOW]
    each = (trip + late) / size
    given += [late == target_of(of, each)]
    shown = {str(it): it for it in (rate, trip, late, size)}
    return ask(given, size < USE * rate * trip, seconds, shown, of)
