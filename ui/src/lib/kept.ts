/** Small settings that the browser keeps; without storage they last as long as the page. */

import { useState } from 'react';

/** @param read turns what is stored, or nothing, into a valid value */
export function useKept<Value>(
  name: string,
  read: (stored: unknown) => Value,
): readonly [value: Value, keep: (value: Value) => void] {
  const [value, setValue] = useState(() => read(storedAt(name)));
  const keep = (next: Value) => {
    setValue(next);
    keepAt(name, next);
  };
  return [value, keep];
}

export function keepAt(name: string, value: unknown): void {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // Private windows and full storage: it is kept by the page.
  }
}

/** @returns null if nothing is stored, or nothing can be */
export function storedAt(name: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(name) ?? 'null');
  } catch {
    // Anything may be stored under this name.
    return null;
  }
}
