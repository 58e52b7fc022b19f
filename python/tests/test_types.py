"""What is typed and documented is what is there."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Iterator

import haulier
from haulier import _haulier


def stubs() -> Iterator[tuple[str, str, object]]:
    """Each documented thing of the native part: its name, what the stub says of it, and what is there."""
    folder = Path(inspect.getfile(haulier)).parent
    for node in ast.parse((folder / "_haulier.pyi").read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            there = getattr(_haulier, node.name)
            yield node.name, ast.get_docstring(node) or "", there
            inner = node.body if isinstance(node, ast.ClassDef) else []
            for method in inner:
                if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    if not method.name.startswith("__"):
                        name = f"{node.name}.{method.name}"
                        yield name, ast.get_docstring(method) or "", getattr(there, method.name)


def test_the_stub_says_what_help_says() -> None:
    names = []
    for name, documented, there in stubs():
        assert documented, f"{name} is not documented in the stub"
        assert documented == inspect.getdoc(there), name
        names.append(name)
    assert "Client.connect" in names and "soak" in names


def test_all_that_is_public_is_documented() -> None:
    assert sorted(haulier.__all__) == haulier.__all__
    for name in haulier.__all__:
        there = getattr(haulier, name)
        assert name.startswith("Any") or inspect.getdoc(there), name
    for outer in (haulier.Event, haulier.ServerEvent):
        for name, event in vars(outer).items():
            assert name.startswith("_") or inspect.getdoc(event), name


def test_each_kind_of_error_is_one_of_haulier() -> None:
    kinds = {
        it.kind for it in vars(haulier).values()
        if inspect.isclass(it) and issubclass(it, haulier.HaulierError) and it is not haulier.HaulierError
    }
    assert kinds == {
        "usage", "credentials", "unreachable", "no-answer", "refused", "timeout", "closed", "lost",
        "not-open", "full", "io", "internal",
    }
