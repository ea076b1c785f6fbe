"""Search: `GET /v1/memory_stores/{id}/memories/search`. DESIGN 8, cases SE-02, SE-03 and SE-05 over HTTP."""

import threading

import pytest

from kit.expect import together
from kit.tree import Tree


@pytest.fixture
def search(wire, tree):
    """`search("words", limit=..., ...)`: the parsed answer."""
    return lambda query, **rest: wire("GET", f"{tree.route}/memories/search", query={"query": query} | rest).ok()


def paths(answer: dict) -> list[str]:
    return [hit["path"] for hit in answer["data"]]


def test_an_answer_shows_what_was_found_and_why(search, tree):
    memory = tree.put("/pets/axolotl.md", "Feeding.\nThe axolotl eats worms; never feed an Axolotl bread.\n")
    tree.put("/other.md", "nothing of the kind")
    answer = search("axolotl worms")
    assert set(answer) == {"data", "total_matches", "next_page"}
    assert (answer["total_matches"], answer["next_page"]) == (1, None)
    (hit,) = answer["data"]
    assert set(hit) == {"memory_id", "path", "summary", "snippet", "highlights", "score", "updated_at"}
    assert (hit["memory_id"], hit["path"], hit["summary"]) == (memory.id, "/pets/axolotl.md", "")
    marked = [hit["snippet"][mark["start"] : mark["end"]] for mark in hit["highlights"]]
    assert [word.lower() for word in marked] == ["axolotl", "worms", "axolotl"]
    assert hit["score"] > 0 and hit["updated_at"].endswith("Z")


@pytest.mark.case("SE-02")
def test_the_index_follows_every_change(search, tree):
    memory = tree.put("/a.md", "the word zebrafish\n")
    assert paths(search("zebrafish")) == ["/a.md"]
    tree.edit(memory.id, content="the word kingfisher\n")
    assert paths(search("zebrafish")) == []
    assert paths(search("kingfisher")) == ["/a.md"]
    tree.edit(memory.id, path="/moved.md")
    assert paths(search("kingfisher")) == ["/moved.md"]
    tree.drop(memory.id)
    assert paths(search("kingfisher")) == []


@pytest.mark.case("SE-03")
def test_a_new_index_answers_alike_and_changes_nothing(fresh_server, new_client):
    from kit.wire import Wire

    server = fresh_server()
    tree = Tree.planted(new_client(server))
    for n in range(60):
        memory = tree.put(f"/notes/{n:02}.md", f"note {n} about {'otters' if n % 3 else 'herons'} and rivers")
        for again in range(n % 4):
            tree.edit(memory.id, content=f"note {n}, version {again}, {'otters' if n % 5 else 'herons'} by rivers")
    questions = ["otters", "herons river", "what do otters do by the river?", '"by rivers"', "note 7", "version 2", "ott"]

    def everything():
        wire = Wire(server.port, server.admin_key)
        route = f"{tree.route}/memories/search"
        answers = [wire("GET", route, query={"query": q, "limit": 100}).ok() for q in questions]
        return answers, [(m.path, m.content_sha256, m.updated_at) for m in tree.list()], len(tree.versions())

    # The first answer is a scan's, the second the index's.
    before = everything()
    assert everything() == before
    server.stop()
    server.start()
    tree = Tree(new_client(server), type("Store", (), {"id": tree.id}))
    assert everything() == before


@pytest.mark.case("SE-05")
def test_pages_show_each_memory_once_to_an_honest_end(search, tree):
    for n in range(60):
        tree.put(f"/m/{n:02}.md", "otter " * 40)
    seen, page = [], {}
    while True:
        answer = search("otter", limit=7, **page)
        assert answer["total_matches"] == 60
        seen += paths(answer)
        if answer["next_page"] is None:
            break
        assert len(answer["data"]) == 7
        page = {"page": answer["next_page"]}
    assert sorted(seen) == [f"/m/{n:02}.md" for n in range(60)] and seen == sorted(seen)


@pytest.mark.parametrize(
    "query, found",
    [
        ("OFF_PEAK", True),
        ("off_peak", True),
        ("peak", True),
        ("50%", True),
        ("[draft]", True),
        ("ENOENT", True),
        ("parseHtmlPage", True),
        ("html page", True),
        ("config.retry.max", True),
        ("reсумé", False),
        ("Résumé", True),
        ("resume", True),
        ("東京", True),
        ("京都", False),
        ("🦦", True),
        ("שלום", True),
        ("what is the resume about?", True),
        ("%", True),
        ("'", False),
        ('"; DROP TABLE memories; --', False),
        ("(a AND NOT", False),
        ("*", False),
        ("\\", False),
        ("\u202e", False),
        ("\0", False),
    ],
)
def test_queries_are_literal_text_and_never_fail(search, tree, query, found):
    tree.put(
        "/x.md", "50% off_peak [draft] ENOENT parseHtmlPage config.retry.max Résumé 東京タワー 🦦 שלום עולם\n"
    )
    assert paths(search(query)) == (["/x.md"] if found else []), query


@pytest.mark.parametrize("query", ["", " ", "\n\t "])
def test_an_empty_query_is_refused(wire, tree, query):
    error = wire("GET", f"{tree.route}/memories/search", query={"query": query}).refused(400, "invalid_request_error")
    assert "query" in error["message"]
    wire("GET", f"{tree.route}/memories/search").refused(400, "invalid_request_error")


