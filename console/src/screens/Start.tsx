import * as Tabs from '@radix-ui/react-tabs';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useStores } from '../api/stores';
import { prefixed } from '../api/ids';
import { useMay } from '../session';
import { CopyBlock } from '../ui/CopyBlock';
import { Name } from '../ui/Name';

interface Snippet {
  id: string;
  name: string;
  about: string;
  text: string;
}

/** Where the first key lies, so that a snippet works as it stands on the server's own machine. */
const KEY = '$(cat ~/.local/share/stele/admin-key)';

function snippets(url: string, store: { id: string; slug: string } | undefined): Snippet[] {
  const list: Snippet[] = [
    {
      id: 'curl', name: 'curl', about: 'A first request, on the machine where Stele runs. Elsewhere, put a key of your own into STELE_API_KEY.',
      text: `export STELE_URL=${url}\nexport STELE_API_KEY="${KEY}"\ncurl -sS "$STELE_URL/v1/memory_stores" -H "x-api-key: $STELE_API_KEY" \\\n  -H 'anthropic-beta: agent-memory-2026-07-22'`,
    },
    {
      id: 'python', name: 'Python', about: 'Anthropic’s own SDK, unchanged: pip install anthropic. STELE_API_KEY is set as for curl.',
      text: `import os\nfrom anthropic import Anthropic\n\nclient = Anthropic(base_url="${url}", api_key=os.environ["STELE_API_KEY"])\n${store === undefined ? 'store = client.beta.memory_stores.create(name="Team notes")\nstore_id = store.id' : `store_id = "${prefixed('memstore', store.id)}"`}\nclient.beta.memory_stores.memories.create(store_id, path="/hello.md", content="It works.\\n")\nprint([m.path for m in client.beta.memory_stores.memories.list(store_id)])`,
    },
    {
      id: 'typescript', name: 'TypeScript', about: 'Anthropic’s own SDK, unchanged: npm install @anthropic-ai/sdk. STELE_API_KEY is set as for curl.',
      text: `import Anthropic from "@anthropic-ai/sdk";\n\nconst client = new Anthropic({ baseURL: "${url}", apiKey: process.env.STELE_API_KEY });\n${store === undefined ? 'const store = await client.beta.memoryStores.create({ name: "Team notes" });\nconst storeId = store.id;' : `const storeId = "${prefixed('memstore', store.id)}";`}\nfor await (const memory of client.beta.memoryStores.memories.list(storeId)) console.log(memory.path);`,
    },
    {
      id: 'recursion', name: 'Recursion', about: 'The Recursion SDK, unchanged: pip install labelbox-recursion-sdk. STELE_API_KEY is set as for curl.',
      text: `import asyncio, os\nfrom recursion import create_recursion_client\n\nasync def main():\n    rl = create_recursion_client(api_key=os.environ["STELE_API_KEY"], base_url="${url}",\n                                 headers={"Stele-Error-Codes": "sdk"})\n    print(await rl.managed_agents.list_memory_stores())\n\nasyncio.run(main())`,
    },
    {
      id: 'cli', name: 'Command line', about: 'Stele’s own. On the server’s machine it finds the key by itself.',
      text: `export STELE_URL=${url}\nstele store ls${store === undefined ? '' : `\nstele memory ls ${store.slug}`}\nstele session import claude-code ~/.claude/projects/*/*.jsonl`,
    },
  ];
  return list;
}

/** What needs parts that a build may lack; shown where the server has them. */
function mcp(url: string, store: { slug: string } | undefined): Snippet {
  const scope = store === undefined ? '' : `?store=${encodeURIComponent(store.slug)}`;
  return {
    id: 'mcp', name: 'MCP', about: 'For Claude Code and any client that speaks MCP over HTTP.',
    text: `export STELE_API_KEY="${KEY}"\nclaude mcp add --transport http stele "${url}/mcp${scope}" --header "Authorization: Bearer $STELE_API_KEY"`,
  };
}

function mount(url: string, store: { id: string; slug: string }): Snippet {
  return {
    id: 'mount', name: 'Mount', about: 'The store as a directory: any program reads and writes it.',
    text: `export STELE_URL=${url}\nmkdir -p ~/memory/${store.slug}\nstele mount --store ${store.id} ~/memory/${store.slug}`,
  };
}

export default function Start() {
  const stores = useStores();
  const may = useMay();
  const [chosen, setChosen] = useState('');
  const url = window.location.origin;
  // Whether this server speaks MCP: an address that no route knows answers 404.
  const speaks = useQuery({ queryKey: ['mcp'], queryFn: async () => (await fetch('/mcp', { method: 'DELETE', headers: { accept: 'application/json' } })).status !== 404, staleTime: Infinity });
  const usable = (stores.data ?? []).filter((store) => store.status === 'active' && store.origin === 'curated');
  const store = usable.find((one) => one.memory_store_id === chosen) ?? usable[0];
  const named = store === undefined ? undefined : { id: store.memory_store_id, slug: store.slug };
  const all = [...snippets(url, named), ...(speaks.data === true ? [mcp(url, named)] : []), ...(named === undefined ? [] : [mount(url, named)])];
  return (
    <div className="page">
      <title>Connect · Stele</title>
      <div>
        <h1>Connect an agent</h1>
        <p className="soft" style={{ margin: 0 }}>This server is at <code>{url}</code>. Whatever is below works as it stands.</p>
      </div>
      {store !== undefined && usable.length > 1 && (
        <div className="row">
          <label htmlFor="store">Store in the examples</label>
          <select id="store" value={store.memory_store_id} onChange={(e) => setChosen(e.target.value)} style={{ width: 'auto' }}>
            {usable.map((one) => <option key={one.memory_store_id} value={one.memory_store_id}>{one.name}</option>)}
          </select>
        </div>
      )}
      {stores.data !== undefined && (
        <Tabs.Root defaultValue="curl">
          <Tabs.List className="tabs" aria-label="How to connect">
            {all.map((one) => <Tabs.Trigger key={one.id} value={one.id}>{one.name}</Tabs.Trigger>)}
          </Tabs.List>
          {all.map((one) => (
            <Tabs.Content key={one.id} value={one.id} className="tab-body">
              <p style={{ margin: 0 }}>{one.about}</p>
              <CopyBlock label={one.name} text={one.text} />
            </Tabs.Content>
          ))}
        </Tabs.Root>
      )}
      <section className="panel">
        <h2>Keys</h2>
        <p style={{ margin: 0 }}>
          {may('api_key', 'create') ? <>Make one for each program and person under <a href="/keys">Keys</a>: readers for what only reads.</> : <>Admins make keys: ask for one of your own instead of sharing this one.</>}{' '}
          {store !== undefined && <>The store used above is <b><Name text={store.name} /></b>.</>}
        </p>
      </section>
    </div>
  );
}
