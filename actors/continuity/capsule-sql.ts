/** What is read for a capsule: an instance that is fenced, so that its rows stay as they are. */

import { PAYLOAD_LIST_MAX } from '../../src/core/continuity/capsule-payload.js';

/** One more than a capsule can carry, so that it shows. */
const ROWS_READ = PAYLOAD_LIST_MAX + 1;

export interface FrozenInstanceRow {
  readonly sequence_id: string;
  readonly namespace: string;
  readonly priority: number;
  readonly timezone: string;
  /** JSON as text, here and below. */
  readonly metadata: string;
  readonly data: string;
  readonly config: string;
  readonly context_audit: string;
  readonly runtime: string;
  readonly execution: string;
  readonly parent_instance_id: string | null;
  readonly injected: string | null;
  readonly version: number;
  readonly definition: string;
}

export interface CheckpointRow {
  readonly id: string;
  readonly instance_id: string;
  readonly checkpoint_data: string;
  readonly created_at: string;
}

export interface ItemsRow {
  readonly key: string;
  readonly items: string;
}

export interface OutputTotalsRow {
  readonly rows: number;
  readonly bytes: number;
}

export interface SequenceFactsRow {
  readonly tenant_id: string;
  readonly definition: string;
}

export const CAPSULE_SQL = {
  frozenInstance:
    'select i.sequence_id, i.namespace, i.priority, i.timezone, i.metadata, i.data, i.config, ' +
    'i.context_audit, i.runtime, i.execution, i.parent_instance_id, b.blocks as injected, ' +
    's.version, s.definition from instances i cross join lateral (select version, definition ' +
    'from sequences where id = i.sequence_id offset 0) s left join injected_blocks b on b.instance_id = i.id where i.id = $1::uuid',
  lastCheckpoint:
    'select id, instance_id, checkpoint_data, created_at from checkpoints ' +
    'where instance_id = $1::uuid order by created_at desc, id desc limit 1',
  frozenTotals:
    'select count(*)::float8 as rows, coalesce(sum(output_size), 0)::float8 as bytes ' +
    'from block_outputs where instance_id = $1::uuid',
  frozenOutputs:
    'select block_id, iteration, attempt, try, output, output_ref, output_size, created_at ' +
    `from block_outputs where instance_id = $1::uuid order by created_at, id limit ${ROWS_READ}`,
  frozenItems:
    'select key, items from iteration_snapshots where instance_id = $1::uuid order by key',
  // Each receipt is where its facts lie.
  effectIds:
    'select id from worker_tasks where instance_id = $1::uuid ' +
    'union all select id from block_outputs where instance_id = $1::uuid and effect is not null ' +
    'union all select id from effect_receipts where instance_id = $1::uuid ' +
    `order by id limit ${ROWS_READ}`,
  sequenceFacts: 'select tenant_id, definition from sequences where id = $1::uuid',
} as const;
