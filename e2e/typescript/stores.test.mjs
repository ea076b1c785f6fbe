import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";

import { collect, newClient, newStore } from "./client.mjs";

const client = newClient();
const { memoryStores } = client.beta;

test("a store is created, patched, archived and deleted", async () => {
  const made = await memoryStores.create({ name: "prefs", description: "d", metadata: { a: "1", b: "2" } });
  assert.match(made.id, /^memstore_/);
  const patched = await memoryStores.update(made.id, { metadata: { a: null, c: "3" }, description: "" });
  assert.deepEqual([patched.name, patched.description, patched.metadata], ["prefs", "", { b: "2", c: "3" }]);
  const archived = await memoryStores.archive(made.id);
  assert.ok(archived.archived_at);
  await assert.rejects(
    memoryStores.memories.create(made.id, { path: "/a.md", content: "x" }),
    (error) => error instanceof Anthropic.BadRequestError && error.type === "invalid_request_error",
  );
  assert.deepEqual(await memoryStores.delete(made.id), { id: made.id, type: "memory_store_deleted" });
  await assert.rejects(memoryStores.retrieve(made.id), Anthropic.NotFoundError);
});

test("stores are listed newest first through all pages", async (t) => {
  const made = [];
  for (let i = 0; i < 5; i++) made.push((await newStore(t, client)).id);
  const listed = (await collect(memoryStores.list({ limit: 2 }))).map((store) => store.id);
  assert.deepEqual(listed.slice(0, 5), made.toReversed());
});

test("a wrong key is an authentication error", async () => {
  const stranger = newClient({ apiKey: `rma_${"A".repeat(43)}`, maxRetries: 0 });
  await assert.rejects(stranger.beta.memoryStores.list(), Anthropic.AuthenticationError);
});
