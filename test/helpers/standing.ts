/** Instances that stand still before their first step, and their executions. */

import { FAR, type Json, step, type Tenant } from './api.js';
import { type Passage, passageOf } from './capsules.js';

/** An instance of the sequence that is paused before its first step; `startNow` lets it begin. */
export async function pausedAtStart(
  tenant: Tenant,
  sequence: string,
  more: Json = {},
): Promise<string> {
  const id = await tenant.create(sequence, { next_fire_at: FAR, ...more });
  await tenant.move(id, 'paused');
  return id;
}

/** An execution of two steps, or of the blocks, and a live runtime that it may be handed to. */
export async function passageAtStart(
  tenant: Tenant,
  blocks: readonly Json[] = [step('a', 'noop'), step('b', 'noop')],
): Promise<Passage> {
  return passageOf(tenant, await pausedAtStart(tenant, await tenant.sequence(blocks)));
}

/** Begins what stands still, here or as the instance that it goes on as elsewhere. */
export async function startNow(tenant: Tenant, id: string): Promise<void> {
  if ((await tenant.instance(id)).state === 'paused') await tenant.move(id, 'scheduled');
  await tenant.move(id, 'running');
}
