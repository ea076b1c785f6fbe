"""docs/SEMANTICS.md names a test for each call; this keeps the names true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (HERE / "../../docs/SEMANTICS.md").read_text()


def functions(file: str) -> dict[str, str]:
    """The tests of a file, with their sources."""
    text = (HERE / file).read_text()
    return {n.name: text for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")}


def test_every_test_that_the_page_names_is_there():
    file, found = None, 0
    for name in re.findall(r"`((?:test_\w+\.py)?::test_[^`]+)`", PAGE):
        own, rest = name.split("::")
        file = own or file
        function, _, row = rest.partition("[")
        tests = functions(file)
        assert function in tests, name
        assert not row or f'"{row.rstrip("]")}": (' in tests[function], f"{name}: no such row"
        found += 1
    assert found > 40


def test_every_row_of_the_page_has_a_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| call", "| situation"))]
    assert len(rows) > 30
    assert [row for row in rows if "::test_" not in row] == []
