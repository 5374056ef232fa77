/** The job that opens a capsule and validates its payload. */

import { createValidators } from '../../schema/validators.js';
import type { Parsed } from '../../src/core/parsed.js';
import { type OpenedCapsule, type OpenTask, openSealed } from './core/capsule.js';

const { checkPayload } = createValidators();

export function openCapsule(task: OpenTask): Parsed<OpenedCapsule> {
  return openSealed(task, checkPayload);
}
