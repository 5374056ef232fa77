/** What is typed, a moment after it was: not every letter is asked for. */

import { useEffect, useState } from 'react';

export const TYPING_MS = 300;

/** The text once it has rested. */
export function useRested(text: string): string {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return rested;
}
