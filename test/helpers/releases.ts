/** Releases over HTTP, and instances of either side of them that end as they are told. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ReleaseRow } from '../../actors/release/core/record.js';
import type { EvaluationReport, Release, ReleaseDecision } from '../../schema/release.js';
import type { ReleaseState, Variant } from '../../schema/release-states.js';
import { type Json, newHandler, router, step, type Tenant } from './api.js';
import { type Client, expectStatus, type Reply } from './client.js';
import { keyOn } from './routed.js';

/** The row of a draft. */
export const releaseRow = (changes: Partial<ReleaseRow> = {}): ReleaseRow => ({
  id: randomUUID(),
  tenant_id: 't',
  namespace: 'test',
  sequence_name: 'order',
  baseline_sequence_id: randomUUID(),
  baseline_version: 1,
  candidate_sequence_id: randomUUID(),
  candidate_version: 2,
  state: 'draft',
  canary_percent: 0,
  gates: [],
  in_flight_policy: 'pin',
  validation_summary: null,
  canary_started_at: null,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  ...changes,
});

export type Pair = Readonly<Record<'baseline_sequence_id' | 'candidate_sequence_id', string>>;

export type Action = 'validate' | 'canary' | 'evaluate' | 'promote' | 'pause' | 'rollback';

export type Refusal = { readonly error: string };

/** How an instance of `pairOf` ends: as `context.data.end` says. */
export type End = 'completed' | 'failed' | 'cancelled';

/** Two versions of a name of its own. */
export async function pairOf(tenant: Tenant): Promise<Pair> {
  const name = `s-${randomUUID()}`;
  const end = {
    'end == failed': [step('fails', 'fail', { params: { message: 'as it was told' } })],
    'end == cancelled': [step('waits', newHandler())],
  };
  const version = (number: number) =>
    tenant.sequence([router('ends', end, [step('completes', 'noop')])], { name, version: number });
  return { baseline_sequence_id: await version(1), candidate_sequence_id: await version(2) };
}

export async function draft(tenant: Tenant, more: Json = {}): Promise<Release> {
  const body = { ...(await pairOf(tenant)), ...more };
  return expectStatus(await tenant.post<Release>('/releases', body), 201);
}

export function act<T = Release & Refusal>(
  client: Client,
  { id }: Pick<Release, 'id'>,
  action: Action,
  body?: Json,
): Promise<Reply<T>> {
  return client.request<T>('POST', `/releases/${id}/${action}`, { body });
}

/** @throws UnexpectedStatusError unless it is done */
export async function move(
  tenant: Tenant,
  release: Pick<Release, 'id'>,
  action: Exclude<Action, 'validate' | 'evaluate'>,
  body?: Json,
): Promise<Release> {
  return expectStatus(await act(tenant, release, action, body), 200);
}

export async function ready(tenant: Tenant, more: Json = {}): Promise<Release> {
  const release = await draft(tenant, more);
  expectStatus(await act(tenant, release, 'validate', { skip: true }), 200);
  return look(tenant, release);
}

export const canary = async (tenant: Tenant, percent: number, more: Json = {}): Promise<Release> =>
  move(tenant, await ready(tenant, more), 'canary', { percent });

/** A release of its own in this state, without gates. */
export async function releaseIn(
  tenant: Tenant,
  state: Exclude<ReleaseState, 'validating' | 'failed'>,
): Promise<Release> {
  if (state === 'draft') return draft(tenant);
  if (state === 'ready') return ready(tenant);
  const release = await canary(tenant, 20);
  if (state === 'canary') return release;
  const action = { paused: 'pause', promoted: 'promote', rolled_back: 'rollback' } as const;
  return move(tenant, release, action[state]);
}

export const look = async (tenant: Tenant, { id }: Pick<Release, 'id'>): Promise<Release> =>
  expectStatus(await tenant.get<Release>(`/releases/${id}`), 200);

export async function decisionsOf(
  tenant: Tenant,
  { id }: Pick<Release, 'id'>,
): Promise<ReleaseDecision[]> {
  return expectStatus(await tenant.get<ReleaseDecision[]>(`/releases/${id}/decisions`), 200);
}

export async function evaluate(
  tenant: Tenant,
  release: Pick<Release, 'id'>,
): Promise<EvaluationReport> {
  return expectStatus(await act<EvaluationReport>(tenant, release, 'evaluate'), 200);
}

/** Creates an instance of the baseline that the release routes to this side. */
export async function begin(
  tenant: Tenant,
  release: Release,
  variant: Variant,
  end: End,
): Promise<string> {
  const id = await tenant.create(release.baseline_sequence_id, {
    metadata: { cohort_key: keyOn(release.id, variant, release.canary_percent) },
    context: { data: { end } },
  });
  const { sequence_id, metadata } = await tenant.instance(id);
  assert.equal(sequence_id, release[`${variant}_sequence_id`]);
  assert.deepEqual(metadata.release, { release_id: release.id, variant });
  return id;
}

/** Such an instance, which has ended so. */
export async function run(
  tenant: Tenant,
  release: Release,
  variant: Variant,
  end: End,
): Promise<string> {
  const id = await begin(tenant, release, variant, end);
  if (end === 'cancelled') await tenant.signal(id, 'cancel');
  await tenant.until(id, end);
  return id;
}
