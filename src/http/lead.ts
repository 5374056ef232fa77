/** Finds the owner of a request in its raw body. The shard checks it, and forwards a wrong one. */

import { isUuid } from '../../schema/formats.js';
import type { Lead, LeadKind } from '../../schema/route-row.js';
import { eventKeyId, keyedInstanceId, routeOf, routeOfName } from '../base/ids.js';
import { JsonReader } from '../base/json-members.js';
import { CLOSE_OBJECT, COMMA } from '../base/json-text.js';
import { idempotencyKeyOf } from '../core/creation-key.js';

/** In characters. Scanning a longer text takes longer than forwarding the request from one shard to another. */
const LENGTH_MAX = 16 * 1024;

/** @returns the routing bits of the owner; undefined: the text does not contain it */
export function leadIn(text: string, { kind, members }: Lead, tenant: string): number | undefined {
  if (text.length > LENGTH_MAX || !text.includes(`"${members[0]}"`)) return undefined;
  try {
    return ROUTES_BY[kind](membersIn(text, members), tenant);
  } catch {
    // Invalid JSON: the shard reports it with details.
    return undefined;
  }
}

type Members = readonly unknown[];
const ROUTES_BY: Record<LeadKind, (members: Members, tenant: string) => number | undefined> = {
  name: ([name]) => (typeof name === 'string' ? routeOfName(name) : undefined),
  id: ([id]) => (typeof id === 'string' && isUuid(id) ? routeOf(id) : undefined),
  'instance-key': ([idempotency_key, tenant_id, dry_run]) => {
    if (typeof idempotency_key !== 'string' || typeof tenant_id !== 'string') return undefined;
    const key = idempotencyKeyOf({ idempotency_key, dry_run: dry_run === true });
    return key === null ? undefined : routeOf(keyedInstanceId(tenant_id, key));
  },
  'event-key': ([name, key = null, named = null], tenant) => {
    const owner = named ?? tenant;
    if (typeof name !== 'string' || typeof owner !== 'string') return undefined;
    if (key !== null && typeof key !== 'string') return undefined;
    return routeOf(eventKeyId(owner, name, key ?? undefined));
  },
  poll: ([poll]) => {
    const [handler] = (poll as { handlers?: readonly unknown[] } | null)?.handlers ?? [];
    return typeof handler === 'string' ? routeOfName(handler) : undefined;
  },
};

/** The values of members of the outermost object; undefined for missing ones. @throws SyntaxError */
function membersIn(text: string, names: readonly string[]): Members {
  const reader = new JsonReader(text);
  const found: unknown[] = names.map(() => undefined);
  let missing = names.length;
  reader.eachMember((name) => {
    const place = names.indexOf(name);
    if (place < 0) return reader.skip();
    const value = reader.value();
    const behind = reader.peek();
    if (value === undefined || (behind !== COMMA && behind !== CLOSE_OBJECT)) return false;
    found[place] = JSON.parse(value);
    missing -= 1;
    return missing > 0;
  });
  return found;
}
