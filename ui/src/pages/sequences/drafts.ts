/** Definitions as text, and drafts, which are kept while the author visits other pages. */

import type { SequenceDefinition } from 'durable-workflow-engine-client';
import { useState } from 'react';

/** The members that an author writes, without those that the engine generates. */
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
 * A draft that is kept for as long as the tab is open.
 *
 * @param key identifies the draft and its tenant
 * @param first the initial text, also after the draft is discarded
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
    // Larger than the browser stores: the draft lives as long as its page.
  }
}
