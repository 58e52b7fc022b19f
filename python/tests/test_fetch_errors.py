"""Where a fetch puts what comes, and what it says when there is nothing to put."""

from __future__ import annotations

from pathlib import Path

import pytest

import haulier
from conftest import Host, host, maps, same

__all__ = ["host", "maps"]


def test_several_files_make_a_directory_of_a_new_name(maps: Path, tmp_path: Path) -> None:
    """The first of them was written under that name."""
    with haulier.serve(maps) as server:
        for into, name in (("all", ""), ("named", "maps"), ("slash/", "maps/")):
            done = haulier.fetch(server.ticket, tmp_path / into, name=name)
            assert done.files_done == 3
            same(maps, tmp_path / into / "maps")
        haulier.fetch(server.ticket, str(tmp_path / "one"), name="maps/one.map")
        assert (tmp_path / "one").read_bytes() == (maps / "one.map").read_bytes()
        haulier.fetch(server.ticket, f"{tmp_path}/new/", name="maps/one.map")
        assert (tmp_path / "new" / "maps" / "one.map").is_file()


def test_a_file_is_no_place_for_several(maps: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    with haulier.serve(maps) as server:
        with pytest.raises(haulier.IoError, match="mine is no directory, and there are several") as error:
            haulier.fetch(server.ticket, mine)
    assert "`name`" in str(error.value) and mine.read_text() == "mine"


def test_no_file_is_called_what_only_says(maps: Path, tmp_path: Path) -> None:
    with haulier.serve(maps) as server:
        with pytest.raises(haulier.UsageError, match="no file there is called what `only` says") as error:
            haulier.fetch(server.ticket, tmp_path, only=["*.xyz"])
    assert error.value.kind == "usage"


def test_nothing_has_this_name(maps: Path, tmp_path: Path) -> None:
    with haulier.serve(maps) as server:
        with pytest.raises(haulier.ClosedError, match='^there is no file "nothing" there; .*--list') as error:
            haulier.fetch(server.ticket, tmp_path, name="nothing")
    assert (error.value.kind, error.value.code) == ("closed", 256)


def test_a_file_that_is_here_is_not_overwritten(maps: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    with haulier.serve(maps / "one.map") as server:
        with pytest.raises(haulier.IoError, match="mine exists; replace=True overwrites it"):
            haulier.fetch(server.ticket, mine)


def test_a_directory_around_it_is_missing(maps: Path, tmp_path: Path) -> None:
    with haulier.serve(maps / "one.map") as server:
        for into in (tmp_path / "missing" / "one.map", f"{tmp_path}/missing/new/"):
            with pytest.raises(haulier.IoError, match="there is no directory .*missing: make it"):
                haulier.fetch(server.ticket, into)


def test_a_server_of_a_game_is_asked_for_files(host: Host, tmp_path: Path) -> None:
    with pytest.raises(haulier.ClosedError, match="answered something else .*is it `haulier.serve`") as error:
        haulier.fetch(host.ticket, tmp_path)
    assert error.value.code == 258
