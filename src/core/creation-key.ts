/** The key by which a creation that is sent again is known. */

import type { BodyOf } from '../../schema/routes.js';

export type CreationBody = BodyOf<'instances.create'>;

/** Keys of dry runs begin with this, lest a real run be taken for done. */
const DRY_RUN_KEY = 'dryrun:';

/** As it is stored; an empty key is none. */
export function idempotencyKeyOf({
  idempotency_key,
  dry_run,
}: Pick<CreationBody, 'idempotency_key' | 'dry_run'>): string | null {
  if (!idempotency_key) return null;
  return dry_run === true ? DRY_RUN_KEY + idempotency_key : idempotency_key;
}
