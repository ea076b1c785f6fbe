"""`stele session import` and the hooks: a transcript becomes a session once, whatever comes between. Issue 7, item 4."""

import json
import signal
import subprocess
import time
import uuid

import pytest

from kit.server import STELE_BIN, clean_env, stele

@pytest.fixture
def run(server, tmp_path):
    """A command of somebody who has the server's address and key in their environment."""

    def command(*args, check=True, timeout=60):
        env = {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key}
        done = stele(*map(str, args), home=tmp_path, env=env, timeout=timeout)
        assert not check or done.returncode == 0, done.stderr
        return done

    return command


@pytest.fixture
def events(server, new_client):
    client = new_client(server)
    return lambda session: list(client.beta.sessions.events.list(session, limit=1000))


def line(session, n, *, text=None, **message):
    """A line of Claude Code, of a person for odd `n`."""
    role = "user" if n % 2 else "assistant"
    message = {"role": role, "content": text or f"line {n}"} | message
    return json.dumps({
        "type": role, "uuid": f"{session}-{n}", "sessionId": session, "version": "2.0.74", "isSidechain": False,
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cwd": "/w", "message": message,
    }) + "\n"


def transcript(path, lines, session=None):
    session = session or str(uuid.uuid4())
    path.write_text("".join(line(session, n) for n in range(1, lines + 1)))
    return session


def said(events):
    return [event.content[0].text for event in events if event.type in ("user.message", "agent.message")]


def imported(run, *args, **options):
    return json.loads(run("session", "import", *args, "--json", **options).stdout)


def test_a_transcript_that_grows_is_one_session_with_each_line_once(run, events, tmp_path):
    file = tmp_path / "t.jsonl"
    session = transcript(file, 5)
    first = imported(run, "claude-code", file)
    assert (first["new_events"], first["known_events"]) == (5, 0)
    again = imported(run, "claude-code", file)
    assert (again["new_events"], again["known_events"], again["session_id"]) == (0, 5, first["session_id"])
    with file.open("a") as more:
        more.write(line(session, 6))
    moved = file.rename(tmp_path / "elsewhere.jsonl")
    grown = imported(run, "claude-code", moved)
    assert (grown["new_events"], grown["session_id"]) == (1, first["session_id"])
    found = events(first["session_id"])
    assert said(found) == [f"line {n}" for n in range(1, 7)]
    assert found[-1].type == "session.status_idle"


def test_what_follows_the_end_of_a_session_goes_to_one_that_continues_it(run, events, server, new_client, tmp_path):
    file = tmp_path / "t.jsonl"
    session = transcript(file, 3)
    first = imported(run, "claude-code", file, "--finish")
    assert first["finished"] and imported(run, "claude-code", file, "--finish")["new_events"] == 0
    with file.open("a") as more:
        more.write(line(session, 4))
    second = imported(run, "claude-code", file, "--finish")
    assert second["new_events"] == 1 and second["session_id"] != first["session_id"]
    assert said(events(second["session_id"])) == ["line 4"]
    kept = new_client(server).beta.sessions.retrieve(second["session_id"])
    assert kept.metadata["stele.continues"] == first["session_id"]


