"""`stele copy`: stores between live servers by the routes of the dialect alone. Issue 8, item 3."""

import json
import signal
import subprocess
import time

import pytest

from kit.carrying import PlainServer
from kit.server import STELE_BIN, clean_env, stele
from kit.tree import Tree
from test_git import Life


class Shell:
    """Copies between two servers; the keys are in variables of their own."""

    def __init__(self, home, source, target, *, from_url=None, to_url=None):
        self.home = home
        self.env = {"FROM_KEY": source.admin_key, "TO_KEY": target.admin_key}
        self.flags = ["--from", from_url or source.url, "--from-key-env", "FROM_KEY",
                      "--to", to_url or target.url, "--to-key-env", "TO_KEY", "--json"]

    def __call__(self, *args, code=0):
        done = stele("copy", *args, *self.flags, home=self.home, env=self.env, timeout=120)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)["data"] if code == 0 else done.stderr

    def start(self, *args):
        env = clean_env(self.home, self.env)
        return subprocess.Popen([STELE_BIN, "copy", *args, *self.flags], env=env, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)


@pytest.fixture
def target(fresh_server):
    return fresh_server()


@pytest.fixture
def there(target, new_client):
    """What the target has: trees by name."""
    client = new_client(target)
    return lambda: {store.name: Tree(client, store) for store in client.beta.memory_stores.list(include_archived=True)}


@pytest.fixture
def shell(server, target, tmp_path):
    return lambda **urls: Shell(tmp_path, server, target, **urls)


def done(rows):
    (row,) = rows
    return {name: row[name] for name in ("created", "updated", "deleted", "unchanged", "skipped") if row[name]}


def name(tree):
    return tree.client.beta.memory_stores.retrieve(tree.id).name


def test_a_store_is_copied_and_kept_up_by_plain_routes_alone(server, target, shell, there, tree, new_tree):
    for n in range(30):
        tree.put(f"/{n}.md", f"text {n}\r\n\u00e9")
    other = new_tree(description="another", metadata={"k": "v"})
    other.put("/only", "")
    with PlainServer(server.port) as source, PlainServer(target.port) as sink:
        copy = shell(from_url=source.url, to_url=sink.url)
        assert done(copy(tree.id, "-n")) == {"created": 30} and name(tree) not in there()
        assert done(copy(tree.id)) == {"created": 30}
        assert there()[name(tree)].texts() == tree.texts()
        assert done(copy(tree.id)) == {"unchanged": 30}
        first = tree.list()[0]
        tree.edit(first.id, content="changed"), tree.drop(tree.list()[1].id), tree.put("/new", "new")
        assert done(copy(tree.id)) == {"created": 1, "updated": 1, "unchanged": 28}
        assert done(copy(tree.id, "--delete-missing")) == {"deleted": 1, "unchanged": 30}
        assert there()[name(tree)].texts() == tree.texts()
        copy(other.id)
        twin = there()[name(other)]
        store = twin.client.beta.memory_stores.retrieve(twin.id)
        assert (store.description, store.metadata["k"]) == ("another", "v")
        writes = [path for method, path in sink.calls if method != "GET"]
        assert writes and not any("changeset" in path for path in writes)
        assert all(seen["anthropic-version"] for seen in sink.headers_seen)


def test_nothing_that_was_changed_in_the_copy_is_lost_unasked(shell, there, tree):
    memory = tree.put("/a", "one")
    tree.put("/b/c", "c")
    copy = shell()
    copy(tree.id)
    twin = there()[name(tree)]
    tree.edit(memory.id, content="two")
    assert done(copy(tree.id)) == {"updated": 1, "unchanged": 1}
    twin.edit(next(one.id for one in twin.list() if one.path == "/a"), content="mine")
    tree.put("/new", "new")
    assert "/a was changed in the copy" in copy(tree.id, code=4) and "/new" not in twin.paths()
    assert done(copy(tree.id, "--on-conflict", "skip")) == {"created": 1, "skipped": 1, "unchanged": 1}
    assert twin.texts()["/a"] == "mine"
    assert done(copy(tree.id, "--on-conflict", "overwrite")) == {"updated": 1, "unchanged": 2}
    assert twin.texts()["/a"] == "two"
    twin.put("/d/e", "in the way"), tree.put("/d", "d")
    assert "cannot be beside /d/e" in copy(tree.id, "--on-conflict", "overwrite", code=4)


