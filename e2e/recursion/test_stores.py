"""Stores: fields, slugs, filters, archive, delete."""

import pytest

from api import STORES, Shelf, invalid, nowhere, refused


def listed(api, **query):
    return [store["memory_store_id"] for store in api.ok("GET", STORES, query=query)["memory_stores"]]


def test_a_new_store_shows_every_field_that_is_set(api, wire):
    store = api.ok("POST", STORES, {"name": "Étude (für) Elise", "organization_id": nowhere(), "x": None}, status=201)
    assert store == {
        "memory_store_id": store["memory_store_id"],
        "organization_id": api("GET", STORES).headers["recursion-organization-id"],
        "name": "Étude (für) Elise",
        "slug": store["slug"],
        "origin": "curated",
        "status": "active",
        "memory_count": 0,
        "total_bytes": 0,
        "revision": 0,
        "created_at": store["updated_at"],
        "updated_at": store["updated_at"],
        "created_by": store["created_by"],
    }
    assert store["slug"].startswith("tude-f-r-elise")
    keys = wire("GET", "/stele/v1/api_keys").ok()["api_keys"]
    assert store["created_by"] in [key["api_key_id"] for key in keys]
    assert api.ok("GET", f"{STORES}/{store['memory_store_id']}") == store


def test_a_slug_is_numbered_and_survives_a_rename(api):
    name = Shelf.made(api).name
    twin = api.ok("POST", STORES, {"name": name}, status=201)
    assert twin["slug"] == name.replace(" ", "-") + "-2"
    renamed = api.ok("POST", f"{STORES}/{twin['memory_store_id']}", {"name": "Another"})
    assert (renamed["name"], renamed["slug"]) == ("Another", twin["slug"])


def test_an_update_keeps_what_it_leaves_out(shelf):
    api = shelf.api
    first = api.ok("POST", shelf.route, {"description": "what is in it"})
    assert first["description"] == "what is in it"
    for nothing in ({}, {"name": None, "description": None}, {"slug": "mine", "colour": "red"}):
        assert api.ok("POST", shelf.route, nothing) == first
    cleared = api.ok("POST", shelf.route, {"description": ""})
    assert "description" not in cleared and cleared["name"] == shelf.name
    assert cleared["updated_at"] > first["updated_at"]


def test_counters_and_updated_at_move_with_the_memories(shelf):
    memory = shelf.put("/a.md", "12345")
    store = shelf.api.ok("GET", shelf.route)
    assert (store["memory_count"], store["total_bytes"], store["updated_at"]) == (1, 5, memory["updated_at"])
    shelf.edited(memory, content="123")
    assert shelf.api.ok("GET", shelf.route)["total_bytes"] == 3
    shelf.drop(memory)
    store = shelf.api.ok("GET", shelf.route)
    assert (store["memory_count"], store["total_bytes"], store["revision"]) == (0, 0, 0)
    assert store["updated_at"] > memory["updated_at"]


def test_an_agent_must_be_known_and_a_store_stays_with_its_own(shelf):
    refused(shelf.api("POST", STORES, {"name": "n", "agent_id": nowhere()}), 404, "not_found")
    invalid(shelf.api("POST", STORES, {"name": "n", "agent_id": "me"}), "agent_id")
    invalid(shelf.api("POST", shelf.route, {"agent_id": nowhere()}), "agent_id")
    assert shelf.api.ok("POST", shelf.route, {"agent_id": None})["name"] == shelf.name


def test_lists_are_newest_first_and_filters_are_anded(api):
    old, new, gone = Shelf.made(api), Shelf.made(api), Shelf.made(api)
    gone.archive()

    def among(**query):
        return [name for name in listed(api, **query) if name in (old.id, new.id, gone.id)]

    assert among() == among(origin="curated") == among(status="active", include_archived="true") == [new.id, old.id]
    assert among(include_archived="true") == [gone.id, new.id, old.id]
    assert among(status="archived") == among(status="archived", origin="curated") == [gone.id]
    assert among(origin="reflection") == among(agent_id=nowhere()) == []
    assert api.ok("GET", STORES, query={"agent_id": nowhere()}) == {"memory_stores": []}
    wrong = {"origin": "magic", "status": "frozen", "include_archived": "yes", "agent_id": "me"}
    for name, value in wrong.items():
        invalid(api("GET", STORES, query={name: value}), name)


def test_archiving_is_for_good_and_twice_is_once(shelf):
    shelf.archive()
    store = shelf.api.ok("GET", shelf.route)
    assert store["status"] == "archived" and store["archived_at"]
    shelf.archive()
    assert shelf.api.ok("GET", shelf.route) == store
    invalid(shelf.api("POST", shelf.route, {"name": "x"}), "memory_store_id")


def test_a_deleted_store_is_gone_from_every_read_and_frees_its_slug(api):
    shelf = Shelf.made(api)
    memory = shelf.put("/a.md")
    slug = api.ok("GET", shelf.route)["slug"]
    api.ok("DELETE", shelf.route, status=204)
    answers = [api("GET", shelf.route), api("DELETE", shelf.route), shelf.read(memory), shelf.at("/a.md"), shelf.page()]
    answers += [shelf.create("/b.md"), shelf.version(memory["head_version_id"]), shelf.restore(memory["head_version_id"])]
    answers += [api("GET", f"{shelf.route}/memories"), api("POST", f"{shelf.route}/archive")]
    for answer in answers:
        refused(answer, 404, "not_found")
    assert shelf.id not in listed(api, include_archived="true")
    assert api.ok("POST", STORES, {"name": shelf.name}, status=201)["slug"] == slug


@pytest.mark.parametrize("path", ["", "/memories", "/memory?path=/a", "/memory_versions", "/archive"])
def test_an_id_in_another_form_is_malformed(api, shelf, there, path):
    method = "POST" if path == "/archive" else "GET"
    for bad in ("not-a-uuid", shelf.id.upper(), shelf.id.replace("-", ""), there(shelf)["id"], "%FF", shelf.id + "%20"):
        invalid(api(method, f"{STORES}/{bad}{path}"), "memory_store_id")