def test_a_query_of_100_kilobytes_is_answered_in_a_body(wire, tree):
    tree.put("/a.md", "the needle")
    route = f"{tree.route}/memories/search"
    for query in ("hay " * 25_000 + "needle", "x" * 100_000, "。" * 33_000, "a " * 50_000, '"' * 100_000):
        wire("POST", route, json={"query": query}).ok()
    assert wire("POST", route, json={"query": "needle", "limit": 5}).ok()["total_matches"] == 1
    wire("POST", route, json={"query": "needle", "limit": 0}).refused(400, "invalid_request_error")
    wire("POST", route, json={"query": "needle", "offset": 0}).refused(400, "invalid_request_error")


@pytest.mark.parametrize("rest", [{"limit": 0}, {"limit": 101}, {"limit": "x"}, {"path_prefix": "/a"}, {"page": "zzz"}])
def test_parameters_out_of_bounds_are_refused(wire, tree, rest):
    wire("GET", f"{tree.route}/memories/search", query={"query": "x"} | rest).refused(400, "invalid_request_error")


def test_a_cursor_is_good_for_its_own_search_only(wire, search, tree, new_tree):
    for n in range(3):
        tree.put(f"/{n}.md", "otter")
    page = search("otter", limit=1)["next_page"]
    assert len(search("otter", limit=2, page=page)["data"]) == 2
    other = new_tree()
    other.put("/0.md", "otter")
    for route, rest in ((tree.route, {"query": "otters"}), (tree.route, {"query": "otter", "path_prefix": "/a/"}), (other.route, {"query": "otter"})):
        wire("GET", f"{route}/memories/search", query={"page": page} | rest).refused(400, "invalid_request_error")


def test_a_prefix_narrows_and_keeps_the_ranking(search, tree):
    tree.put("/a/1.md", "otter otter")
    tree.put("/a/2.md", "otter and many other words that make it longer")
    tree.put("/ab/3.md", "otter")
    assert set(paths(search("otter"))) == {"/a/1.md", "/a/2.md", "/ab/3.md"}
    assert paths(search("otter", path_prefix="/a/")) == ["/a/1.md", "/a/2.md"]


def test_a_search_sees_every_write_that_was_answered_before(wire, sdk):
    tree = Tree.planted(sdk)
    route = f"{tree.route}/memories/search"
    wire("GET", route, query={"query": "first"}).ok()

    def write_and_look(writer):
        def work():
            for n in range(15):
                word = "zq" + chr(97 + writer) * 3 + chr(97 + n) * 3
                memory = tree.put(f"/{writer}/{n}.md", f"the {word}")
                assert paths(wire("GET", route, query={"query": word}).ok()) == [f"/{writer}/{n}.md"]
                tree.edit(memory.id, content="gone")
                assert paths(wire("GET", route, query={"query": word}).ok()) == []

        return work

    together(*(write_and_look(writer) for writer in range(6)))


def test_many_first_searches_at_once_answer_alike(wire, new_tree):
    tree = new_tree()
    body = {"changes": [{"op": "create", "path": f"/{n}.md", "content": f"otter {n} " * 50} for n in range(500)]}
    wire("POST", f"{tree.route}/changesets", json=body).ok()
    ask = lambda: wire("GET", f"{tree.route}/memories/search", query={"query": "otter 77"}).ok()  # noqa: E731
    first, *others = together(*([ask] * 12))
    assert first["data"][0]["path"] == "/77.md" and all(other == first for other in others)


def test_a_store_beyond_the_index_budget_is_searched_all_the_same(fresh_server, new_client):
    from kit.wire import Wire

    server = fresh_server(env={"STELE_SEARCH_INDEX_BYTES": "20000"})
    wire = Wire(server.port, server.admin_key)
    trees = [Tree.planted(new_client(server)) for _ in range(3)]
    for number, tree in enumerate(trees):
        # The last one alone is larger than the budget.
        for n in range(5 if number < 2 else 60):
            tree.put(f"/{n}.md", " ".join(f"w{number}x{n}x{word}" for word in range(40)))
    for _ in range(3):
        for number, tree in enumerate(trees):
            answer = wire("GET", f"{tree.route}/memories/search", query={"query": f"w{number}x3x7"}).ok()
            assert paths(answer) == ["/3.md"]
            # A typing error, which takes an index.
            answer = wire("GET", f"{tree.route}/memories/search", query={"query": f"w{number}x3x77q"}).ok()
            assert answer["total_matches"] >= 0


def test_who_may_not_read_may_not_search(wire, elsewhere, tree, new_key):
    tree.put("/a.md", "secret")
    writer = wire.as_key(new_key(permissions=["create"])["key"])
    query = {"query": "secret"}
    writer("GET", f"{tree.route}/memories/search", query=query).refused(403, "permission_error")
    elsewhere("GET", f"{tree.route}/memories/search", query=query).refused(404, "not_found_error")
    wire("GET", f"{tree.route}/memories/search", query=query, beta=None).refused(404, "not_found_error")


def test_a_deleted_store_is_not_searched(wire, sdk):
    tree = Tree.planted(sdk)
    tree.put("/a.md", "otter")
    route = f"{tree.route}/memories/search"
    assert wire("GET", route, query={"query": "otter"}).ok()["total_matches"] == 1
    stop = threading.Event()
    answers = []

    def look():
        while not stop.is_set():
            answers.append(wire("GET", route, query={"query": "otter"}).status)

    looking = threading.Thread(target=look)
    looking.start()
    sdk.beta.memory_stores.delete(tree.id)
    assert wire("GET", route, query={"query": "otter"}).status == 404
    stop.set()
    looking.join()
    assert set(answers) <= {200, 404}
