/**
 * A canary between two equal versions, active through a whole chaos run: whatever is killed, every
 * instance is on the side that its key stands for, says so itself, and is counted when it has ended.
 */

import type pg from 'pg';
import type { Release } from '../../schema/release.js';
import { type InstanceState, isEnded } from '../../schema/states.js';
import { type Client, expectStatus } from '../helpers/client.js';
import { bucketOf } from '../sim/release-oracle.js';

/** Neither side is rare. */
const PERCENT = 50;

export interface RoutedRow {
  readonly id: string;
  readonly sequence_id: string;
  readonly key: string | null;
  readonly state: InstanceState;
  readonly release_id: string | null;
  readonly release_variant: string | null;
  readonly stamp: { readonly release_id: string; readonly variant: string } | null;
  readonly baseline_sequence_id: string | null;
  readonly candidate_sequence_id: string | null;
  /** State and sequence of its row among the outcomes. */
  readonly outcome: string | null;
}

const ROUTED = `
  select i.id, i.sequence_id, i.idempotency_key as key, i.state, i.release_id, i.release_variant,
         i.metadata->'release' as stamp, r.baseline_sequence_id, r.candidate_sequence_id,
         o.state || ' ' || o.sequence_id as outcome
    from instances i
    left join releases r on r.id = i.release_id
    left join release_outcomes o on o.instance_id = i.id
   where i.tenant_id = $1::text`;

/** Stores a second version of a sequence, and has half of the new instances of the first go there. */
export async function startCanary(
  client: Client,
  baselineId: string,
  candidate: object,
): Promise<void> {
  const stored = expectStatus(await client.post<{ id: string }>('/sequences', candidate), 201);
  const sides = { baseline_sequence_id: baselineId, candidate_sequence_id: stored.id };
  const { id } = expectStatus(await client.post<Release>('/releases', sides), 201);
  expectStatus(await client.post(`/releases/${id}/validate`, { skip: true }), 200);
  expectStatus(await client.post(`/releases/${id}/canary`, { percent: PERCENT }), 200);
}

/** @param tenant of a run all of whose sequences have a canary */
export async function findMisrouted(pool: pg.Pool, tenant: string): Promise<readonly string[]> {
  const { rows } = await pool.query<RoutedRow>(ROUTED, [tenant]);
  return rows.flatMap((row) => routingViolations(row).map((what) => `instance ${row.id} ${what}`));
}

/** Exported for its own test. */
export function routingViolations(row: RoutedRow): readonly string[] {
  const { release_id: release, release_variant: variant, key, stamp, state } = row;
  if (release === null) return ['was routed by no release'];
  const found: string[] = [];
  const wanted = key !== null && bucketOf(release, key) < PERCENT ? 'candidate' : 'baseline';
  if (key !== null && variant !== wanted) found.push(`with key ${key} is a ${variant}`);
  const sequence = variant === 'candidate' ? row.candidate_sequence_id : row.baseline_sequence_id;
  if (row.sequence_id !== sequence) found.push(`is a ${variant} of sequence ${row.sequence_id}`);
  if (stamp?.release_id !== release || stamp.variant !== variant) {
    found.push(`is stamped ${JSON.stringify(stamp)}, not ${release} ${variant}`);
  }
  const outcome = isEnded(state) ? `${state} ${row.sequence_id}` : null;
  if (row.outcome !== outcome) found.push(`is ${state}, counted as ${row.outcome}`);
  return found;
}
