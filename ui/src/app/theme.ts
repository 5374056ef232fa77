/** The theme: light, dark, or the system's. The choice is stored in this browser. */

import { useState } from 'react';

export type Theme = 'system' | 'light' | 'dark';

const STORED_AS = 'theme';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export function applyStoredTheme(): void {
  apply(storedTheme());
}

/** The theme, and a function that switches to the next one. */
export function useTheme(): readonly [theme: Theme, next: () => void] {
  const [theme, setTheme] = useState(storedTheme);
  return [
    theme,
    () => {
      const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
      localStorage.setItem(STORED_AS, next);
      apply(next);
      setTheme(next);
    },
  ];
}

function storedTheme(): Theme {
  const stored = localStorage.getItem(STORED_AS);
  return THEMES.find((theme) => theme === stored) ?? 'system';
}

function apply(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme;
}
