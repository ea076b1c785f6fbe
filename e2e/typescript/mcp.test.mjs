// The official TypeScript client of MCP, on standard input and over streamable HTTP.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { newClient, newStore } from "./client.mjs";

const { STELE_BIN, STELE_URL, STELE_API_KEY } = process.env;
const api = newClient();

const doors = {
  stdio: (store) =>
    new StdioClientTransport({
      command: STELE_BIN,
      args: ["mcp", "--store", store],
      env: { STELE_URL, STELE_API_KEY },
      stderr: "ignore",
    }),
  "streamable HTTP": (store) =>
    new StreamableHTTPClientTransport(new URL(`/mcp?store=${store}`, STELE_URL), {
      requestInit: { headers: { authorization: `Bearer ${STELE_API_KEY}` } },
    }),
};

for (const [name, door] of Object.entries(doors)) {
  test(`memory tools over ${name}`, async (t) => {
    const store = await newStore(t, api);
    const client = new Client({ name: "e2e", version: "1" });
    await client.connect(door(store.id));
    t.after(() => client.close());

    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map((tool) => tool.name),
      [
        ...["list_memories", "search_memories", "read_memory", "write_memory", "edit_memory"],
        ...["rename_memory", "delete_memory", "memory_history"],
      ],
    );
    const use = (name, args) => client.callTool({ name, arguments: args });
    const text = "The axolotl eats worms.\r\n\té\n";
    assert.ok(!(await use("write_memory", { path: "/pets/axolotl.md", content: text })).isError);
    const found = await use("search_memories", { query: "worms" });
    assert.equal(found.structuredContent.memories[0].path, "/pets/axolotl.md");
    const read = await use("read_memory", { path: "/pets/axolotl.md" });
    assert.deepEqual(read.content, [{ type: "text", text }]);
    const missing = await use("read_memory", { path: "/axolotl.md" });
    assert.ok(missing.isError && missing.content[0].text.includes("look at /pets/axolotl.md"));

    // Many at once: each answer goes to the call that it belongs to.
    const numbers = [...Array(40).keys()];
    await Promise.all(numbers.map((n) => use("write_memory", { path: `/n/${n}.md`, content: `number ${n}` })));
    const all = await Promise.all(numbers.map((n) => use("read_memory", { path: `/n/${n}.md` })));
    assert.deepEqual(all.map((one) => one.content[0].text), numbers.map((n) => `number ${n}`));
  });
}
