/**
 * `GET /instances/{id}/explain`: the shard of the instance reports its waits, and related rows are
 * read. Each read is bounded and uses an index.
 */

import { AHEAD_MAX, HOLDERS_MAX, WAITS_MAX } from '../../../schema/explanation.js';
import type { InstanceState } from '../../../schema/states.js';
import { concurrencyKeyId, rateLimitId } from '../../../src/base/ids.js';
import type { JsonObject } from '../../../src/base/json.js';
import type { WaitFacts } from '../../../src/core/waits.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import type { Reads } from '../../../src/db/reads.js';
import { type FrontDeps, jsonReply, type Operation } from '../../../src/http/operation.js';
import { entryIn } from '../core/audit-entry.js';
import { type ExplanationContext, explain, type Poller } from '../core/explanation.js';
import type { InstanceStatus } from '../waits.js';
import { promptsOf } from './approvals.js';
import { recentMoves } from './audit-reads.js';
import { POLLERS } from './pollers.js';
import type { RetryPreviews } from './retry-previews.js';

/** The newest of these that leads to the current state gives its age. */
const MOVES_MAX = 200;

export function instanceExplanation(previews: RetryPreviews): Operation<'instances.explain'> {
  return async (deps, { tenant, params: { id } }) => {
    const own = await previews.standing(tenant, id);
    const status = { ...own, again: await previews.whole(tenant, own) };
    return jsonReply(JSON.stringify(explain(status, await contextOf(deps, status))));
  };
}

async function contextOf(
  { reads, now }: FrontDeps,
  status: InstanceStatus,
): Promise<ExplanationContext> {
  const { id, tenant_id: tenant, waits } = status;
  const ofWaits = async <Row>(
    kind: WaitFacts['kind'],
    member: 'handler' | 'key' | 'approval_id' | 'child_id',
    read: (names: readonly string[]) => Promise<Row[]>,
  ): Promise<Row[]> => {
    const names = new Set(waits.filter((wait) => wait.kind === kind).map((wait) => wait[member]));
    return names.size === 0 ? [] : read([...names].filter((name) => name !== undefined));
  };
  const [moves, pollers, slot, limits, approvals, children] = await Promise.all([
    recentMoves.rows(reads, id, MOVES_MAX),
    ofWaits('task', 'handler', (names) => pollersOf.rows(reads, tenant, names)),
    slotOf(reads, status),
    ofWaits('rate_limit', 'key', (keys) => {
      const ids = keys.map((key) => rateLimitId(tenant, key));
      return limitsOf.rows(reads, ids, tenant);
    }),
    ofWaits('approval', 'approval_id', () => promptsOf.rows(reads, id, WAITS_MAX)),
    ofWaits('child', 'child_id', (ids) => statesOf.rows(reads, ids)),
  ]);
  return {
    now: now(),
    moves: moves.map((row) => {
      const { to_state, block_id, details } = entryIn(row.entry);
      return { to_state, block_id, details: details as JsonObject, at: row.created_at };
    }),
    pollers,
    approvals,
    children: new Map(children.map(({ id, state }) => [id, state])),
    limits,
    ...slot,
  };
}

async function slotOf(
  reads: Reads,
  { id, tenant_id: tenant, waits }: InstanceStatus,
): Promise<Pick<ExplanationContext, 'holders' | 'ahead'>> {
  if (waits.some(({ kind }) => kind === 'throttle')) {
    const before = await startsAhead.row(reads, id, AHEAD_MAX);
    return { holders: [], ahead: before?.ahead ?? 0 };
  }
  const wait = waits.find(({ kind }) => kind === 'slot');
  if (wait === undefined) return { holders: [], ahead: 0 };
  const key = concurrencyKeyId(tenant, wait.key ?? '');
  const [holders, before] = await Promise.all([
    slotHolders.rows(reads, key, HOLDERS_MAX),
    waitersAhead.row(reads, key, id, AHEAD_MAX),
  ]);
  return { holders, ahead: before?.ahead ?? 0 };
}

/** A worker that polls without a tenant can claim tasks of every tenant. */
const pollersOf = lookup<Poller>(
  'reads_pollers',
  'select w.handler_name, w.queue_name, w.worker_id, w.last_seen_at from ' +
    `${POLLERS} w ` +
    "where w.tenant_id in ($1::text, '') and w.handler_name = any($2::text[]) " +
    'order by w.last_seen_at desc limit 1000',
);

const slotHolders = lookup<{ readonly instance_id: string; readonly state: InstanceState }>(
  'reads_slot_holders',
  'select s.instance_id, i.state from (' +
    'select p.instance_id from permits p where p.key_id = $1::uuid union all ' +
    'select r.instance_id from permit_requests r where r.key_id = $1::uuid and r.has_slot) s ' +
    'join instances i on i.id = s.instance_id order by s.instance_id limit $2::bigint',
);

const statesOf = lookup<{ readonly id: string; readonly state: InstanceState }>(
  'reads_states_of_instances',
  'select id, state from instances where id = any($1::uuid[])',
);

const waitersAhead = lookup<{ readonly ahead: number }>(
  'reads_waiters_ahead',
  'select count(*) as ahead from (select 1 from permit_requests r, permit_requests own ' +
    'where own.instance_id = $2::uuid and r.key_id = $1::uuid and not r.has_slot ' +
    'and (r.created_at, r.instance_id) < (own.created_at, own.instance_id) ' +
    'and not exists (select 1 from permits p where p.instance_id = r.instance_id offset 0) ' +
    'limit $3::bigint) r',
);

const startsAhead = lookup<{ readonly ahead: number }>(
  'reads_starts_ahead',
  'select count(*) as ahead from (select 1 from start_requests r, start_requests own ' +
    'where own.instance_id = $1::uuid and r.key_id = own.key_id ' +
    'and (r.created_at, r.instance_id) < (own.created_at, own.instance_id) limit $2::bigint) r',
);

const limitsOf = lookup<{
  readonly limit_key: string;
  readonly max_count: number;
  readonly window_seconds: number;
}>(
  'reads_limits_of_keys',
  'select limit_key, max_count, window_seconds from rate_limits where id = any($1::uuid[]) ' +
    'union all select limit_key, max_count, window_seconds from rate_limits ' +
    "where tenant_id = $2::text and strpos(limit_key, '*') > 0",
);
