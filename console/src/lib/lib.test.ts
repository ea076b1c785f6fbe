import { describe, expect, test } from 'vitest';
import { prefixed, uuidOf } from '../api/ids';
import { diffRows } from './diff';
import { lines, merge, resolved } from './merge';
import { parseMetrics, total } from './metrics';
import { cut } from './stream';
import { grow, parents, rows } from './tree';
import { mixesScripts, namePieces, pieces } from './visible';

describe('ids', () => {
  test('both spellings are one id', () => {
    for (const uuid of ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '01a231b1-28b2-73b2-8fc2-b9a09578ab5d']) {
      const id = prefixed('mem', uuid);
      expect(id).toMatch(/^mem_01[1-9A-HJ-NP-Za-km-z]{22}$/);
      expect(uuidOf(id)).toBe(uuid);
    }
  });
  test('what is no id stays as it is', () => expect(uuidOf('mem_01l')).toBe('mem_01l'));
});

describe('texts that deceive', () => {
  test('every character is kept or named', () => {
    const text = 'a\u202eb\u001b[31m\u200b\n\tc';
    const shown = pieces(text);
    expect(shown.filter((piece) => piece.note !== undefined).map((piece) => piece.text)).toEqual(['U+202E', 'U+001B', 'U+200B']);
    expect(shown.filter((piece) => piece.note === undefined).map((piece) => piece.text).join('')).toBe('ab[31m\n\tc');
  });
  test('names that look alike are shown differently', () => {
    const seen = ['/a.md', '/\u0430.md', '/ a.md', '/a\u00e9.md', '/a b.md', '/a  b.md'].map((name) => JSON.stringify(namePieces(name)));
    expect(new Set(seen).size).toBe(6);
    expect(namePieces('/plain name.md')).toEqual([{ text: '/plain name.md' }]);
  });
  test('only a mix within one word is called mixed', () => {
    expect(mixesScripts('/p\u0430ypal.md')).toBe(true);
    expect(mixesScripts('/\u043f\u043b\u0430\u043d.md')).toBe(false);
  });
});

describe('merge', () => {
  test('what touches different lines is put together without a question', () => {
    const parts = merge('A\nb\nc\n', 'a\nb\nc\n', 'a\nb\nC\n');
    expect(resolved(parts, [])).toBe('A\nb\nC\n');
  });
  test('what both changed is a choice, and no text is lost by keeping both', () => {
    const parts = merge('mine', 'base', 'theirs');
    expect(parts.filter((part) => part.kind === 'conflict')).toHaveLength(1);
    expect(resolved(parts, [undefined])).toBeUndefined();
    expect(resolved(parts, ['mine'])).toBe('mine');
    expect(resolved(parts, ['theirs'])).toBe('theirs');
    expect(resolved(parts, ['both'])).toBe('mine\ntheirs');
  });
  test('lines put together are the text', () => {
    for (const text of ['', '\n', 'a', 'a\n', 'a\n\nb', '\r\na']) expect(lines(text).join('')).toBe(text);
  });
});

describe('differences', () => {
  test('changed words are marked within changed lines', () => {
    const [row] = diffRows('alpha beta\n', 'alpha BETA\n').filter((one) => one.kind === 'change');
    expect(row?.old?.pieces.filter((piece) => piece.changed).map((piece) => piece.text)).toEqual(['beta']);
    expect(row?.new?.pieces.filter((piece) => piece.changed).map((piece) => piece.text)).toEqual(['BETA']);
  });
  test('long stretches without a change are left out, and counted', () => {
    const text = Array.from({ length: 50 }, (_, i) => `${i}\n`).join('');
    const found = diffRows(text, `${text}new\n`);
    expect(found[0]).toEqual({ kind: 'skip', skipped: 47 });
    expect(diffRows(text, text)).toEqual([]);
  });
  test('a line of 100 kB is compared whole', () => {
    const [row] = diffRows('x '.repeat(50_000), 'y '.repeat(50_000));
    expect(row?.old?.pieces).toHaveLength(1);
  });
});

describe('tree', () => {
  const entries = ['/b.md', '/a/x.md', '/a/c/y.md'].map((path) => ({ path, byte_size: 1 }));
  test('directories come first and open', () => {
    expect(rows(grow(entries), new Set()).map((row) => row.path)).toEqual(['/a/', '/b.md']);
    expect(rows(grow(entries), new Set(['/a/'])).map((row) => row.path)).toEqual(['/a/', '/a/c/', '/a/x.md', '/b.md']);
  });
  test('the directories above a path', () => expect(parents('/a/c/y.md')).toEqual(['/a/', '/a/c/']));
});

describe('streams', () => {
  test('messages are cut wherever they arrive in pieces', () => {
    const whole = 'id: e:1\nevent: change\ndata: {"a":1}\n\nevent: ping\ndata: {}\n\n';
    for (let at = 0; at < whole.length; at++) {
      const first = cut(whole.slice(0, at));
      const second = cut(first.rest + whole.slice(at));
      expect([...first.messages, ...second.messages]).toEqual([
        { event: 'change', id: 'e:1', data: '{"a":1}' },
        { event: 'ping', id: '', data: '{}' },
      ]);
    }
  });
});

test('metrics are read with their labels', () => {
  const samples = parseMetrics('# HELP x y\nx_total{route="/a",method="GET"} 2\nx_total{route="/b",method="POST"} 3\nplain 1.5\n');
  expect(total(samples, 'x_total')).toBe(5);
  expect(total(samples, 'x_total', (labels) => labels.method === 'GET')).toBe(2);
  expect(total(samples, 'plain')).toBe(1.5);
});
