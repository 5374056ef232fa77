/**
 * Counts the instances of a creation that exist already, by their idempotency keys: a repetition is answered whatever
 * bound the tenant has reached.
 */

import type { Route } from '../../../schema/routes.js';
import { askedRunId, keyedInstanceId } from '../../../src/base/ids.js';
import { isJsonObject, type JsonValue } from '../../../src/base/json.js';
import { BODY_JSON_LIMITS, parseJson } from '../../../src/base/json-guard.js';
import { type CreationBody, idempotencyKeyOf } from '../../../src/core/creation-key.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import type { AdmissionRequest } from '../../../src/http/ports.js';
import { instancesThere } from './tenant-limit-reads.js';

export async function repeatsIn(
  reads: Pick<Reader, 'rows'>,
  { route, tenant, params, body }: AdmissionRequest,
): Promise<number> {
  // A body without a key is not parsed.
  if (route.keyed === undefined || !body.includes('"idempotency_key"')) return 0;
  const parsed = parseJson(body.toString('utf8'), BODY_JSON_LIMITS);
  if (!parsed.ok || !isJsonObject(parsed.value as JsonValue)) return 0;
  const asked = parsed.value as Asked;
  const ids = idsOf(route, tenant, params.id ?? '', asked);
  if (ids.length === 0) return 0;
  const there = new Set((await instancesThere.rows(reads, ids, tenant)).map(({ id }) => id));
  // Items of one key are one instance.
  return ids.filter((id) => there.has(id)).length;
}

type Asked = Partial<CreationBody> & { readonly instances?: unknown };

function idsOf(route: Route, tenant: string, target: string, asked: Asked): string[] {
  switch (route.keyed) {
    case 'body':
      return keyed(tenant, [asked]);
    case 'items':
      return Array.isArray(asked.instances) ? keyed(tenant, asked.instances) : [];
    case 'run':
      return isKey(asked.idempotency_key) ? [askedRunId(target, asked.idempotency_key)] : [];
    default:
      return [];
  }
}

function keyed(tenant: string, items: readonly unknown[]): string[] {
  return items.flatMap((item) => {
    if (!isJsonObject(item as JsonValue)) return [];
    const body = item as CreationBody;
    if (!isKey(body.idempotency_key)) return [];
    return [keyedInstanceId(tenant, idempotencyKeyOf(body) as string)];
  });
}

function isKey(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
