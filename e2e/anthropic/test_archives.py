"""Stores as files: exporting one, importing files, putting one back with its ids. docs/EXPORT.md."""

import io
import json
import socket
import tarfile
import threading
import time

import pytest
import zstandard

from kit.server import stele
from kit.tree import Tree
from kit.wire import MEMORY, VERSION, Wire

RESTORE = "/stele/v1/memory_stores/import"
# What a plain file is, and what would be taken for front matter.
TEXTS = {
    "/plain.md": "text\r\n",
    "/empty": "",
    "/dir/é🧠.md": "\ufeffline one\nline two",
    "/front.md": "---\nsummary: mine\n---\nbody",
    "/foreign.md": "---\ntitle: x\n---\nbody",
    "/jekyll.md": "---\n---\n# Jekyll title\n",
    "/crlf.md": "---\r\nsummary: mine\r\n---\r\nbody\r\n",
    "/" + "long-name/" * 12 + "deep.md": "x" * 102_400,
}


def unpacked(archive: bytes) -> dict[str, bytes]:
    """The files of a tar.zst by name."""
    tar = zstandard.ZstdDecompressor().decompressobj().decompress(archive)
    with tarfile.open(fileobj=io.BytesIO(tar)) as read:
        return {member.name: read.extractfile(member).read() for member in read}


