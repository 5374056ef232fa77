/** The judge of the chaos runs, on ledgers and rows made by hand: it must find what is wrong. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { findViolations } from '../chaos/invariants.js';
import { Ledger } from '../chaos/ledger.js';
import type { InstanceRow, OutputRow, Rows, TaskRow } from '../chaos/rows.js';
import { type ShapeName, shapes } from '../chaos/shapes.js';

const SHAPES = shapes('http://127.0.0.1:1');
const NO_ROWS: Rows = {
  ...{ instances: [], outputs: [], tasks: [], signals: [], audit: [], orphans: [], breaches: [] },
};

/** One acknowledged instance `i-<token>`. */
function acknowledge(ledger: Ledger, shape: ShapeName, token: string, key?: string) {
  const creation = ledger.create(token, shape, key);
  ledger.settle(creation, 'acknowledged');
  return ledger.created(creation, { id: `i-${token}`, deduplicated: false });
}

function instanceRow(token: string, state: string, more: Partial<InstanceRow> = {}): InstanceRow {
  return {
    ...{ id: `i-${token}`, state, failure_code: null, token, key: null, patch: null, note: null },
    ...{ signal_count: 0, audit_count: 0, has_timer: state === 'scheduled' },
    ...{ has_dead_letter: state === 'failed', ...more },
  };
}

function outputRows(token: string, blocks: readonly string[]): OutputRow[] {
  const rest = { iteration: '', attempt: 0, output_ref: null, mark: null };
  return blocks.map((block_id) => ({ instance_id: `i-${token}`, block_id, ...rest }));
}

function completed(token: string, shape: ShapeName): Rows {
  return {
    ...NO_ROWS,
    instances: [instanceRow(token, 'completed')],
    outputs: outputRows(token, SHAPES[shape].outputs),
  };
}

const violations = (ledger: Ledger, rows: Rows, sinkTokens: readonly string[] = []) =>
  findViolations({ ledger, rows, shapes: SHAPES, sinkTokens: new Set(sinkTokens) });

const TASK = { id: 't', instance_id: 'i-a', block_id: 'work', attempt: 0 };

function taskRow(more: Partial<TaskRow> = {}): TaskRow {
  return {
    ...{ ...TASK, state: 'completed', withdrawn: false, worker_id: 'w', has_heartbeat: true },
    ...{ claim_epoch: 1, checkpoint_seq: 0, is_open: false, ...more },
  };
}

const claim = (claim_epoch: number) => ({ ...TASK, claim_epoch });

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

