/** Tables of outputs, signals, gates, audit, logs and checkpoints. Pure. */

import { timeOfId } from '../../src/base/ids.js';
import { type JsonValue, textOfJson } from '../../src/base/json.js';
import { isoTime, msOfTime } from '../../src/base/time.js';
import { lined } from '../../src/db/lines.js';
import {
  clear,
  drop,
  insert,
  type MutationRow,
  mutations,
  set,
  special,
  timeOf,
  update,
} from '../../src/db/mutation.js';
import {
  belonging,
  type ColumnOf,
  columnsBut,
  columnType,
  type StoredRow,
} from '../../src/db/table.js';

export const EFFECT_RECEIPTS = belonging('effect_receipts', ['id'], {
  id: 'uuid',
  instance_id: 'uuid',
  continuity_id: 'uuid',
  tenant_id: 'text',
  epoch: 'bigint',
  block_id: 'text',
  attempt: 'integer',
  kind: 'text',
  state: 'text',
  destination_fingerprint: 'text',
  idempotency_key: 'text?',
  request_sha256: 'text',
  provider_receipt_id: 'text?',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
  iteration: 'text?',
});

export const EFFECT = mutations('effect', { insert: insert(EFFECT_RECEIPTS, {}, 'nothing') });

export const BLOCK_OUTPUTS = belonging(
  'block_outputs',
  ['instance_id', 'block_id', 'iteration', 'attempt'],
  {
    id: 'uuid',
    instance_id: 'uuid',
    block_id: 'text',
    iteration: 'text',
    attempt: 'integer',
    try: 'integer',
    output: 'json?',
    output_ref: 'text?',
    output_size: 'integer',
    created_at: 'timestamptz',
    effect: 'json?',
  },
);

/** What an output in the row of its instance has, and what is omitted there. */
const PACKED = {
  id: 'r.id',
  block_id: 'r.block_id',
  iteration: "coalesce(r.iteration, '')",
  attempt: 'coalesce(r.attempt, 0)',
  try: 'coalesce(r.try, 0)',
  output: 'r.output',
  // JSON null is stored as null.
  output_size: 'coalesce(octet_length(r.output::text), 4)',
  created_at: `coalesce(r.created_at, ${timeOf('r.id')})`,
} as const satisfies { readonly [C in ColumnOf<typeof BLOCK_OUTPUTS>]?: string };

/** All outputs: the rows, and those that the row of their completed instance has (`packedOutput`). */
export const OUTPUT_ROWS = outputRows();

function outputRows(): string {
  const names = columnsBut(BLOCK_OUTPUTS);
  const base = (name: string) => columnType(BLOCK_OUTPUTS, name).base;
  const types = Object.keys(PACKED).map((name) => `${name} ${base(name)}`);
  const packed: { readonly [C in string]?: string } = { ...PACKED, instance_id: 'i.id' };
  const values = names.map((name) => packed[name] ?? `null::${base(name)}`);
  return (
    `(select ${names.join(', ')} from block_outputs union all ` +
    `select ${values.join(', ')} from instances i ` +
    `cross join lateral json_to_recordset(i.end_outputs) as r(${types.join(', ')}))`
  );
}

const RECEIPT = Object.keys(EFFECT_RECEIPTS.columns).map(
  (column) => `${column} ${columnType(EFFECT_RECEIPTS, column).base}`,
);

export const OUTPUT = mutations('output', {
  dropErrors: drop(BLOCK_OUTPUTS, 'instance_id', { output_ref: "'__error__'" }),
  // The receipt of an effect outlives its output.
  dropBlocks: special(
    BLOCK_OUTPUTS,
    'barrier',
    { instance_id: 'uuid', block_ids: 'json' },
    (rows) => `
with dropped as (
  delete from block_outputs o using ${rows}
  where o.instance_id = r.instance_id
    and o.block_id in (select json_array_elements_text(r.block_ids))
  returning o.effect
)
insert into effect_receipts (${Object.keys(EFFECT_RECEIPTS.columns).join(', ')})
select r.*
from dropped d cross join lateral json_to_record(d.effect) as r(${RECEIPT.join(', ')})
where d.effect is not null
on conflict (id) do nothing`,
  ),
  insert: lined(insert(BLOCK_OUTPUTS)),
});

/** An output in the row of its completed instance, without what most have in common or follows from the rest. */
export interface PackedOutput
  extends Partial<
    Pick<StoredRow<typeof BLOCK_OUTPUTS>, 'iteration' | 'attempt' | 'try' | 'created_at'>
  > {
  readonly id: string;
  readonly block_id: string;
  readonly output: JsonValue;
}