def packed(*files, **special) -> bytes:
    """A tar.zst of (name, content) pairs, or of ready tarfile members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            content = content.encode() if isinstance(content, str) else content
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return zstandard.ZstdCompressor().compress(out.getvalue())


def kind(name: str, type_: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = type_, target
    return member


@pytest.fixture
def lived(tree, wire):
    """A store that has seen everything: edits, renames, deletions, a return, a redaction, reasons, summaries."""
    for path, content in TEXTS.items():
        tree.put(path, content)
    first = tree.put("/moved.md", "first")
    tree.edit(first.id, content="secret words", path="/moved/there.md")
    secret = tree.versions(first.id)[0].id
    tree.edit(first.id, content="clean words")
    tree.redact(secret)
    gone = tree.put("/gone.md", "gone")
    tree.drop(gone.id)
    change = {"op": "create", "path": "/why.md", "content": "because", "summary": 'what "it" is'}
    wire("POST", f"{tree.route}/changesets", json={"changes": [change], "reason": "for\nreasons"}).ok()
    return tree


def export(wire: Wire, store: str, format: str = "archive") -> bytes:
    answer = wire("GET", f"/v1/memory_stores/{store}/export", query={"format": format})
    assert answer.status == 200, answer.text
    assert answer.headers["content-type"] == "application/zstd"
    assert answer.headers["stele-sequence"].isdigit()
    return answer.body


def state(wire: Wire, store: str) -> dict:
    """All that a store shows: itself, its tree, its history with texts, its feed, both dialects."""
    route = f"/v1/memory_stores/{store}"
    uuid = uuid_of(wire, store)

    def pages(path, query):
        data, page = [], None
        while True:
            answer = wire("GET", path, query=query | ({"page": page} if page else {})).ok()
            data += answer["data"]
            page = answer.get("next_page")
            if not page:
                return data

    shown = {
        "store": wire("GET", route).ok(),
        "memories": pages(f"{route}/memories", {"view": "full"}),
        "versions": pages(f"{route}/memory_versions", {"view": "full"}),
        "changes": wire("GET", f"{route}/changes", query={"limit": 1000}).ok(),
        "other": wire("GET", f"/managed-agents/v1/memory_stores/{uuid}/memories").ok(),
        "history": wire("GET", f"/managed-agents/v1/memory_stores/{uuid}/memory_versions").ok(),
        "slug": slugs(wire)[uuid],
    }
    # All of it but where it is.
    stores = wire("GET", "/managed-agents/v1/memory_stores", query={"include_archived": "true"}).ok()
    organization = stores["memory_stores"][0]["organization_id"]
    return json.loads(json.dumps(shown).replace(organization, "its own"))


def slugs(wire: Wire) -> dict:
    stores = wire("GET", "/managed-agents/v1/memory_stores", query={"include_archived": "true"}).ok()
    return {store["memory_store_id"]: store["slug"] for store in stores["memory_stores"]}


def uuid_of(wire: Wire, store: str) -> str:
    answer = wire("GET", f"/v1/memory_stores/{store}/export")
    return json.loads(unpacked(answer.body)["stele-archive.json"])["store"]["id"]


def restore(wire: Wire, archive: bytes):
    return wire("POST", RESTORE, body=archive)


def into(wire: Wire, tree: Tree, archive: bytes, **query):
    return wire("POST", f"{tree.route}/import", query=query, body=archive)


def problems(error: dict) -> dict[str, str]:
    return {problem["path"]: problem["problem"] for problem in error["details"]["problems"]}


# Putting back


def test_a_store_put_back_elsewhere_is_the_same_to_the_byte(lived, wire, fresh_server):
    archive = export(wire, lived.id)
    assert archive == export(wire, lived.id), "the same store gives the same bytes"
    there = fresh_server()
    other = Wire(there.port, there.admin_key)
    body = restore(other, archive).ok(201)
    assert body["memory_store_id"] == uuid_of(wire, lived.id) and body["memories"] == len(TEXTS) + 2
    before, after = state(wire, lived.id), state(other, lived.id)
    assert after == before
    files, again = unpacked(archive), unpacked(export(other, lived.id))
    manifests = [json.loads(archive.pop("stele-archive.json")) for archive in (files, again)]
    for manifest in manifests:
        del manifest["installation"], manifest["epoch"], manifest["workspace"]
    assert manifests[0] == manifests[1] and files == again
    assert b"secret words" not in b"".join(files.values())
    # It lives on: sequences, followers, search.
    memory = other("POST", f"{lived.route}/memories", json={"path": "/next.md", "content": "zebra"}).ok()
    changes = other("GET", f"{lived.route}/changes", query={"after": body["sequence"]}).ok()["data"]
    assert [(c["sequence"], c["memory_id"]) for c in changes] == [(body["sequence"] + 1, memory["id"])]
    found = other("GET", f"{lived.route}/memories/search", query={"query": "zebra"}).ok()
    assert [hit["path"] for hit in found["data"]] == ["/next.md"]
    there.kill()
    there.start()
    assert state(other, lived.id)["memories"][0] == before["memories"][0]


def test_what_is_there_is_not_put_back_over(lived, wire):
    archive, before = export(wire, lived.id), state(wire, lived.id)
    assert "already" in restore(wire, archive).refused_flat(409, "conflict")["message"]
    assert state(wire, lived.id) == before


def test_a_deleted_store_comes_back_and_its_redactions_hold(fresh_server, new_client):
    server = fresh_server()
    wire, tree = Wire(server.port, server.admin_key), Tree.planted(new_client(server))
    first = tree.put("/a.md", "one secret")
    tree.put("/head.md", "another secret")
    tree.edit(first.id, content="clean")
    archive = export(wire, tree.id)
    tree.redact(tree.versions(first.id)[-1].id)
    head = next(m for m in tree.list() if m.path == "/head.md")
    tree.edit(head.id, content="clean too")
    tree.redact(tree.versions(head.id)[-1].id)
    last = wire("GET", f"{tree.route}/changes").ok()["last_sequence"]
    wire("DELETE", tree.route).ok()
    body = restore(wire, archive).ok(201)
    # The text of the other memory is gone for good, so there is nothing that it could show.
    assert tree.texts() == {"/a.md": "clean"} and body["sequence"] > last
    assert [v.operation for v in tree.versions(head.id)] == ["deleted", "created"]
    assert all("secret" not in (v.content or "") for v in tree.versions(view="full", limit=20))
    # Sequences of the life before mean nothing now.
    expired = wire("GET", f"{tree.route}/changes", query={"after": last + 1}).refused(410, "invalid_request_error")
    assert expired["details"]["error_code"] == "sequence_expired"
    assert wire("GET", f"{tree.route}/changes", query={"after": body["sequence"]}).ok()["data"] == []
    assert b"one secret" not in b"".join(path.read_bytes() for path in server.data_dir.rglob("*") if path.is_file())


def test_an_archived_store_comes_back_archived(tree, wire, fresh_server):
    tree.put("/a.md")
    tree.archive()
    there = fresh_server()
    other = Wire(there.port, there.admin_key)
    restore(other, export(wire, tree.id)).ok(201)
    assert state(other, tree.id) == state(wire, tree.id)


def test_a_killed_restore_leaves_nothing(wire, new_tree, fresh_server):
    tree = new_tree()
    for start in range(0, 3000, 500):
        changes = [{"op": "create", "path": f"/{n:05}.md", "content": f"text {n} " * 50} for n in range(start, start + 500)]
        wire("POST", f"{tree.route}/changesets", json={"changes": changes}).ok()
    archive = export(wire, tree.id)
    there = fresh_server()
    for after in (0.05, 0.3, 0.8):
        other = Wire(there.port, there.admin_key)
        answers = []

        def send(answers=answers, other=other):
            try:
                answers.append(restore(other, archive).status)
            except OSError:
                answers.append(None)

        sending = threading.Thread(target=send)
        sending.start()
        time.sleep(after)
        there.kill()
        sending.join()
        there.start()
        if answers == [201]:
            break
        assert other("GET", tree.route).status == 404
    else:
        restore(other, archive).ok(201)
    assert len(state(other, tree.id)["memories"]) == 3000


# Refusals


def test_only_admins_put_back_and_no_session_exports(lived, wire, new_key, elsewhere, house):
    archive = export(wire, lived.id)
    developer = wire.as_key(new_key(role="developer")["key"])
    restore(developer, archive).refused_flat(403, "forbidden")
    reader = wire.as_key(new_key(role="reader")["key"])
    assert export(reader, lived.id) == archive
    into(reader, lived, archive).refused(403, "permission_error")
    elsewhere("GET", f"{lived.route}/export").refused(404, "not_found_error")
    into(elsewhere, lived, archive).refused(404, "not_found_error")
    restore(elsewhere, archive).refused_flat(409, "conflict")


def rewritten(archive: bytes, name: str, change) -> bytes:
    files = unpacked(archive)
    return packed(*((n, change(body) if n == name else body) for n, body in files.items()))


def manifest_with(archive: bytes, change) -> bytes:
    def edited(body):
        manifest = json.loads(body)
        change(manifest)
        return json.dumps(manifest)

    return rewritten(archive, "stele-archive.json", edited)


@pytest.mark.parametrize(
    "lie, said",
    [
        (lambda a: manifest_with(a, lambda m: m.update(memories=1)), "counts other memories"),
        (lambda a: manifest_with(a, lambda m: m.update(sequence=7)), "sequence"),
        (lambda a: manifest_with(a, lambda m: m.update(tree_sha256="0" * 64)), "hash of the tree"),
        (lambda a: manifest_with(a, lambda m: m.update(version=2)), "newer"),
        (lambda a: manifest_with(a, lambda m: m["store"].update(name="")), "name"),
        (lambda a: manifest_with(a, lambda m: m["store"].update(origin="stolen")), "origin"),
        (lambda a: rewritten(a, "memories/plain.md", lambda body: b"TEXT\r\n"), "/plain.md"),
        (lambda a: rewritten(a, "history/000001.jsonl", lambda body: body.replace(b"because", b"BECAUSE")), "hash"),
        (lambda a: rewritten(a, "history/000001.jsonl", lambda body: body[: len(body) // 2]), "history"),
        (lambda a: packed(*list(unpacked(a).items())[:-1]), "ends too early"),
        (lambda a: a[: len(a) // 2], "ends too early"),
        (lambda a: packed(("a.md", "x")), "no history"),
        (lambda a: b"no archive at all", "not a tar in zstd"),
    ],
)
def test_an_archive_that_lies_is_refused(lived, wire, fresh_server, lie, said):
    there = fresh_server()
    other = Wire(there.port, there.admin_key)
    error = restore(other, lie(export(wire, lived.id))).refused_flat(400, "invalid_request")
    assert said in error["message"] and error["details"]["problem_count"] >= 1, error
    assert other("GET", "/v1/memory_stores").ok()["data"] == []


# Files into a store


def test_markdown_files_go_out_and_come_back_to_the_byte(lived, wire, new_tree):
    files = unpacked(export(wire, lived.id, "markdown"))
    assert files["plain.md"] == b"text\r\n" and files["foreign.md"] == TEXTS["/foreign.md"].encode()
    assert files["why.md"] == b'---\nsummary: "what \\"it\\" is"\n---\nbecause'
    assert all(files[name].decode() == TEXTS[f"/{name}"] for name in ("jekyll.md", "crlf.md"))
    assert set(files) == {path[1:] for path in lived.texts()}
    other = new_tree()
    body = into(wire, other, export(wire, lived.id, "markdown")).ok()
    assert body["created"] == len(files) and body["sequence"] == len(files)
    assert other.texts() == lived.texts()
    assert unpacked(export(wire, other.id, "markdown")) == files
    again = into(wire, other, packed(*files.items())).ok()
    assert again["unchanged"] == len(files) and again["sequence"] == body["sequence"]
    # An archive brings its live memories.
    third = new_tree()
    assert into(wire, third, export(wire, lived.id)).ok()["created"] == len(files)
    assert unpacked(export(wire, third.id, "markdown")) == files


def test_a_conflict_is_refused_skipped_or_written_over(tree, wire):
    kept = tree.put("/a.md", "old")
    archive = packed(("./a.md", "new"), ("./b/c.md", "x"), ("./same.md", "s"))
    tree.put("/same.md", "s")
    error = into(wire, tree, archive).refused(400, "invalid_request_error")
    assert problems(error) == {"/a.md": "the store has a memory with another text there"}
    dry = into(wire, tree, archive, on_conflict="overwrite", dry_run="true").ok()
    assert {f["path"]: f["action"] for f in dry["data"]} == {
        "/a.md": "overwrite",
        "/b/c.md": "create",
        "/same.md": "unchanged",
    }
    assert dry["dry_run"] and tree.texts() == {"/a.md": "old", "/same.md": "s"}
    skipped = into(wire, tree, archive, on_conflict="skip").ok()
    assert (skipped["skipped"], skipped["created"]) == (1, 1) and tree.read(kept.id).content == "old"
    written = into(wire, tree, archive, on_conflict="overwrite").ok()
    assert (written["overwritten"], written["unchanged"]) == (1, 2) and tree.read(kept.id).content == "new"
    assert tree.operations(kept.id) == ["created", "modified"]


def test_files_that_cannot_be_memories_are_all_named_and_none_is_taken(tree, wire):
    tree.put("/there/x.md")
    archive = packed(
        ("fine.md", "x"),
        ("../up.md", "x"),
        ("/absolute.md", "x"),
        (kind("link", tarfile.SYMTYPE, "/etc/passwd"), ""),
        (kind("hard", tarfile.LNKTYPE, "fine.md"), ""),
        (kind("device", tarfile.CHRTYPE), ""),
        (kind("pipe", tarfile.FIFOTYPE), ""),
        ("twice.md", "1"),
        ("twice.md", "2"),
        ("dir", "x"),
        ("dir/below.md", "x"),
        ("there", "x"),
        ("large.md", "x" * 102_401),
        ("nul.md", "a\0b"),
        ("latin.md", b"caf\xe9"),
        ("nfd-e\u0301.md", "x"),
    )
    error = into(wire, tree, archive, on_conflict="overwrite").refused(400, "invalid_request_error")
    assert error["details"]["error_code"] == "import_refused" and error["details"]["problem_count"] == 13
    found = problems(error)
    for path, what in {
        "../up.md": "..",
        "/absolute.md": "absolute",
        "link": "link",
        "hard": "link",
        "device": "device",
        "pipe": "pipe",
        "/twice.md": "twice",
        "/dir/below.md": "cannot both",
        "/there": "/there/x.md",
        "large.md": "102400",
        "nul.md": "NUL",
        "latin.md": "UTF-8",
        "nfd-e\u0301.md": "NFC",
    }.items():
        assert what in found[path], (path, found)
    assert tree.paths() == ["/there/x.md"]


def test_bombs_and_names_that_are_no_text_are_refused(tree, wire):
    bomb = zstandard.ZstdCompressor().compress(bytes(200_000_000))
    assert "behind its end" in into(wire, tree, bomb).refused(400, "invalid_request_error")["message"]
    member = tarfile.TarInfo("bomb.md")
    huge = packed((member, bytes(200_000_000)))
    assert "102400" in into(wire, tree, huge).refused(400, "invalid_request_error")["message"]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, encoding="latin-1") as tar:
        tar.addfile(tarfile.TarInfo("caf\xe9.md"))
    named = zstandard.ZstdCompressor().compress(out.getvalue())
    assert "its name is not UTF-8" in into(wire, tree, named).refused(400, "invalid_request_error")["message"]
    for query in ({"on_conflict": "merge"}, {"dry_run": "yes"}):
        into(wire, tree, packed(("a", "x")), **query).refused(400, "invalid_request_error")
    wire("GET", f"{tree.route}/export", query={"format": "zip"}).refused(400, "invalid_request_error")
    tree.archive()
    error = into(wire, tree, packed(("a", "x"))).refused(400, "invalid_request_error")
    assert error["details"]["error_code"] == "memory_store_archived"


def test_many_files_go_in_slices_and_the_cap_is_looked_at_before(tree, wire):
    many = [(f"d{n % 7}/{n}.md", f"text {n}") for n in range(2_600)]
    assert into(wire, tree, packed(*many)).ok()["created"] == 2_600
    assert tree.texts() == {f"/{name}": text for name, text in many}
    beyond = [(f"more/{n}.md", "x") for n in range(7_401)]
    error = into(wire, tree, packed(*beyond)).refused(400, "invalid_request_error")
    assert "10000" in error["message"] and len(tree.paths()) == 2_600


def test_the_same_import_twice_at_once_is_done_once(fresh_server, new_client):
    server = fresh_server()
    wire, tree = Wire(server.port, server.admin_key), Tree.planted(new_client(server))
    many = [(f"d{n % 7}/{n}.md", f"text {n} " * 100) for n in range(2_600)]
    archive, answers = packed(*many), []
    sending = [
        threading.Thread(target=lambda: answers.append(into(wire, tree, archive).ok())) for _ in range(2)
    ]
    for thread in sending:
        thread.start()
    for thread in sending:
        thread.join()
    assert len(answers) == 2 and sum(answer["created"] for answer in answers) == 2_600, answers
    assert all(answer["created"] + answer["unchanged"] == 2_600 for answer in answers)
    assert tree.texts() == {f"/{name}": text for name, text in many}


def test_an_import_whose_client_was_killed_can_be_run_again_at_once(fresh_server, new_client):
    server = fresh_server()
    wire = Wire(server.port, server.admin_key)
    many = [(f"{n}.md", f"text {n} " * 100) for n in range(2_600)]
    archive = packed(*many)
    for after in (0.05, 0.15, 0.3):
        tree = Tree.planted(new_client(server))
        head = (
            f"POST {tree.route}/import HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
            f"authorization: Bearer {server.admin_key}\r\nanthropic-version: {VERSION}\r\n"
            f"anthropic-beta: {MEMORY}\r\ncontent-type: application/zstd\r\ncontent-length: {len(archive)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", server.port)) as gone:
            gone.sendall(head.encode() + archive)
            time.sleep(after)
        into(wire, tree, archive).ok()
        assert tree.texts() == {f"/{name}": text for name, text in many}


def test_two_tars_in_one_file_are_refused(tree, wire):
    error = into(wire, tree, packed(("a.md", "x")) + packed(("b.md", "y"))).refused(400, "invalid_request_error")
    assert "behind its end" in error["message"] and tree.paths() == []


def test_an_export_is_of_one_moment_while_others_write(tree, wire):
    changes = [{"op": "create", "path": f"/{n:04}.md", "content": "0 " * 2000} for n in range(900)]
    wire("POST", f"{tree.route}/changesets", json={"changes": changes}).ok()
    stop = threading.Event()

    def write():
        with wire.kept_alive() as call:
            n = 0
            while not stop.is_set():
                n += 1
                change = [{"op": "update", "path": f"/{i:04}.md", "content": f"{n} "} for i in (0, 450, 899)]
                call("POST", f"{tree.route}/changesets", json={"changes": change}).ok()

    writing = threading.Thread(target=write)
    writing.start()
    try:
        for _ in range(4):
            files = unpacked(export(wire, tree.id))
            assert len({files[f"memories/{n}.md"] for n in ("0000", "0450", "0899")}) == 1
            lines = b"".join(body for name, body in files.items() if name.startswith("history/")).splitlines()
            sequences = [json.loads(line)["sequence"] for line in lines]
            last = json.loads(files["stele-archive.json"])["sequence"]
            assert sequences == list(range(1, last + 1))
    finally:
        stop.set()
        writing.join()


# The command line


@pytest.fixture
def run(server, tmp_path):
    """`run("export", ...)`: a command against the shared server, in a directory of the test's own."""
    home = tmp_path / "cli"
    home.mkdir()

    def run(*args, at=server, timeout=120):
        env = {"STELE_URL": at.url, "STELE_API_KEY": at.admin_key}
        return stele(*args, home=home, env=env, timeout=timeout)

    run.home = home
    return run


