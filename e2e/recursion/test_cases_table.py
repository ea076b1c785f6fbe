"""CASES.md says which case is tested where; it must not age."""

import re
from pathlib import Path

HERE = Path(__file__).parent
ROW = re.compile(r"^\| ([A-Z]{2}-\d\d) \| (.*?) \| (.*?) ?\|$", re.MULTILINE)
MARKED = re.compile(r"^@pytest\.mark\.case\(([^)]+)\)\n(?:(?!def ).*\n)*def (\w+)", re.MULTILINE)


def test_the_table_names_exactly_the_marked_tests():
    rows = ROW.findall((HERE / "CASES.md").read_text())
    listed = {(case, test) for case, tests, _ in rows for test in re.findall(r"`(\S+?)`", tests)}
    marked = {
        (case, f"{file.name}::{name}")
        for file in HERE.glob("test_*.py")
        for cases, name in MARKED.findall(file.read_text())
        for case in re.findall(r'"(\S+?)"', cases)
    }
    assert listed == marked
    assert all(tests or reason for _, tests, reason in rows)
