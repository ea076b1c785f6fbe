"""`stele export --git` and `import --git`: histories both ways, and no code of a foreign repository run. Issue 8, item 3."""

import json
import os
import random
import signal
import subprocess
import time

import pytest

from kit.carrying import Repository, bytes_below, plant
from kit.server import STELE_BIN, clean_env
from test_folders import STRANGE, carried, run  # noqa: F401  (fixtures)


def changeset(wire, tree, reason, *changes):
    body = {"changes": list(changes)} | ({"reason": reason} if reason else {})
    return wire("POST", f"/v1/memory_stores/{tree.id}/changesets", json=body).ok()


def create(path, content, **more):
    return {"op": "create", "path": path, "content": content} | more


def at(repo, commit):
    """The files of a commit, byte for byte."""
    names = [name for name in repo.git("ls-tree", "-r", "-z", "--name-only", commit).split("\0") if name]
    return {name: repo.git("cat-file", "blob", f"{commit}:{name}") for name in names}


@pytest.fixture
def lived_in(tree, wire):
    """A store with a history: two changesets, an edit, a move, a deletion."""
    changeset(wire, tree, "The first notes.\n\nWith a body.", create("/a.md", "a\n"), create("/b/c.md", "c", summary="About c"))
    changeset(wire, tree, None, {"op": "update", "path": "/a.md", "new_path": "/moved.md"}, create("/a.md/x.md", "x"))
    tree.edit(next(memory.id for memory in tree.list() if memory.path == "/moved.md"), content="a\r\nedited")
    tree.drop(next(memory.id for memory in tree.list() if memory.path == "/b/c.md"))
    return tree


def test_a_changeset_is_a_commit_with_author_date_and_reason(run, lived_in, tmp_path):
    run("export", "--git", lived_in.id, tmp_path / "repo")
    repo = Repository(tmp_path / "repo", new=False)
    assert repo.log("%s") == ["The first notes.", "Change 2 memories", "Update moved.md", "Delete b/c.md"]
    assert repo.git("log", "-1", "--format=%b", "HEAD~3").startswith("With a body.")
    versions = sorted(lived_in.versions(), key=lambda version: version.created_at)
    lasts = [versions[n] for n in (1, 3, 4, 5)]
    assert repo.log("%at") == [str(int(version.created_at.timestamp())) for version in lasts]
    assert set(repo.log("%an")) == {"admin"} and set(repo.log("%ae")) == set(repo.log("%ce"))
    commits = repo.log("%H")
    assert at(repo, commits[0]) == {"a.md": "a\n", "b/c.md": '---\nsummary: "About c"\n---\nc'}
    assert at(repo, commits[1]) == {"moved.md": "a\n", "a.md/x.md": "x", "b/c.md": '---\nsummary: "About c"\n---\nc'}
    assert at(repo, commits[3]) == {"moved.md": "a\r\nedited", "a.md/x.md": "x"}
    assert bytes_below(tmp_path / "repo") == {"moved.md": b"a\r\nedited", "a.md/x.md": b"x"}
    assert repo.git("status", "--porcelain") == "" and repo.git("fsck", "--strict") == ""


def test_a_second_export_adds_what_is_new_and_no_more(run, carried, lived_in, tmp_path):
    run("export", "--git", lived_in.id, tmp_path / "repo")
    repo = Repository(tmp_path / "repo", new=False)
    before = repo.log("%H")
    assert carried("export", "--git", lived_in.id, tmp_path / "repo")["new_commits"] == 0
    lived_in.put("/new.md", "new")
    assert carried("export", "--git", lived_in.id, tmp_path / "repo", "-n")["new_commits"] == 1
    assert repo.log("%H") == before
    run("export", "--git", lived_in.id, tmp_path / "repo")
    assert repo.log("%H")[:-1] == before and repo.log("%s")[-1] == "Create new.md"
    assert (tmp_path / "repo/new.md").read_text() == "new" and repo.git("status", "--porcelain") == ""


