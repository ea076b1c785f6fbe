"""Bytes in, bytes out; what a text may not hold; bounds."""

import pytest

from api import STORES, Shelf, invalid, refused, sha


@pytest.mark.case("TB-03")
def test_nul_is_refused_in_every_text(shelf):
    invalid(shelf.create("/n.md", content="a\0b"), "content")
    invalid(shelf.create("/n.md", summary="a\0b"), "summary")
    invalid(shelf.create("/a\0b"), "path")
    invalid(shelf.api("POST", STORES, {"name": "a\0b"}), "name")
    invalid(shelf.api("POST", STORES, {"name": "n", "description": "a\0b"}), "description")
    refused(shelf.api("GET", f"{shelf.route}/memory?path=/a%00b"), 404, "not_found")
    assert shelf.paths() == []


@pytest.mark.case("TB-05")
@pytest.mark.parametrize(
    "body",
    [
        b'{"path":"/a","summary":"s","name":"\\ud83d","content":"\\ud83d"}',
        b'{"path":"/a","summary":"s","content":"\xe9"}',
        b'{"path":"/a',
        b'["/a"]',
        b"null",
        b"",
        b'{"path":"/a","summary":"s","content":"x"} more',
        b'{"path":7,"summary":',
        b"\xef\xbb\xbf{}",
    ],
    ids=ascii,
)
def test_a_body_that_is_no_json_object_is_refused_and_stores_nothing(shelf, body):
    for path in (f"{shelf.route}/memories", STORES, shelf.route):
        refused(shelf.api("POST", path, body=body), 400, "invalid_json")
    assert shelf.paths() == []


@pytest.mark.parametrize("content", ["a\r\nb\rc\nd", "\ufeffhead\n", "  \t\n\n\xa0e\u0301 \xe9 \u200d\u2028\v\f\x1b[0m\n\n"])
def test_bytes_come_back_as_they_went_in(shelf, content):
    memory = shelf.put("/t.md", content)
    assert (memory["content"], memory["content_sha256"]) == (content, sha(content))
    assert memory["byte_size"] == len(content.encode())
    assert shelf.read(memory).json() == shelf.at("/t.md").json() == memory
    assert shelf.version(memory["head_version_id"]).json()["content"] == content


@pytest.mark.case("TB-06")
def test_empty_content_is_refused_here_but_shown_where_it_came_from_there(shelf, claude, there):
    memory = shelf.put("/a.md")
    invalid(shelf.create("/e.md", content=""), "content")
    invalid(shelf.edit(memory, content=""), "content")
    invalid(shelf.create("/e.md", summary=""), "summary")
    invalid(shelf.edit(memory, summary=""), "summary")
    claude("POST", f"/{there(shelf)['id']}/memories", json={"path": "/e.md", "content": ""}).ok()
    read = shelf.at("/e.md").ok()
    assert (read["content"], read["byte_size"], read["summary"]) == ("", 0, "")


@pytest.mark.case("TB-07")
def test_a_summary_counts_characters(shelf):
    memory = shelf.put("/1", summary="\U0001f600" * 512)
    assert memory["summary"] == "\U0001f600" * 512
    invalid(shelf.create("/2", summary="a" * 513), "summary")
    invalid(shelf.edit(memory, summary="a" * 513), "summary")


@pytest.mark.parametrize("content", ["a" * 102_400, "\u20ac" * 34_133 + "a", "\U0001f600" * 25_600], ids=["a", "euro", "face"])
def test_102_400_bytes_of_content_fit_and_not_one_more(shelf, content):
    memory = shelf.put("/1", content)
    assert memory["byte_size"] == 102_400
    invalid(shelf.create("/2", content + "a"), "content")
    invalid(shelf.edit(memory, content=content + "a"), "content")


@pytest.mark.parametrize("size", [1_000_000, 30_000_000])
def test_content_far_over_its_bound_is_still_a_bad_request(shelf, size):
    invalid(shelf.create("/big", "x" * size), "content")


def test_a_body_over_32_mib_is_too_large(shelf):
    refused(shelf.create("/big", "x" * (33 * 1024 * 1024)), 413, "payload_too_large")
    assert shelf.paths() == []


def test_names_are_trimmed_and_bounded(api):
    assert Shelf.made(api, name="  Release policy\n").name == "Release policy"
    Shelf.made(api, name="\U0001f600" * 255, description="\xe9" * 1024)
    for name in ("", "   ", "a" * 256, "a\nb", "a\x7fb"):
        invalid(api("POST", STORES, {"name": name}), "name")
    invalid(api("POST", STORES, {"name": "n", "description": "a" * 1025}), "description")
