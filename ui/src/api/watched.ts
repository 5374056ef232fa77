/** Whether the page is visible to the user. */

import { useEffect, useState } from 'react';

/** A user who returns within this time finds the page live. */
const HIDDEN_MS = 30_000;

/**
 * False once the page has been hidden for a while. Over HTTP/1.1 a browser opens six connections to one server for all
 * of its tabs, so hidden tabs hold none.
 */
export function useIsWatched(): boolean {
  const [isWatched, setWatched] = useState(true);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => setWatched(false), HIDDEN_MS);
      else setWatched(true);
    };
    look();
    document.addEventListener('visibilitychange', look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', look);
    };
  }, []);
  return isWatched;
}
