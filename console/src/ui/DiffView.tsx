import * as ToggleGroup from '@radix-ui/react-toggle-group';
import { useMemo, useState } from 'react';
import { diffRows, type Piece, type Row } from '../lib/diff';
import { counted } from '../lib/format';
import { RawText } from './Name';

function Line({ sign, side }: { sign: '+' | '−' | ' '; side: { number: number; pieces: Piece[] } | undefined }) {
  const tone = side === undefined ? '' : sign === '+' ? 'add' : sign === '−' ? 'del' : '';
  return (
    <div className={`line ${tone}`}>
      <span className="no">{side?.number}</span>
      <span aria-label={sign === '+' ? 'added' : sign === '−' ? 'removed' : undefined} role={sign === ' ' ? undefined : 'img'}>{side === undefined ? '' : sign}</span>
      <span>{side?.pieces.map((piece, i) => (piece.changed ? <b key={i}><RawText text={piece.text} /></b> : <RawText key={i} text={piece.text} />))}</span>
    </div>
  );
}

function Skip({ row }: { row: Row }) {
  return <div className="skip-row">{counted(row.skipped ?? 0, 'unchanged line')}</div>;
}

/** Two texts compared, inline or side by side. */
export function DiffView({ before, after }: { before: string; after: string }) {
  const [form, setForm] = useState(window.matchMedia('(min-width: 1000px)').matches ? 'sides' : 'inline');
  const rows = useMemo(() => diffRows(before, after), [before, after]);
  if (rows.length === 0) return <p className="soft">The texts are the same.</p>;
  return (
    <div className="tab-body" style={{ paddingTop: 0 }}>
      <div>
        <ToggleGroup.Root type="single" className="group" aria-label="How the difference is shown" value={form} onValueChange={(to) => { if (to !== '') setForm(to); }}>
          <ToggleGroup.Item value="sides">Side by side</ToggleGroup.Item>
          <ToggleGroup.Item value="inline">Inline</ToggleGroup.Item>
        </ToggleGroup.Root>
      </div>
      {form === 'sides' ? (
        <div className="diff sides">
          {rows.map((row, i) =>
            row.kind === 'skip' ? <Skip key={i} row={row} /> : (
              <div className="pair" key={i}>
                <Line sign={row.kind === 'change' ? '−' : ' '} side={row.old} />
                <Line sign={row.kind === 'change' ? '+' : ' '} side={row.new} />
              </div>
            ),
          )}
        </div>
      ) : (
        <div className="diff">
          {rows.map((row, i) =>
            row.kind === 'skip' ? <Skip key={i} row={row} /> : row.kind === 'same' ? <Line key={i} sign=" " side={row.new} /> : (
              <div key={i}>
                {row.old !== undefined && <Line sign="−" side={row.old} />}
                {row.new !== undefined && <Line sign="+" side={row.new} />}
              </div>
            ),
          )}
        </div>
      )}
    </div>
  );
}
