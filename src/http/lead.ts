/**
 * Finds the owner of a request in the text of its body, before anything parses it. The owner derives it again from the
 * checked body and hands the request on if it is another one, so a body that this module gets wrong, or gives up on,
 * costs a message and nothing else.
 */

import { isUuid } from '../../schema/formats.js';
import type { Lead, LeadKind } from '../../schema/route-row.js';
import { eventKeyId, keyedInstanceId, routeOf, routeOfName } from '../base/ids.js';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../base/json-codes.js';
import { endOfString } from '../base/json-guard.js';
import { idempotencyKeyOf } from '../core/creation-key.js';

/** In characters. To look through a longer text takes this thread longer than a shard takes to hand it on. */
const LENGTH_MAX = 16 * 1024;

/** @returns the routing bits of the owner; undefined: the text does not tell */
export function leadIn(text: string, { kind, members }: Lead, tenant: string): number | undefined {
  if (text.length > LENGTH_MAX || !text.includes(`"${members[0]}"`)) return undefined;
  try {
    return ROUTES_BY[kind](membersIn(text, members), tenant);
  } catch {
    // It is not JSON, which the shard says better.
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

/** The values of members at the top of an object, as far as it has them. @throws SyntaxError */
function membersIn(text: string, names: readonly string[]): Members {
  const found: unknown[] = names.map(() => undefined);
  let left = names.length;
  let depth = 0;
  let isName = true;
  let place = -1;
  let from = 0;
  for (let at = 0; at < text.length && left > 0; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      if (depth === 1 && isName) place = names.indexOf(text.slice(at + 1, end));
      at = end;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACKET) depth -= 1;
    else if (depth === 1 && code === COLON) {
      isName = false;
      from = at + 1;
    } else if (code === CLOSE_BRACE || (depth === 1 && code === COMMA)) {
      if (depth === 1 && place >= 0) {
        found[place] = JSON.parse(text.slice(from, at));
        left -= 1;
      }
      if (code === CLOSE_BRACE) depth -= 1;
      else isName = true;
      if (depth === 0) break;
    }
  }
  return found;
}
