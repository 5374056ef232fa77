/** Capsules opened with the schema of their payload at hand: a job of `src/base/offload.ts`. */

import { createValidators } from '../../schema/validators.js';
import type { Parsed } from '../../src/core/parsed.js';
import { type OpenedCapsule, type OpenTask, openSealed } from './core/sealed-payload.js';

const { checkPayload } = createValidators();

export function openCapsule(task: OpenTask): Parsed<OpenedCapsule> {
  return openSealed(task, checkPayload);
}
