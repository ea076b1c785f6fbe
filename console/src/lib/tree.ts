/** The tree of a store, as rows: directories are those of the paths, as on a mount. */

export interface TreeRow {
  /** The path: of a memory, or of a directory with a slash at its end. */
  path: string;
  /** Its last part. */
  label: string;
  level: number;
  kind: 'directory' | 'memory';
  /** Memories below a directory; bytes of a memory. */
  size: number;
  expanded: boolean;
  position: number;
  siblings: number;
}

interface Node {
  path: string;
  label: string;
  size: number;
  children: Map<string, Node> | null;
}

function directory(path: string, label: string): Node {
  return { path, label, size: 0, children: new Map() };
}

export function grow(entries: readonly { path: string; byte_size: number }[]): Node {
  const root = directory('/', '');
  for (const { path, byte_size } of entries) {
    const parts = path.slice(1).split('/');
    const name = parts.pop() ?? '';
    let at = root;
    let prefix = '/';
    at.size += 1;
    for (const part of parts) {
      prefix += `${part}/`;
      let next = at.children?.get(`${part}/`);
      if (next === undefined) {
        next = directory(prefix, part);
        at.children?.set(`${part}/`, next);
      }
      next.size += 1;
      at = next;
    }
    at.children?.set(name, { path, label: name, size: byte_size, children: null });
  }
  return root;
}

/** Directories first, each by name. */
function order(a: Node, b: Node): number {
  if ((a.children === null) !== (b.children === null)) return a.children === null ? 1 : -1;
  return a.label < b.label ? -1 : a.label > b.label ? 1 : 0;
}

/** The rows that are seen, given which directories are open; all of them where `all` is set. */
export function rows(root: Node, open: ReadonlySet<string>, all = false): TreeRow[] {
  const seen: TreeRow[] = [];
  const visit = (node: Node, level: number) => {
    const children = [...(node.children?.values() ?? [])].sort(order);
    children.forEach((child, i) => {
      const expanded = child.children !== null && (all || open.has(child.path));
      seen.push({
        path: child.path, label: child.label, level, size: child.size, expanded,
        kind: child.children === null ? 'memory' : 'directory', position: i + 1, siblings: children.length,
      });
      if (expanded) visit(child, level + 1);
    });
  };
  visit(root, 1);
  return seen;
}

/** The directories above a path, outermost first. */
export function parents(path: string): string[] {
  const parts = path.split('/').slice(1, -1);
  return parts.map((_, i) => `/${parts.slice(0, i + 1).join('/')}/`);
}
