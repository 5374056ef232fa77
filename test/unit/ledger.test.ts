/** The judge of the chaos runs, on ledgers and rows made by hand: it must find what is wrong. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { AuditEntry } from '../../schema/instance.js';
import type { WorkerAttempt } from '../../schema/worker.js';
import { LIMITS } from '../../src/limits.js';
import { findViolations } from '../chaos/invariants.js';
import { allowedNumbers, type InstanceRecord, Ledger } from '../chaos/ledger.js';
import { createRandom } from '../chaos/random.js';
import { restingStates } from '../chaos/reachable.js';
import { attemptViolations, auditViolations } from '../chaos/read-back.js';
import type { InstanceRow, OutputRow, Rows, TaskRow } from '../chaos/rows.js';
import { type ShapeName, shapes } from '../chaos/shapes.js';

const SHAPES = shapes('http://127.0.0.1:1');
const NO_ROWS: Rows = {
  instances: [],
  outputs: [],
  tasks: [],
  signals: [],
  audit: [],
  orphans: [],
  breaches: [],
};

/** One acknowledged instance `i-<token>`. */
function acknowledge(ledger: Ledger, shape: ShapeName, token: string, key?: string) {
  const creation = ledger.create(token, shape, key);
  ledger.settle(creation, 'acknowledged');
  return ledger.created(creation, { id: `i-${token}`, deduplicated: false });
}

function instanceRow(token: string, state: string, more: Partial<InstanceRow> = {}): InstanceRow {
  return {
    id: `i-${token}`,
    state,
    token,
    key: null,
    patch: null,
    note: null,
    signal_count: 0,
    audit_count: 0,
    has_timer: state === 'scheduled',
    has_dead_letter: state === 'failed',
    ...more,
  };
}

function outputRows(token: string, blocks: readonly string[]): OutputRow[] {
  return blocks.map((block_id) => ({
    instance_id: `i-${token}`,
    block_id,
    iteration: '',
    attempt: 0,
    output_ref: null,
    mark: null,
  }));
}

function completed(token: string, shape: ShapeName): Rows {
  return {
    ...NO_ROWS,
    instances: [instanceRow(token, 'completed')],
    outputs: outputRows(token, SHAPES[shape].outputs),
  };
}

function violations(ledger: Ledger, rows: Rows, sinkTokens: readonly string[] = []) {
  return findViolations({ ledger, rows, shapes: SHAPES, sinkTokens: new Set(sinkTokens) });
}

function taskRow(more: Partial<TaskRow> = {}): TaskRow {
  return {
    id: 't',
    instance_id: 'i-a',
    block_id: 'work',
    attempt: 0,
    state: 'completed',
    withdrawn: false,
    worker_id: 'w',
    has_heartbeat: true,
    claim_epoch: 1,
    checkpoint_seq: 0,
    is_open: false,
    ...more,
  };
}

const claim = (epoch: number) => ({
  id: 't',
  instance_id: 'i-a',
  block_id: 'work',
  attempt: 0,
  claim_epoch: epoch,
});

/** A ledger with one external instance, whose task `t` was completed at epoch 1. */
function completedTask(): { ledger: Ledger; rows: Rows } {
  const ledger = new Ledger();
  acknowledge(ledger, 'external', 'a');
  ledger.claimed(claim(1));
  const end = { kind: 'complete', epoch: 1, isRetryable: false, mark: 'm' } as const;
  ledger.ended('t', ledger.end('t', end));
  const rows = completed('a', 'external');
  const outputs = rows.outputs.map((row) =>
    row.block_id === 'work' ? { ...row, mark: 'm' } : row,
  );
  return { ledger, rows: { ...rows, outputs, tasks: [taskRow()] } };
}

function assertFinds(found: readonly string[], pattern: RegExp) {
  assert.equal(found.length, 1, found.join('\n'));
  assert.match(found[0]!, pattern);
}

let ledger: Ledger;
beforeEach(() => {
  ledger = new Ledger();
});

test('a run in which every promise was kept has no violations', () => {
  const { ledger, rows } = completedTask();
  assert.deepEqual(violations(ledger, rows), []);
});

test('an acknowledged instance that is not in the database is found', () => {
  acknowledge(ledger, 'pure', 'a');
  const found = violations(ledger, NO_ROWS);
  assert.match(found[0]!, /acknowledged instance i-a \(pure\) does not exist/);
});

