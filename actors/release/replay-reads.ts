/**
 * Reads ended runs for the validation of a release, and the start of one for a dry run. The sample is read by the index `instances_by_sequence`; each run
 * is read in one statement, so that it is one snapshot.
 */

import { timeOf } from '../../src/db/mutation.js';
import { lookup } from '../../src/db/reads/lookup.js';
import type { RecordedRun } from './core/recording.js';

export type SampledRun = { readonly id: string; readonly bytes: number };

type JsonMember = 'data' | 'config' | 'execution' | 'outputs' | 'tasks' | 'receipts' | 'signals';

/** A stored run, with JSON as text. */
export interface StoredRun
  extends Omit<RecordedRun, JsonMember | 'state'>,
    Readonly<Record<JsonMember, string>> {
  readonly state: string;
  /** The run has injected blocks beside those of its sequence. */
  readonly has_injected: boolean;
}

/** What an instance started with. */
export type StoredStart = Pick<StoredRun, 'id' | 'timezone' | 'data' | 'config' | 'created_at'> & {
  readonly tenant_id: string;
};

/** Outputs with the result of a step or a person's answer, without notes on attempts. */
const ENDS = "(o.output_ref is null or o.output_ref in ('__error__', 'human_input'))";
/** Also those in the row of the instance, which have no receipts. */
const OUTPUTS =
  '(select id, block_id, iteration, try, output, output_ref, effect, created_at ' +
  'from block_outputs where instance_id = i.id union all ' +
  `select id, block_id, coalesce(iteration, ''), coalesce(try, 0), output, null, null, ` +
  `coalesce(created_at, ${timeOf('r.id')}) ` +
  'from json_to_recordset(i.end_outputs) as r(id uuid, block_id text, iteration text, ' +
  'try integer, output json, created_at timestamptz))';
/** The output of a worker task is usually stored as the output of its step, too. */
const HAS_OUTPUT =
  `exists (select 1 from ${OUTPUTS} o ` +
  'where o.block_id = t.block_id and o.iteration = t.iteration)';

const TASK_COLUMNS =
  'id, instance_id, block_id, iteration, attempt, state, handler_name, params, withdrawn, output, ' +
  'error_message, error_retryable, history, created_at, completed_at';
/** Tasks of ended instances, also those from before migration 0040 (`actors/instance/old-tables.ts`). */
const TASKS =
  `(select ${TASK_COLUMNS} from worker_tasks union all ` +
  `select ${TASK_COLUMNS} from worker_tasks_before)`;

export const REPLAY_SQL = {
  // The subquery limits the rows first, so that only their sizes are computed.
  sample:
    'select i.id, (octet_length(coalesce(i.creation_data, i.data)::text) ' +
    '+ octet_length(i.config::text) + octet_length(i.execution::text) ' +
    '+ coalesce(octet_length(i.end_outputs::text), 0) ' +
    '+ (select coalesce(sum(o.output_size + 200), 0) from block_outputs o ' +
    `where o.instance_id = i.id and ${ENDS}) ` +
    '+ (select coalesce(sum(300 + coalesce(octet_length(t.error_message), 0) ' +
    '+ coalesce(octet_length(t.params::text), 0) + case when ' +
    `${HAS_OUTPUT} then 0 else coalesce(octet_length(t.output::text), 0) end), 0) ` +
    `from ${TASKS} t where t.instance_id = i.id) ` +
    '+ (select coalesce(sum(100 + coalesce(octet_length(s.payload::text), 0)), 0) ' +
    'from signals s where s.instance_id = i.id))::bigint as bytes ' +
    'from (select id, creation_data, end_outputs, data, config, execution from instances ' +
    'where sequence_id = $1::uuid and tenant_id = $2::text ' +
    "and state in ('completed', 'failed') and (runtime ->> 'dry_run') is distinct from 'true' " +
    'order by created_at desc, id desc limit $3::bigint) i',
  run:
    'select i.id, i.state, i.timezone, coalesce(i.creation_data, i.data) as data, i.config, ' +
    'i.execution, i.timeout, i.created_at, ' +
    'exists (select 1 from injected_blocks b where b.instance_id = i.id) as has_injected, ' +
    "(select coalesce(json_agg(json_build_object('id', o.id, 'block_id', o.block_id, " +
    "'iteration', o.iteration, 'try', o.try, 'output', o.output, 'output_ref', o.output_ref, " +
    "'call', o.effect ->> 'request_sha256', 'created_at', o.created_at) order by o.created_at, o.id), '[]') " +
    `from ${OUTPUTS} o where ${ENDS}) as outputs, ` +
    "(select coalesce(json_agg(json_build_object('id', t.id, 'block_id', t.block_id, " +
    "'iteration', t.iteration, 'attempt', t.attempt, 'state', t.state, " +
    "'handler', t.handler_name, 'params', t.params, " +
    `'withdrawn', t.withdrawn, 'output', case when ${HAS_OUTPUT} then null else t.output end, ` +
    "'error_message', t.error_message, 'error_retryable', t.error_retryable, " +
    "'timed_out', exists (select 1 from json_array_elements(t.history) h " +
    "where h ->> 'event' = 'timed_out'), " +
    "'created_at', t.created_at, 'completed_at', t.completed_at) " +
    "order by t.created_at, t.id), '[]') " +
    `from ${TASKS} t where t.instance_id = i.id ` +
    "and t.state in ('completed', 'failed')) as tasks, " +
    "(select coalesce(json_agg(json_build_object('block_id', e.block_id, " +
    "'iteration', e.iteration, 'attempt', e.attempt, 'request_sha256', e.request_sha256) " +
    "order by e.created_at, e.id), '[]') from effect_receipts e " +
    'where e.instance_id = i.id) as receipts, ' +
    "(select coalesce(json_agg(json_build_object('signal_type', s.signal_type, " +
    "'payload', s.payload, 'created_at', s.created_at) order by s.seq), '[]') " +
    'from signals s where s.instance_id = i.id) as signals ' +
    'from instances i where i.id = $1::uuid',
  start:
    'select id, tenant_id, timezone, coalesce(creation_data, data) as data, config, created_at ' +
    'from instances where id = $1::uuid',
} as const;

const CHEAPER = 'ask for a smaller sample, or try again later';

/** Completed and failed runs of a sequence, newest first, without dry runs. */
export const sampledRuns = lookup<SampledRun>('reads_replay_sample', REPLAY_SQL.sample, CHEAPER);
export const storedRun = lookup<StoredRun>('reads_replay_run', REPLAY_SQL.run, CHEAPER);
export const storedStart = lookup<StoredStart>('reads_dry_run_start', REPLAY_SQL.start);
