/** The judge of the chaos runs, on ledgers and rows made by hand: it must find what is wrong. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { findViolations } from '../chaos/invariants.js';
import { Ledger } from '../chaos/ledger.js';
import { eventOf } from '../chaos/outside.js';
import type { InstanceRow, OutputRow, Rows, TaskRow } from '../chaos/rows.js';
import { PAID_BLOCKS, type ShapeName, shapes } from '../chaos/shapes.js';

const SHAPES = shapes('http://127.0.0.1:1');
const NO_ROWS: Rows = {
  ...{ instances: [], outputs: [], tasks: [], signals: [], audit: [], keys: [], events: [] },
  ...{ collected: [], orphans: [], breaches: [] },
};

/** One acknowledged instance `i-<token>`. */
function acknowledge(ledger: Ledger, shape: ShapeName, token: string, key?: string) {
  const creation = ledger.create(token, shape, key);
  ledger.settle(creation, 'acknowledged');
  return ledger.created(creation, { id: `i-${token}`, deduplicated: false });
}

function instanceRow(token: string, state: string, more: Partial<InstanceRow> = {}): InstanceRow {
  return {
    ...{ id: `i-${token}`, state, failure_code: null, token, patch: null, note: null },
    ...{
      limit_key: null,
      limit: null,
      has_event_wait: false,
      signal_count: 0,
      audit_count: 0,
      has_timer: state === 'scheduled',
    },
    ...{ has_dead_letter: state === 'failed', ...more },
  };
}

