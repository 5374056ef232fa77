/** Releases as an operator leads them, and what they make of the creations of a tenant. */

import { randomUUID } from 'node:crypto';
import { bucketOf, cohortSeed } from '../../actors/release/core/routes.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { Release } from '../../schema/release.js';
import type { Variant } from '../../schema/release-states.js';
import { type Json, step, type Tenant } from './api.js';
import { expectStatus } from './client.js';

const NOTHING: readonly Json[] = [step('a', 'noop')];

/** Stores versions of one sequence, each with its own blocks; resolves with their ids. */
export async function versions(
  tenant: Tenant,
  ...each: readonly { blocks?: readonly Json[]; input_schema?: Json }[]
): Promise<string[]> {
  const name = `s-${randomUUID()}`;
  const ids: string[] = [];
  for (const [at, { blocks = NOTHING, ...more }] of each.entries()) {
    ids.push(await tenant.sequence(blocks, { name, version: at + 1, ...more }));
  }
  return ids;
}

/** Two versions that do nothing. */
export async function pair(tenant: Tenant): Promise<[baseline: string, candidate: string]> {
  const [baseline = '', candidate = ''] = await versions(tenant, {}, {});
  return [baseline, candidate];
}

/** Starts a canary of this percentage; resolves with the release's id. */
export async function canary(
  tenant: Tenant,
  baseline_sequence_id: string,
  candidate_sequence_id: string,
  percent: number,
  more: Json = {},
): Promise<string> {
  const body = { baseline_sequence_id, candidate_sequence_id, ...more };
  const { id } = expectStatus(await tenant.post<Release>('/releases', body), 201);
  expectStatus(await tenant.post(`/releases/${id}/validate`, { skip: true }), 200);
  await move(tenant, id, 'canary', { percent });
  return id;
}

/** Starts a canary of one percent and promotes it; resolves with the release's id. */
export async function promoted(
  tenant: Tenant,
  baseline: string,
  candidate: string,
): Promise<string> {
  const id = await canary(tenant, baseline, candidate, 1);
  await move(tenant, id, 'promote');
  return id;
}

export async function move(
  tenant: Tenant,
  release: string,
  action: 'canary' | 'pause' | 'promote' | 'rollback',
  body?: Json,
): Promise<Release> {
  return expectStatus(await tenant.post<Release>(`/releases/${release}/${action}`, body), 200);
}

/** What the definition gives the key. */
export const expectedVariant = (release: string, key: string, percent: number): Variant =>
  bucketOf(cohortSeed(release), key) < percent ? 'candidate' : 'baseline';

/** A key that falls on that side. */
export function keyOn(release: string, variant: Variant, percent: number): string {
  for (;;) {
    const key = `customer-${randomUUID()}`;
    if (expectedVariant(release, key, percent) === variant) return key;
  }
}

/** `variant of release`, or `none`. */
export function stampOf({ metadata }: Pick<TaskInstance, 'metadata'>): string {
  const { release } = metadata as { release?: { release_id: string; variant: Variant } };
  return release === undefined ? 'none' : `${release.variant} of ${release.release_id}`;
}
