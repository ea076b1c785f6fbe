import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";

import { collect, countingClient, newClient, newStore } from "./client.mjs";

const client = newClient();
const { memories, memoryVersions } = client.beta.memoryStores;
const sha = (text) => createHash("sha256").update(text).digest("hex");
const ifText = (text) => ({ type: "content_sha256", content_sha256: sha(text) });

test("a memory is written and read back byte for byte", async (t) => {
  const store = await newStore(t, client);
  const text = "\uFEFFcaf\u00e9 e\u0301 \u{1F600}\r\n\tend\n";
  const made = await memories.create(store.id, { path: "/notes/a.md", content: text });
  assert.equal(made.content, null);
  assert.equal(made.content_sha256, sha(text));
  assert.equal(made.content_size_bytes, Buffer.byteLength(text));
  const read = await memories.retrieve(made.id, { memory_store_id: store.id });
  assert.equal(read.content, text);
  assert.equal(read.path, "/notes/a.md");
});

test("a list goes by prefix and depth", async (t) => {
  const store = await newStore(t, client);
  for (const path of ["/z.md", "/notes/b.md", "/notes/a.md", "/notes/deep/c.md", "/notes-archive/d.md"]) {
    await memories.create(store.id, { path, content: "x" });
  }
  const below = await collect(memories.list(store.id, { path_prefix: "/notes/" }));
  assert.deepEqual(below.map((item) => item.path), ["/notes/a.md", "/notes/b.md", "/notes/deep/c.md"]);
  const top = await collect(memories.list(store.id, { depth: 1 }));
  assert.deepEqual(top.map((item) => [item.type, item.path]), [
    ["memory_prefix", "/notes-archive/"],
    ["memory_prefix", "/notes/"],
    ["memory", "/z.md"],
  ]);
});

test("pages follow each other by themselves", async (t) => {
  const store = await newStore(t, client);
  const paths = Array.from({ length: 25 }, (_, i) => `/m${String(i).padStart(2, "0")}.md`);
  await Promise.all(paths.map((path) => memories.create(store.id, { path, content: path })));
  const small = await collect(memories.list(store.id, { limit: 4 }));
  assert.deepEqual(small.map((item) => item.path), paths);
  const full = await collect(memories.list(store.id, { view: "full", limit: 100 }));
  assert.deepEqual(full.map((item) => item.content), paths);
  const versions = await collect(memoryVersions.list(store.id, { limit: 10 }));
  assert.equal(new Set(versions.map((version) => version.id)).size, 25);
});

test("an edit from a stale text is a conflict, sent once", async (t) => {
  const store = await newStore(t, client);
  const memory = await memories.create(store.id, { path: "/plan.md", content: "base\n" });
  const edit = { memory_store_id: store.id, content: "mine\n", precondition: ifText("base\n") };
  const changed = await memories.update(memory.id, edit);
  assert.equal(changed.content_sha256, sha("mine\n"));

  const { client: counting, sent } = countingClient();
  const stale = { memory_store_id: store.id, content: "theirs\n", precondition: ifText("base\n") };
  await assert.rejects(counting.beta.memoryStores.memories.update(memory.id, stale), (error) => {
    assert.ok(error instanceof Anthropic.ConflictError);
    assert.equal(error.status, 409);
    assert.equal(error.type, "memory_precondition_failed_error");
    assert.match(error.requestID, /^req_/);
    return true;
  });
  assert.deepEqual(sent, ["POST"]);
  assert.equal((await memories.retrieve(memory.id, { memory_store_id: store.id })).content, "mine\n");
});

test("a taken path is a conflict that names who is there, sent once", async (t) => {
  const store = await newStore(t, client);
  const memory = await memories.create(store.id, { path: "/a", content: "x" });
  const { client: counting, sent } = countingClient();
  await assert.rejects(counting.beta.memoryStores.memories.create(store.id, { path: "/a/b", content: "y" }), (error) => {
    assert.equal(error.type, "memory_path_conflict_error");
    assert.equal(error.error.error.conflicting_memory_id, memory.id);
    assert.equal(error.error.error.conflicting_path, "/a");
    return true;
  });
  assert.deepEqual(sent, ["POST"]);
});

test("history keeps every text until it is redacted", async (t) => {
  const store = await newStore(t, client);
  const memory = await memories.create(store.id, { path: "/k.md", content: "secret\n" });
  await memories.update(memory.id, { memory_store_id: store.id, content: "clean\n" });
  const history = await collect(memoryVersions.list(store.id, { memory_id: memory.id, view: "full" }));
  assert.deepEqual(history.map((version) => [version.operation, version.content]), [
    ["modified", "clean\n"],
    ["created", "secret\n"],
  ]);
  assert.equal(history[1].created_by.type, "api_actor");
  const redacted = await memoryVersions.redact(history[1].id, { memory_store_id: store.id });
  for (const field of ["content", "content_sha256", "content_size_bytes", "path"]) assert.equal(redacted[field], null);
  assert.ok(redacted.redacted_at);
  const again = await memoryVersions.retrieve(history[1].id, { memory_store_id: store.id });
  assert.equal(again.content, null);
  await assert.rejects(
    memoryVersions.redact(history[0].id, { memory_store_id: store.id }),
    (error) => error instanceof Anthropic.BadRequestError && error.type === "invalid_request_error",
  );
});

test("a deleted memory is gone and its history stays", async (t) => {
  const store = await newStore(t, client);
  const memory = await memories.create(store.id, { path: "/a.md", content: "x" });
  const guard = { memory_store_id: store.id, expected_content_sha256: sha("other") };
  await assert.rejects(memories.delete(memory.id, guard), Anthropic.ConflictError);
  const gone = await memories.delete(memory.id, { memory_store_id: store.id, expected_content_sha256: sha("x") });
  assert.deepEqual([gone.type, gone.id], ["memory_deleted", memory.id]);
  await assert.rejects(memories.retrieve(memory.id, { memory_store_id: store.id }), Anthropic.NotFoundError);
  const history = await collect(memoryVersions.list(store.id, { memory_id: memory.id }));
  assert.deepEqual(history.map((version) => version.operation), ["deleted", "created"]);
});
