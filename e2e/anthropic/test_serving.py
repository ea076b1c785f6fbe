"""Starting, saying so, refusing to start, and draining."""

import re
import stat
import time

import pytest

from kit.server import Server, free_port, stele
from kit.sockets import connect, request_bytes
from kit.tree import Tree
from kit.wire import MEMORY, Wire, dumps


@pytest.mark.case("AC-01")
def test_health_probes_need_no_key_and_name_no_store(server, wire, tree):
    for path in ("/healthz", "/readyz"):
        answer = wire("GET", path, auth=None, beta=None)
        assert answer.status == 200 and tree.id not in answer.text


def test_the_admin_key_is_a_private_file_of_one_line(server):
    file = server.data_dir / "admin-key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert re.fullmatch(r"rma_[A-Za-z0-9_-]{43}\n?", file.read_text())


def test_a_restart_keeps_everything(fresh_server, new_client):
    server = fresh_server()
    key = server.admin_key
    tree = Tree.planted(new_client(server))
    memory = tree.put("/a.md", "kept\n")
    history = [v.model_dump() for v in tree.versions()]
    assert server.stop() == 0
    server.start()
    assert server.admin_key == key
    assert tree.read(memory.id).content == "kept\n"
    assert [v.model_dump() for v in tree.versions()] == history
    assert server.stop() == 0 and server.check_database().returncode == 0


def test_the_first_lines_say_what_is_served(fresh_server, new_client):
    server = fresh_server()
    first = server.log
    assert str(server.data_dir.resolve()) in first and f"127.0.0.1:{server.port}" in first
    assert "sqlite" in first.lower() and re.search(r"\bnew|\bcreated\b|\bmade\b", first)
    assert re.search(r"stores\W{1,3}0\b|\b0 (memory )?stores", first)
    assert server.admin_key not in first and str(server.data_dir / "admin-key") in first

    for _ in range(3):
        Tree.planted(new_client(server))
    server.stop()
    before = len(server.log)
    server.start()
    second = server.log[before:]
    assert str(server.data_dir.resolve()) in second and re.search(r"\bopened\b|\bexisting\b", second)
    assert re.search(r"stores\W{1,3}3\b|\b3 (memory )?stores", second)


def test_a_relative_data_directory_is_logged_as_an_absolute_one(tmp_path):
    server = Server(tmp_path)
    server.data_dir = server.data_dir.relative_to(tmp_path)
    try:
        server.start()
        assert str((tmp_path / "data").resolve()) in server.log
    finally:
        server.close()


def test_a_term_signal_lets_a_request_end_and_then_exits_with_0(fresh_server, new_client):
    server = fresh_server()
    tree = Tree.planted(new_client(server))
    body = dumps({"path": "/late.md", "content": "in flight"})
    headers = [("x-api-key", server.admin_key), ("anthropic-beta", MEMORY), ("content-length", str(len(body)))]
    with connect(server.port) as sock:
        sock.sendall(request_bytes("POST", f"{tree.route}/memories", headers, body[:5]))
        time.sleep(0.3)  # nothing outside shows that a half-sent request has been taken up
        server.process.terminate()
        time.sleep(0.3)
        sock.sendall(body[5:])
        assert sock.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert server.process.wait(30) == 0
    server.start()
    assert tree.texts() == {"/late.md": "in flight"}


def test_idle_connections_do_not_hold_up_the_end(fresh_server):
    server = fresh_server()
    with Wire(server.port, server.admin_key).kept_alive() as call:
        call("GET", "/v1/memory_stores").ok()
        assert server.stop() == 0


def test_plain_http_beyond_loopback_needs_insecure(tmp_path):
    refused = stele("serve", "--data-dir", str(tmp_path / "data"), "--listen", "0.0.0.0:0", home=tmp_path)
    assert refused.returncode != 0 and "--insecure" in refused.stderr and "panicked" not in refused.stderr


def test_an_address_in_use_is_named(server, tmp_path):
    refused = stele(
        "serve", "--data-dir", str(tmp_path / "data"), "--listen", f"127.0.0.1:{server.port}", home=tmp_path
    )
    assert refused.returncode != 0 and f"127.0.0.1:{server.port}" in refused.stderr and "panicked" not in refused.stderr


def test_a_data_directory_that_cannot_be_one_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    refused = stele("serve", "--data-dir", str(file), "--listen", f"127.0.0.1:{free_port()}", home=tmp_path)
    assert refused.returncode != 0 and str(file) in refused.stderr and "panicked" not in refused.stderr


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("STELE_MAX_MEMORIES_PER_STORE", "many", "max_memories_per_store"),
        ("STELE_COMPRESSION", "perhaps", "compression"),
        ("STELE_LOG", "loud", "log"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(tmp_path, name, value, word):
    listen = f"127.0.0.1:{free_port()}"
    refused = stele("serve", "--data-dir", str(tmp_path / "data"), "--listen", listen, home=tmp_path, env={name: value})
    assert refused.returncode != 0 and word in refused.stderr.lower() and value in refused.stderr
