/**
 * What must hold after every chaos run: each promise of the ledger is found in the rows, and the
 * rows agree with one another. Pure, so that the judge itself is tested on rows made by hand. Each
 * function returns sentences that name what is wrong; none of them is the proof.
 */

import { isEnded } from '../../schema/states.js';
import { checkFlow } from './flow-invariants.js';
import type { InstanceRecord, Ledger, TaskEnd, TaskRecord } from './ledger.js';
import { allowedNumbers, isAcknowledged, isPossible } from './ledger.js';
import { restingStates } from './reachable.js';
import {
  groupBy,
  type InstanceRow,
  markOf,
  type OutputRow,
  type Rows,
  type TaskRow,
} from './rows.js';
import type { Shape, ShapeName } from './shapes.js';

export interface Case {
  readonly tenant: string;
  readonly ledger: Ledger;
  readonly rows: Rows;
  readonly shapes: Readonly<Record<ShapeName, Shape>>;
  /** Tokens of the instances whose outbound request arrived. */
  readonly sinkTokens: ReadonlySet<string>;
}

/** The rows by what they are looked up with. */
export interface Index extends Case {
  readonly instances: ReadonlyMap<string, InstanceRow>;
  readonly tasks: ReadonlyMap<string, TaskRow>;
  readonly tokens: ReadonlyMap<string, readonly InstanceRow[]>;
  readonly outputs: ReadonlyMap<string, readonly OutputRow[]>;
  /** Instances whose step a worker may have failed for good. */
  readonly mayFail: ReadonlySet<string>;
}

const TERMINAL_TASKS: ReadonlySet<string> = new Set(['completed', 'failed']);

/** Every sentence is a broken promise or a contradiction; a run is good when there is none. */
export function findViolations(given: Case): readonly string[] {
  const index = makeIndex(given);
  return [
    ...given.ledger.violations,
    ...checkInstances(index),
    ...checkCreations(index),
    ...checkKeys(index),
    ...checkOutputs(index),
    ...checkTaskPromises(index),
    ...checkTaskRows(index),
    ...checkSignals(index),
    ...checkAudit(index),
    ...checkSink(index),
    ...checkFlow(index),
    ...given.rows.orphans.map((what) => `${what} belongs to nothing`),
    ...given.rows.breaches,
  ];
}

function makeIndex(given: Case): Index {
  const { ledger, rows } = given;
  const mayFail = new Set<string>();
  for (const { instanceId, ends } of ledger.tasks.values()) {
    const isFinal = (end: TaskEnd) => end.kind === 'fail' && !end.isRetryable && isPossible(end);
    if (ends.some(isFinal)) mayFail.add(instanceId);
  }
  return {
    ...given,
    instances: new Map(rows.instances.map((row) => [row.id, row])),
    tasks: new Map(rows.tasks.map((row) => [row.id, row])),
    tokens: groupBy(rows.instances, ({ token }) => token ?? ''),
    outputs: groupBy(rows.outputs, ({ instance_id }) => instance_id),
    mayFail,
  };
}

/** Every acknowledged instance exists, in a state that can follow from what was acknowledged. */
function checkInstances({ ledger, instances, shapes, mayFail }: Index): string[] {
  const found: string[] = [];
  for (const record of ledger.instances.values()) {
    const row = instances.get(record.id);
    if (row === undefined) {
      found.push(`acknowledged instance ${record.id} (${record.shape}) does not exist`);
      continue;
    }
    const allowed = restingStates(record, shapes[record.shape], mayFail.has(record.id));
    if (!(allowed as ReadonlySet<string>).has(row.state)) {
      found.push(
        `instance ${record.id} (${record.shape}) is ${row.state}${row.failure_code === null ? '' : ` (${row.failure_code})`}, expected ` +
          `${[...allowed].join(' or ') || 'nothing'} after ${describeControls(record)}`,
      );
    }
    found.push(...checkNumber(record, row, 'patch'), ...checkNumber(record, row, 'note'));
  }
  return found;
}

function describeControls({ controls }: InstanceRecord): string {
  const asked = controls.filter(isPossible);
  return asked.map(({ kind, certainty }) => `${kind} (${certainty})`).join(', ') || 'no request';
}

/** The last acknowledged write is there, or one of unknown outcome that was sent after it. */
function checkNumber(record: InstanceRecord, row: InstanceRow, kind: 'patch' | 'note'): string[] {
  const allowed = allowedNumbers(kind === 'patch' ? record.patches : record.notes);
  if (allowed.has(row[kind])) return [];
  const expected = [...allowed].join(' or ');
  return [`instance ${record.id}: ${kind} is ${row[kind]}, expected ${expected}`];
}

