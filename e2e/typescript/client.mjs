// The official client against the server that run.sh started, and a store that goes when its test ends.

import Anthropic from "@anthropic-ai/sdk";

const { STELE_URL: baseURL, STELE_API_KEY: apiKey } = process.env;
if (!baseURL || !apiKey) throw new Error("set STELE_URL and STELE_API_KEY");

export function newClient(options = {}) {
  return new Anthropic({ baseURL, apiKey, authToken: null, ...options });
}

/** A client that counts what it sends, with the SDK's own retries. */
export function countingClient() {
  const sent = [];
  const counted = (url, init) => {
    sent.push(init?.method ?? "GET");
    return fetch(url, init);
  };
  return { client: newClient({ fetch: counted }), sent };
}

export async function newStore(t, client) {
  const store = await client.beta.memoryStores.create({ name: `typescript ${t.name}`.slice(0, 255) });
  t.after(() => client.beta.memoryStores.delete(store.id));
  return store;
}

export async function collect(pages) {
  const items = [];
  for await (const item of pages) items.push(item);
  return items;
}
