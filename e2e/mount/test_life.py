"""What stands around the file system: start, end, death, users, sandboxes. Nothing is left behind."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from kit.server import STELE_BIN, clean_env
from mounts import NOBODY, Mounted, Run, Store, sh, start_session, table, until, wire_of

pytestmark = pytest.mark.usefixtures("fuse")


def stele(home: Path, *args: str, **env: str) -> Run:
    return Run([str(STELE_BIN), *args], env=clean_env(home, env), cwd="/")


def session_mount(new_mount, wire, home, *stores: Store, args: tuple[str, ...] = (), access: str = "read_write", **options) -> Mounted:
    session = start_session(wire, *stores, access=access)
    parent = home / "memory"
    points = [parent / Path(r["mount_path"]).name for r in session["resources"]]
    mount = new_mount("--session", session["id"], *args, target=parent, points=points, **options)
    mount.session = session
    return mount


def test_a_mount_point_is_made_and_taken_away_with_the_mount(new_mount, store, home):
    target = home / "deep" / "below" / "notes"
    mount = new_mount("--store", store.id, target=target)
    assert table(target) == [str(target)]
    assert mount.stop() == 0
    assert not (home / "deep").exists(), "what was made is taken away"


def test_a_directory_that_was_there_stays(new_mount, store, home):
    target = home / "mine"
    target.mkdir()
    new_mount("--store", store.id, target=target).stop()
    assert target.is_dir() and not list(target.iterdir())


def test_files_are_never_hidden_by_a_mount(new_mount, store, home):
    target = home / "full"
    target.mkdir()
    (target / "precious.md").write_text("x")
    mount = new_mount("--store", store.id, target=target, start=False).spawn()
    assert mount.process.wait(20) == 4 and "not empty" in mount.said
    assert (target / "precious.md").read_text() == "x"


def test_a_start_over_a_dead_mount_clears_it(new_mount, store, home):
    mount = new_mount("--store", store.id)
    os.kill(mount.pid, signal.SIGKILL)
    mount.process.wait()
    sh('stat "$MNT"', MNT=mount.target).refused(errno.ENOTCONN)
    mount.start()
    assert table(mount.target) == [str(mount.target)]
    assert mount.stop() == 0


def test_what_is_mounted_is_not_mounted_twice(new_mount, store, mount):
    second = new_mount("--store", store.id, target=mount.target, start=False).spawn()
    assert second.process.wait(20) == 4 and "mounted already" in second.said
    assert mount.is_up()


@pytest.mark.parametrize("broken", ["unknown store", "wrong key", "no server"])
def test_what_cannot_be_mounted_leaves_no_directory(new_mount, store, home, server, broken):
    options = {"unknown store": {}, "wrong key": {"key": "rma_wrong"}, "no server": {"url": "http://127.0.0.1:9"}}[broken]
    named = "memstore_011111111111111111111111" if broken == "unknown store" else store.id
    mount = new_mount("--store", named, start=False, **options).spawn()
    code = {"unknown store": 3, "wrong key": 6, "no server": 7}[broken]
    assert mount.process.wait(20) == code, mount.said
    assert not mount.target.exists()


def test_without_the_device_the_cause_the_store_and_the_path_are_named(store, home, server, root):
    target = home / "plain"
    script = 'mount --bind /dev/null /dev/fuse && exec "$@"'
    command = ["unshare", "-m", "bash", "-c", script, "-", str(STELE_BIN), "mount", "--store", store.id, str(target)]
    env = clean_env(home, {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    run = Run(command, env=env, cwd="/")
    assert run.exit == 1, run
    for word in ("/dev/fuse", store.id, str(target), "stele sync"):
        assert word in run.err, run
    assert not target.exists(), "no plain directory stands in the place of a store"


def test_a_daemon_returns_when_ready_and_is_asked_and_stopped(new_mount, store):
    mount = new_mount("--daemon", "--store", store.id, start=False).spawn()
    assert mount.process.wait(20) == 0, mount.said
    assert mount.is_up(), "it stands when the command returns"
    status = mount.status()
    assert status["state"] == "running" and status["supervisor_pid"] != status["pid"]
    (of_store,) = status["stores"]
    assert of_store["server_reachable"] is True and of_store["dirty_files"] == 0 and of_store["access"] == "read_write"
    assert "UNCOMMITTED" in mount.tell("status").ok()
    assert "unmounted" in mount.tell("stop", str(mount.target)).ok()
    assert not table(mount.target) and not mount.target.exists()
    assert until(lambda: not Path(f"/proc/{status['pid']}").exists())
    assert until(lambda: not Path(f"/proc/{status['supervisor_pid']}").exists())
    assert mount.tell("status", str(mount.target)).exit == 3


@pytest.mark.parametrize("args", [("--daemon",), ("--supervise",)], ids=["daemon", "foreground"])
def test_a_killed_process_is_replaced_at_the_same_path(new_mount, store, args):
    store.put("/a.md", "x\n")
    mount = new_mount(*args, "--store", store.id)
    first = mount.status()
    for _ in range(2):
        before = mount.status()["pid"]
        os.kill(before, signal.SIGKILL)
        assert until(lambda: mount.is_up() and mount.status()["pid"] != before), mount.said
        assert table(mount.target) == [str(mount.target)]
        assert sh('cat "$MNT/a.md"', MNT=mount.target).ok() == "x\n"
    assert mount.status()["supervisor_pid"] == first["supervisor_pid"]
    os.kill(first["supervisor_pid"], signal.SIGTERM)
    assert until(lambda: not table(mount.target) and not mount.target.exists())


def test_a_replacement_waits_for_a_server_that_is_away(new_mount, fresh_server):
    own = fresh_server()
    store = Store(wire_of(own))
    store.put("/a.md", "x\n")
    mount = new_mount("--daemon", "--store", store.id, of=own)
    own.stop()
    os.kill(mount.status()["pid"], signal.SIGKILL)
    assert until(lambda: mount.tell("status", "--json").exit == 0)
    run = sh('echo lost > "$MNT/b.md"', MNT=mount.target)
    assert run.exit != 0, "nothing is written into a plain directory meanwhile"
    own.start()
    assert until(mount.is_up), mount.said
    assert sh('ls "$MNT"; cat "$MNT/a.md"', MNT=mount.target).ok() == "a.md\nx\n"


def test_a_worker_outlives_its_supervisor(new_mount, store):
    mount = new_mount("--daemon", "--store", store.id)
    status = mount.status()
    os.kill(status["supervisor_pid"], signal.SIGKILL)
    assert until(lambda: not Path(f"/proc/{status['supervisor_pid']}").exists())
    assert mount.is_up() and mount.status()["pid"] == status["pid"]
    mount.tell("stop", str(mount.target)).ok()
    assert not table(mount.target)


def test_the_stores_of_a_session_stand_below_a_parent_that_takes_nothing_else(new_mount, wire, home, root):
    one, two = Store(wire, "Field Notes"), Store(wire, "Rules")
    mount = session_mount(new_mount, wire, home, one, two)
    parent = mount.target
    assert sorted(p.name for p in parent.iterdir()) == ["field-notes", "rules"]
    assert table(parent) == [str(parent), *map(str, mount.points)]
    for script in ('echo x > "$P/scratch.md"', 'mkdir "$P/other"'):
        sh(script, P=parent).refused(errno.EROFS)
    assert sh('rmdir "$P/rules"; mv "$P/rules" "$P/r2"', P=parent).exit != 0
    assert mount.is_up()
    assert mount.stop() == 0
    assert not table(parent) and not parent.exists()


def test_scratch_files_beside_the_stores_live_as_long_as_the_mount(new_mount, wire, home, root):
    mount = session_mount(new_mount, wire, home, Store(wire), args=("--scratch", "session"))
    assert sh('echo x > "$P/draft.txt"; cat "$P/draft.txt"', P=mount.target).ok() == "x\n"
    assert mount.stop() == 0
    assert not mount.target.exists()


def test_a_session_mount_whose_processes_were_all_killed_starts_again(new_mount, wire, home):
    store = Store(wire)
    store.put("/a.md", "x\n")
    mount = session_mount(new_mount, wire, home, store, args=("--daemon",))
    status = mount.status()
    for pid in (status["supervisor_pid"], status["pid"]):
        os.kill(pid, signal.SIGKILL)
        assert until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
    assert mount.status()["state"] == "dead"
    mount.start()
    (point,) = mount.points
    assert table(point) == [str(point)]
    assert sh('cat "$MNT/a.md"', MNT=point).ok() == "x\n"
    mount.tell("stop", str(mount.target)).ok()
    assert not table(mount.target)


def test_no_key_stands_in_the_processes_of_a_session_mount(new_mount, wire, home, server):
    mount = session_mount(new_mount, wire, home, Store(wire), args=("--daemon",))
    status = mount.status()
    for pid in (status["pid"], status["supervisor_pid"]):
        for where in ("environ", "cmdline"):
            text = Path(f"/proc/{pid}/{where}").read_bytes()
            assert server.admin_key.encode() not in text and b"sts_" not in text, f"{where} of {pid}"
    assert "--session" not in json.dumps(status) and server.admin_key not in json.dumps(status)
    for file in Path("/run/stele").glob("*.json") if os.geteuid() == 0 else []:
        assert server.admin_key not in file.read_text()


def test_a_sessions_token_opens_its_stores_and_a_mount_of_a_read_only_one_is_the_kernels(new_mount, wire, home):
    store = Store(wire)
    store.put("/a.md", "x\n")
    mount = session_mount(new_mount, wire, home, store, access="read_only")
    (point,) = mount.points
    sh('echo y > "$MNT/a.md"', MNT=point).refused(errno.EROFS)
    options = [line.split()[5] for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {point} " in line]
    assert options and options[0].split(",")[0] == "ro"


def test_a_session_mount_is_replaced_inside_running_sandboxes(new_mount, wire, home, root):
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    store = Store(wire, "notes")
    store.put("/a.md", "x\n")
    mount = session_mount(new_mount, wire, home, store, args=("--daemon", "--allow-other"))
    (point,) = mount.points
    sandbox = [
        "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/mnt",
        "--bind", str(mount.target), "/mnt/memory", "--unshare-pid", "--die-with-parent", "bash",
    ]
    inside = subprocess.Popen(
        sandbox, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )

    def ask(command: str) -> str:
        inside.stdin.write(f"{command}; echo END\n")
        lines = []
        while (line := inside.stdout.readline()) and line != "END\n":
            lines.append(line)
        return "".join(lines)

    try:
        assert ask("cat /mnt/memory/notes/a.md") == "x\n"
        before = mount.status()["pid"]
        os.kill(before, signal.SIGKILL)
        assert until(lambda: mount.is_up() and mount.status()["pid"] != before)
        assert until(lambda: ask("cat /mnt/memory/notes/a.md 2>/dev/null") == "x\n")
        assert "Read-only" in ask("echo x > /mnt/memory/beside.md")
    finally:
        inside.stdin.close()
        inside.wait(10)
    assert point in mount.points


def test_two_stores_by_name_stand_below_one_directory(new_mount, wire, home):
    one, two = Store(wire, "Alpha Notes"), Store(wire, "Beta Notes")
    points = [home / "both" / name for name in ("alpha-notes", "beta-notes")]
    mount = new_mount("--store", one.id, "--store", f"{two.id}:ro", target=home / "both", points=points)
    assert mount.status()["dir"] == str(home / "both") and len(mount.status()["stores"]) == 2
    sh('touch "$P/x.md"', P=points[1]).refused(errno.EROFS)
    sh('echo x > "$P/x.md"', P=points[0]).ok()
    assert one.texts() == {"/x.md": "x\n"} and two.texts() == {}


def test_an_ordinary_user_mounts_for_himself(new_mount, store, home, server, root):
    if not shutil.which("fusermount3"):
        pytest.skip("fusermount3 is not installed")
    own = home / "user"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    mount = new_mount("--daemon", "--store", store.id, target=own / "notes", uid=NOBODY, env={"HOME": str(own)}, start=False)
    mount.spawn()
    assert mount.process.wait(20) == 0, mount.said
    assert table(own / "notes") == [str(own / "notes")]
    assert sh('stat -c "%u %a" "$MNT"', MNT=own / "notes", uid=NOBODY).ok() == f"{NOBODY} 755\n"
    before = mount.status()["pid"]
    os.kill(before, signal.SIGKILL)
    assert until(lambda: mount.is_up() and mount.status()["pid"] != before), mount.said
    mount.tell("stop", str(own / "notes")).ok()
    assert not table(own / "notes") and not (own / "notes").exists()


def test_an_ordinary_users_parent_takes_no_files_either(new_mount, wire, home, root):
    own = home / "user"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    session = start_session(wire, Store(wire, "Mine"))
    parent = own / "memory"
    point = parent / Path(session["resources"][0]["mount_path"]).name
    mount = new_mount("--session", session["id"], target=parent, points=[point], uid=NOBODY)
    sh('echo x > "$P/x.md"', P=parent, uid=NOBODY).refused(errno.EACCES)
    assert mount.stop() == 0
    assert not parent.exists()


def test_another_owner_is_shown_and_let_in(new_mount, store, home, root):
    mount = new_mount("--store", store.id, "--allow-other", "--uid", "1000", "--gid", "1000")
    assert sh('stat -c "%u %g %a" "$MNT"', MNT=mount.target, uid=1000).ok() == "1000 1000 755\n"


def test_who_may_not_enter_cannot(mount, root):
    assert sh('ls "$MNT"', MNT=mount.target, uid=1000).exit != 0


def test_a_dead_mount_without_processes_is_stopped_too(new_mount, store):
    mount = new_mount("--store", store.id)
    os.kill(mount.pid, signal.SIGKILL)
    mount.process.wait()
    assert "whose process was gone" in mount.tell("stop", str(mount.target)).ok()
    assert not table(mount.target)
    assert mount.tell("stop", str(mount.target)).exit == 3


def test_check_tries_a_mount_and_says_what_it_found(home):
    run = stele(home, "mount", "--check", "--json")
    found = json.loads(run.out)
    assert found["can_mount"] is (run.exit == 0)
    assert [row["check"] for row in found["data"]] == ["/dev/fuse", "fusermount3", "user_allow_other", "mounting"]
    assert all(row["ok"] or row["help"] for row in found["data"])


def test_the_control_socket_is_its_users_alone(mount):
    (socket,) = [p for p in sockets() if mount.target.name and p.exists() and str(mount.target) in p.with_suffix(".json").read_text()]
    mode = socket.stat().st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) & 0o077 == 0
    mount.stop()
    assert not socket.exists() and not socket.with_suffix(".json").exists()


def sockets() -> list[Path]:
    places = ["/run/stele" if os.geteuid() == 0 else f"/tmp/stele-{os.geteuid()}"]
    return [p for place in places for p in Path(place).glob("*.sock")]


def test_what_to_mount_must_be_named(home):
    assert stele(home, "mount").exit == 2
    assert stele(home, "mount", "--store", "x").exit == 2
    assert stele(home, "mount", "--session", "not an id", "/nowhere").exit == 2
