/** Filters that live in the address, so that a link, a reload and the back button show the same. */

import { useMemo } from 'react';
import { useSearchParams } from 'wouter';

export type Filters = Readonly<Record<string, string>>;

/** The parameters of the address that are not empty. */
export function useFilters(): readonly [
  filters: Filters,
  change: (changes: Readonly<Record<string, string | undefined>>) => void,
] {
  const [params, setParams] = useSearchParams();
  const text = params.toString();
  const filters = useMemo(() => Object.fromEntries(new URLSearchParams(text)), [text]);
  return [
    filters,
    (changes) =>
      setParams((before) => {
        const next = new URLSearchParams(before);
        // Whatever changes, the list begins again with its first page.
        if (!('cursor' in changes)) next.delete('cursor');
        for (const [name, value] of Object.entries(changes)) {
          if (value === undefined || value === '') next.delete(name);
          else next.set(name, value);
        }
        return next;
      }),
  ];
}

/** An address with these parameters, without those that are empty. */
export function hrefOf(path: string, params: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(params).filter((entry): entry is [string, string] => !!entry[1]);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}
