"""`stele export` and `import` of directories: byte for byte both ways, and nothing half. Issue 8, item 3."""

import json
import os
import signal
import socket
import subprocess
import time

import pytest

from kit.carrying import bytes_below, plant
from kit.server import STELE_BIN, clean_env, stele
from kit.tree import Tree


@pytest.fixture
def run(server, tmp_path):
    """A command of somebody who has the server's address and key in their environment."""

    def command(*args, check=True, timeout=120, **env):
        env = {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key} | env
        done = stele(*map(str, args), home=tmp_path, env=env, timeout=timeout)
        assert not check or done.returncode == 0, done.stderr
        return done

    return command


@pytest.fixture
def carried(run):
    """The answer of a command as JSON."""
    return lambda *args: json.loads(run(*args, "--json").stdout)


STRANGE = {
    "plain.md": "text\n",
    "deep/er/and/deeper.md": "no newline at the end",
    "crlf.md": "a\r\nb\r\n",
    "empty": "",
    "bom.md": "\ufeffbom, decomposed e\u0301",
    "foreign front matter.md": "---\nname: x\ntools: [a, b]\n---\nbody\n",
    "with summary.md": '---\nsummary: "What it says: \\"this\\""\n---\nbody\n',
    "front matter below.md": "---\n---\n---\nsummary: x\n---\nbody\n",
    "empty front matter.md": "---\n---\n# Jekyll title\n",
    "twice empty.md": "---\n---\n---\n---\n",
    "crlf front matter.md": '---\r\nsummary: "x"\r\n---\r\nbody\r\n',
    "dashes.md": "---",
    "Ünï/漢字 %41 *?.md": "names",
    "case.md": "lower",
    "CASE.md": "upper",
    ".hidden": "dot",
    "control.md": "\x1b[31m\x07 tab\t",
    "large.md": "x" * 102_400,
}


def test_a_directory_comes_back_byte_for_byte(run, tree, tmp_path):
    there = plant(tmp_path / "in", STRANGE)
    run("import", there, "--store", tree.id)
    run("export", tree.id, tmp_path / "out")
    assert bytes_below(tmp_path / "out") == bytes_below(there)
    assert len(tree.paths()) == len(STRANGE)


def test_a_summary_is_front_matter_and_no_content(run, tree, wire, tmp_path):
    run("import", plant(tmp_path / "in", STRANGE), "--store", tree.id)
    assert tree.texts()["/with summary.md"] == "body\n"
    tree_route = f"/v1/memory_stores/{tree.id}/memories/search?query=says"
    found = wire("GET", tree_route).ok()["data"]
    assert 'What it says: "this"' in [hit["summary"] for hit in found]


def test_a_second_run_changes_nothing_on_either_side(carried, tree, tmp_path):
    there = plant(tmp_path / "in", STRANGE)
    carried("import", there, "--store", tree.id)
    before = len(tree.versions())
    steps = {row["step"] for row in carried("import", there, "--store", tree.id)["data"]}
    assert steps == {"unchanged"} and len(tree.versions()) == before
    carried("export", tree.id, tmp_path / "out")
    assert {row["step"] for row in carried("export", tree.id, tmp_path / "out")["data"]} == {"unchanged"}


def test_what_differs_is_refused_skipped_or_written_over(run, tree, tmp_path):
    there = plant(tmp_path / "in", {"a.md": "file", "b.md": "same"})
    tree.put("/a.md", "memory"), tree.put("/b.md", "same"), tree.put("/c.md", "only here")
    refused = run("import", there, "--store", tree.id, check=False)
    assert refused.returncode == 4 and "/a.md" in refused.stderr and len(tree.versions()) == 3
    run("import", there, "--store", tree.id, "--on-conflict", "skip")
    assert tree.texts()["/a.md"] == "memory"
    run("import", there, "--store", tree.id, "--on-conflict", "overwrite", "--delete-missing")
    assert tree.texts() == {"/a.md": "file", "/b.md": "same"}
    (there / "a.md").write_text("other file")
    refused = run("export", tree.id, there, check=False)
    assert refused.returncode == 4 and (there / "a.md").read_text() == "other file"
    (there / "extra").write_text("x")
    run("export", tree.id, there, "--on-conflict", "overwrite", "--delete-missing")
    assert bytes_below(there) == {"a.md": b"file", "b.md": b"same"}


