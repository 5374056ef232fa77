/** What many actors ask for in one query, as the columns that its statement unnests. Pure. */

import type { ItemsAsk, SequenceName } from './rows.js';

/** Blocks of one instance. */
export interface BlocksAsk {
  readonly instance: string;
  readonly blocks: Iterable<string>;
}

/** Events with one name. */
export interface EventName {
  readonly tenant: string;
  readonly name: string;
}

/** A row for each block that is asked for, as three columns. */
export function pairsOf(asks: readonly BlocksAsk[]): [number[], string[], string[]] {
  const pairs = asks.flatMap(({ instance, blocks }, at) =>
    [...blocks].map((block) => [at + 1, instance, block] as const),
  );
  return [pairs.map(([n]) => n), pairs.map(([, id]) => id), pairs.map(([, , block]) => block)];
}

/** A row for each run of a for_each that is asked for. */
export function itemsOf(asks: readonly ItemsAsk[]): readonly unknown[] {
  return [
    asks.map((_, at) => at + 1),
    asks.map(({ instance }) => instance),
    asks.map(({ prefix }) => prefix),
    asks.map(({ depth }) => depth),
    asks.map(({ blocks }) => JSON.stringify(blocks)),
    asks.map(({ items }) => items && JSON.stringify(items)),
  ];
}

/** A row for each name that is asked for. */
export function namesOf(names: readonly SequenceName[]): readonly unknown[] {
  return [
    names.map(({ tenant }) => tenant),
    names.map(({ namespace }) => namespace),
    names.map(({ name }) => name),
    names.map(({ version }) => version),
  ];
}

export function eventNamesOf(names: readonly EventName[]): readonly unknown[] {
  return [names.map(({ tenant }) => tenant), names.map(({ name }) => name)];
}

/** A row for each id that is asked for. */
export function columnOf(ids: readonly string[]): readonly unknown[] {
  return [ids];
}
