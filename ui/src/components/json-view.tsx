/** Shows a JSON value with syntax colours, to read and to copy. Long values are shown in parts. */

import { memo, useMemo } from 'react';
import { lineEnds, partsOf } from '../lib/json-lines.ts';
import { CHUNK, useChunk } from './chunk.tsx';
import { CopyButton } from './copy.tsx';
import styles from './json-view.module.css';

export function JsonView(props: { readonly value: unknown; readonly label: string }) {
  const text = useMemo(() => JSON.stringify(props.value, null, 2) ?? 'nothing', [props.value]);
  const ends = useMemo(() => lineEnds(text), [text]);
  const [shown, more] = useChunk(ends.length);
  return (
    <div className={styles.frame}>
      <div className={styles.copy}>
        <CopyButton text={text} label={`Copy ${props.label}`} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      {/* biome-ignore lint/a11y/useSemanticElements: a section would be a landmark, of which there would be many */}
      <div className={styles.text} tabIndex={0} role="group" aria-label={props.label}>
        {partsOf(text, ends, shown, CHUNK).map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts are known by their order
          <Part key={at} text={part} />
        ))}
        {more && '…'}
      </div>
      {more}
    </div>
  );
}

/** Memoized, so that parts that are shown already are not rendered again. */
const Part = memo(function Part({ text }: { readonly text: string }) {
  return <span>{piecesOf(text)}</span>;
});

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g;

function piecesOf(text: string) {
  const pieces = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) pieces.push(text.slice(end, match.index));
    const [token, string, colon] = match;
    const kind = colon ? styles.key : string ? styles.string : styles.other;
    pieces.push(
      <span key={match.index} className={kind}>
        {token}
      </span>,
    );
    end = match.index + token.length;
  }
  pieces.push(text.slice(end));
  return pieces;
}
