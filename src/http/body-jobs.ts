/** The jobs of side threads for large bodies. */

import { type Job, LARGE_JOB_MS } from '../base/offload.js';
import type { BodyJudgement, DoubtfulBody } from './body.js';

/** Determines why a body is invalid. Linting a definition takes longer. */
export const JUDGE_BODY: Job<DoubtfulBody, BodyJudgement> = {
  name: 'judgeBody',
  load: async () => (await import('./body.js')).judgeBody,
  isSmall: ({ text, callMsMax }) => callMsMax === undefined && text.length <= 128 * 1024,
  ms: LARGE_JOB_MS,
};
