"""Files and functions that one can read, and no promises left in them."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source_files import PACKAGES, files, name_of, tree_of

LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 60


UNKEPT_PROMISE = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|Not" r"ImplementedError)\b")

EVERYTHING = files(*PACKAGES, "tests")


@pytest.mark.parametrize("path", EVERYTHING, ids=name_of)
def test_a_file_fits_in_the_head(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines <= LINES_OF_A_FILE, f"{lines} lines"


@pytest.mark.parametrize("path", EVERYTHING, ids=name_of)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LINES_OF_A_FUNCTION
    }

    assert long == {}


@pytest.mark.parametrize("path", EVERYTHING, ids=name_of)
def test_nothing_is_promised_for_later(path: Path) -> None:
    found = UNKEPT_PROMISE.findall(path.read_text(encoding="utf-8"))

    assert found == []


@pytest.mark.parametrize("path", files(*PACKAGES), ids=name_of)
def test_every_module_says_what_it_is(path: Path) -> None:
    docstring = ast.get_docstring(tree_of(path))

    assert docstring, "no docstring"
    assert docstring.rstrip().endswith((".", "`")), docstring
