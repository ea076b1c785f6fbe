import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { bytes, counted } from '../lib/format';
import { grow, parents, rows, type TreeRow } from '../lib/tree';
import { Name } from './Name';

interface Props {
  label: string;
  entries: readonly { path: string; byte_size: number; summary: string }[];
  selected: string | null;
  onSelect: (path: string) => void;
  /** Only paths with this text in them. */
  filter: string;
}

/**
 * A tree for thousands of memories: only the rows in sight are elements. The tree has the focus and names the row it is
 * at (`aria-activedescendant`), with the keys of the ARIA pattern.
 */
export function TreeView({ label, entries, selected, onSelect, filter }: Props) {
  const id = useId();
  const scroll = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(selected === null ? [] : parents(selected)));
  const [cursor, setCursor] = useState(selected ?? '');
  const typed = useRef({ text: '', at: 0 });

  const wanted = filter.trim().toLowerCase();
  const found = useMemo(
    () => (wanted === '' ? entries : entries.filter((entry) => entry.path.toLowerCase().includes(wanted))),
    [entries, wanted],
  );
  const root = useMemo(() => grow(found), [found]);
  const seen = useMemo(() => rows(root, open, wanted !== ''), [root, open, wanted]);

  useEffect(() => {
    if (selected === null) return;
    setCursor(selected);
    setOpen((before) => (parents(selected).every((path) => before.has(path)) ? before : new Set([...before, ...parents(selected)])));
  }, [selected]);

  const at = Math.max(0, seen.findIndex((row) => row.path === cursor));
  // eslint-disable-next-line react-hooks/incompatible-library -- the rows are measured by nobody: their height is fixed
  const virtual = useVirtualizer({ count: seen.length, getScrollElement: () => scroll.current, estimateSize: () => 26, overscan: 12 });

  const go = (index: number) => {
    const row = seen[Math.min(Math.max(index, 0), seen.length - 1)];
    if (row === undefined) return;
    setCursor(row.path);
    virtual.scrollToIndex(seen.indexOf(row));
  };
  const toggle = (row: TreeRow, expand = !row.expanded) => {
    setOpen((before) => {
      const after = new Set(before);
      if (expand) after.add(row.path);
      else after.delete(row.path);
      return after;
    });
  };
  const choose = (row: TreeRow) => {
    setCursor(row.path);
    if (row.kind === 'memory') onSelect(row.path);
    else toggle(row);
  };
  const seek = (letter: string) => {
    const now = performance.now();
    typed.current = { text: now - typed.current.at < 800 ? typed.current.text + letter : letter, at: now };
    const { text } = typed.current;
    const from = text.length === 1 ? at + 1 : at;
    const order = [...seen.slice(from), ...seen.slice(0, from)];
    const hit = order.find((row) => row.label.toLowerCase().startsWith(text.toLowerCase()));
    if (hit !== undefined) go(seen.indexOf(hit));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = seen[at];
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroll.current?.clientHeight ?? 260) / 26) - 1);
    const steps: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + page),
      PageUp: () => go(at - page),
      Home: () => go(0),
      End: () => go(seen.length - 1),
      Enter: () => choose(row),
      ' ': () => choose(row),
      ArrowRight: () => {
        if (row.kind === 'directory') {
          if (row.expanded) go(at + 1);
          else toggle(row, true);
        }
      },
      ArrowLeft: () => {
        if (row.kind === 'directory' && row.expanded && wanted === '') toggle(row, false);
        else {
          const parent = parents(row.kind === 'directory' ? row.path.slice(0, -1) : row.path).at(-1);
          const index = seen.findIndex((other) => other.path === parent);
          if (index >= 0) go(index);
        }
      },
    };
    const step = steps[event.key];
    if (step !== undefined) step();
    else if (event.key.length === 1) seek(event.key);
    else return;
    event.preventDefault();
  };

  const items = virtual.getVirtualItems();
  const current = items.some((item) => item.index === at) ? `${id}-${at}` : undefined;
  return (
    <div ref={scroll} className="tree" role="tree" aria-label={label} tabIndex={0} onKeyDown={onKeyDown} aria-activedescendant={current}>
      <div className="tree-space" role="none" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = seen[item.index];
          if (row === undefined) return null;
          const classes = ['tree-row', item.index === at ? 'at' : '', row.path === selected ? 'selected' : ''].join(' ');
          const size = row.kind === 'memory' ? bytes(row.size) : counted(row.size, 'memory', 'memories');
          return (
            <div
              key={row.path}
              id={`${id}-${item.index}`}
              role="treeitem"
              className={classes}
              aria-level={row.level}
              aria-posinset={row.position}
              aria-setsize={row.siblings}
              aria-selected={row.path === selected}
              {...(row.kind === 'directory' ? { 'aria-expanded': row.expanded } : {})}
              style={{ transform: `translateY(${item.start}px)`, paddingLeft: row.level * 14 - 6 }}
              onClick={() => choose(row)}
            >
              <span className="twist" aria-hidden="true">{row.kind === 'directory' ? (row.expanded ? '▾' : '▸') : ''}</span>
              <span className="label"><Name text={row.label} />{row.kind === 'directory' ? '/' : ''}</span>
              <span className="size">{size}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
