/** An instance's actor without a host: what it runs in, and what it is created from. */

import type { InstanceEnv } from '../../actors/instance/live-instance.js';
import type { NewInstance } from '../../actors/instance/record.js';
import { createIdGenerator } from '../../src/base/ids.js';
import type { CreationBody } from '../../src/core/creation-key.js';
import { planOf } from './player.js';

const NOW = 1_700_000_000_000;

/** A clock that stands still, unless another one is given. */
export function instanceEnv(more: Partial<InstanceEnv> = {}): InstanceEnv {
  return {
    now: () => NOW,
    stamp: () => NOW,
    random: () => 0.5,
    ids: idsOf(() => NOW),
    ...{ shards: 1, stepTimeoutMaxMs: 300_000, unpoliciedRetry: 'redispatch' },
    ...{ requireClaimEpoch: false, workerStaleMs: 60_000, lostClaimsMax: 10, maxContextBytes: 0 },
    maxOutputBytes: 1_048_576,
    webhookTargets: () => [],
    placeChild: (instance) => ({ instance, plan: planOf([]) }),
    readySince: () => 0,
    outageEnd: () => 0,
    monotonic: () => 0,
    ...more,
  };
}

export const idsOf = (now: () => number) => createIdGenerator(now, () => 1);

export function newInstance(id: string, more: Partial<CreationBody> = {}): NewInstance {
  return { id, body: { sequence_id: 'sequence', tenant_id: 't', namespace: 'n', ...more } };
}