test('a creation of unknown outcome may have happened once or not at all', () => {
  ledger.create('a', 'pure');
  assert.deepEqual(violations(ledger, NO_ROWS), []);
  const once = completed('a', 'pure');
  assert.deepEqual(violations(ledger, once), []);
  const twice = {
    ...once,
    instances: [...once.instances, instanceRow('b', 'failed', { token: 'a' })],
  };
  assert.match(violations(ledger, twice)[0]!, /creation a made 2 instances/);
});

test('an instance that nobody asked for is found', () => {
  assertFinds(violations(new Ledger(), completed('a', 'pure')), /nobody asked/);
});

test('a completed instance that lacks the output of a block is found', () => {
  acknowledge(ledger, 'pure', 'a');
  const rows = { ...completed('a', 'pure'), outputs: outputRows('a', ['first', 'last']) };
  assertFinds(violations(ledger, rows), /lacks the output of said/);
});

test('a block that succeeded at two attempts is found', () => {
  acknowledge(ledger, 'pure', 'a');
  const rows = completed('a', 'pure');
  const again = { ...rows.outputs[0]!, attempt: 1 };
  assertFinds(
    violations(ledger, { ...rows, outputs: [...rows.outputs, again] }),
    /succeeded twice/,
  );
});

test('replies that name two instances for one key are found', () => {
  acknowledge(ledger, 'pure', 'a', 'k');
  acknowledge(ledger, 'pure', 'b', 'k');
  assert.deepEqual(ledger.violations, [
    'key k was answered with i-a and with i-b',
    'key k was twice answered as new',
  ]);
});

test('a deduplicated reply names the instance of the first one', () => {
  const record = acknowledge(ledger, 'pure', 'a', 'k');
  const creation = ledger.create('b', 'pure', 'k');
  assert.equal(ledger.created(creation, { id: 'i-a', deduplicated: true }), record);
  const rows = completed('a', 'pure');
  const keyed = { ...rows, instances: [instanceRow('a', 'completed', { key: 'k' })] };
  assert.deepEqual(violations(ledger, keyed), []);
});

test('a batch is all or nothing, also when its answer was lost', () => {
  const batch = ledger.createBatch(['a', 'b'], 'pure');
  assert.deepEqual(violations(ledger, NO_ROWS), []);
  assertFinds(violations(ledger, completed('a', 'pure')), /half done/);
  ledger.settle(batch, 'acknowledged');
  assertFinds(violations(ledger, NO_ROWS), /acknowledged batch of 2 has 0/);
});

test('an acknowledged complete needs its output row, its epoch and its state', () => {
  const { ledger, rows } = completedTask();
  const without = rows.outputs.filter(({ block_id }) => block_id !== 'work');
  assert.match(violations(ledger, { ...rows, outputs: without })[1]!, /has no output row/);
  const reclaimed = [taskRow({ claim_epoch: 2 })];
  assertFinds(violations(ledger, { ...rows, tasks: reclaimed }), /is at epoch 2/);
  const pending = [taskRow({ state: 'pending', withdrawn: true })];
  assertFinds(violations(ledger, { ...rows, tasks: pending }), /acknowledged, is pending/);
  const foreign = rows.outputs.map((row) => ({ ...row, mark: 'other' }));
  assertFinds(violations(ledger, { ...rows, outputs: foreign }), /output of somebody else/);
});

test('two accepted ends of one task are found', () => {
  const { ledger } = completedTask();
  ledger.ended('t', ledger.end('t', { kind: 'fail', epoch: 2, isRetryable: true }));
  assertFinds(ledger.violations, /t ended more than once: complete at epoch 1, fail at epoch 2/);
});

test('two claims at one epoch are found', () => {
  const { ledger } = completedTask();
  ledger.claimed(claim(1));
  assertFinds(ledger.violations, /t was claimed twice at epoch 1/);
});

test('a claimed task without an owner, and a queue that disagrees with its task, are found', () => {
  acknowledge(ledger, 'parked', 'a');
  const instances = [instanceRow('a', 'waiting')];
  const open = taskRow({ state: 'claimed', worker_id: null, is_open: true });
  const rows = { ...NO_ROWS, instances };
  assertFinds(violations(ledger, { ...rows, tasks: [open] }), /claimed by nobody/);
  const lost = taskRow({ state: 'pending', is_open: false });
  assertFinds(violations(ledger, { ...rows, tasks: [lost] }), /is pending and not queued/);
  assertFinds(violations(ledger, rows), /waits for nothing/);
});

