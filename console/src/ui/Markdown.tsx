/** Markdown of memories: data, never markup of ours. No HTML, no pictures from anywhere, no scripts in links. */
import ReactMarkdown, { type Components } from 'react-markdown';
import { Link } from 'react-router';
import rehypeSanitize from 'rehype-sanitize';
import remarkGfm from 'remark-gfm';
import { pieces } from '../lib/visible';

interface Node {
  type: string;
  value?: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
}

/** Shows hidden characters in texts as what they are. */
function showHidden() {
  const walk = (node: Node) => {
    node.children = node.children?.flatMap((child): Node[] => {
      if (child.type !== 'text' || child.value === undefined) {
        walk(child);
        return [child];
      }
      return pieces(child.value).map((piece): Node =>
        piece.note === undefined
          ? { type: 'text', value: piece.text }
          : { type: 'element', tagName: 'span', properties: { className: ['odd'], title: piece.note }, children: [{ type: 'text', value: piece.text }] },
      );
    }) ?? [];
  };
  return walk;
}

function components(storeId: string): Components {
  return {
    img: ({ alt, src }) => <span className="soft">[picture: {alt === '' || alt === undefined ? 'without a description' : alt}{typeof src === 'string' ? `, ${src}` : ''}]</span>,
    a: ({ href, children }) => {
      if (href !== undefined && /^\/[^/]/.test(href)) {
        let path = href;
        try { path = decodeURIComponent(href); } catch { /* not escaped: it is the path itself */ }
        return <Link to={`/stores/${storeId}?path=${encodeURIComponent(path)}`}>{children}</Link>;
      }
      return href !== undefined && /^(https?|mailto):/i.test(href) ? <a href={href} rel="noopener noreferrer nofollow" target="_blank">{children}</a> : <>{children}</>;
    },
    input: (props) => <input {...props} aria-label="task" />,
  };
}

export default function Markdown({ text, storeId }: { text: string; storeId: string }) {
  return (
    <div className="text">
      <ReactMarkdown remarkPlugins={[remarkGfm]} rehypePlugins={[rehypeSanitize, showHidden]} components={components(storeId)}>
        {text}
      </ReactMarkdown>
    </div>
  );
}