def test_work_of_one_s_own_is_never_written_over(run, tree, new_tree, tmp_path):
    tree.put("/a.md", "a")
    run("export", "--git", tree.id, tmp_path / "repo")
    repo = Repository(tmp_path / "repo", new=False)
    (tmp_path / "repo/a.md").write_text("mine")
    tree.put("/b.md", "b")
    refused = run("export", "--git", tree.id, tmp_path / "repo", check=False)
    assert refused.returncode == 4 and (tmp_path / "repo/a.md").read_text() == "mine" and len(repo.log("%H")) == 1
    repo.git("checkout", "--quiet", "a.md")
    (tmp_path / "repo/b.md").write_text("in the way")
    refused = run("export", "--git", tree.id, tmp_path / "repo", check=False)
    assert refused.returncode == 4 and (tmp_path / "repo/b.md").read_text() == "in the way"
    (tmp_path / "repo/b.md").unlink()
    run("export", "--git", tree.id, tmp_path / "repo")
    assert bytes_below(tmp_path / "repo") == {"a.md": b"a", "b.md": b"b"}
    other = new_tree()
    other.put("/x", "x")
    assert run("export", "--git", other.id, tmp_path / "repo", check=False).returncode == 4
    repo.commit("mine", {"c": "c"})
    assert run("export", "--git", tree.id, tmp_path / "repo", check=False).returncode == 4
    plant(tmp_path / "full", {"x": "x"})
    assert run("export", "--git", tree.id, tmp_path / "full", check=False).returncode == 5


def test_a_text_redacted_since_is_told_and_gone_after_a_rewrite(run, tree, tmp_path):
    memory = tree.put("/a.md", "my secret word")
    secret = tree.versions()[0].id
    tree.edit(memory.id, content="clean", path="/b.md")
    run("export", "--git", tree.id, tmp_path / "repo")
    assert "redacted" not in run("export", "--git", tree.id, tmp_path / "repo").stderr
    tree.redact(secret)
    tree.put("/later.md", "later")
    told = run("export", "--git", tree.id, tmp_path / "repo").stderr
    assert "1 text that was redacted since" in told and "--rewrite" in told
    run("export", "--git", tree.id, tmp_path / "repo", "--rewrite")
    repo = Repository(tmp_path / "repo", new=False)
    assert repo.log("%s") == ["A change that was redacted since", "Update b.md", "Create later.md"]
    blobs = repo.git("cat-file", "--batch-all-objects", "--batch")
    assert "my secret word" not in blobs and "clean" in blobs
    assert bytes_below(tmp_path / "repo") == {"b.md": b"clean", "later.md": b"later"}
    assert repo.git("status", "--porcelain") == ""
    assert run("export", "--git", tree.id, tmp_path / "repo").stderr == ""


def test_store_to_git_to_store_keeps_every_byte_and_step(run, lived_in, new_tree, tmp_path):
    run("import", plant(tmp_path / "in", STRANGE), "--store", f"{lived_in.id}:/in")
    run("export", "--git", lived_in.id, tmp_path / "repo")
    back = new_tree()
    run("import", "--git", tmp_path / "repo", "--store", back.id)
    assert back.texts() == lived_in.texts() and back.operations() == lived_in.operations()
    run("export", lived_in.id, tmp_path / "one"), run("export", back.id, tmp_path / "two")
    assert bytes_below(tmp_path / "one") == bytes_below(tmp_path / "two")
    run("export", "--git", back.id, tmp_path / "again")
    trees = [Repository(tmp_path / name, new=False).log("%T %s") for name in ("repo", "again")]
    assert trees[0] == trees[1]


