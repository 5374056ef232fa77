/** A JSON value to read and to copy, with its parts in colours. Long ones are cut, and shown whole when asked. */

import { useState } from 'react';
import { Button } from './button.tsx';
import { CopyButton } from './copy.tsx';
import styles from './json-view.module.css';

/** More is cut at first: the browser would be busy for a while. */
const SHOWN_CHARACTERS = 20_000;

export function JsonView(props: { readonly value: unknown; readonly label: string }) {
  const [isWhole, setWhole] = useState(false);
  const text = JSON.stringify(props.value, null, 2) ?? 'nothing';
  const isCut = !isWhole && text.length > SHOWN_CHARACTERS;
  return (
    <div className={styles.frame}>
      <div className={styles.copy}>
        <CopyButton text={text} label={`Copy ${props.label}`} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      {/* biome-ignore lint/a11y/useSemanticElements: a section would be a landmark, of which there would be many */}
      <div className={styles.text} tabIndex={0} role="group" aria-label={props.label}>
        {piecesOf(isCut ? text.slice(0, SHOWN_CHARACTERS) : text)}
        {isCut && '…'}
      </div>
      {isCut && (
        <Button onClick={() => setWhole(true)}>
          Show all {Math.ceil(text.length / 1024).toLocaleString()} KiB
        </Button>
      )}
    </div>
  );
}

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