def test_a_dry_run_shows_a_diff_and_changes_nothing(run, tree, tmp_path):
    there = plant(tmp_path / "in", {"a.md": "one\ntwo\n", "new.md": "new\n"})
    tree.put("/a.md", "one\nzwei\n"), tree.put("/gone.md", "gone\n")
    flags = ["--on-conflict", "overwrite", "--delete-missing", "--dry-run"]
    shown = run("import", there, "--store", tree.id, *flags).stdout
    for line in ["-zwei", "+two", "+new", "-gone", "would update", "would create", "would delete", "@@"]:
        assert line in shown, line
    assert len(tree.versions()) == 2
    shown = run("export", tree.id, there, *flags).stdout
    assert "-two" in shown and "+zwei" in shown and "-new" in shown
    assert bytes_below(there) == {"a.md": b"one\ntwo\n", "new.md": b"new\n"}
    run("export", tree.id, tmp_path / "nowhere", "--dry-run")
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_of_a_store_is_carried_alone(run, tree, tmp_path):
    run("import", plant(tmp_path / "in", {"a.md": "a"}), "--store", f"{tree.id}:/docs")
    tree.put("/other.md", "other")
    run("import", tmp_path / "in", "--store", f"{tree.id}:/docs/", "--delete-missing")
    assert tree.paths() == ["/docs/a.md", "/other.md"]
    run("export", f"{tree.id}:/docs", tmp_path / "out")
    assert bytes_below(tmp_path / "out") == {"a.md": b"a"}


def test_a_file_and_a_directory_of_one_name_cannot_both_be(run, tree, tmp_path):
    tree.put("/a.md", "a memory")
    there = plant(tmp_path / "in", {"a.md/below.md": "x", "b.md": "y"})
    for policy in ("refuse", "overwrite"):
        refused = run("import", there, "--store", tree.id, "--on-conflict", policy, check=False)
        assert refused.returncode == 4 and "/a.md" in refused.stderr and tree.paths() == ["/a.md"]
    run("import", there, "--store", tree.id, "--delete-missing")
    assert tree.paths() == ["/a.md/below.md", "/b.md"]


def unfit(root):
    """One of each kind of thing that is no memory, and what is said of it."""
    plant(root, {"good.md": "good", ".git/config": "never", "nul": "a\0b", "latin": b"\xff\xfe", "large": "x" * 102_401})
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("/etc/passwd")
    (root / "dir link").symlink_to("/etc")
    (root / "tab\tname").write_text("x")
    plant(root, {"/".join("d" * 21): "too deep"})
    with open(os.fsencode(root) + b"/\xff\xfe", "w") as file:
        file.write("x")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(root / "socket"))
    kinds = {"pipe": "neither a file nor", "link": "symbolic link", "dir link": "symbolic link", "nul": "NUL",
             "latin": "not UTF-8", "large": "larger", "tab": "U+0009", "socket": "neither a file nor", "d/d": "segments"}
    if os.geteuid() == 0 and hasattr(os, "mknod"):
        try:
            os.mknod(root / "device", 0o20600, os.makedev(1, 5))
            kinds["device"] = "neither a file nor"
        except PermissionError:
            pass
    return kinds


