/** What the palette offers beside the hits of the search, and the order of all of it. Pure. */

export interface PaletteEntry {
  readonly key: string;
  readonly label: string;
  /** Other words by which it is found. */
  readonly words?: string;
}

/** The entries with words that begin with those of the query; those whose label does come first. */
export function matching<Entry extends PaletteEntry>(
  entries: readonly Entry[],
  query: string,
): readonly Entry[] {
  const wanted = wordsOf(query);
  if (wanted.length === 0) return [];
  const ranked = entries.flatMap((entry) => {
    const own = wordsOf(entry.label);
    const all = [...own, ...wordsOf(entry.words ?? '')];
    const isFound = wanted.every((word) => all.some((one) => one.startsWith(word)));
    return isFound ? [{ entry, isFirst: own[0]?.startsWith(wanted[0] as string) === true }] : [];
  });
  return [...ranked.filter((one) => one.isFirst), ...ranked.filter((one) => !one.isFirst)].map(
    ({ entry }) => entry,
  );
}

const wordsOf = (text: string) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** The next entry in the direction, around the end. */
export function stepFrom(keys: readonly string[], key: string | undefined, by: 1 | -1) {
  const at = key === undefined ? -1 : keys.indexOf(key);
  if (at < 0) return by > 0 ? keys[0] : keys.at(-1);
  return keys[(at + by + keys.length) % keys.length];
}