class Life:
    """A store that things happen to, the same for the same seed."""

    def __init__(self, wire, tree, seed, *, redacting=True):
        self.redacting = redacting
        self.wire, self.tree, self.random = wire, tree, random.Random(seed)
        self.names = [f"/{a}{b}" for a in "abc" for b in ("", "/x", "/x/y", "/z")]

    def go_on(self, steps):
        for _ in range(steps):
            paths, random = self.tree.paths(), self.random
            free = [name for name in self.names if not any(overlap(name, path) for path in paths)]
            changes = []
            if paths:
                path = random.choice(paths)
                text = f"{random.random()}\n"
                changes.append(random.choice([
                    {"op": "update", "path": path, "content": text}, {"op": "delete", "path": path},
                    {"op": "update", "path": path, "summary": text},
                    {"op": "update", "path": path, "new_path": random.choice(free)} if free else {"op": "delete", "path": path},
                ]))
            moved = [change.get("new_path") for change in changes]
            free = [name for name in free if not any(overlap(name, to) for to in moved if to)]
            if free and (not paths or random.random() < 0.6):
                changes.append(create(random.choice(free), f"{random.random()}"))
            if changes:
                changeset(self.wire, self.tree, random.choice([None, "a reason", f"{random.random()}"]), *changes)
            if self.redacting and random.random() < 0.15:
                old = [v for v in self.tree.versions() if v.redacted_at is None and v.operation != "deleted"]
                heads = {memory.memory_version_id for memory in self.tree.list()}
                old = [version for version in old if version.id not in heads]
                if old:
                    self.tree.redact(random.choice(old).id)


def overlap(one, other):
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_to_a_store_its_repository_and_what_is_made_of_that_are_the_same(run, new_tree, wire, tmp_path, seed):
    tree, back = new_tree(), new_tree()
    life = Life(wire, tree, seed)
    for _ in range(4):
        life.go_on(12)
        run("export", "--git", tree.id, tmp_path / "repo")
        run("import", "--git", tmp_path / "repo", "--store", back.id)
        assert back.texts() == tree.texts()
        run("export", tree.id, tmp_path / "now", "--on-conflict", "overwrite", "--delete-missing")
        assert bytes_below(tmp_path / "now") == bytes_below(tmp_path / "repo")
        run("export", back.id, tmp_path / "back", "--on-conflict", "overwrite", "--delete-missing")
        assert bytes_below(tmp_path / "back") == bytes_below(tmp_path / "now")
    run("export", "--git", tree.id, tmp_path / "repo", "--rewrite")
    assert bytes_below(tmp_path / "now") == bytes_below(tmp_path / "repo")


def test_a_repository_s_history_becomes_a_store_s(run, carried, tree, wire, tmp_path):
    repo = Repository(tmp_path / "repo")
    first = repo.commit("Begin\n\nWhy it begins.", {"a.md": "one\ntwo\nthree\n", "d/b.md": "b"})
    repo.git("mv", "a.md", "c.md")
    repo.commit("Move")
    repo.commit("Nothing")
    repo.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    repo.commit("On the side", {"side.md": "side"})
    repo.git("checkout", "--quiet", "main")
    (repo.root / "d/b.md").unlink()
    repo.commit("Below", {"d/b.md/below.md": "x"})
    repo.git("merge", "--quiet", "--no-ff", "-m", "Merge side", "side")
    assert carried("import", "--git", repo.root, "--store", tree.id, "-n")["new_commits"] == 4
    assert tree.paths() == []
    run("import", "--git", repo.root, "--store", tree.id)
    assert tree.texts() == {"/c.md": "one\ntwo\nthree\n", "/d/b.md/below.md": "x", "/side.md": "side"}
    assert tree.operations() == ["created", "created", "modified", "deleted", "created", "created"]
    moved = next(memory.id for memory in tree.list() if memory.path == "/c.md")
    assert len(tree.versions(moved)) == 2, "a move keeps the memory"
    run("export", "--git", tree.id, tmp_path / "out")
    message = Repository(tmp_path / "out", new=False).log("%B")[0]
    for part in ["Begin\n\nWhy it begins.", "Git-Author: Ada <ada@example.com>", "Git-Date: 2024-05-06T07:08:09+02:00",
                 f"Git-Commit: {first}"]:
        assert part in message, message
    repo.commit("More", {"more.md": "m"})
    assert carried("import", "--git", repo.root, "--store", tree.id)["new_commits"] == 1
    assert carried("import", "--git", repo.root, "--store", tree.id)["new_commits"] == 0
    tree.put("/elsewhere.md", "by somebody else")
    repo.commit("Even more", {"more.md": "mm"})
    refused = run("import", "--git", repo.root, "--store", tree.id, check=False)
    assert refused.returncode == 4 and "/elsewhere.md" in refused.stderr


