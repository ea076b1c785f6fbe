import { Fragment } from 'react';
import { mixesScripts, namePieces, pieces } from '../lib/visible';

/** A name or path as it is, with what could deceive made visible. */
export function Name({ text }: { text: string }) {
  const plain = /^[\x20-\x7e]*$/.test(text) && !/^ | $| {2}|\/ | \//.test(text);
  if (plain) return <bdi className="name">{text}</bdi>;
  return (
    <bdi className="name">
      {namePieces(text).map((piece, i) =>
        piece.note === undefined ? (
          <Fragment key={i}>{piece.text}</Fragment>
        ) : (
          <span key={i} className={/^(U\+|␣)/.test(piece.text) ? 'odd' : 'odd letters'} title={piece.note}>{piece.text}</span>
        ),
      )}
      {mixesScripts(text) && <> <span className="badge warn" title="Letters of several alphabets stand in one word">mixed alphabets</span></>}
    </bdi>
  );
}

/** A text as it is, hidden characters shown. */
export function RawText({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((piece, i) =>
        piece.note === undefined ? <Fragment key={i}>{piece.text}</Fragment> : <span key={i} className="odd" title={piece.note}>{piece.text}</span>,
      )}
    </>
  );
}