def test_the_command_line_carries_a_store_out_and_back(lived, wire, run, fresh_server):
    done = run("export", lived.id, "whole.tar.zst")
    assert done.returncode == 0 and "10 memories" in done.stdout, done
    archive = (run.home / "whole.tar.zst").read_bytes()
    assert archive == export(wire, lived.id)
    again = run("export", lived.id, "-o", "whole.tar.zst")
    assert again.returncode == 4 and "already" in again.stderr
    there = fresh_server()
    back = run("import", "--restore", "whole.tar.zst", at=there)
    assert back.returncode == 0 and "10 memories" in back.stdout, back
    assert state(Wire(there.port, there.admin_key), lived.id) == state(wire, lived.id)
    assert run("import", "--restore", "whole.tar.zst", at=there).returncode == 4
    assert [path.name for path in run.home.iterdir() if path.suffix == ".partial"] == []


def test_the_command_line_takes_files_into_a_store(lived, run, new_tree):
    assert run("export", lived.id, "--format", "markdown", "-o", "md").returncode == 0
    tree = new_tree()
    dry = run("import", "md", "--store", tree.id, "-n")
    assert dry.returncode == 0 and "would create /plain.md" in dry.stdout and tree.paths() == []
    assert "10 created" in run("import", "md", "--store", tree.id).stdout
    assert "10 unchanged" in run("import", "md", "--store", tree.id).stdout
    assert tree.texts() == lived.texts()
    plain = next(memory for memory in tree.list() if memory.path == "/plain.md")
    tree.edit(plain.id, content="mine")
    refused = run("import", "md", "--store", tree.id)
    assert refused.returncode == 5 and "/plain.md" in refused.stderr
    assert "1 skipped" in run("import", "md", "--store", tree.id, "--on-conflict", "skip").stdout
    assert "1 overwritten" in run("import", "md", "--store", tree.id, "--on-conflict", "overwrite").stdout
    (run.home / "bad.tar.zst").write_bytes(packed(*((f"../{n}", "x") for n in range(5))))
    bad = run("import", "bad.tar.zst", "--store", tree.id)
    assert bad.returncode == 5 and all(f"../{n}" in bad.stderr for n in range(5))
    assert run("import", "none.tar.zst", "--store", tree.id).returncode == 1


