"""Bytes in, bytes out, and what is refused as text."""

import pytest

from kit.expect import bad_request
from kit.tree import Tree, sha
from kit.wire import dumps

EURO, SMILE = "\u20ac", "\U0001f600"
MIXED = "  \t\n\n\xa0e\u0301 \xe9 \u200d\u2028\v\f\x1b[0m\n\n"


@pytest.mark.case("TB-01")
@pytest.mark.parametrize(
    ("path", "text", "size", "digest"),
    [
        ("/crlf.txt", "a\r\nb\rc\nd", 8, "cfe35286305b2abdc5b434e8b8d4a56c1b3cfbb104f13e964b1df54978b27046"),
        ("/bom.txt", "\ufeffhead\n", 8, "a4a0394bc7d0ae739c6e088a9bd2cdee5c81bd5584b181620306a68a90542eff"),
        ("/mixed.txt", MIXED, len(MIXED.encode()), sha(MIXED)),
    ],
)
def test_bytes_come_back_as_they_went_in(wire, tree, path, text, size, digest):
    made = wire("POST", f"{tree.route}/memories", query={"view": "full"}, json={"path": path, "content": text}).ok()
    assert (made["content"], made["content_size_bytes"], made["content_sha256"]) == (text, size, digest)
    assert tree.read(made["id"]).content == text
    assert tree.version(made["memory_version_id"]).content == text


@pytest.mark.case("TB-04")
@pytest.mark.parametrize(
    "text", ["a" * 102_400, EURO * 34_133 + "a", SMILE * 25_600], ids=["one byte", "three bytes", "four bytes"]
)
def test_102_400_bytes_of_utf_8_fit(tree, text):
    made = tree.put("/big", text)
    assert made.content_size_bytes == 102_400
    assert tree.read(made.id).content == text


@pytest.mark.case("TB-04")
@pytest.mark.parametrize(
    "text", ["a" * 102_401, EURO * 34_134, SMILE * 25_600 + "a"], ids=["one byte", "three bytes", "four bytes"]
)
def test_one_byte_more_is_refused_on_create_and_on_update(tree, text):
    with bad_request() as caught:
        tree.put("/big", text)
    assert caught.value.error_code == "memory_content_too_large"
    small = tree.put("/small", "x")
    with bad_request():
        tree.edit(small.id, content=text)
    assert tree.texts() == {"/small": "x"} and tree.operations() == ["created"]


WHOLE = dumps({"path": "/a", "content": "x"})
NOT_TEXT = {
    "lone high surrogate": b'{"path": "/a", "content": "\\ud83d"}',
    "lone low surrogate": b'{"path": "/a", "content": "\\ude00 x"}',
    "surrogates in the wrong order": b'{"path": "/a", "content": "\\ude00\\ud83d"}',
    "lone surrogate in the path": b'{"path": "/a\\ud83d", "content": "x"}',
    "latin-1": b'{"path": "/a", "content": "caf\xe9"}',
    "latin-1 in the path": b'{"path": "/caf\xe9", "content": "x"}',
    "overlong form": b'{"path": "/a", "content": "\xc0\x80"}',
    "surrogate as utf-8": b'{"path": "/a", "content": "\xed\xa0\x80"}',
    "beyond unicode": b'{"path": "/a", "content": "\xf5\x80\x80\x80"}',
    "utf-16": '{"path": "/a", "content": "x"}'.encode("utf-16"),
    "cut after ten bytes": WHOLE[:10],
    "cut before the end": WHOLE[:-1],
    "array": b'["/a", "x"]',
    "string": b'"text"',
    "number": b"1",
    "null": b"null",
    "empty": b"",
    "two values": WHOLE + WHOLE,
    "form": b"path=/a&content=x",
    "raw line end in a string": b'{"path": "/a", "content": "x\ny"}',
    "NUL in the content": b'{"path": "/a", "content": "a\\u0000b"}',
    "NUL in the path": b'{"path": "/a\\u0000b", "content": "x"}',
    "raw NUL": b'{"path": "/a", "content": "a\x00b"}',
}


@pytest.mark.case("TB-05")
@pytest.mark.parametrize("body", NOT_TEXT.values(), ids=NOT_TEXT)
def test_a_body_that_is_no_valid_text_is_refused_and_stores_nothing(wire, tree, body):
    headers = [("content-type", "application/json")]
    wire("POST", f"{tree.route}/memories", body=body, headers=headers).refused(400, "invalid_request_error")
    assert tree.list() == [] and tree.versions() == []


def test_nul_is_refused_on_update_and_in_a_store_name(wire, tree):
    memory = tree.put("/a.md", "x")
    with bad_request():
        tree.edit(memory.id, content="a\0b")
    with bad_request():
        Tree.planted(tree.client, name="a\0b")
    assert tree.texts() == {"/a.md": "x"}


@pytest.mark.case("TB-06")
def test_empty_content_is_content(wire, tree):
    memory = tree.put("/a.md", "x")
    empty = {"content": "", "content_size_bytes": 0, "content_sha256": sha("")}
    update = wire("POST", f"{tree.route}/memories/{memory.id}", query={"view": "full"}, json={"content": ""}).ok()
    create = wire("POST", f"{tree.route}/memories", query={"view": "full"}, json={"path": "/e.md", "content": ""}).ok()
    assert empty.items() <= update.items() and empty.items() <= create.items()
    assert len(tree.versions(memory.id)) == 2


@pytest.mark.case("TB-06")
@pytest.mark.parametrize("body", [{"path": "/n.md"}, {"path": "/n.md", "content": None}], ids=["missing", "null"])
def test_no_content_is_refused(wire, tree, body):
    wire("POST", f"{tree.route}/memories", json=body).refused(400, "invalid_request_error")
    assert tree.list() == []


@pytest.mark.case("TB-08")
def test_bounds_of_a_stores_name_and_description_count_characters(sdk, new_tree):
    before = {store.id for store in sdk.beta.memory_stores.list(limit=100)}
    new_tree(name=SMILE * 255)
    new_tree(name="x", description="\xe9" * 1024)
    for fields in ({"name": "a" * 256}, {"name": "x", "description": "a" * 1025}, {"name": "a\nb"}, {"name": ""}):
        with bad_request():
            new_tree(**fields)
    assert len({store.id for store in sdk.beta.memory_stores.list(limit=100)} - before) == 2
