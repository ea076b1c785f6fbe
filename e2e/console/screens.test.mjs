// Every screen on the real server: no complaint of the browser, nothing serious from axe, light, dark and on a phone.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { accessibility, launch, open, signIn, startServer } from './kit.mjs';
import { furnish } from './world.mjs';

/** Where pictures go, if they are wanted. */
const shots = process.env.STELE_SHOTS;
if (shots !== undefined) mkdirSync(shots, { recursive: true });

let server, chrome, world;

before(async () => {
  server = await startServer();
  [world, chrome] = [await furnish(server), await launch()];
});

after(async () => {
  await chrome?.close();
  await server?.stop();
});

/** What the server refuses by its configuration, and the screen says: no MCP, no provider of models. */
const refusals = { start: 404, 'agent about': 503 };

const path = (text) => encodeURIComponent(text);
const screens = () => [
  ['stores', '/stores', 'Team notes'],
  ['store', `/stores/${world.notes}`, 'glossary.md'],
  ['memory', `/stores/${world.notes}?path=${path('/releases/versioning.md')}`, 'Minor for features'],
  ['search', `/stores/${world.notes}?q=releases`, 'best first'],
  ['new', `/stores/${world.notes}/edit`, 'New memory'],
  ['edit', `/stores/${world.notes}/edit?path=${path('/glossary.md')}`, 'Summary'],
  ['history', `/stores/${world.notes}/history`, 'Choose two versions'],
  ['memory history', `/stores/${world.notes}/history?memory=${world.people}`, 'History of'],
  ['leak', `/stores/${world.notes}/leak`, 'Find it'],
  ['settings', `/stores/${world.notes}/settings`, 'Ids and dates'],
  ['hostile', `/stores/${world.hostile}`, 'ansi.md'],
  ['hostile script', `/stores/${world.hostile}?path=${path('/<img src=x onerror=alert(1)>.md')}`, '[picture: b'],
  ['hostile ansi', `/stores/${world.hostile}?path=${path('/ansi.md')}`, 'U+001B'],
  ['hostile direction', `/stores/${world.hostile}?path=${path('/direction.md')}`, 'U+202E'],
  ['hostile line', `/stores/${world.hostile}?path=${path('/one-line.md')}`, 'word word'],
  ['hostile search', `/stores/${world.hostile}?q=alert`, 'best first'],
  ['hostile history', `/stores/${world.hostile}/history`, 'Choose two versions'],
  ['agents', '/memory', 'Waiting for sessions'],
  ['agent', `/memory/${world.agent}`, 'Nothing learned yet'],
  ['agent activity', `/memory/${world.agent}?tab=activity`, 'No memory updates yet'],
  ['agent sessions', `/memory/${world.agent}?tab=sessions`, 'Last activity'],
  ['agent about', `/memory/${world.agent}?tab=about`, 'Memory model'],
  ['sessions', '/sessions', 'Last activity'],
  ['session', `/sessions/${world.session}`, 'Ada, on Thursdays.'],
  ['automations', '/automations', 'Nightly review'],
  ['automation', `/automations/${world.automation}`, 'The exact note'],
  ['keys', '/keys', 'yours'],
  ['usage', '/usage', 'Requests, live'],
  ['health', '/health', 'Ready.'],
  ['start', '/start', 'Connect an agent'],
  ['not found', '/no/such/place', 'There is nothing at this address'],
];

async function visit(page, name, address, text) {
  await page.goto(address);
  await page.getByText(text).first().waitFor();
  await page.waitForFunction(() => !/Loading .* …/.test(document.body.innerText));
  if (shots !== undefined) await page.screenshot({ path: `${shots}/${name.replaceAll(' ', '-')}.png` });
}

for (const [kind, options] of [
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['phone', { colorScheme: 'light', viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true }],
]) {
  test(`every screen, ${kind}: nothing runs, nothing leaves, nothing serious for who cannot see or point`, async () => {
    const { context, page, complaints } = await open(chrome, server.url, { expected: [401], ...options });
    await signIn(page, server.key);
    for (const [name, address, text] of screens().filter(([name]) => kind === 'light' || !name.startsWith('hostile '))) {
      await visit(page, `${kind} ${name}`, address, text);
      assert.deepEqual(await accessibility(page), [], `${kind} ${name}`);
      const width = await page.evaluate(() => document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth);
      assert.ok(width <= 1, `${kind} ${name} scrolls sideways by ${width}`);
      const links = await page.$$eval('a', (all) => all.map((a) => a.getAttribute('href') ?? ''));
      assert.ok(links.every((href) => !/^\s*javascript:/i.test(href)), name);
      assert.deepEqual(complaints.filter((one) => !one.includes(`status of ${refusals[name]}`)), [], `${kind} ${name}`);
      complaints.length = 0;
    }
    await context.close();
  });
}

test('names that imitate each other can be told apart', async () => {
  const { context, page } = await open(chrome, server.url);
  await signIn(page, server.key);
  await page.goto(`/stores/${world.hostile}`);
  await page.getByTitle(/Cyrillic letters: U\+0430/).first().waitFor();
  const rows = await page.getByRole('treeitem').allInnerTexts();
  assert.equal(new Set(rows.filter((row) => /a/.test(row))).size, rows.filter((row) => /a/.test(row)).length);
  assert.ok(await page.getByTitle('blank').first().isVisible());
  await context.close();
});
