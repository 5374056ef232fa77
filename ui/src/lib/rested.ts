/** Debounces typed text, so that not every keystroke sends a request. */

import { useEffect, useState } from 'react';

export const TYPING_MS = 300;

/** The text once typing has paused. */
export function useRested(text: string): string {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return rested;
}
