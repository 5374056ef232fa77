/** Reads of triggers, and of what authenticates their callers, on the front thread. */

import { EngineError } from '../../../src/base/errors.js';
import { owned } from '../../../src/base/tenancy.js';
import { openSecret, type StoredSecret } from '../../../src/core/sealing/sealing.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import type { FrontDeps } from '../../../src/http/operation.js';
import { TRIGGER_SQL, type TriggerRow } from '../loads.js';

export const triggerBySlug = lookup<TriggerRow>('read_trigger', TRIGGER_SQL.trigger);

/** Rejects with an EngineError 404. */
export async function ownTrigger(reads: FrontDeps['reads'], tenant: string, slug: string) {
  return owned(await triggerBySlug.row(reads, slug), tenant, `trigger ${slug}`);
}

export function unauthenticated(why: string): EngineError {
  return new EngineError('ENG_UNAUTHENTICATED', `unauthorized: ${why}`);
}

/** Undefined when the trigger has no secret. @throws EngineError 401 when the secret cannot be opened */
export function secretsIn({ keyring }: FrontDeps, row: TriggerRow): readonly string[] | undefined {
  if (row.secret === null) return undefined;
  const stored = JSON.parse(row.secret) as StoredSecret;
  const text = openSecret({ id: row.slug, tenant_id: row.tenant_id }, stored, keyring);
  if (text === undefined) {
    throw unauthenticated('the secret of the trigger cannot be opened with the key of the server');
  }
  return row.verify === null ? [text] : (JSON.parse(text) as string[]);
}