def test_two_repositories_fit_into_one_store_below_directories_of_their_own(run, tree, tmp_path):
    for name in ("one", "two"):
        repo = Repository(tmp_path / name)
        repo.commit("first", {"a.md": name})
        run("import", "--git", repo.root, "--store", f"{tree.id}:/{name}")
    for name in ("one", "two"):
        Repository(tmp_path / name, new=False).commit("second", {"b.md": name})
        run("import", "--git", tmp_path / name, "--store", f"{tree.id}:/{name}")
    assert tree.texts() == {"/one/a.md": "one", "/one/b.md": "one", "/two/a.md": "two", "/two/b.md": "two"}


def test_what_a_repository_holds_that_is_no_memory_is_named(run, tree, tmp_path):
    repo = Repository(tmp_path / "repo")
    with open(os.fsencode(repo.root) + b"/\xff\xfe", "w") as file:
        file.write("x")
    (repo.root / "link").symlink_to("good.md")
    repo.commit("all sorts", {"good.md": "good", "nul": "a\0", "latin": b"\xff", "large": "x" * 102_401, "deco\u0301.md": "nfd"})
    (repo.root / "nul").unlink()
    repo.commit("without", {"latin": "now it is text"})
    refused = run("import", "--git", repo.root, "--store", tree.id, check=False)
    assert refused.returncode == 5 and tree.versions() == []
    for name in ("nul", "latin", "large", "link", "deco", "\ufffd"):
        assert any(f"stele: {name}" in line for line in refused.stderr.splitlines()), (name, refused.stderr)
    run("import", "--git", repo.root, "--store", tree.id, "--partial")
    assert tree.texts() == {"/good.md": "good", "/latin": "now it is text"}


