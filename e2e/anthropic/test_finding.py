"""`stele search`, `stele memory grep` and `stele store watch` from a shell. Issue 6, item 4."""

import json
import subprocess

from kit.expect import eventually
from kit.server import STELE_BIN, clean_env, stele


def test_watch_goes_on_where_it_was_when_the_server_was_killed(fresh_server, new_client, tmp_path):
    server = fresh_server()
    store = new_client(server).beta.memory_stores.create(name="watched").id
    write = lambda path: new_client(server).beta.memory_stores.memories.create(store, path=path, content="x")
    env = clean_env(tmp_path, {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    output = tmp_path / "seen"
    command = [STELE_BIN, "store", "watch", store, "--after", "0", "--limit", "4", "--json"]
    with output.open("w") as seen:
        watching = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=seen, stderr=subprocess.PIPE, text=True)
    paths = lambda: [json.loads(line)["path"] for line in output.read_text().splitlines()]
    write("/1")
    assert eventually(lambda: paths() == ["/1"], 20)
    server.kill()
    server.start()
    for path in ("/2", "/3", "/4"):
        write(path)
    assert watching.wait(timeout=60) == 0
    assert paths() == ["/1", "/2", "/3", "/4"]
    assert "trying again" in watching.stderr.read()


def test_grep_and_search_find_in_more_memories_than_one_batch_holds(server, new_client, tmp_path):
    client = new_client(server)
    store = client.beta.memory_stores.create(name="many").id
    for n in range(450):
        text = f"needle {n}\nhay\n" if n % 3 == 0 else "hay\n"
        client.beta.memory_stores.memories.create(store, path=f"/{n:03}.md", content=text)
    env = {"STELE_URL": server.url, "STELE_API_KEY": server.admin_key}
    run = lambda *args: stele(*args, home=tmp_path, env=env)
    found = json.loads(run("memory", "grep", "^needle", store, "--json").stdout)["data"]
    assert [one["path"] for one in found] == [f"/{n:03}.md" for n in range(0, 450, 3)]
    assert run("memory", "grep", "nothing like it", store).returncode == 1
    hits = json.loads(run("search", store, "needle", "-n", "120", "--json").stdout)
    assert hits["total_matches"] == 150 and len({hit["path"] for hit in hits["data"]}) == 120
