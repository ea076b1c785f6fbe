// A server of the test's own with data in it, and a browser whose every complaint is a failure.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';

const need = createRequire(new URL('../../console/package.json', import.meta.url));
const { chromium } = need('playwright-core');
const axe = readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8');

const binary = process.env.STELE_BIN ?? new URL('../../target/debug/stele', import.meta.url).pathname;
const browser = process.env.CHROMIUM ?? '/usr/bin/chromium';

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** Starts `stele serve` on an empty directory. */
export async function startServer() {
  const dir = mkdtempSync(join(tmpdir(), 'stele-console-'));
  const port = await freePort();
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('STELE_')));
  const child = spawn(binary, ['serve', '--data-dir', dir, '--listen', `127.0.0.1:${port}`], { env: environment, stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  for (let i = 0; ; i++) {
    if (await fetch(`${url}/readyz`).then((r) => r.ok, () => false)) break;
    assert.ok(i < 200 && child.exitCode === null, 'the server became ready');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const key = readFileSync(join(dir, 'admin-key'), 'utf8').trim();
  const stop = async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await new Promise((resolve) => child.once('exit', resolve));
    rmSync(dir, { recursive: true, force: true });
  };
  return { url, key, stop, api: api(url, key) };
}

/** Calls the API as a program does. */
function api(url, key) {
  return async (method, path, body, headers = {}) => {
    const beta = path.startsWith('/v1/memory_stores') ? 'agent-memory-2026-07-22' : 'managed-agents-2026-04-01';
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...(path.startsWith('/v1/') ? { 'anthropic-beta': beta } : {}), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text.slice(0, 300)}`);
    return text === '' ? undefined : JSON.parse(text);
  };
}

export const STORES = '/managed-agents/v1/memory_stores';

/** `uuid` as Anthropic spells it. */
export function prefixed(prefix, uuid) {
  const digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
  let number = BigInt(`0x${uuid.replaceAll('-', '')}`);
  let spelled = '';
  for (let i = 0; i < 22; i++, number /= 58n) spelled = digits[Number(number % 58n)] + spelled;
  return `${prefix}_01${spelled}`;
}

/** A store with these memories, `{path: content}`. */
export async function plant(call, name, memories, description = 'What the team agreed on.') {
  const { memory_store_id: id } = await call('POST', STORES, { name, description });
  const entries = Object.entries(memories);
  for (let i = 0; i < entries.length; i += 500) {
    const changes = entries.slice(i, i + 500).map(([path, content]) => ({ op: 'create', path, content, summary: `About ${path.split('/').pop().slice(0, 60)}` }));
    await call('POST', `/v1/memory_stores/${prefixed('memstore', id)}/changesets`, { reason: 'planted', changes });
  }
  return id;
}

export async function launch() {
  return chromium.launch({ executablePath: browser, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] });
}

/**
 * A page in a context of its own. `complaints` collects what must not be: errors, refused scripts and styles, dialogs,
 * requests to anywhere else. Statuses that a test provokes are named in `expected`.
 */
export async function open(chrome, url, { expected = [], ...options } = {}) {
  const context = await chrome.newContext({ baseURL: url, viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const complaints = [];
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return;
    const text = message.text();
    if (expected.some((status) => text.includes(`status of ${status}`))) return;
    complaints.push(`console: ${text}`);
  });
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(`${url}/`)) complaints.push(`elsewhere: ${request.url()}`);
  });
  return { context, page, complaints };
}

export async function signIn(page, key) {
  await page.goto('/');
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Stores', level: 1 }).waitFor();
}

/** Serious findings of axe, in a sentence each. */
export async function accessibility(page) {
  // Over the debugger, for the page's own policy rightly refuses a script from outside.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)} (${node.failureSummary?.split('\n')[1]?.trim()})`));
}
