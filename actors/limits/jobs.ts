/** The job of side threads that counts the blocks of long definitions, for admission. */

import { type Job, LARGE_JOB_MS } from '../../src/base/offload.js';
import type { BlocksBody } from './front/count-blocks.js';

export const COUNT_BLOCKS: Job<BlocksBody, number> = {
  name: 'countBlocks',
  load: async () => (await import('./front/count-blocks.js')).countBlocks,
  isSmall: () => false,
  ms: LARGE_JOB_MS,
};
