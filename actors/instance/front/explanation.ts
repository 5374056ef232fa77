/**
 * `GET /instances/{id}/explain`: the owner of the instance says what it waits for, and what others have to
 * do with that is read. Nothing of it is kept at hand for those who may ask.
 */

import { AHEAD_MAX, HOLDERS_MAX, WAITS_MAX } from '../../../schema/explanation.js';
import { concurrencyKeyId, rateLimitId } from '../../../src/base/ids.js';
import type { JsonObject } from '../../../src/base/json.js';
import type { WaitFacts } from '../../../src/core/waits.js';
import type { Reads } from '../../../src/db/reads.js';
import { type FrontDeps, jsonReply, type Operation } from '../../../src/http/operation.js';
import { type ExplanationContext, explain } from '../core/explanation.js';
import type { InstanceStatus } from '../waits.js';
import { promptsOf } from './approval-reads.js';
import { entryOf, recentMoves } from './audit-reads.js';
import { limitsOf, pollersOf, slotHolders, statesOf, waitersAhead } from './explanation-reads.js';
import type { RetryPreviews } from './retry-previews.js';

/** Moves that are looked at: the state is as old as the newest of them that leads to it. */
const MOVES_MAX = 200;

export function instanceExplanation(previews: RetryPreviews): Operation<'instances.explain'> {
  return async (deps, { tenant, params: { id } }) => {
    const told = await previews.standing(tenant, id);
    const standing = { ...told, again: await previews.whole(tenant, told) };
    return jsonReply(JSON.stringify(explain(standing, await surroundings(deps, standing))));
  };
}

async function surroundings(
  { reads, now }: FrontDeps,
  standing: InstanceStatus,
): Promise<ExplanationContext> {
  const { id, tenant_id: tenant, waits } = standing;
  const [moves, pollers, slot, limits, approvals, children] = await Promise.all([
    recentMoves.rows(reads, id, MOVES_MAX),
    ofWaits(
      waits,
      'task',
      ({ handler }) => handler,
      (names) => pollersOf.rows(reads, tenant, names),
    ),
    slotOf(reads, standing),
    ofWaits(
      waits,
      'rate_limit',
      ({ key }) => rateLimitId(tenant, key ?? ''),
      (ids) => limitsOf.rows(reads, ids),
    ),
    ofWaits(
      waits,
      'approval',
      ({ approval_id }) => approval_id,
      () => promptsOf.rows(reads, id, WAITS_MAX),
    ),
    ofWaits(
      waits,
      'child',
      ({ child_id }) => child_id,
      (ids) => statesOf.rows(reads, ids),
    ),
  ]);
  return {
    now: now(),
    moves: moves.map((row) => {
      const { to_state, block_id, details } = entryOf(row);
      return { to_state, block_id, details: details as JsonObject, at: row.created_at };
    }),
    pollers,
    approvals,
    children: new Map(children.map(({ id, state }) => [id, state])),
    limits: limits.map(({ limit_key, ...set }) => ({ limit_key, set })),
    ...slot,
  };
}

/** Nothing is read where nothing waits for it. */
async function ofWaits<Row>(
  waits: readonly WaitFacts[],
  kind: WaitFacts['kind'],
  nameOf: (wait: WaitFacts) => string | undefined,
  read: (names: readonly string[]) => Promise<Row[]>,
): Promise<Row[]> {
  const names = new Set(waits.filter((wait) => wait.kind === kind).map(nameOf));
  return names.size === 0 ? [] : read([...names].filter((name) => name !== undefined));
}

async function slotOf(
  reads: Reads,
  { id, tenant_id: tenant, waits }: InstanceStatus,
): Promise<Pick<ExplanationContext, 'holders' | 'ahead'>> {
  const wait = waits.find(({ kind }) => kind === 'slot');
  if (wait === undefined) return { holders: [], ahead: 0 };
  const key = concurrencyKeyId(tenant, wait.key ?? '');
  const [holders, before] = await Promise.all([
    slotHolders.rows(reads, key, HOLDERS_MAX),
    waitersAhead.row(reads, key, id, AHEAD_MAX),
  ]);
  return { holders, ahead: before?.ahead ?? 0 };
}