/** A creation happened at most once; an acknowledged one happened, and made the named instance. */
function checkCreations({ ledger, tokens }: Index): string[] {
  const found: string[] = [];
  for (const { token, certainty } of ledger.creations.values()) {
    const count = tokens.get(token)?.length ?? 0;
    if (count > 1) found.push(`creation ${token} made ${count} instances`);
    if (count > 0 && certainty === 'refused') found.push(`refused creation ${token} was made`);
  }
  for (const { id, token } of ledger.instances.values()) {
    if (token === undefined) continue;
    const stored = tokens.get(token)?.[0]?.id;
    if (stored !== id) found.push(`creation ${token} was answered with ${id}, made ${stored}`);
  }
  for (const { tokens: items, certainty } of ledger.batches) {
    const stored = items.filter((token) => tokens.has(token)).length;
    const isWhole = stored === items.length;
    if (certainty === 'acknowledged' && !isWhole) {
      found.push(`acknowledged batch of ${items.length} has ${stored} instances`);
    }
    if (certainty === 'refused' && stored > 0) {
      found.push(`refused batch of ${items.length} has ${stored} instances`);
    }
    // A batch is all or nothing, also when its answer was lost.
    if (certainty === 'unknown' && !isWhole && stored > 0) {
      found.push(`batch of ${items.length} is half done: ${stored} instances`);
    }
  }
  for (const token of tokens.keys()) {
    if (!ledger.creations.has(token)) found.push(`nobody asked for instance with token ${token}`);
  }
  return found;
}

/** One instance per idempotency key, and every reply named it. */
function checkKeys({ ledger, rows }: Index): string[] {
  const found: string[] = [];
  const byKey = groupBy(rows.keys, ({ key }) => key);
  for (const [key, stored] of byKey) {
    if (stored.length > 1) found.push(`key ${key} stands for ${stored.length} instances`);
  }
  for (const [key, { id }] of ledger.keys) {
    const stored = byKey.get(key)?.[0]?.id;
    if (stored !== id) found.push(`key ${key} was answered with ${id}, stands for ${stored}`);
  }
  return found;
}

/** No block has two outputs, and a completed instance has one of each of its blocks. */
function checkOutputs({ ledger, rows, instances, outputs, shapes }: Index): string[] {
  const found: string[] = [];
  const seen = new Set<string>();
  for (const row of rows.outputs) {
    const { instance_id, block_id, iteration, attempt, output_ref } = row;
    const where = `block ${block_id} of instance ${instance_id}`;
    const key = `${instance_id}/${block_id}/${iteration}/${attempt}`;
    if (seen.has(key)) found.push(`${where} has two outputs of attempt ${attempt}`);
    seen.add(key);
    if (output_ref !== null) continue;
    // Outside of loops a block succeeds once, whatever the number of its attempts.
    const real = `${instance_id}/${block_id}/${iteration}`;
    if (seen.has(real)) found.push(`${where} succeeded twice`);
    seen.add(real);
  }
  for (const [id, row] of instances) {
    const shape = ledger.creations.get(row.token ?? '')?.shape;
    if (row.state !== 'completed' || shape === undefined) continue;
    const real = (outputs.get(id) ?? []).filter(({ output_ref }) => output_ref === null);
    const missing = shapes[shape].outputs.filter(
      (block) => !real.some(({ block_id }) => block_id === block),
    );
    if (missing.length > 0) {
      found.push(`completed instance ${id} (${shape}) lacks the output of ${missing.join(', ')}`);
    }
  }
  return found;
}

/** What workers were told is found: claims, ends with their outputs, checkpoints. */
function checkTaskPromises(index: Index): string[] {
  const found: string[] = [];
  for (const record of index.ledger.tasks.values()) {
    const row = index.tasks.get(record.id);
    if (row === undefined) {
      found.push(`task ${record.id}, which a poll returned, does not exist`);
      continue;
    }
    const epoch = Math.max(...record.epochs.keys());
    if (row.claim_epoch < epoch) {
      found.push(`task ${record.id} was claimed at epoch ${epoch}, has ${row.claim_epoch}`);
    }
    if (row.checkpoint_seq < record.checkpointSeq) {
      found.push(
        `task ${record.id} was promised checkpoint ${record.checkpointSeq}, ` +
          `has ${row.checkpoint_seq}`,
      );
    }
    found.push(...checkEnd(index, record, row));
  }
  return found;
}

function checkEnd({ outputs }: Index, record: TaskRecord, row: TaskRow): string[] {
  const end = record.ends.find(isAcknowledged);
  if (end === undefined) return [];
  const what = `task ${record.id}, whose ${end.kind} at epoch ${end.epoch} was acknowledged,`;
  const found: string[] = [];
  if (row.claim_epoch !== end.epoch) found.push(`${what} is at epoch ${row.claim_epoch}`);
  if (row.state !== (end.kind === 'complete' ? 'completed' : 'failed')) {
    found.push(`${what} is ${row.state}`);
  }
  if (end.kind === 'fail') return found;
  const output = outputs
    .get(record.instanceId)
    ?.find(
      ({ block_id, attempt, output_ref }) =>
        block_id === record.blockId && attempt === record.attempt && output_ref === null,
    );
  if (output === undefined) found.push(`${what} has no output row`);
  else if (markOf(output) !== end.mark) found.push(`${what} has the output of somebody else`);
  return found;
}

