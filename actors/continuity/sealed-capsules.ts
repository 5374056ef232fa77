/** Capsules opened with the schema of their payload at hand: a job of `actors/runtime/offload`. */

import { createValidators } from '../../schema/validators.js';
import type { Parsed } from '../../src/core/continuity/parsed.js';
import {
  type OpenedCapsule,
  type OpenTask,
  openSealed,
} from '../../src/core/continuity/sealed-payload.js';

const { checkPayload } = createValidators();

export function openCapsule(task: OpenTask): Parsed<OpenedCapsule> {
  return openSealed(task, checkPayload);
}
