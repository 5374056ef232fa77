/** Filters stored in the address, so that links, reloads and the back button keep them. */

import { useMemo } from 'react';
import { useLocation } from 'wouter';
import { useSearch } from 'wouter/use-browser-location';

export type Filters = Readonly<Record<string, string>>;

/** The props of a field that shows and changes one parameter. */
export interface FilterBinding {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The parameters of the address that are not empty. */
export function useFilters(): readonly [
  filters: Filters,
  change: (changes: Readonly<Record<string, string | undefined>>) => void,
  at: (name: string) => FilterBinding,
] {
  const [path, go] = useLocation();
  // The raw query string: the router's values are decoded already, and `100%25` would become `100%`.
  const text = useSearch();
  const filters = useMemo(() => Object.fromEntries(new URLSearchParams(text)), [text]);
  const { pathname } = globalThis.location;
  const change = (changes: Readonly<Record<string, string | undefined>>) => {
    // What was typed just before the page was left does not lead back to it.
    if (globalThis.location.pathname !== pathname) return;
    // Several changes in a row build on each other.
    const next = new URLSearchParams(globalThis.location.search);
    // Any change restarts the list at its first page.
    if (!('cursor' in changes)) next.delete('cursor');
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined || value === '') next.delete(name);
      else next.set(name, value);
    }
    go(next.size === 0 ? path : `${path}?${next}`);
  };
  const at = (name: string) => ({
    value: filters[name] ?? '',
    onChange: (value: string) => change({ [name]: value }),
  });
  return [filters, change, at];
}

/** The option that the address names; undefined for any other text. */
export function chosenIn<Value extends string>(
  options: readonly { readonly value: Value | '' }[],
  text: string | undefined,
): Value | undefined {
  return (options.find(({ value }) => value === text)?.value || undefined) as Value | undefined;
}

/** An address with these parameters, without those that are empty. */
export function hrefOf(path: string, params: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(params).filter((entry): entry is [string, string] => !!entry[1]);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}