def lived(tree):
    first = tree.put("/a", "1")
    second = tree.put("/b", "2")
    tree.edit(first.id, content="3")
    tree.edit(first.id, path="/c/d")
    tree.drop(second.id)
    tree.put("/b/deep", "4")
    tree.edit(first.id, content="5", path="/e")
    return first


def steps(tree):
    versions = sorted(tree.versions(), key=lambda version: version.created_at)
    return [(version.operation, version.path, version.content_sha256) for version in versions]


def test_a_history_is_replayed_in_its_order_and_gone_on_with(server, target, shell, there, tree):
    memory = lived(tree)
    with PlainServer(server.port) as source, PlainServer(target.port) as sink:
        copy = shell(from_url=source.url, to_url=sink.url)
        assert done(copy(tree.id, "--history", "-n")) == {"created": 3, "updated": 3, "deleted": 1}
        copy(tree.id, "--history")
        twin = there()[name(tree)]
        assert steps(twin) == steps(tree)
        assert done(copy(tree.id, "--history")) == {"unchanged": 7}
        tree.edit(memory.id, content="6")
        assert done(copy(tree.id, "--history")) == {"updated": 1, "unchanged": 7}
        assert steps(twin) == steps(tree)
        ids = [one.memory_id for one in twin.versions() if one.path in ("/a", "/e")]
        assert len(set(ids)) == 1, "a move keeps the memory"
        twin.put("/mine", "mine")
        tree.edit(memory.id, content="7")
        assert "is another one" in copy(tree.id, "--history", code=4)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_to_a_store_its_copies_are_the_same(shell, there, tree, new_tree, wire, seed):
    copy, life = shell(), Life(wire, tree, 100 + seed)
    for _ in range(3):
        life.go_on(12)
        copy(tree.id, "--history")
        assert there()[name(tree)].texts() == tree.texts()
    other = new_tree()
    life = Life(wire, other, seed, redacting=False)
    for _ in range(3):
        life.go_on(12)
        copy(other.id, "--delete-missing")
        assert there()[name(other)].texts() == other.texts()


def test_a_text_redacted_here_and_still_there_is_told(shell, there, tree):
    memory = tree.put("/a", "secret")
    tree.edit(memory.id, content="clean")
    copy = shell()
    copy(tree.id, "--history")
    tree.redact(tree.versions()[-1].id)
    told = stele("copy", tree.id, "--history", *copy.flags, home=copy.home, env=copy.env)
    assert told.returncode == 0 and "1 text that was redacted here" in told.stderr
    other = tree.put("/b", "never copied")
    tree.edit(other.id, content="b")
    tree.redact(tree.versions(other.id)[-1].id)
    copy(tree.id, "--history")
    assert there()[name(tree)].texts() == tree.texts()


@pytest.mark.parametrize("history", [[], ["--history"]])
def test_a_copy_that_is_killed_is_gone_on_with(shell, there, tree, history):
    memory = lived(tree)
    for n in range(300):
        tree.put(f"/many/{n}", f"{n}")
    tree.edit(memory.id, content="last")
    copy = shell()
    for enough in (20, 150):
        process = copy.start(tree.id, *history)
        while process.poll() is None and sum(len(twin.paths()) for twin in there().values()) < enough:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    copy(tree.id, *history)
    twin = there()[name(tree)]
    assert twin.texts() == tree.texts() and len(there()) == 1
    if history:
        assert steps(twin) == steps(tree)


