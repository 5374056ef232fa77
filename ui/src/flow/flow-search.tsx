/** The field that finds blocks in a graph or list: Enter goes to the next one. */

import { ChevronDown, ChevronUp } from 'lucide-react';
import { useMemo, useState } from 'react';
import { IconButton } from '../components/button.tsx';
import { formatCount } from '../lib/format.ts';
import styles from './flow.module.css';
import type { Outline } from './outline.ts';
import { nextFound, pathsFound } from './search.ts';

export interface Search {
  readonly text: string;
  readonly paths: readonly string[];
  /** The index of the block that was gone to. */
  readonly at: number | undefined;
  readonly change: (text: string) => void;
  readonly go: (step: 1 | -1) => void;
}

/** @param onGo called with the path of the block to show */
export function useSearch(outline: Outline, onGo: (path: string) => void): Search {
  const [text, setText] = useState('');
  const [at, setAt] = useState<number>();
  const paths = useMemo(() => pathsFound(outline, text), [outline, text]);
  return {
    ...{ text, paths, at },
    change: (changed) => {
      setText(changed);
      setAt(undefined);
    },
    go: (step) => {
      if (paths.length === 0) return;
      const next = nextFound(at, paths.length, step);
      setAt(next);
      onGo(paths[next]!);
    },
  };
}

export function SearchField({ search }: { readonly search: Search }) {
  const { text, paths, at, change, go } = search;
  const count = paths.length;
  const place = at === undefined ? '' : `${formatCount(at + 1)} of `;
  return (
    <search className={styles.search}>
      <input
        type="search"
        aria-label="Find a block"
        placeholder="Find a block"
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={({ target }) => change(target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') change('');
          if (event.key !== 'Enter') return;
          event.preventDefault();
          go(event.shiftKey ? -1 : 1);
        }}
      />
      <span className={styles.count} role="status">
        {text.trim() !== '' && (count === 0 ? 'none' : `${place}${formatCount(count)}`)}
      </span>
      {count > 0 && (
        <>
          <IconButton label="Previous match" icon={ChevronUp} onClick={() => go(-1)} />
          <IconButton label="Next match" icon={ChevronDown} onClick={() => go(1)} />
        </>
      )}
    </search>
  );
}
