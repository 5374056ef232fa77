/** What it costs to compile a definition, which every shard does once per sequence it meets. */

import { FULFILMENT_BLOCKS, NOOP_SEQUENCE, planOf } from './fixtures.js';
import type { MicroCase } from './micro.js';

const BLOCKS = planOf(FULFILMENT_BLOCKS).nodes.length;

export const planCases: readonly MicroCase[] = [
  { name: 'plan: compile one noop step', calls: 20, run: () => planOf(NOOP_SEQUENCE.blocks) },
  { name: `plan: compile ${BLOCKS} nested blocks`, run: () => planOf(FULFILMENT_BLOCKS) },
];