def test_a_server_that_counts_and_fails_is_waited_for(server, target, shell, there, tree):
    lived(tree)

    def fault(number, method, path):
        answers = {0: (429, {"retry-after": "1"}), 3: (500, {}), 6: (529, {"retry-after": "0"}), 9: (503, {"retry-after": "0"})}
        return answers.get(number % 12) if number > 2 else None

    with PlainServer(server.port) as source, PlainServer(target.port, fault) as sink:
        shell(from_url=source.url, to_url=sink.url)(tree.id, "--history")
    assert steps(there()[name(tree)]) == steps(tree)


def test_an_answer_that_is_lost_makes_no_second_memory(server, target, shell, there, tree):
    """The write was done, but the caller was told that it failed."""
    lived(tree)
    lost = []
    with PlainServer(target.port) as sink:
        handler = sink.server.RequestHandlerClass
        whole = handler.answer

        def losing(self, status, headers, body):
            write = self.command in ("POST", "DELETE") and status == 200 and "/memories" in self.path
            if write and len(sink.calls) % 2 and len(lost) < 4:
                lost.append(self.path)
                status, body = 500, b'{"type":"error","error":{"type":"api_error","message":"lost"}}'
            whole(self, status, headers, body)

        handler.answer = losing
        shell(to_url=sink.url)(tree.id, "--history")
    assert lost and steps(there()[name(tree)]) == steps(tree)


def test_what_the_other_server_does_not_take_is_told_before_anything_is_written(server, shell, there, tree):
    tree.put("/small", "x"), tree.put("/large", "y")
    with PlainServer(server.port) as source:
        handler = source.server.RequestHandlerClass
        whole = handler.answer

        def boasting(self, status, headers, body):
            answer = json.loads(body)
            for item in answer.get("data", []):
                if item.get("path") == "/large":
                    item["content_size_bytes"] = 200_000
            whole(self, status, headers, json.dumps(answer).encode())

        handler.answer = boasting
        copy = shell(from_url=source.url)
        for flags in ([], ["--history"]):
            assert "200000 bytes, at most 102400" in copy(tree.id, *flags, code=5) and there() == {}
        assert done(copy(tree.id, "--partial")) == {"created": 1, "skipped": 1}
        assert there()[name(tree)].paths() == ["/small"]


def test_keys_go_where_they_are_meant_to_go(server, target, tree, tmp_path):
    tree.put("/a", "a")
    flags = ["copy", tree.id, "--from", server.url, "--to", target.url]
    one_for_both = stele(*flags, home=tmp_path, env={"STELE_API_KEY": server.admin_key})
    assert one_for_both.returncode == 2 and "--from-key-env" in one_for_both.stderr
    unset = stele(*flags, "--to-key-env", "NOWHERE", home=tmp_path, env={"STELE_API_KEY": server.admin_key})
    assert unset.returncode == 2 and "NOWHERE" in unset.stderr
    env = {"STELE_API_KEY": server.admin_key, "OTHER": target.admin_key}
    assert stele(*flags, "--to-key-env", "OTHER", home=tmp_path, env=env).returncode == 0
    with PlainServer(target.port) as sink:
        stele("copy", tree.id, "--from", server.url, "--to", sink.url, "--to-key-env", "OTHER", home=tmp_path, env=env)
        assert sink.calls and not any(server.admin_key in str(seen) for seen in sink.headers_seen)


def test_a_copy_within_one_server_is_a_store_of_its_own(server, tree, sdk, tmp_path):
    tree.put("/a", "a")
    env = {"STELE_API_KEY": server.admin_key}
    args = ["copy", name(tree), "--from", server.url, "--to", server.url, "--json"]
    for expected in ({"created": 1}, {"unchanged": 1}):
        copied = stele(*args, home=tmp_path, env=env)
        assert done(json.loads(copied.stdout)["data"]) == expected, copied.stderr
    twins = [store for store in sdk.beta.memory_stores.list() if store.name == name(tree)]
    assert len(twins) == 2