function outputRows(token: string, blocks: readonly string[]): OutputRow[] {
  const rest = { iteration: '', attempt: 0, output_ref: null, output: {} };
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
  findViolations({ tenant: 't', ledger, rows, shapes: SHAPES, sinkTokens: new Set(sinkTokens) });

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
    row.block_id === 'work' ? { ...row, output: { mark: 'm' } } : row,
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
  const foreign = rows.outputs.map((row) => ({ ...row, output: { mark: 'other' } }));
  const stolen = violations(ledger, { ...rows, outputs: foreign });
  assert.match(stolen[0]!, /output of somebody else/);
  assert.match(stolen[1]!, /has an output that nobody gave/);
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
      return {
        ...{ id, instance_id: 'i-a', seq, signal_type: 'custom:ping' },
        ...{ status: 'kept', taken_by: null },
      };
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

/** What is found in the rows of one instance `i-a` of this shape, after `ask` has entered more in the ledger. */
function foundIn(
  shape: ShapeName,
  rows: Partial<Rows>,
  ask: (record: ReturnType<typeof acknowledge>) => void = () => undefined,
): string {
  ledger = new Ledger();
  const record = acknowledge(ledger, shape, 'a');
  ask(record);
  return violations(ledger, { ...completed('a', shape), ...rows })[0] ?? 'nothing';
}

test('a skipped creation makes nothing, and names an instance of its sequence', () => {
  const skip = (id: string) => () => {
    const creation = ledger.create('b', 'skipping');
    ledger.settle(creation, 'acknowledged');
    ledger.skipped(creation, { id, deduplicated: false, skipped: true });
  };
  assert.equal(foundIn('skipping', {}, skip('i-a')), 'nothing');
  assert.match(foundIn('skipping', {}, skip('i-x')), /skipped for i-x, which does not exist/);
  assert.match(foundIn('keyed', {}, skip('i-a')), /of another sequence/);
  const instances = ['a', 'b'].map((token) => instanceRow(token, 'completed'));
  const outputs = ['a', 'b'].flatMap((token) => outputRows(token, SHAPES.skipping.outputs));
  assert.match(foundIn('skipping', { instances, outputs }, skip('i-a')), /skipped, and made/);
});

test('a refused creation makes nothing', () => {
  ledger.settle(ledger.create('a', 'pure'), 'refused');
  assertFinds(violations(ledger, PURE), /refused creation a was made/);
});

test('a collected creation is in the instance that its answer named, once', () => {
  const found = (...starts: string[]) => {
    ledger = new Ledger();
    const creation = ledger.create('a', 'batched');
    ledger.settle(creation, 'acknowledged');
    ledger.collected(creation, { id: 'i-a', deduplicated: false });
    const collected = starts.map((start) => ({ start, token: 'a' }));
    return violations(ledger, { ...completed('a', 'batched'), collected })[0] ?? 'nothing';
  };
  assert.equal(found('i-a'), 'nothing');
  assert.match(found(), /collected for i-a, is in undefined/);
  assert.match(found('i-b'), /collected for i-a, is in i-b/);
  assert.match(found('i-a', 'i-b'), /collected 2 times/);
});

test('the result of a creation that waited is how the instance has ended', () => {
  const outputs = { first: {}, said: {}, last: {} };
  const answer = (result: object) => (record: ReturnType<typeof acknowledge>) =>
    ledger.resulted(record, { id: record.id, deduplicated: false, ...result });
  assert.equal(foundIn('pure', {}, answer({ state: 'completed', outputs })), 'nothing');
  assert.match(foundIn('pure', {}, answer({ state: 'cancelled', outputs })), /expected cancelled/);
  const other = { ...outputs, last: { n: 1 } };
  assert.match(
    foundIn('pure', {}, answer({ state: 'completed', outputs: other })),
    /answered comp/,
  );
  assert.match(foundIn('pure', {}, answer({ state: 'running' })), /while it was running/);
});

test('a signal that was taken is the output of the step, and what it replied to', () => {
  const ask = (reply: { heard: number }) => (record: ReturnType<typeof acknowledge>) => {
    const signal = ledger.signal(record, 'custom:ask', 7);
    ledger.settle(signal, 'acknowledged');
    signal.id = 's';
    signal.answer = { signal_id: 's', taken: true, block_id: 'ask', reply };
  };
  const rows = (number: number, status: string) => ({
    instances: [instanceRow('a', 'completed', { signal_count: 1 })],
    outputs: outputRows('a', SHAPES.asking.outputs).map((row) => ({ ...row, output: { number } })),
    signals: [
      {
        ...{ id: 's', instance_id: 'i-a', seq: 1, signal_type: 'custom:ask', status },
        taken_by: 'ask',
      },
    ],
  });
  assert.equal(foundIn('asking', rows(7, 'taken'), ask({ heard: 7 })), 'nothing');
  assert.match(foundIn('asking', rows(7, 'kept'), ask({ heard: 7 })), /is kept by ask/);
  assert.match(foundIn('asking', rows(8, 'taken'), ask({ heard: 7 })), /the step took 8/);
  assert.match(foundIn('asking', rows(7, 'taken'), ask({ heard: 8 })), /had 7/);
});

test('a delivery is one event, which one step has as its output', () => {
  const deliver = (record: ReturnType<typeof acknowledge>) => {
    for (const id of ['d1', 'd2']) {
      const delivery = ledger.deliver(record, id);
      ledger.settle(ledger.attempt(delivery), 'acknowledged');
      ledger.delivered(delivery, `e-${id}`, true);
    }
  };
  const found = (marks: readonly string[], events: readonly string[], takes = 1) => {
    const output = (block: string) => ({ mark: marks[PAID_BLOCKS.indexOf(block as 'paid')] });
    const all = outputRows('a', SHAPES.paid.outputs);
    const rows = {
      outputs: all.map((row) => ({ ...row, output: output(row.block_id) })),
      events: events.map((id) => {
        const producer_event_id = eventOf('t', id);
        return { id: `e-${id}`, producer_event_id, correlation_key: 'a', takes };
      }),
    };
    return foundIn('paid', rows, deliver);
  };
  assert.equal(found(['d1', 'd2'], ['d1', 'd2']), 'nothing');
  assert.match(found(['d1', 'd2'], ['d1']), /answered with event e-d2, is undefined/);
  assert.match(found(['d1', 'd2'], ['d1', 'd2', 'd2']), /delivery d2 is 2 events/);
  assert.match(found(['d1', 'd1'], ['d1', 'd2']), /took the event e-d1 twice/);
  assert.match(found(['d1', 'd2'], ['d1', 'd2'], 2), /was taken 2 times/);
  assert.match(foundIn('paid', waiting({ is_open: true }), deliver), /is waiting, expected comp/);
});

test('more instances of a key than may, with workers at once, are found', () => {
  const tokens = ['a', 'b', 'c'];
  for (const token of tokens) acknowledge(ledger, 'slotted', token);
  const tasks = tokens.map((token) => ({ ...TASK, id: token, instance_id: `i-${token}` }));
  const found = (limit: number) => {
    const limited = { limit_key: 'k', limit };
    const rows = {
      ...NO_ROWS,
      instances: tokens.map((token) => instanceRow(token, 'completed', limited)),
      tasks: tasks.map((task) => taskRow(task)),
      outputs: tokens.flatMap((token) =>
        outputRows(token, SHAPES.slotted.outputs).map((row) => ({
          ...row,
          output: { mark: token },
        })),
      ),
    };
    return violations(ledger, rows);
  };
  for (const task of tasks) ledger.claimed({ ...task, claim_epoch: 1 });
  for (const { id } of tasks) {
    ledger.ended(id, ledger.end(id, { kind: 'complete', epoch: 1, isRetryable: false, mark: id }));
  }
  assert.deepEqual(found(3), []);
  assertFinds(found(2), /3 of 2 instances of key k were at work as i-c began/);
});
