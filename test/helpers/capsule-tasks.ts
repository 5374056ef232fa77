/** Capsules without an instance behind them: only their outputs matter. */

import { randomBytes } from 'node:crypto';
import type { OutputText, SealTask } from '../../actors/continuity/core/capsule.js';
import { createKeyring } from '../../src/core/sealing/keys.js';

export const KEYRING = createKeyring(Buffer.alloc(32, 7));

const ID = '0195ffff-0000-7000-8000-000000000000';

/** Sealed with the key of the ring, under a new nonce. */
export function sealTask(outputs: readonly OutputText[]): SealTask {
  return {
    facts: {
      ...{ capsule_id: ID, continuity_id: ID, source_instance_id: ID, epoch: 0, tenant_id: 't' },
      ...{ source_runtime_id: ID, allowed_destination_runtime_id: ID, sequence_version: 1 },
      sequence_definition: { blocks: [] },
      ...{ current_step: null, requirements: {}, provenance_head: null },
      ...{ issued_at: '2026-01-01T00:00:00Z', expires_at: '2026-01-01T01:00:00Z' },
    },
    frame: {
      instance: {
        ...{ sequence_id: ID, namespace: 'n', priority: 'normal', timezone: 'UTC', metadata: {} },
        ...{ context: {}, budget: null, parent_instance_id: null },
      },
      checkpoint: {
        id: ID,
        instance_id: ID,
        checkpoint_data: {},
        created_at: '2026-01-01T00:00:00Z',
      },
      ...{ execution_tree: [], effect_ids: [], pending_waits: [], pending_signals: [] },
      ...{ artifacts: [], stream_cursors: [], redacted_audit_context: null },
    },
    outputs,
    keys: { signing: KEYRING.signing, payload: KEYRING.payload },
    nonce: randomBytes(12),
  };
}