function waiting(...tasks: Partial<TaskRow>[]): Rows {
  return { ...NO_ROWS, instances: [instanceRow('a', 'waiting')], tasks: tasks.map(taskRow) };
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

type Finding = readonly [title: string, shape: ShapeName | undefined, rows: Rows, pattern: RegExp];

const PURE = completed('a', 'pure');
const withInstance = (state: string, more: Partial<InstanceRow>) => ({
  ...NO_ROWS,
  instances: [instanceRow('a', state, more)],
});
const twice = [0, 1].flatMap((attempt) => PURE.outputs.map((row) => ({ ...row, attempt })));
const partly = { ...PURE, outputs: outputRows('a', ['first', 'last']) };
const unowned = waiting({ state: 'claimed', worker_id: null, is_open: true });
const untimed = withInstance('scheduled', { has_timer: false });
const audit = [2, 1].map((created_ms, seq) => ({ instance_id: 'i-a', seq, created_ms }));
const audited = { ...PURE, ...withInstance('completed', { audit_count: 2 }), audit };

/** A ledger that has acknowledged an instance of this shape, and what is in the database. */
const FINDINGS: readonly Finding[] = [
  ['an acknowledged instance that is not in the database', 'pure', NO_ROWS, /does not exist/],
  ['an instance that nobody asked for', undefined, PURE, /nobody asked/],
  ['an instance that lacks the output of a block', 'pure', partly, /lacks the output of said/],
  ['a block that succeeded twice', 'pure', { ...PURE, outputs: twice }, /succeeded twice/],
  ['a claimed task without an owner', 'parked', unowned, /claimed by nobody/],
  ['a task that is not queued', 'parked', waiting({ state: 'pending' }), /is pending and not que/],
  ['an instance that waits for nothing', 'parked', waiting(), /waits for nothing/],
  ['a scheduled instance without a timer', 'later', untimed, /nothing will wake/],
  ['an audit whose times go back', 'pure', { ...audited, outputs: PURE.outputs }, /back in time/],
];

for (const [title, shape, rows, pattern] of FINDINGS) {
  test(`${title} is found`, () => {
    if (shape !== undefined) acknowledge(ledger, shape, 'a');
    assert.match(violations(ledger, rows)[0] ?? 'nothing', pattern);
  });
}

test('a creation of unknown outcome may have happened once or not at all, a batch whole or not at all', () => {
  ledger.create('a', 'pure');
  assert.deepEqual(violations(ledger, NO_ROWS), []);
  const once = completed('a', 'pure');
  assert.deepEqual(violations(ledger, once), []);
  const twin = instanceRow('b', 'failed', { token: 'a' });
  const twice = violations(ledger, { ...once, instances: [...once.instances, twin] });
  assert.match(twice[0]!, /creation a made 2 instances/);
  const other = new Ledger();
  const batch = other.createBatch(['a', 'b'], 'pure');
  assert.deepEqual(violations(other, NO_ROWS), []);
  assertFinds(violations(other, once), /half done/);
  other.settle(batch, 'acknowledged');
  assertFinds(violations(other, NO_ROWS), /acknowledged batch of 2 has 0/);
});

test('an acknowledged complete needs its output row, its epoch and its state', () => {
  const { ledger, rows } = completedTask();
  const without = rows.outputs.filter(({ block_id }) => block_id !== 'work');
  assert.match(violations(ledger, { ...rows, outputs: without })[1]!, /has no output row/);
  const withTask = (more: Partial<TaskRow>) =>
    violations(ledger, { ...rows, tasks: [taskRow(more)] });
  assertFinds(withTask({ claim_epoch: 2 }), /is at epoch 2/);
  assertFinds(withTask({ state: 'pending', withdrawn: true }), /acknowledged, is pending/);
  const foreign = rows.outputs.map((row) => ({ ...row, mark: 'other' }));
  assertFinds(violations(ledger, { ...rows, outputs: foreign }), /output of somebody else/);
  ledger.ended('t', ledger.end('t', { kind: 'fail', epoch: 2, isRetryable: true }));
  assertFinds(ledger.violations, /t ended more than once: complete at epoch 1, fail at epoch 2/);
  ledger.claimed(claim(1));
  assert.match(ledger.violations[1]!, /t was claimed twice at epoch 1/);
});

test('acknowledged signals must exist in the order in which they were sent', () => {
  const record = acknowledge(ledger, 'parked', 'a');
  for (const id of ['s1', 's2']) {
    const signal = ledger.signal(record, 'custom:ping');
    ledger.settle(signal, 'acknowledged');
    signal.id = id;
  }
  const found = (...ids: [id: string, seq: number][]) => {
    const signals = ids.map(([id, seq]) => {
      return { id, instance_id: 'i-a', seq, signal_type: 'custom:ping' };
    });
    const rows = waiting({ state: 'pending', is_open: true });
    const instances = [instanceRow('a', 'waiting', { signal_count: 2 })];
    return violations(ledger, { ...rows, instances, signals });
  };
  assert.deepEqual(found(['s1', 1], ['s2', 2]), []);
  assertFinds(found(['s2', 1], ['s1', 2]), /out of order/);
  assertFinds(found(['s1', 1], ['s3', 2]), /s2 .* does not exist/);
  assertFinds(found(['s1', 1], ['s2', 3]), /numbers have a gap/);
});

test('an outbound request must follow the commit, and precede the completion', () => {
  ledger.create('a', 'web');
  assertFinds(violations(ledger, NO_ROWS, ['a']), /left before its commit/);
  assertFinds(violations(ledger, completed('a', 'web')), /was never made/);
  assert.deepEqual(violations(ledger, completed('a', 'web'), ['a']), []);
});
