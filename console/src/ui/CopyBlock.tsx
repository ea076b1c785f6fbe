import { useState } from 'react';

/** A text to be copied whole. */
export function CopyBlock({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div className="copy">
      <pre tabIndex={0} aria-label={label}>{text}</pre>
      <button onClick={() => void copy()} aria-label={`Copy: ${label}`}>{copied ? 'Copied' : 'Copy'}</button>
    </div>
  );
}
