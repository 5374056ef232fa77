/** Where the blocks of a definition stand: what is around each of them, from the outermost on. */

import type { Block } from '../../schema/blocks.js';
import { listsOf } from '../helpers/block-trees.js';
import type { MemoryTables, Row } from './memory-tables.js';

/** A block around another one: which of its lists that is in, as `listsOf` counts them, and where in the list. */
export interface Around {
  readonly block: Block;
  readonly list: number;
  readonly at: number;
}

export type Places = ReadonlyMap<string, readonly Around[]>;

const known = new WeakMap<Row, Places>();

/** Of the sequence of the instance; none once either is gone. */
export function placesOf(tables: MemoryTables, instance: string): Places {
  const { sequence_id } = tables.row('instances', instance) ?? {};
  const sequence = tables.row('sequences', String(sequence_id));
  if (sequence === undefined) return new Map();
  const places = known.get(sequence) ?? placesIn(sequence);
  known.set(sequence, places);
  return places;
}

function placesIn({ definition }: Row): Places {
  const places = new Map<string, readonly Around[]>();
  const walk = (block: Block, around: readonly Around[]) => {
    places.set(block.id, around);
    for (const [list, blocks] of listsOf(block).entries()) {
      for (const [at, inner] of blocks.entries()) walk(inner, [...around, { block, list, at }]);
    }
  };
  for (const block of (definition as unknown as { blocks: Block[] }).blocks) walk(block, []);
  return places;
}

/** Those that count their passes, each of which is a part of the iteration. */
export const loopsIn = (around: readonly Around[]): Around[] =>
  around.filter(({ block: { type } }) => /^(loop|for_each|saga)$/.test(type));

/** A finally list runs once more behind a catch list that a retry goes on with, in the same iteration. */
export const mayRepeat = (around: readonly Around[]): boolean =>
  around.some(({ block, list }) => block.type === 'try_catch' && list === 2);

/** Undefined: not of a block, but of hooks and the like. */
export function pathOf({ iteration }: Row): number[] | undefined {
  if (iteration === '') return [];
  return /^[\d.]+$/.test(String(iteration)) ? String(iteration).split('.').map(Number) : undefined;
}
