/** Of what blocks in loops left: one block, one pass of all loops around it, or some of the outermost one. Pure. */

import { PASSES_MAX } from '../../../schema/attempt.js';
import { invalid } from '../../errors.js';
import type { Filter } from './filters.js';

/** The query of a list that has these members. */
export interface AskedPasses {
  readonly block_id?: string | undefined;
  readonly iteration?: string | undefined;
  readonly iteration_from?: number | undefined;
  readonly iteration_to?: number | undefined;
}

export function passFilters(alias: string) {
  const iteration = `${alias}.iteration`;
  return {
    block_id: { column: `${alias}.block_id`, type: 'text' },
    iteration: { column: iteration, type: 'text' },
    outer_passes: { column: `split_part(${iteration}, '.', 1)`, type: 'text' },
  } as const satisfies Record<string, Filter>;
}

/** @throws EngineError 400 when too many passes are asked for, or none */
export function passesOf({
  block_id,
  iteration,
  iteration_from: from,
  iteration_to: to,
}: AskedPasses): {
  readonly [M in keyof ReturnType<typeof passFilters>]?: string | readonly string[] | undefined;
} {
  if (from === undefined) {
    if (to !== undefined) throw invalid('iteration_to is given without iteration_from');
    return { block_id, iteration };
  }
  const count = (to ?? from) - from + 1;
  if (count < 1 || count > PASSES_MAX) {
    throw invalid(`iteration_to must be iteration_from or up to ${PASSES_MAX - 1} more`);
  }
  const outer_passes = Array.from({ length: count }, (_, at) => String(from + at));
  return { block_id, iteration, outer_passes };
}
