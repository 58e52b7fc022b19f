"""The arithmetic of Z3 for `rules.py`, and the question that is put to it: is there a state in which this
goes wrong?

Numbers are exact rationals and algebraic numbers; nothing is rounded. A root is a variable whose square is
what it is the root of.
"""

import time

import z3


class Terms:
    """Terms of Z3, with what is known of the roots among them."""

    def __init__(self):
        self.known = []

    @staticmethod
    def min(one, other):
        return z3.If(one <= other, one, other)

    @staticmethod
    def max(one, other):
        return z3.If(one >= other, one, other)

    def sqrt(self, value):
        root = z3.FreshReal("root")
        self.known += [root >= 0, root * root == value]
        return root


class Answer:
    """What a query found: `holds`, `counterexample` or `unknown`; with a state, and how long it took."""

    def __init__(self, verdict, state=None, seconds=0.0, note=""):
        self.verdict, self.state, self.seconds, self.note = verdict, state or {}, seconds, note


def ask(given, wrong, seconds, show=None, of=None):
    """Whether `wrong` is possible with all that is `given`. What is given has to be possible itself: else all
    holds of it, and the query says nothing."""
    given = [*given, *(of.known if of else [])]
    began = time.monotonic()
    if check(given, 2)[0] == z3.unsat:
        return Answer("vacuous", seconds=time.monotonic() - began)
    verdict, solver = check([*given, wrong], seconds)
    took = time.monotonic() - began
    if verdict == z3.unsat:
        return Answer("holds", seconds=took)
    if verdict == z3.unknown:
        return Answer("unknown", seconds=took, note=solver.reason_unknown())
    model = solver.model()
    state = {name: number(model.eval(term, True)) for name, term in (show or {}).items()}
    return Answer("counterexample", state, took)


def check(terms, seconds):
    """The verdict of Z3, and the solver that has it."""
    solver = z3.SolverFor("QF_NRA")
    solver.set("timeout", max(int(seconds * 1000), 1))
    solver.add(*terms)
    return solver.check(), solver


def number(value):
    """A value of a model as something that can be printed."""
    if z3.is_true(value) or z3.is_false(value):
        return z3.is_true(value)
    if z3.is_algebraic_value(value):
        value = value.approx(9)
    return round(float(value.as_fraction()), 6)
