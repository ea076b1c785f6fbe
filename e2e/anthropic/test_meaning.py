"""Search by meaning through an embeddings endpoint that the operator names. DESIGN 8, docs/API.md."""

import re
import time

import pytest

from kit.embeddings import Embeddings
from kit.tree import Tree
from kit.wire import Wire

MEMORIES = {
    "/pets/rex.md": "Rex the puppy sleeps in the kitchen.",
    "/garage.md": "The automobile needs new tyres.",
    "/health.md": "Visit the clinic on Monday.",
    "/shopping.md": "Bread, butter and tea.",
}


@pytest.fixture
def embeddings():
    made = Embeddings()
    yield made
    made.close()


@pytest.fixture
def place(embeddings, fresh_server, new_client):
    """A server with the endpoint, a store with memories, and what is asked of it."""

    class Place:
        server = fresh_server(env=embeddings.env)
        wire = Wire(server.port, server.admin_key)
        tree = Tree.planted(new_client(server))

        def search(self, query, **rest):
            return self.wire("GET", f"{self.tree.route}/memories/search", query={"query": query} | rest).ok()

        def paths(self, query):
            return [hit["path"] for hit in self.search(query)["data"]]

        def metric(self, name):
            text = self.wire("GET", "/metrics").body.decode()
            return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)[1])

        def embedded(self, passages):
            end = time.monotonic() + 20
            while self.metric("stele_search_vectors") < passages or self.metric("stele_search_vectors_missing"):
                assert time.monotonic() < end, "the vectors never came"
                time.sleep(0.02)

    place = Place()
    for path, text in MEMORIES.items():
        place.tree.put(path, text)
    return place


def test_a_paraphrase_that_shares_no_word_is_found_soon_after_the_write(place, embeddings):
    place.embedded(4)
    assert place.paths("where is the canine?") == ["/pets/rex.md"]
    assert place.paths("vehicle") == ["/garage.md"]
    assert place.paths("physician") == ["/health.md"]
    assert place.paths('"vehicle"') == []
    (hit,) = place.search("my hound")["data"]
    assert hit["snippet"] == MEMORIES["/pets/rex.md"] and hit["highlights"] == [] and 0 < hit["score"] <= 1
    assert place.paths("bread for the hound") == ["/shopping.md", "/pets/rex.md"]
    assert embeddings.keys == {"Bearer sk-of-the-endpoint"}
    assert place.metric('stele_searches_total{ranking="blended"}') >= 5
    # A page at a time is the same answer.
    whole = place.search("bread for the hound")
    first = place.search("bread for the hound", limit=1)
    second = place.search("bread for the hound", limit=1, page=first["next_page"])
    assert first["data"] + second["data"] == whole["data"] and second["next_page"] is None


def test_a_rename_asks_for_no_vector_and_a_restart_for_each_once(place, embeddings):
    place.embedded(4)
    place.paths("canine")
    asked = len(embeddings.texts)
    (hit,) = place.search("canine")["data"]
    place.tree.edit(hit["memory_id"], path="/moved.md")
    assert place.paths("canine") == ["/moved.md"]
    assert len(embeddings.texts) == asked
    place.server.stop()
    place.server.start()
    assert place.paths("tea") == ["/shopping.md"]
    place.embedded(4)
    assert place.paths("canine") == ["/moved.md"]
    # The four texts and the one query.
    assert len(embeddings.texts) == asked + 4 + 1


@pytest.mark.parametrize("mode", ["slow", "500", "longer", "nonsense", "closed"])
def test_a_search_answers_by_words_when_the_endpoint_fails(place, embeddings, mode):
    place.embedded(4)
    embeddings.mode = mode
    place.tree.put("/new.md", "a vehicle for the tea")
    for _ in range(5):
        assert place.paths("tea kitchen") == place.paths("kitchen tea") != []
        assert place.paths("canine") == []
    assert place.paths("vehicle") == ["/new.md"]
    assert place.metric('stele_embedding_requests_total{result="ok"}') >= 1
    embeddings.close()
    assert place.paths("tyres") == ["/garage.md"]
    assert "tyres" not in place.server.log and "sk-of-the-endpoint" not in place.server.log


def test_a_server_starts_without_its_endpoint_and_nonsense_is_refused(fresh_server, new_client, embeddings):
    embeddings.close()
    server = fresh_server(env=embeddings.env)
    tree = Tree.planted(new_client(server))
    tree.put("/a.md", "otter")
    wire = Wire(server.port, server.admin_key)
    assert wire("GET", f"{tree.route}/memories/search", query={"query": "otter"}).ok()["total_matches"] == 1
    broken = fresh_server(env=embeddings.env | {"STELE_EMBEDDING_BASE_URL": "localhost:1"}, start=False)
    broken.spawn()
    assert broken.process.wait(20) != 0
    assert "search.embedding" in broken.log and "base URL" in broken.log