def test_no_program_that_a_repository_names_is_run(run, new_tree, tmp_path):
    repo = Repository(tmp_path / "repo")
    mark = tmp_path / "ran"
    touch = f"touch {mark}"
    plant(repo.root, {".gitattributes": "* filter=evil diff=evil merge=evil text=auto eol=crlf\n", "a.md": "a\n"})
    repo.commit("one")
    repo.commit("two", {"a.md": "b\n"})
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "post-commit", "update",
                 "fsmonitor-watchman", "post-rewrite", "pre-push"):
        hook = repo.root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{touch}\n")
        hook.chmod(0o755)
    for key in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.command", "diff.evil.textconv",
                "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "diff.external", "gpg.program",
                "core.alternateRefsCommand", "uploadpack.packObjectsHook", "credential.helper", "alias.rev-parse",
                "alias.cat-file"):
        value = f"!{touch}" if key.startswith(("alias", "credential")) else touch
        repo.git("config", key, value)
    repo.git("config", "remote.origin.url", f"ext::sh -c '{touch}'")
    repo.git("config", "remote.origin.promisor", "true")
    repo.git("config", "protocol.ext.allow", "always")
    repo.git("config", "core.hooksPath", str(repo.root / ".git/hooks"))
    repo.git("config", "log.showSignature", "true")
    assert not mark.exists()
    tree = new_tree()
    run("import", "--git", repo.root, "--store", tree.id)
    assert tree.texts()["/a.md"] == "b\n" and not mark.exists()
    # An object that is missing is not fetched.
    blob = repo.git("rev-parse", "HEAD:a.md").strip()
    (repo.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    refused = run("import", "--git", repo.root, "--store", new_tree().id, check=False)
    assert refused.returncode == 5 and "missing" in refused.stderr and not mark.exists()


def test_an_export_into_a_repository_with_traps_runs_none_of_them(run, tree, tmp_path):
    tree.put("/.gitattributes", "* filter=evil ident text eol=crlf\n")
    memory = tree.put("/a.md", "a $Id$\n")
    run("export", "--git", tree.id, tmp_path / "repo")
    mark, repo = tmp_path / "ran", Repository(tmp_path / "repo", new=False)
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        hook = repo.root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    for key in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"):
        with (repo.root / ".git/config").open("a") as config:
            section, name = key.rsplit(".", 1)
            head = '[filter "evil"]' if section.startswith("filter") else "[core]"
            config.write(f"{head}\n\t{name} = touch {mark}\n")
    tree.edit(memory.id, content="b $Id$\n")
    run("export", "--git", tree.id, tmp_path / "repo")
    tree.redact(tree.versions(memory.id)[-1].id)
    run("export", "--git", tree.id, tmp_path / "repo", "--rewrite")
    assert not mark.exists()
    assert (tmp_path / "repo/a.md").read_bytes() == b"b $Id$\n"


def test_a_large_commit_is_cut_and_gone_on_with_after_a_kill(run, server, wire, new_tree, tmp_path):
    repo, tree = Repository(tmp_path / "repo"), new_tree()
    repo.commit("large", {f"{n % 30}/{n}.md": f"text {n}" for n in range(2_300)})
    for n in range(40):
        repo.commit(f"change {n}", {f"0/{30 * n}.md": f"changed {n}"})
    env = clean_env(tmp_path, {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    args = [STELE_BIN, "import", "--git", str(repo.root), "--store", tree.id]
    stands = lambda: wire("GET", tree.route).headers["stele-sequence"]
    for _ in range(3):
        process = subprocess.Popen(args, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = stands()
        while process.poll() is None and stands() == before:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    run("import", "--git", repo.root, "--store", tree.id)
    assert len(tree.versions()) == 2_340, "each change was made once"
    run("export", tree.id, tmp_path / "out")
    assert bytes_below(tmp_path / "out") == bytes_below(repo.root)


def test_without_git_it_says_so(run, tree, tmp_path):
    tree.put("/a", "a")
    plant(tmp_path / "repo", {".git/HEAD": "x"})
    for args in (["export", "--git", tree.id, tmp_path / "out"], ["import", "--git", tmp_path / "repo", "--store", tree.id]):
        done = run(*args, check=False, PATH="/nowhere")
        assert done.returncode == 1 and "needs the program git" in done.stderr


def test_what_is_no_repository_is_told(run, tree, tmp_path):
    plant(tmp_path / "plain", {"a": "a"})
    plant(tmp_path / "broken", {".git/HEAD": "nonsense"})
    Repository(tmp_path / "empty")
    for name, code in (("plain", 3), ("broken", 5), ("empty", 3), ("nowhere", 3)):
        done = run("import", "--git", tmp_path / name, "--store", tree.id, check=False)
        assert done.returncode == code, (name, done.stderr)
    shallow = Repository(tmp_path / "full")
    shallow.commit("one", {"a": "1"}), shallow.commit("two", {"a": "2"})
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{shallow.root}", tmp_path / "shallow"], check=True,
                   env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    run("import", "--git", tmp_path / "shallow", "--store", tree.id)
    assert tree.texts() == {"/a": "2"}


def test_a_bare_clone_is_kept_up_too(run, lived_in, tmp_path):
    run("export", "--git", lived_in.id, tmp_path / "repo")
    subprocess.run(["git", "clone", "-q", "--bare", tmp_path / "repo", tmp_path / "bare"], check=True,
                   env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    lived_in.put("/new.md", "n")
    done = json.loads(run("export", "--git", lived_in.id, tmp_path / "bare", "--json").stdout)
    assert done["new_commits"] == 1
    assert Repository(tmp_path / "bare", new=False).log("%s")[-1] == "Create new.md"
