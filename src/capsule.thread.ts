/** The entry of the thread that works on large capsules, a Piscina task for each of them. */

import {
  type OpenedCapsule,
  type OpenTask,
  openSealed,
  type SealedPayload,
  type SealTask,
  sealCapsule,
} from './capsule-work.js';
import type { Imported } from './core/continuity/capsule-import.js';
import type { Parsed } from './core/continuity/parsed.js';

export type CapsuleTask =
  | { readonly kind: 'seal'; readonly task: SealTask }
  | { readonly kind: 'open'; readonly task: OpenTask };

export default function work(asked: CapsuleTask): Parsed<SealedPayload> | Imported<OpenedCapsule> {
  return asked.kind === 'seal' ? sealCapsule(asked.task) : openSealed(asked.task);
}
