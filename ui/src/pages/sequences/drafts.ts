/** Definitions as text, and the draft of one, which is kept while its author looks elsewhere. */

import type { SequenceDefinition } from 'durable-workflow-engine-client';
import { useState } from 'react';

/** What an author writes: without what the engine makes. */
export function definitionText(sequence: SequenceDefinition, version: number): string {
  const {
    id: _,
    tenant_id: __,
    created_at: ___,
    deprecated: ____,
    hold: _____,
    ...rest
  } = sequence;
  const { namespace, name, version: ______, status, input_schema, ...flow } = rest;
  const head = { namespace, name, version, ...(status !== 'production' && { status }) };
  return JSON.stringify({ ...head, ...(input_schema && { input_schema }), ...flow }, null, 2);
}

/**
 * The text that is being written, for as long as this tab is open.
 *
 * @param key what it is a draft of, and whose
 * @param first what it begins with, and begins with again when it is given up
 */
export function useDraft(
  key: string,
  first: string,
): { readonly text: string; readonly write: (text: string) => void; readonly drop: () => void } {
  const storedAs = `draft ${key}`;
  const [text, setText] = useState(() => sessionStorage.getItem(storedAs) ?? first);
  return {
    text,
    write: (next) => {
      setText(next);
      keep(storedAs, next);
    },
    drop: () => {
      sessionStorage.removeItem(storedAs);
      setText(first);
    },
  };
}

function keep(storedAs: string, text: string): void {
  try {
    sessionStorage.setItem(storedAs, text);
  } catch {
    // It is larger than the browser keeps: the draft lives as long as its page.
  }
}