test('a scheduled instance without a timer and a failed one without a dead letter are found', () => {
  acknowledge(ledger, 'later', 'a');
  const asleep = [instanceRow('a', 'scheduled', { has_timer: false })];
  assertFinds(violations(ledger, { ...NO_ROWS, instances: asleep }), /nothing will wake/);
  const other = new Ledger();
  acknowledge(other, 'doomed', 'a');
  const unburied = [instanceRow('a', 'failed', { has_dead_letter: false })];
  assertFinds(violations(other, { ...NO_ROWS, instances: unburied }), /dead letter: false/);
});

test('acknowledged signals must exist in the order in which they were sent', () => {
  const record = acknowledge(ledger, 'parked', 'a');
  for (const id of ['s1', 's2']) {
    const signal = ledger.signal(record, 'custom:ping');
    ledger.settle(signal, 'acknowledged');
    signal.id = id;
  }
  const row = (id: string, seq: number) => ({
    id,
    instance_id: 'i-a',
    seq,
    signal_type: 'custom:ping',
  });
  const rows = {
    ...NO_ROWS,
    instances: [instanceRow('a', 'waiting', { signal_count: 2 })],
    tasks: [taskRow({ state: 'pending', is_open: true })],
  };
  const ordered = [row('s1', 1), row('s2', 2)];
  assert.deepEqual(violations(ledger, { ...rows, signals: ordered }), []);
  const swapped = [row('s2', 1), row('s1', 2)];
  assertFinds(violations(ledger, { ...rows, signals: swapped }), /out of order/);
  const gone = [row('s1', 1), row('s3', 2)];
  assertFinds(violations(ledger, { ...rows, signals: gone }), /s2 .* does not exist/);
  const gap = [row('s1', 1), row('s2', 3)];
  assertFinds(violations(ledger, { ...rows, signals: gap }), /numbers have a gap/);
});

test('an audit whose times go back is found', () => {
  acknowledge(ledger, 'pure', 'a');
  const rows = completed('a', 'pure');
  const audit = [2, 1].map((created_ms, seq) => ({ instance_id: 'i-a', seq, created_ms }));
  const instances = [instanceRow('a', 'completed', { audit_count: 2 })];
  assertFinds(violations(ledger, { ...rows, instances, audit }), /goes back in time/);
});

test('an outbound request must follow the commit, and precede the completion', () => {
  ledger.create('a', 'web');
  assertFinds(violations(ledger, NO_ROWS, ['a']), /left before its commit/);
  assertFinds(violations(ledger, completed('a', 'web')), /was never made/);
  assert.deepEqual(violations(ledger, completed('a', 'web'), ['a']), []);
});

test('the last acknowledged write must be there, or an unknown one that came after it', () => {
  const write = (number: number, certainty: 'unknown' | 'acknowledged' | 'refused') => ({
    number,
    certainty,
  });
  const writes = [write(1, 'unknown'), write(2, 'acknowledged'), write(3, 'refused')];
  assert.deepEqual(allowedNumbers(writes), new Set([2]));
  assert.deepEqual(allowedNumbers([...writes, write(4, 'unknown')]), new Set([2, 4]));
  assert.deepEqual(allowedNumbers([write(1, 'unknown')]), new Set([null, 1]));
});

test('a terminal instance that reads differently later is found, its written context aside', () => {
  const record = acknowledge(ledger, 'pure', 'a');
  const body = { id: 'i-a', state: 'completed', context: { data: {} }, updated_at: '1' };
  ledger.seen(record, 'completed', body);
  ledger.seen(record, 'completed', { ...body });
  assert.deepEqual(ledger.violations, []);
  ledger.patch(record, 1);
  ledger.seen(record, 'completed', { ...body, context: { data: { patch: 1 } }, updated_at: '2' });
  assert.deepEqual(ledger.violations, []);
  ledger.seen(record, 'scheduled', body);
  assertFinds(ledger.violations, /was completed for good and became scheduled/);
});

