/** A mark on the icon of the browser tab, so that a tab in the background shows what needs attention. */

import { useEffect } from 'react';

export type TabMark = 'failed' | 'waiting';

export function useTabMark(mark: TabMark | undefined): void {
  useEffect(() => {
    if (mark === undefined) return undefined;
    setIcon(`./icon-${mark}.svg`);
    return () => setIcon('./icon.svg');
  }, [mark]);
}

/** @param href relative to the base of the document */
function setIcon(href: string): void {
  document.querySelector('link[rel="icon"]')?.setAttribute('href', href);
}
