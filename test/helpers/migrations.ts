/** Live migrations as a tenant sees them: two versions, an instance between its steps, and the moves. */

import { randomUUID } from 'node:crypto';
import type { Execution, MigrationPlan, MigrationRecord } from '../../schema/continuity.js';
import { type Json, sleep, step, type Tenant } from './api.js';
import { expectStatus, type Reply } from './client.js';
import { continuityOf } from './continuity.js';

export const MIGRATIONS = '/continuity/migrations';

/** A step that stands still for longer than any test, without anything of it being outside. */
export const gate = (id: string) => sleep(id, 7 * 86_400_000);

/** A step is done, and the next one stands still. */
export const GATED = [step('a', 'noop'), gate('b')];

/** An instance that was enrolled, and versions of its sequence. */
export interface Moving {
  readonly id: string;
  readonly execution: Execution;
  readonly from: string;
  readonly to: string;
}

export interface MovingOptions {
  readonly state?: 'waiting' | 'paused';
  /** What it comes to by itself; default: running, at a gate. */
  readonly waitsFor?: string;
  readonly data?: Json;
  /** Saved by its caller; null: none is. Default: its data as they are. */
  readonly checkpoint?: Json | null;
}

/** Stores both versions, and brings an instance of the first to where it stands still. */
export async function moving(
  tenant: Tenant,
  source: readonly Json[] = GATED,
  target: readonly Json[] = GATED,
  { state = 'waiting', waitsFor = 'running', data = { n: 1 }, checkpoint }: MovingOptions = {},
): Promise<Moving> {
  const name = `s-${randomUUID()}`;
  const from = await tenant.sequence(source, { name });
  const to = await tenant.sequence(target, { name, version: 2 });
  const id = await tenant.create(from, { context: { data } });
  await tenant.until(id, waitsFor);
  if (waitsFor !== state) await tenant.move(id, state);
  const execution = await continuityOf(tenant).enrol(id);
  if (checkpoint !== null) await save(tenant, id, checkpoint ?? { context_snapshot: data });
  return { id, execution, from, to };
}

/** Saves a checkpoint; resolves with its id. */
export async function save(tenant: Tenant, id: string, checkpoint_data: Json): Promise<string> {
  const reply = await tenant.post<{ id: string }>(`/instances/${id}/checkpoints`, {
    checkpoint_data,
  });
  return expectStatus(reply, 201).id;
}

export function askPlan(
  tenant: Tenant,
  { execution, to }: Pick<Moving, 'execution' | 'to'>,
  more: Json = {},
): Promise<Reply<MigrationPlan>> {
  const { continuity_id } = execution;
  const asked = { continuity_id, to_sequence_id: to, to_version: 2, ...more };
  return tenant.post(`${MIGRATIONS}/plan`, asked);
}

export async function plan(
  tenant: Tenant,
  subject: Pick<Moving, 'execution' | 'to'>,
  more?: Json,
): Promise<MigrationPlan> {
  return expectStatus(await askPlan(tenant, subject, more), 200);
}

export function askApply(
  tenant: Tenant,
  id: string,
  body: Json = {},
): Promise<Reply<MigrationRecord>> {
  return tenant.post(`${MIGRATIONS}/${id}/apply`, body);
}

export const apply = async (tenant: Tenant, id: string, body?: Json): Promise<MigrationRecord> =>
  expectStatus(await askApply(tenant, id, body), 200);

export const askRollback = (tenant: Tenant, id: string): Promise<Reply<MigrationRecord>> =>
  tenant.post(`${MIGRATIONS}/${id}/rollback`, {});

export const rollBack = async (tenant: Tenant, id: string): Promise<MigrationRecord> =>
  expectStatus(await askRollback(tenant, id), 200);