def test_a_memory_named_like_an_archives_entry_is_exported_as_a_file(run, tree, new_tree):
    tree.put("/stele-archive.json", '{"format":"stele-archive","version":9}')
    tree.put("/z.md", "z")
    done = run("export", tree.id, "named.tar.zst", "--format", "markdown")
    assert done.returncode == 0 and "2 memories" in done.stdout, done
    other = new_tree()
    assert "2 created" in run("import", "named.tar.zst", "--store", other.id).stdout
    assert other.texts() == tree.texts()


def test_every_store_is_exported_and_a_broken_file_is_not_one(run, fresh_server, new_client):
    server = fresh_server()
    client = new_client(server)
    trees = [Tree.planted(client, name=name) for name in ("one", "two")]
    trees[1].put("/a.md")
    done = run("export", "--all", "-o", "out", at=server)
    assert done.returncode == 0 and {p.name for p in (run.home / "out").iterdir()} == {"one.tar.zst", "two.tar.zst"}
    whole = (run.home / "out/two.tar.zst").read_bytes()
    (run.home / "cut.tar.zst").write_bytes(whole[:-9])
    cut = run("import", "--restore", "cut.tar.zst", at=server)
    assert cut.returncode == 5 and "too early" in cut.stderr
    for wrong in (["export"], ["export", "one:/dir/", "x.tar.zst"], ["import", "out/one.tar.zst"]):
        assert run(*wrong, at=server).returncode == 2, wrong
