// The function in docs/MEMORY_TOOL.md, with the official tool.

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";

import { collect, newClient, newStore } from "./client.mjs";

test("the function in the docs puts a store behind the memory tool", async (t) => {
  const page = await readFile(new URL("../../docs/MEMORY_TOOL.md", import.meta.url), "utf8");
  // Beside the packages, so that what it imports is found.
  const file = new URL(`node_modules/.memory-tool-${process.pid}.mjs`, import.meta.url);
  await writeFile(file, page.match(/```js\n(.*?)```/s)[1]);
  t.after(() => rm(file));
  const { storeMemory } = await import(file);

  const stele = newClient();
  const store = await newStore(t, stele);
  const memory = storeMemory(stele, store.id);
  assert.equal(memory.type, "memory_20250818");
  const use = (command, args) => memory.run({ command, ...args });
  await use("create", { path: "/memories/a.md", file_text: "one\n" });
  await use("str_replace", { path: "/memories/a.md", old_str: "one", new_str: "two" });
  assert.match(await use("view", { path: "/memories/a.md" }), /two/);
  await assert.rejects(use("view", { path: "/memories/none.md" }), /does not exist/);
  await use("rename", { old_path: "/memories/a.md", new_path: "/memories/b.md" });
  const list = await collect(stele.beta.memoryStores.memories.list(store.id, { view: "full" }));
  assert.deepEqual(list.map((one) => [one.path, one.content]), [["/b.md", "two\n"]]);
});
