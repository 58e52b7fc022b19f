"""Random transfers in virtual time."""

from __future__ import annotations

import os
import signal

import pytest

import haulier
from haulier import SoakReport


def test_the_same_seed_gives_the_same() -> None:
    first, second = haulier.soak(50, 7), haulier.soak(50, 7)
    assert first == second and first.is_ok and first.transfers >= 50
    assert first.trace != haulier.soak(50, 8).trace
    assert first.failures == [] and first.virtual_time_s > 0


def test_each_sort_of_soak() -> None:
    for layers, transfers in (("chunks", 20), ("packets", 2000), ("connection", 5)):
        report = haulier.soak(transfers, layers=layers)
        assert report.is_ok and report.layers == layers
    with pytest.raises(haulier.UsageError, match="one of chunks, packets, both, connection"):
        haulier.soak(layers="files")


def test_a_failure_says_how_to_see_it_again() -> None:
    failure = haulier.SoakFailure(0x1F, "hang", "haulier-lab soak --layers both --scenario 0x1f")
    report = haulier.SoakReport(1, 0, 0, 0, 1, 0, 1.0, "", 1, "both", [failure])
    assert not report.is_ok


def test_ctrl_c_ends_a_soak() -> None:
    def interrupt(_so_far: SoakReport) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        haulier.soak(1_000_000_000, on_progress=interrupt)