def test_what_cannot_be_a_memory_is_named_and_nothing_is_sent(run, tree, tmp_path):
    kinds = unfit(tmp_path / "in")
    refused = run("import", tmp_path / "in", "--store", tree.id, check=False, timeout=60)
    assert refused.returncode == 5 and tree.paths() == []
    lines = refused.stderr.splitlines()
    for name, why in kinds.items():
        assert any(name in line and why in line for line in lines), (name, refused.stderr)
    assert not any(".git" in line for line in lines)
    left = json.loads(run("import", tmp_path / "in", "--store", tree.id, "--partial", "--json").stdout)["left_out"]
    assert tree.paths() == ["/good.md"] and len(left) == len(kinds) + 1


def test_an_export_follows_no_link_out_of_its_directory(run, tree, tmp_path):
    outside = plant(tmp_path / "outside", {"a.md": "theirs"})
    (tmp_path / "out").mkdir()
    (tmp_path / "out/dir").symlink_to(outside)
    (tmp_path / "out/file.md").symlink_to(outside / "a.md")
    tree.put("/dir/a.md", "ours"), tree.put("/file.md", "ours")
    refused = run("export", tree.id, tmp_path / "out", "--on-conflict", "overwrite", check=False)
    assert refused.returncode == 4 and bytes_below(outside) == {"a.md": b"theirs"}


def test_a_memory_in_git_s_own_directory_becomes_no_file(run, tree, tmp_path):
    tree.put("/.git/hooks/post-checkout", "#!/bin/sh\n"), tree.put("/a.md", "a")
    refused = run("export", tree.id, tmp_path / "out", check=False)
    assert refused.returncode == 5 and not (tmp_path / "out").exists()
    run("export", tree.id, tmp_path / "out", "--partial")
    assert bytes_below(tmp_path / "out") == {"a.md": b"a"} and not (tmp_path / "out/.git").exists()


def many(root, number):
    return plant(root, {f"{n % 40}/{n}.md": f"memory {n}\n" for n in range(number)})


