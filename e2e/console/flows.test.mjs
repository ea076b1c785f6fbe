// What people do at the console, on the real server.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, plant, signIn, startServer, STORES } from './kit.mjs';

let server, chrome;

before(async () => {
  [server, chrome] = [await startServer(), await launch()];
});

after(async () => {
  await chrome?.close();
  await server?.stop();
});

const savable = (page) => page.locator('button:enabled', { hasText: 'Save' }).waitFor();
const edit = (store, path) => `/stores/${store}/edit?path=${encodeURIComponent(path)}`;
const memory = (store, path) => server.api('GET', `${STORES}/${store}/memory?path=${encodeURIComponent(path)}`);

async function rewrite(store, path, content) {
  const { memory_id } = await memory(store, path);
  return server.api('POST', `${STORES}/${store}/memories/${memory_id}`, { content });
}

test('who has no key sees no more than the way in, and a wrong key is told so', async () => {
  const { context, page } = await open(chrome, server.url);
  await page.goto('/stores');
  await page.getByLabel('API key').fill('rma_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('unknown, revoked or expired').waitFor();
  const cookies = await context.cookies();
  assert.deepEqual(cookies, []);
  await context.close();
});

// The feed may tell of the deletion while the page still shows the memory: it is asked for once more, and is gone.
test('a memory is made, read, changed and deleted without a pointer', async () => {
  const store = await plant(server.api, 'Keyboard', { '/docs/a.md': 'first\n', '/docs/b.md': 'second\n', '/zeta.md': 'last\n' });
  const { context, page, complaints } = await open(chrome, server.url, { expected: [401, 404] });
  await page.goto('/');
  await page.getByLabel('API key').waitFor();
  await page.keyboard.type(server.key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Stores', level: 1 }).waitFor();
  await page.getByRole('link', { name: 'Keyboard' }).focus();
  await page.keyboard.press('Enter');
  const tree = page.getByRole('tree');
  await tree.focus();
  for (const key of ['Home', 'ArrowRight', 'ArrowDown', 'ArrowDown', 'Enter']) await page.keyboard.press(key);
  await page.getByRole('article').getByText('second').waitFor();
  await tree.focus();
  await page.keyboard.press('z');
  await page.keyboard.press('Enter');
  await page.getByRole('article').getByText('last').waitFor();
  await page.getByRole('link', { name: 'Edit' }).focus();
  await page.keyboard.press('Enter');
  await page.getByLabel('Text', { exact: true }).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('and more');
  await savable(page);
  await page.getByRole('button', { name: 'Save' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('article').getByText('and more').waitFor();
  assert.equal((await memory(store, '/zeta.md')).content, 'last\nand more');
  await page.getByRole('button', { name: 'Delete' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('treeitem', { name: /zeta/ }).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'New memory' }).focus();
  await page.keyboard.press('Enter');
  await page.getByLabel('Path').fill('/new.md');
  await page.getByLabel('Summary').fill('New.');
  await page.getByLabel('Text', { exact: true }).fill('brand new');
  // The button can be reached once there is something to save.
  await savable(page);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('article').getByText('brand new').waitFor();
  assert.deepEqual(complaints, []);
  await context.close();
});

test('two people edit one memory: both texts survive, conflicts are chosen', async () => {
  const store = await plant(server.api, 'Two people', { '/plan.md': 'one\ntwo\nthree\nfour\nfive\n' });
  const { context, page, complaints } = await open(chrome, server.url, { expected: [401, 409] });
  await signIn(page, server.key);
  await page.goto(edit(store, '/plan.md'));
  await page.getByLabel('Text', { exact: true }).fill('ONE\ntwo\nthree\nfour\nmine\n');
  await rewrite(store, '/plan.md', 'one\ntwo\nthree, changed\nfour\ntheirs\n');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Somebody else changed this memory').waitFor();
  await page.getByText('Conflict 1 of 1').waitFor();
  await page.getByRole('button', { name: 'Keep both' }).click();
  await page.getByRole('button', { name: 'Go on with this text' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('article').getByText('theirs').waitFor();
  const merged = await memory(store, '/plan.md');
  assert.equal(merged.content, 'ONE\ntwo\nthree, changed\nfour\nmine\ntheirs\n');
  assert.deepEqual(complaints, []);
  await context.close();
});

test('a session that ends in mid-edit loses nothing typed, and a reload neither', async () => {
  const store = await plant(server.api, 'Expired', { '/draft.md': 'begun\n' });
  const key = await server.api('POST', '/stele/v1/api_keys', { name: 'soon gone', role: 'developer' });
  const { context, page } = await open(chrome, server.url);
  await signIn(page, key.key);
  await page.goto(edit(store, '/draft.md'));
  await page.getByLabel('Text', { exact: true }).fill('a long thought\n');
  await page.reload();
  await page.getByText('unsaved draft').waitFor();
  assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), 'a long thought\n');
  await server.api('DELETE', `/stele/v1/api_keys/${key.api_key_id}`);
  await page.getByRole('button', { name: 'Save' }).click();
  const dialog = page.getByRole('dialog', { name: 'You have been signed out' });
  await dialog.getByLabel('API key').fill(server.key);
  await dialog.getByRole('button', { name: 'Sign in' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), 'a long thought\n');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('article').getByText('a long thought').waitFor();
  assert.equal((await memory(store, '/draft.md')).content, 'a long thought\n');
  await context.close();
});

test('what agents write appears without a reload, in tree and text', async () => {
  const store = await plant(server.api, 'Live', { '/seen.md': 'before\n' });
  const { context, page } = await open(chrome, server.url);
  await signIn(page, server.key);
  await page.goto(`/stores/${store}?path=${encodeURIComponent('/seen.md')}`);
  await page.getByRole('status').getByText('live', { exact: true }).waitFor();
  await rewrite(store, '/seen.md', 'after\n');
  await page.getByRole('article').getByText('after').waitFor();
  await server.api('POST', `${STORES}/${store}/memories`, { path: '/appeared.md', summary: 's', content: 'x' });
  await page.getByRole('treeitem', { name: /appeared/ }).waitFor();
  await context.close();
});

test('history compares across a rename and a deletion, and brings back what was deleted', async () => {
  const store = await plant(server.api, 'History', { '/old.md': 'alpha beta gamma\n' });
  const { memory_id } = await memory(store, '/old.md');
  const at = `${STORES}/${store}/memories/${memory_id}`;
  await server.api('POST', at, { path: '/new.md', content: 'alpha BETA gamma\n' });
  await server.api('DELETE', at);
  const { context, page, complaints } = await open(chrome, server.url, { expected: [401] });
  await signIn(page, server.key);
  await page.goto(`/stores/${store}/history?memory=${memory_id}`);
  const rows = page.getByRole('row');
  await rows.nth(3).waitFor();
  // The address holds the choice, so it shows a moment after the click.
  for (const [row, name] of [[3, /^From/], [2, /^To/]]) {
    await rows.nth(row).getByRole('radio', { name }).click();
    await rows.nth(row).getByRole('radio', { name, checked: true }).waitFor();
  }
  const comparison = page.getByRole('region', { name: 'Comparison' });
  await comparison.locator('.del b', { hasText: 'beta' }).waitFor();
  await comparison.getByRole('radio', { name: 'Inline' }).click();
  await comparison.locator('.add b', { hasText: 'BETA' }).waitFor();
  await rows.nth(3).getByRole('button', { name: /^Restore/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal((await memory(store, '/old.md')).memory_id, memory_id);
  assert.deepEqual(complaints, []);
  await context.close();
});

test('from a leaked secret to a clean head and redacted versions', async () => {
  const store = await plant(server.api, 'Leak', { '/deploy.md': 'token hunter2-secret here\n', '/clean.md': 'nothing\n' });
  await rewrite(store, '/deploy.md', 'the token hunter2-secret is still here\n');
  const { memory_id } = await memory(store, '/deploy.md');
  const { context, page } = await open(chrome, server.url);
  await signIn(page, server.key);
  await page.goto(`/stores/${store}/leak?memory=${memory_id}`);
  await page.getByLabel(/The secret/).fill('hunter2-secret');
  await page.getByRole('button', { name: 'Look through all versions' }).click();
  await page.getByText('current text', { exact: true }).waitFor();
  await page.getByRole('button', { name: /Put “\[removed\]”/ }).click();
  await page.getByText('No current text holds it.').waitFor();
  await page.getByLabel('Type redact to go on').fill('redact');
  await page.getByRole('button', { name: 'Redact 2 versions' }).click();
  await page.getByText('no version of this store holds the secret any more').waitFor();
  const { memory_versions } = await server.api('GET', `${STORES}/${store}/memory_versions`);
  assert.equal(memory_versions.filter((version) => version.redacted_at !== undefined).length, 2);
  assert.equal((await memory(store, '/deploy.md')).content, 'the token [removed] is still here\n');
  await context.close();
});

test('a key is previewed, shown once, and revoked; a reader is offered nothing that is refused', async () => {
  const { context, page } = await open(chrome, server.url);
  await signIn(page, server.key);
  await page.goto('/keys');
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel('Name').fill('a reader');
  await page.getByRole('radio', { name: /^reader/ }).check();
  await page.getByText('What it may do, exactly').click();
  const row = page.getByRole('dialog').getByRole('row', { name: /^memory read/ });
  assert.match(await row.innerText(), /read\s+create, update, delete/);
  await page.getByRole('button', { name: 'Make the key' }).click();
  const secret = await page.getByLabel('The key', { exact: true }).innerText();
  assert.match(secret, /^rma_[\w-]{43}$/);
  await page.getByRole('button', { name: 'I have it' }).click();

  const reader = await open(chrome, server.url);
  await signIn(reader.page, secret);
  assert.equal(await reader.page.getByRole('button', { name: 'New store' }).count(), 0);
  assert.equal(await reader.page.getByRole('link', { name: 'Keys' }).count(), 0);

  await page.getByRole('button', { name: 'Revoke a reader' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke for good' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await reader.page.reload();
  await reader.page.getByLabel('API key').waitFor();
  await reader.context.close();
  await context.close();
});

test('ten thousand memories: only what is in sight is in the page, and End reaches the last', async () => {
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`/m${String(i).padStart(5, '0')}.md`, `${i}\n`]));
  const store = await plant(server.api, 'Many', many);
  const { context, page } = await open(chrome, server.url);
  await signIn(page, server.key);
  await page.goto(`/stores/${store}`);
  await page.getByRole('treeitem', { name: /m00000/ }).waitFor();
  assert.ok((await page.getByRole('treeitem').count()) < 200);
  await page.getByRole('tree').focus();
  await page.keyboard.press('End');
  await page.getByRole('treeitem', { name: /m09999/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('article').getByText('9999', { exact: true }).waitFor();
  await context.close();
});

test('another site can neither use the cookie nor frame the console', async () => {
  const store = await plant(server.api, 'Stays', { '/a.md': 'x' });
  const { context, page } = await open(chrome, server.url);
  await signIn(page, server.key);
  const attacker = await startServer();
  try {
    const other = await context.newPage();
    await other.goto(`${attacker.url}/docs`);
    const tried = await other.evaluate(
      async ({ url, path }) => {
        const send = (init) => fetch(url + path, { credentials: 'include', ...init }).then((r) => r.status, () => 'blocked');
        return [await send({ method: 'DELETE' }), await send({ method: 'POST', mode: 'no-cors', body: 'x' })];
      },
      { url: server.url, path: `${STORES}/${store}` },
    );
    assert.ok(tried.every((answer) => answer === 'blocked' || answer === 0), String(tried));
    assert.equal((await server.api('GET', `${STORES}/${store}`)).status, 'active');
  } finally {
    await attacker.stop();
  }
  await context.close();
});
