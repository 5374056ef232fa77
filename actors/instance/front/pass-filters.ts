/** Of what a block in loops left: some passes of the outermost one. Pure. */

import { type AttemptListQuery, ITERATION_RANGE_MAX } from '../../../schema/attempt.js';
import { invalid } from '../../../src/base/errors.js';

type Asked = Pick<AttemptListQuery, 'block_id' | 'iteration' | 'iteration_from' | 'iteration_to'>;

/** The members of `PASS_FILTERS`. */
export interface AskedPasses {
  /** Those of a block in one loop are found by them. */
  readonly iteration?: string | readonly string[] | undefined;
  /** Of a block in several loops: the first of its counters. */
  readonly outer_pass?: readonly string[] | undefined;
}

export const OUTER_PASS = {
  column: "split_part(a.iteration, '.', 1)",
  type: 'text',
} as const;

/**
 * @param isNested the block is in several loops
 * @throws EngineError 400 when too many passes are asked for, or of no block
 */
export function passesOf(
  { block_id, iteration, iteration_from: from, iteration_to: to }: Asked,
  isNested: boolean,
): AskedPasses {
  if (from === undefined && to === undefined) return { iteration };
  if (from === undefined) throw invalid('iteration_to is given without iteration_from');
  if (block_id === undefined) throw invalid('iteration_from is given without block_id');
  if (iteration !== undefined) throw invalid('iteration and iteration_from are both given');
  const count = (to ?? from) - from + 1;
  if (count < 1 || count > ITERATION_RANGE_MAX) {
    throw invalid(`iteration_to must be iteration_from or up to ${ITERATION_RANGE_MAX - 1} more`);
  }
  const passes = Array.from({ length: count }, (_, at) => String(from + at));
  return isNested ? { outer_pass: passes } : { iteration: passes };
}
