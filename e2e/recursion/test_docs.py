"""docs/API.md: what it tells people to type works, and its tables of errors are those of the code."""

import re
import shutil
import subprocess

import pytest

from api import Api, STORES
from kit.server import E2E
from kit.wire import Wire

ROOT = E2E.parent
PAGE = (ROOT / "docs/API.md").read_text()
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


needs_shell = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "curl", "jq"))), reason="needs bash, curl and jq"
)


def typed(script: str, server, folder) -> Api:
    """Runs what a page says to type, with the server's own address and key."""
    script = script.replace("http://127.0.0.1:7878", server.url)
    script = script.replace("~/.local/share/stele/admin-key", str(server.data_dir / "admin-key"))
    assert server.url in script and str(server.data_dir) in script
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Api(Wire(server.port, server.admin_key))


@needs_shell
def test_the_quick_start_of_the_front_page_works(fresh_server, tmp_path):
    page = (ROOT / "README.md").read_text()
    settings = re.search(r"^URL=.*\nKEY=.*\n", page, re.MULTILINE)[0]
    block = page.split("### Through Recursion's API")[1].split("```sh\n")[1].split("```")[0]
    api = typed(settings + block, fresh_server(), tmp_path)
    (store,) = api.ok("GET", STORES, query={"status": "archived"})["memory_stores"]
    versions = api.ok("GET", f"{STORES}/{store['memory_store_id']}/memory_versions")["memory_versions"]
    assert ["redacted_at" in v for v in versions] == [False, False, True]


@needs_shell
def test_the_commands_of_the_page_work_one_after_the_other(fresh_server, tmp_path):
    api = typed("".join(BLOCKS), fresh_server(), tmp_path)
    (store,) = api.ok("GET", STORES, query={"status": "archived"})["memory_stores"]
    assert (store["slug"], store["memory_count"]) == ("release-policy", 2)
    versions = api.ok("GET", f"{STORES}/{store['memory_store_id']}/memory_versions")["memory_versions"]
    assert [v["operation"] for v in versions] == ["update", "update", "create", "create"]
    assert "redacted_at" in versions[-1]


def rows(heading: str) -> list[tuple[str, ...]]:
    """The cells of the table below a heading, without code marks."""
    table = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (\d{3}) \| (.*?) \| ?(.*?) ?\| ", table, re.MULTILINE)
    assert cells
    return [tuple(cell.replace("`", "").strip() for cell in row) for row in cells]


def snapshot(name: str) -> list[re.Match]:
    (file,) = ROOT.glob(f"crates/*/src/snapshots/{name}__tests__the_whole_table_of_errors.snap")
    pattern = r"^(?P<status>\d{3}) (?P<code>\S+) (?:(?P<detail>[^\s=]+) )?retry-after=\S+ (?P<members>\{.*\})$"
    return list(re.finditer(pattern, file.read_text(), re.MULTILINE))


def test_the_table_of_the_recursion_dialect_has_every_row_of_the_code():
    found = snapshot("stele_http__flat")
    assert len(found) > 30
    shown = rows("Every error of the Recursion dialect")
    for row in found:
        names = set(re.findall(r'"(\w+)":', row["members"])) - {"field"}
        reason = re.search(r'"reason":"(\w+)"', row["members"])
        fitting = [
            details
            for status, code, details in shown
            if (status, code) == (row["status"], row["code"])
            and all(name in details for name in names)
            and (not reason or reason[1] in details)
            and ("field" in details) == ('"field"' in row["members"])
        ]
        assert fitting, f"docs/API.md lacks {row[0]}"
    assert {(status, code) for status, code, _ in shown} == {(row["status"], row["code"]) for row in found}


def test_the_table_of_the_anthropic_dialect_has_every_row_of_the_code():
    found = {
        (row["status"], row["code"], (row["detail"] or "-").replace("-", ""))
        for row in snapshot("wire_anthropic__error")
    }
    shown = set(rows("Every error of the Anthropic dialect"))
    assert found <= shown
    assert {row for row in shown if row[2]} == {row for row in found if row[2]}
