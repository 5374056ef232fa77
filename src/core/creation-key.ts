/** The idempotency key of a creation. */

import type { BodyOf } from '../../schema/routes.js';

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