def test_an_import_that_is_killed_is_gone_on_with(run, server, new_tree, tmp_path):
    tree, there = new_tree(), many(tmp_path / "in", 2_500)
    env = clean_env(tmp_path, {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    args = [STELE_BIN, "import", str(there), "--store", tree.id]
    process = subprocess.Popen(args, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not tree.memories.list(tree.id, limit=1).data:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    run("import", there, "--store", tree.id)
    assert len(tree.versions()) == 2_500, "each memory was made once"
    run("export", tree.id, tmp_path / "out")
    assert bytes_below(tmp_path / "out") == bytes_below(there)


def test_an_import_that_is_refused_on_its_way_is_taken_back(fresh_server, new_client, tmp_path):
    server = fresh_server(env={"STELE_MAX_BYTES_PER_STORE": "16000"})
    tree = Tree.planted(new_client(server))
    tree.put("/0/0.md", "before"), tree.put("/gone", "gone"), tree.put("/z", "z")
    there = many(tmp_path / "in", 2_300)
    env = {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key}
    args = ["import", str(there), "--store", tree.id, "--on-conflict", "overwrite", "--delete-missing"]
    refused = stele(*args, home=tmp_path, env=env, timeout=120)
    assert refused.returncode == 5 and "taken back" in refused.stderr
    assert tree.texts() == {"/0/0.md": "before", "/gone": "gone", "/z": "z"}
    refused = stele(*args, "--partial", home=tmp_path, env=env, timeout=120)
    assert refused.returncode == 5 and len(tree.paths()) == 998 and "/gone" not in tree.paths()


def test_a_store_that_would_be_too_full_is_told_before_anything_is_sent(server, wire, new_client, tmp_path):
    key = wire("POST", "/stele/v1/workspaces", json={"name": "capped", "max_memories_per_store": 3}).ok(201)["key"]
    tree = Tree.planted(new_client(server, key=key))
    tree.put("/kept", "x"), tree.put("/there", "x")
    env = {"STELE_URL": server.url, "STELE_API_KEY": key}
    args = ["import", str(many(tmp_path / "in", 2)), "--store", tree.id]
    refused = stele(*args, home=tmp_path, env=env)
    assert refused.returncode == 5 and "would hold 4 memories, and may hold 3" in refused.stderr
    assert stele(*args, "--delete-missing", home=tmp_path, env=env).returncode == 0


def test_an_export_that_is_killed_is_gone_on_with(run, server, new_tree, tmp_path):
    tree, there, out = new_tree(), many(tmp_path / "in", 1_500), tmp_path / "out"
    run("import", there, "--store", tree.id)
    env = clean_env(tmp_path, {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    args = [STELE_BIN, "export", tree.id, str(out)]
    for reached in (".stele-partial/200", "0"):
        process = subprocess.Popen(args, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (out / reached).exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
    run("export", tree.id, out)
    assert bytes_below(out) == bytes_below(there) and not (out / ".stele-partial").exists()


def test_ten_thousand_files_are_carried_in_and_out(run, new_tree, tmp_path):
    tree, there = new_tree(), many(tmp_path / "in", 10_000)
    run("import", there, "--store", tree.id)
    run("export", tree.id, tmp_path / "out")
    assert bytes_below(tmp_path / "out") == bytes_below(there)
    (there / "one-more").write_text("x")
    refused = run("import", there, "--store", tree.id, check=False)
    assert refused.returncode == 5 and "--max-files" in refused.stderr


def test_the_files_of_claude_code_and_codex_become_memories(run, new_tree, tmp_path):
    home, project = tmp_path / "home", tmp_path / "work/my.app"
    plant(project, {"CLAUDE.md": "see @secret.txt", "secret.txt": "not taken", "web/AGENTS.md": "codex, web",
                    ".claude/rules/style.md": "rule", ".claude/agent-memory/reviewer/MEMORY.md": "agent"})
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.resolve()))
    plant(home, {f".claude/projects/{slug}/memory/MEMORY.md": "auto", ".claude/CLAUDE.md": "mine",
                 ".claude/projects/-other/memory/MEMORY.md": "another project", ".codex/AGENTS.md": "codex, mine",
                 ".codex/memories/MEMORY.md": "codex memory", ".codex/auth.json": "never"})
    claude, codex = new_tree(), new_tree()
    shown = run("import", "claude-code", project, "--store", claude.id, "-n", HOME=str(home)).stdout
    assert "/memory/MEMORY.md" in shown and claude.paths() == []
    run("import", "claude-code", project, "--store", claude.id, HOME=str(home))
    assert claude.texts() == {
        "/CLAUDE.md": "see @secret.txt", "/agent-memory/reviewer/MEMORY.md": "agent", "/memory/MEMORY.md": "auto",
        "/rules/style.md": "rule", "/user/CLAUDE.md": "mine",
    }
    run("import", "codex", project, "--store", f"{codex.id}:/codex", HOME=str(home))
    assert codex.texts() == {
        "/codex/web/AGENTS.md": "codex, web", "/codex/user/AGENTS.md": "codex, mine",
        "/codex/memories/MEMORY.md": "codex memory",
    }
    nothing = run("import", "codex", tmp_path / "empty", "--store", codex.id, check=False)
    assert nothing.returncode == 3


def test_commands_that_mean_nothing_are_told_so(run, tree, tmp_path):
    there = plant(tmp_path / "in", {"a": "a"})
    for args, code in [
        (["import", there, there, "--store", tree.id], 2),
        (["import", tmp_path / "no", "--store", tree.id], 3),
        (["import", there / "a", "--store", tree.id], 5),
        (["import", there, "--store", "no such store"], 3),
        (["import", there, "--store", tree.id, "--git"], 3),
        (["export", tree.id, there / "a"], 5),
        (["export", tree.id, tmp_path / "out", "--rewrite"], 2),
    ]:
        done = run(*args, check=False)
        assert done.returncode == code, (args, done.stderr)
    assert tree.paths() == []
