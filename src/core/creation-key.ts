/** Idempotency keys of creations, and ids of events, which a trigger derives from its delivery. */

import type { BodyOf } from '../../schema/routes.js';
import { invalid } from '../base/errors.js';

export type CreationBody = BodyOf<'instances.create'>;

/** The key as stored; an empty key counts as absent. */
export function idempotencyKeyOf({
  idempotency_key,
  dry_run,
}: Pick<CreationBody, 'idempotency_key' | 'dry_run'>): string | null {
  if (!idempotency_key) return null;
  // The prefix keeps a dry run and a real run from sharing a key.
  return dry_run === true ? `dryrun:${idempotency_key}` : idempotency_key;
}

/** Begins the keys and ids that triggers give: who took one would suppress a delivery. */
export const TRIGGER_ID_PREFIX = 'trigger:';

/** @throws EngineError 400 naming the member for a key or id that only triggers give */
export function checkCallersId(id: string | null | undefined, member: string): void {
  if (id?.startsWith(TRIGGER_ID_PREFIX) !== true) return;
  throw invalid(`${member} must not begin with ${TRIGGER_ID_PREFIX}`);
}