test('resting states follow from what was acknowledged', () => {
  const states = (shape: ShapeName, ...controls: InstanceRecord['controls']) => {
    const record = acknowledge(new Ledger(), shape, 'a');
    record.controls.push(...controls);
    return [...restingStates(record, SHAPES[shape], false)].sort();
  };
  const done = (kind: InstanceRecord['controls'][number]['kind']) =>
    ({ kind, certainty: 'acknowledged' }) as const;
  const maybe = (kind: InstanceRecord['controls'][number]['kind']) =>
    ({ kind, certainty: 'unknown' }) as const;

  assert.deepEqual(states('external'), ['completed']);
  assert.deepEqual(states('doomed'), ['failed']);
  assert.deepEqual(states('parked', done('pause')), ['paused']);
  assert.deepEqual(states('parked', done('pause'), done('resume')), ['waiting']);
  assert.deepEqual(states('parked', maybe('pause')), ['paused', 'waiting']);
  assert.deepEqual(states('parked', done('cancel')), ['cancelled']);
  assert.deepEqual(states('external', done('cancel')), ['cancelled', 'completed']);
  assert.deepEqual(states('external', done('patch.cancelled')), ['cancelled']);
  assert.deepEqual(states('later', done('patch.paused')), ['paused']);
  // An acknowledged move out of a terminal state leaves no state that could explain it.
  assert.deepEqual(states('parked', done('cancel'), done('patch.paused')), []);
});

test('a claim history that does not grow or lacks a promised end is found', () => {
  const { ledger } = completedTask();
  const task = ledger.tasks.get('t')!;
  const attempt = (event: WorkerAttempt['event'], claim_epoch: number): WorkerAttempt => ({
    id: 'x',
    task_id: 't',
    claim_epoch,
    event,
    created_at: '2025-01-01T00:00:00Z',
  });
  const good = [attempt('claimed', 1), attempt('completed', 1)];
  assert.deepEqual(attemptViolations(task, good), []);
  assertFinds(attemptViolations(task, [attempt('claimed', 1), ...good]), /do not grow/);
  assertFinds(attemptViolations(task, [attempt('claimed', 1)]), /lacks its complete at 1/);
  assertFinds(attemptViolations(task, [...good, attempt('failed', 1)]), /ended 2 times/);
});

test('a claim that is not in the history is found, unless the history is full and begins later', () => {
  const claim = (claim_epoch: number): WorkerAttempt => ({
    id: 'a',
    task_id: 't',
    claim_epoch,
    event: 'claimed',
    created_at: '2025-01-01T00:00:00Z',
  });
  const { ledger } = completedTask();
  const task = { ...ledger.tasks.get('t')!, epochs: new Set([2, 5]), ends: [] };
  const full = Array.from({ length: LIMITS.taskHistoryMax }, (_, at) => claim(3 + at));
  assert.deepEqual(attemptViolations(task, full), []);
  assertFinds(attemptViolations(task, full.slice(1)), /epoch 2 is not in its history/);
  const holed = [...full.filter(({ claim_epoch }) => claim_epoch !== 5), claim(1_000)];
  assert.equal(attemptViolations(task, holed).length, 1);
  assertFinds(attemptViolations(task, holed), /epoch 5 is not in its history/);
});

test('an audit that is no chain of states is found', () => {
  const entry = (from_state: 'scheduled' | 'waiting', to_state: 'waiting' | 'completed') =>
    ({ event_type: 'state_transition', from_state, to_state }) as AuditEntry;
  const chain = [entry('waiting', 'completed'), entry('scheduled', 'waiting')];
  assert.deepEqual(auditViolations({ id: 'i', state: 'completed' }, chain), []);
  assertFinds(auditViolations({ id: 'i', state: 'failed' }, chain), /ends in completed/);
  const broken = [entry('scheduled', 'completed'), entry('scheduled', 'waiting')];
  assertFinds(auditViolations({ id: 'i', state: 'completed' }, broken), /left scheduled/);
});

test('a seed gives the same choices again, and its streams differ', () => {
  const draw = (seed: number, stream: number) => {
    const random = createRandom(seed, stream);
    return Array.from({ length: 20 }, () => random.integer(0, 99));
  };
  assert.deepEqual(draw(7, 1), draw(7, 1));
  assert.notDeepEqual(draw(7, 1), draw(7, 2));
  const random = createRandom(1);
  const picks = Array.from({ length: 1_000 }, () => random.weighted({ often: 9, seldom: 1 }));
  const seldom = picks.filter((name) => name === 'seldom').length;
  assert.ok(seldom > 50 && seldom < 150, `${seldom} of 1,000`);
});