def test_an_import_that_is_killed_is_gone_on_with(run, events, server, tmp_path):
    file = tmp_path / "t.jsonl"
    session = transcript(file, 6_000)
    env = clean_env(tmp_path, {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    listing = ("session", "list", "-n", "1000", "--json")
    under_way = subprocess.Popen(
        [STELE_BIN, "session", "import", "claude-code", str(file)], env=env, cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    key = f"claude-code:{session}"
    begun = []
    while not begun and under_way.poll() is None:
        listed = json.loads(run(*listing).stdout)["data"]
        begun = [one["id"] for one in listed if one["metadata"].get("stele.transcript") == key]
    under_way.send_signal(signal.SIGKILL)
    under_way.wait()
    ended = imported(run, "claude-code", file)
    assert ended["new_events"] + ended["known_events"] == 6_000
    assert begun in ([], [ended["session_id"]])
    found = events(ended["session_id"])
    assert said(found) == [f"line {n}" for n in range(1, 6_001)]
    assert found[-1].type == "session.status_idle"


def test_imports_at_once_make_one_session(server, run, events, tmp_path):
    file = tmp_path / "t.jsonl"
    transcript(file, 300)
    env = clean_env(tmp_path, {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    command = [STELE_BIN, "session", "import", "claude-code", str(file), "--json"]
    under_way = [subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = [json.loads(one.communicate(timeout=60)[0]) for one in under_way]
    (session,) = {answer["session_id"] for answer in answers}
    assert sorted(answer["new_events"] for answer in answers) == [0, 0, 0, 300]
    assert len(said(events(session))) == 300


def test_large_lines_and_damaged_ones_are_counted_and_the_rest_is_there(run, events, tmp_path):
    file = tmp_path / "t.jsonl"
    session = str(uuid.uuid4())
    file.write_bytes(
        line(session, 1, text="x" * (10 << 20)).encode()
        + b"\xff\xfe\n" + b"[" * 100_000 + b"\n" + line(session, 2).encode() + line(session, 3).encode()[:-20]
    )
    done = imported(run, "claude-code", file)
    left_out = done["left_out"]
    assert (done["new_events"], left_out["damaged_lines"], left_out["first_damaged_line"]) == (2, 2, 2)
    assert (left_out["shortened_events"], left_out["last_line_cut_off"]) == (1, True)
    large, small = said(events(done["session_id"]))
    assert large.endswith("bytes left out]") and len(large) < 100_000 and small == "line 2"


def test_nothing_is_made_of_what_is_no_transcript(run, server, new_client, tmp_path):
    client = new_client(server)
    before = len(list(client.beta.sessions.list(limit=1000)))
    for content in (b"", b"\n\n", b"hello", b"\x00" * 1000, b'{"type":"summary","summary":"x"}\n', b"[]\n" * 10):
        file = tmp_path / "none.jsonl"
        file.write_bytes(content)
        for form in ("claude-code", "codex", "jsonl"):
            refused = run("session", "import", form, file, check=False)
            assert refused.returncode == 5 and "Nothing was sent" in refused.stderr, content
    assert len(list(client.beta.sessions.list(limit=1000))) == before


def hook(server, tmp_path, moment, told, *flags):
    env = clean_env(tmp_path, {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    command = [STELE_BIN, "session", "hook", "claude-code", moment, *flags]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, input=json.dumps(told), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_hooks_tell_of_memory_and_record_the_session(server, run, events, new_client, tmp_path):
    client = new_client(server)
    store = client.beta.memory_stores.create(name="Team notes").id
    file = tmp_path / "t.jsonl"
    session = str(uuid.uuid4())
    told = {"session_id": session, "transcript_path": str(file), "cwd": "/w"}
    flags = ("--store", f"{store}:ro", "--agent", f"hooked {session}")
    first = hook(server, tmp_path, "start", told | {"hook_event_name": "SessionStart", "source": "startup"}, *flags)
    assert '"Team notes"' in first and "(read-only)" in first
    assert hook(server, tmp_path, "start", told | {"source": "compact"}, *flags) == first
    transcript(file, 3, session)
    end = told | {"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}
    assert "imported 3 events" in hook(server, tmp_path, "end", end, "--finish", *flags)
    (made,) = [one for one in client.beta.sessions.list(limit=1000) if one.metadata.get("stele.transcript", "").endswith(session)]
    assert made.id in first and made.status == "terminated" and len(said(events(made.id))) == 3
    assert made.title == "line 1"
    # Resumed: what is said then belongs to a session that goes on.
    resumed = hook(server, tmp_path, "start", told | {"source": "resume"}, *flags)
    assert made.id not in resumed
    with file.open("a") as more:
        more.write(line(session, 4))
    assert "imported 1 event " in hook(server, tmp_path, "end", end, "--finish", *flags)


def test_the_index_of_what_was_learned_is_small(server, run):
    agent = f"learner {uuid.uuid4()}"
    started = json.loads(run("session", "start", "--agent", agent, "--json").stdout)
    (learned,) = started["resources"]
    assert learned["access"] == "read_only"
    refused = run("memory", "write", f"{learned['memory_store_id']}:/x", check=False)
    assert refused.returncode in (5, 6), "people cannot write what is learned"
    note = run("session", "note", started["id"]).stdout
    assert learned["name"] in note and len(note.encode()) < 8_000


def test_first_sessions_that_start_at_once_share_one_agent_in_the_end(fresh_server, new_client, tmp_path):
    server = fresh_server()
    env = clean_env(tmp_path, {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    command = [STELE_BIN, "session", "hook", "claude-code", "start"]
    told = [json.dumps({"session_id": str(n)}) for n in range(6)]
    under_way = [subprocess.Popen(command, env=env, cwd=tmp_path, stdin=subprocess.PIPE, text=True) for _ in told]
    for one, what in zip(under_way, told):
        one.stdin.write(what)
        one.stdin.close()
    assert [one.wait(timeout=60) for one in under_way] == [0] * len(told)
    client = new_client(server)
    assert len(list(client.beta.sessions.list(limit=100))) == len(told)
    hook(server, tmp_path, "start", {"session_id": "later"})
    assert client.beta.sessions.list(limit=1).data[0].agent.id == list(client.beta.agents.list(limit=100))[-1].id
