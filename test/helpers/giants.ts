/**
 * Instances as large as the limits let them be (`docs/limits.md`), each with the rows that it leaves:
 * for the tests that they end as specified, and for the benches of what they cost their neighbours.
 */

import { BLOCKS_MAX, BRANCHES_MAX, DEPTH_MAX, ITERATIONS_MAX } from '../../schema/blocks.js';
import { forEach, type Json, loop, parallel, race, router, step, tryCatch } from './api.js';

export interface Giant {
  readonly blocks: readonly Json[];
  readonly data?: Json;
  /** Rows of outputs when it has completed. */
  readonly rows: number;
  /** The handler that workers have to serve for it. */
  readonly handler?: string;
}

/** A block around the blocks that runs them once. */
const AROUND: Readonly<Record<string, (id: string, inner: Json[]) => Json>> = {
  parallel: (id, inner) => parallel(id, inner),
  race: (id, inner) => race(id, [inner]),
  router: (id, inner) => router(id, { true: inner }),
  try_catch: (id, inner) => tryCatch(id, inner, []),
  loop: (id, inner) => loop(id, 'true', inner, 1),
  for_each: (id, inner) => forEach(id, 'once', inner),
};

/** A race leaves a row, a loop one for each pass, a for_each another one before the first item. */
const ROWS: Readonly<Record<string, number>> = { race: 1, loop: 1, for_each: 2 };

export const COMPOSITES = Object.keys(AROUND);

/** Nested to the limit in blocks of these kinds, in turns; the innermost one sleeps for a moment. */
export function deepest(kinds: readonly string[]): Giant {
  let inner = [step('leaf', 'sleep', { params: { duration_ms: 1 } })];
  let rows = 1;
  for (let level = DEPTH_MAX - 1; level >= 1; level -= 1) {
    const kind = kinds[level % kinds.length] as string;
    inner = [AROUND[kind]!(`level-${level}`, inner)];
    rows += ROWS[kind] ?? 0;
  }
  return { blocks: inner, data: { once: [1] }, rows };
}

/** One list of as many steps as there may be. */
export function longest(): Giant {
  const blocks = Array.from({ length: BLOCKS_MAX }, (_, i) => step(`s${i}`, 'noop'));
  return { blocks, rows: BLOCKS_MAX };
}

/** One parallel of as many branches as there may be, over which all the steps are spread. */
export function widest(handler = 'noop'): Giant {
  const branches: Json[][] = Array.from({ length: BRANCHES_MAX }, () => []);
  for (let i = 0; i < BLOCKS_MAX - 1; i += 1) {
    branches[i % BRANCHES_MAX]!.push(step(`s${i}`, handler));
  }
  const giant = { blocks: [parallel('p', ...branches)], rows: BLOCKS_MAX - 1 };
  return handler === 'noop' ? giant : { ...giant, handler };
}

/** As many steps as possible that are open at the same time: parallels in a parallel. */
export function busiest(handler: string): Giant {
  const each = Math.floor((BLOCKS_MAX - 1) / BRANCHES_MAX) - 1;
  const branches = Array.from({ length: BRANCHES_MAX }, (_, b) => {
    const inner = Array.from({ length: each }, (_, i) => [step(`s${b}-${i}`, handler)]);
    return [parallel(`p${b}`, ...inner)];
  });
  return { blocks: [parallel('p', ...branches)], rows: BRANCHES_MAX * each, handler };
}

export function endless(iterations = ITERATIONS_MAX): Giant {
  return { blocks: [loop('l', 'true', [step('s', 'noop')], iterations)], rows: 2 * iterations };
}

/** Over as many items as there may be, in a context that is nearly full of them. */
export function longestList(): Giant {
  const items = Array.from({ length: ITERATIONS_MAX }, (_, i) => i % 10);
  const body = [step('s', 'noop')];
  return {
    blocks: [forEach('f', 'items', body, { max_iterations: ITERATIONS_MAX })],
    data: { items, pad: 'x'.repeat(60_000) },
    rows: 2 * ITERATIONS_MAX + 1,
  };
}

/** A context of 250 KiB in many keys, read for every item and written anew by every worker. */
export function heaviest(handler: string, items = 2_000, tasks = 20): Giant {
  const keys = Array.from({ length: 18_000 }, (_, i) => [`key-${i}`, i % 10]);
  const body = step('read', 'transform', { params: { v: '{{data.item}}' } });
  return {
    blocks: [
      forEach('f', 'items', [body], { max_iterations: items }),
      ...Array.from({ length: tasks }, (_, i) => step(`t${i}`, handler)),
    ],
    data: { items: Array(items).fill(1), ...Object.fromEntries(keys) },
    rows: 2 * items + 1 + tasks,
    handler,
  };
}
