/** The job of side threads for the admission of definitions. */

import { type Job, LARGE_JOB_MS } from '../../src/base/offload.js';
import type { BlocksBody } from './front/count-blocks.js';

/** Admission counts the blocks of short definitions itself. */
export const COUNT_BLOCKS: Job<BlocksBody, number> = {
  name: 'countBlocks',
  load: async () => (await import('./front/count-blocks.js')).countBlocks,
  isSmall: () => false,
  ms: LARGE_JOB_MS,
};