/** Claims have owners, and the table of open tasks says the same as the tasks themselves. */
function checkTaskRows({ rows, instances }: Index): string[] {
  const found: string[] = [];
  const waiting = new Set<string>();
  for (const task of rows.tasks) {
    const instance = instances.get(task.instance_id);
    if (task.state === 'claimed' && (task.worker_id === null || !task.has_heartbeat)) {
      found.push(`task ${task.id} is claimed by nobody`);
    }
    const isOpen = !task.withdrawn && !TERMINAL_TASKS.has(task.state);
    if (isOpen !== task.is_open) {
      found.push(`task ${task.id} is ${task.state} and ${task.is_open ? '' : 'not '}queued`);
    }
    if (isOpen && instance !== undefined && isEnded(instance.state as 'failed')) {
      found.push(`task ${task.id} is open in a ${instance.state} instance`);
    }
    if (isOpen) waiting.add(task.instance_id);
  }
  for (const [id, { state, has_timer, has_dead_letter, has_event_wait }] of instances) {
    const isWaiting = waiting.has(id) || has_event_wait;
    if (state === 'waiting' && !isWaiting) found.push(`instance ${id} waits for nothing`);
    if (state === 'scheduled' && !has_timer) found.push(`nothing will wake instance ${id}`);
    if (isEnded(state as 'failed') && has_timer) found.push(`${state} instance ${id} has a timer`);
    if ((state === 'failed') !== has_dead_letter) {
      found.push(`instance ${id} is ${state}, dead letter: ${has_dead_letter}`);
    }
  }
  return found;
}

/** Acknowledged signals are kept, numbered without gaps, in the order in which they were sent. */
function checkSignals({ ledger, rows, instances }: Index): string[] {
  const found: string[] = [];
  const byInstance = groupBy(rows.signals, ({ instance_id }) => instance_id);
  for (const [id, { signal_count }] of instances) {
    const stored = byInstance.get(id) ?? [];
    found.push(...checkNumbering(`signals of instance ${id}`, stored, signal_count));
  }
  for (const { id: instanceId, signals } of ledger.instances.values()) {
    const stored = new Map((byInstance.get(instanceId) ?? []).map((row) => [row.id, row]));
    let last = Number.NEGATIVE_INFINITY;
    for (const { id, type } of signals.filter(isAcknowledged)) {
      const row = stored.get(id!);
      if (row === undefined) {
        found.push(`acknowledged signal ${id} of instance ${instanceId} does not exist`);
        continue;
      }
      if (row.signal_type !== type) found.push(`signal ${id} is ${row.signal_type}, not ${type}`);
      if (row.seq <= last) found.push(`signal ${id} of instance ${instanceId} is out of order`);
      last = row.seq;
    }
  }
  return found;
}

/** The audit of an instance is numbered without gaps, and its times never go back. */
function checkAudit({ rows, instances }: Index): string[] {
  const found: string[] = [];
  const byInstance = groupBy(rows.audit, ({ instance_id }) => instance_id);
  for (const [id, { audit_count }] of instances) {
    const stored = byInstance.get(id) ?? [];
    found.push(...checkNumbering(`audit of instance ${id}`, stored, audit_count));
    const isMonotonic = stored.every(
      ({ created_ms }, i) => i === 0 || created_ms >= stored[i - 1]!.created_ms,
    );
    if (!isMonotonic) found.push(`audit of instance ${id} goes back in time`);
  }
  return found;
}

/** @param stored in the order of their numbers */
function checkNumbering(what: string, stored: readonly { readonly seq: number }[], count: number) {
  if (stored.length !== count) return [`${what}: ${stored.length} rows, counted ${count}`];
  const hasGap = stored.some(({ seq }, i) => i > 0 && seq !== stored[i - 1]!.seq + 1);
  return hasGap ? [`${what}: the numbers have a gap`] : [];
}

/** No outbound request of an instance that was never stored; of a completed one at least one. */
function checkSink({ ledger, tokens, sinkTokens }: Index): string[] {
  const found: string[] = [];
  for (const token of sinkTokens) {
    if (!tokens.has(token)) found.push(`the request of creation ${token} left before its commit`);
  }
  for (const { token, shape } of ledger.creations.values()) {
    if (shape !== 'web' || sinkTokens.has(token)) continue;
    if (tokens.get(token)?.[0]?.state === 'completed') {
      found.push(`the request of completed instance with token ${token} was never made`);
    }
  }
  return found;
}
