/** The idempotency key of a creation. */

import type { BodyOf } from '../../schema/routes.js';

export type CreationBody = BodyOf<'instances.create'>;

/** The prefix of dry runs, so that a dry run and a real run never share a key. */
const DRY_RUN_KEY = 'dryrun:';

/** As it is stored; an empty key is none. */
export function idempotencyKeyOf({
  idempotency_key,
  dry_run,
}: Pick<CreationBody, 'idempotency_key' | 'dry_run'>): string | null {
  if (!idempotency_key) return null;
  return dry_run === true ? DRY_RUN_KEY + idempotency_key : idempotency_key;
}
