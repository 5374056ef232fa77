/** What is read for a migration: where an instance stands, the two versions, and its history. */

import type { InstanceState } from '../../src/core/states.js';
import { REPLAY_SQL } from '../../src/db/reads/replay-reads.js';

/** JSON as text. */
export interface PlaceRow {
  readonly tenant_id: string;
  readonly sequence_id: string;
  readonly state: InstanceState;
  readonly next_fire_at: string | null;
  readonly data: string;
  readonly config: string;
  readonly context_audit: string;
  readonly runtime: string;
  readonly execution: string;
}

export interface VersionRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: number;
  readonly definition: string;
}

export interface OutputKeyRow {
  readonly block_id: string;
  readonly iteration: string;
  readonly attempt: number;
}

export const MIGRATION_SQL = {
  place:
    'select tenant_id, sequence_id, state, next_fire_at, data, config, context_audit, runtime, ' +
    'execution from instances where id = $1::uuid',
  version:
    'select id, tenant_id, namespace, name, version, definition from sequences where id = $1::uuid',
  life: REPLAY_SQL.run,
  outputKeys:
    'select block_id, iteration, attempt from block_outputs where instance_id = $1::uuid ' +
    'order by block_id, iteration, attempt',
  outputBlocks:
    'select distinct block_id from block_outputs where instance_id = $1::uuid ' +
    'and output_ref is null order by block_id',
} as const;