export function packedText(row: StoredRow<typeof BLOCK_OUTPUTS>): string {
  const { id, block_id, iteration, attempt, try: number, created_at, output } = row;
  return (
    `{"id":"${id}","block_id":${JSON.stringify(block_id)}` +
    (iteration === '' ? '' : `,"iteration":${JSON.stringify(iteration)}`) +
    (attempt === 0 ? '' : `,"attempt":${attempt}`) +
    (number === 0 ? '' : `,"try":${number}`) +
    (msOfTime(created_at) === timeOfId(id) ? '' : `,"created_at":"${created_at}"`) +
    `,"output":${output}}`
  );
}

export function unpacked(
  instance_id: string,
  { id, block_id, iteration = '', attempt = 0, try: number = 0, output, created_at }: PackedOutput,
): MutationRow<typeof OUTPUT.insert> {
  return {
    ...{ id, instance_id, block_id, iteration, attempt, try: number, output },
    output_size: Buffer.byteLength(textOfJson(output)),
    created_at: created_at ?? isoTime(timeOfId(id)),
  };
}

export const ITERATION_SNAPSHOTS = belonging('iteration_snapshots', ['instance_id', 'key'], {
  instance_id: 'uuid',
  key: 'text',
  items: 'json',
});

export const SNAPSHOT = mutations('snapshot', {
  clear: clear(ITERATION_SNAPSHOTS),
  set: set(ITERATION_SNAPSHOTS, ['items']),
});

export const SIGNALS = belonging('signals', ['instance_id', 'seq'], {
  id: 'uuid',
  instance_id: 'uuid',
  seq: 'integer',
  signal_type: 'text',
  payload: 'json?',
  created_at: 'timestamptz',
  traceparent: 'text?',
  status: 'text?',
  taken_at: 'timestamptz?',
  taken_by: 'text?',
  sent_by: 'text?',
  sent_groups: 'text?',
});

export const SIGNAL = mutations('signal', {
  insert: insert(SIGNALS),
  // When a step takes a kept signal.
  update: update(SIGNALS, ['status', 'taken_at', 'taken_by']),
});

export const APPROVALS = belonging('approvals', ['id'], {
  id: 'uuid',
  instance_id: 'uuid',
  tenant_id: 'text',
  namespace: 'text',
  sequence_id: 'uuid',
  block_id: 'text',
  path: 'text',
  iteration: 'text',
  prompt: 'text',
  gate: 'json',
  waiting_since: 'timestamptz',
  deadline: 'timestamptz?',
  outcome: 'text?',
  closed_at: 'timestamptz?',
  answer: 'json?',
  approvers: 'text',
});

export const APPROVAL = mutations('approval', {
  insert: insert(APPROVALS),
  // When the deadline moves, or the instance is migrated.
  update: update(APPROVALS, ['sequence_id', 'path', 'prompt', 'gate', 'deadline', 'approvers']),
  close: update(APPROVALS, ['outcome', 'closed_at', 'answer']),
});

export const AUDIT_LOG = belonging('audit_log', ['instance_id', 'seq'], {
  instance_id: 'uuid',
  seq: 'integer',
  tenant_id: 'text',
  entries: 'json',
  created_at: 'timestamptz',
});

export const AUDIT = mutations('audit', { insert: lined(insert(AUDIT_LOG)) });

export const STEP_LOGS = belonging('step_logs', ['instance_id', 'id'], {
  id: 'uuid',
  instance_id: 'uuid',
  /** Null in rows from before migration 0053. */
  tenant: 'text?',
  entries: 'json',
  created_at: 'timestamptz',
});

export const STEP_LOG = mutations('stepLog', { insert: insert(STEP_LOGS) });

export const CHECKPOINTS = belonging('checkpoints', ['instance_id', 'id'], {
  id: 'uuid',
  instance_id: 'uuid',
  checkpoint_data: 'json?',
  created_at: 'timestamptz',
});

export const CHECKPOINT = mutations('checkpoint', {
  insert: insert(CHECKPOINTS),
  // Deletes all but the newest `keep`.
  prune: special(
    CHECKPOINTS,
    'barrier',
    { instance_id: 'uuid', keep: 'integer' },
    (rows) => `
delete from checkpoints c using ${rows}
where c.instance_id = r.instance_id and c.id in (
  select o.id from checkpoints o where o.instance_id = r.instance_id
  order by o.id desc offset r.keep)`,
  ),
});

export const INSTANCE_DETAILS = [
  EFFECT,
  OUTPUT,
  SNAPSHOT,
  SIGNAL,
  APPROVAL,
  AUDIT,
  STEP_LOG,
  CHECKPOINT,
];
