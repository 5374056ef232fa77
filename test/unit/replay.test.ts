/** Replays of ended runs, case by case. The runs are lived in the real evaluator. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { RecordedRun } from '../../src/core/releases/recording.js';
import { replay, type Verdict } from '../../src/core/releases/replay.js';
import type { RerunOptions } from '../../src/core/releases/rerun.js';
import {
  failing,
  forEach,
  http,
  loop,
  noop,
  parallel,
  planOf,
  race,
  START,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';
import { type RecorderOptions, record } from '../helpers/recorder.js';

const DAY = 86_400_000;
const MATCH: Verdict = { kind: 'match' };

function judge(
  candidate: Block[],
  baseline: Block[],
  run: RecordedRun,
  options: Partial<RerunOptions> = {},
): Verdict {
  const all = { unpoliciedRetry: 'redispatch', ...options } as const;
  return replay(planOf(candidate), planOf(baseline), run, all);
}

/** A run of the baseline, replayed with the candidate. */
function compare(candidate: Block[], baseline: Block[], options: RecorderOptions = {}): Verdict {
  return judge(candidate, baseline, record(baseline, options));
}

/** `recorded>replayed +added -removed` of a divergence. */
function told(verdict: Verdict): string {
  if (verdict.kind !== 'divergence') return verdict.kind;
  const { recorded_state, replayed_state, blocks_added, blocks_removed } = verdict.divergence;
  const added = blocks_added.map((id) => ` +${id}`).join('');
  const removed = blocks_removed.map((id) => ` -${id}`).join('');
  return `${recorded_state}>${replayed_state}${added}${removed}`;
}

const step = (id: string, handler: string, fields: object = {}): Block =>
  ({ type: 'step', id, handler, ...fields }) as Block;

const router = (id: string, condition: string, then: Block[], otherwise: Block[]): Block => ({
  type: 'router',
  id,
  routes: [{ condition, blocks: then }],
  default: otherwise,
});

const answers =
  (list: Record<string, NonNullable<RecorderOptions['answer']>>) =>
  (...[dispatch, life]: Parameters<NonNullable<RecorderOptions['answer']>>) =>
    list[dispatch.blockId]?.(dispatch, life) ?? {};

const succeeds = (output: Record<string, number | boolean>) => () => ({ output });
const fails =
  (retryable = false) =>
  () =>
    ({ kind: retryable ? 'retryable' : 'permanent' }) as const;

// ---------------------------------------------------------------- what is compared

test('the definition that the run had matches', () => {
  const blocks = [noop('a'), work('b'), http('c'), sleep('d', 50)];
  assert.deepEqual(compare(blocks, blocks), MATCH);
});

test('a step that was added and one that was removed are told, in the order of their names', () => {
  const verdict = compare([noop('a'), noop('z'), work('y')], [noop('a'), noop('c'), noop('b')]);
  assert.deepEqual(verdict, {
    kind: 'divergence',
    divergence: {
      instance_id: '01890000-0000-7000-8000-000000000001',
      recorded_state: 'completed',
      replayed_state: 'completed',
      blocks_added: ['y', 'z'],
      blocks_removed: ['b', 'c'],
    },
  });
});

test('the order of steps is not compared, nor are blocks that are no steps', () => {
  const baseline = [parallel('p', [noop('a')], [noop('b')]), loop('l', 'true', 2, [noop('c')])];
  const candidate = [noop('c'), forEach('f', 'items', [noop('b')]), noop('a')];
  assert.deepEqual(compare(candidate, baseline, { data: { items: [1] } }), MATCH);
});

test('steps whose names begin with an underscore are not compared', () => {
  assert.deepEqual(compare([noop('a'), noop('_new')], [noop('a')]).kind, 'inconclusive');
  assert.deepEqual(compare([noop('a')], [noop('a'), noop('_old')]), MATCH);
});

test('a route that the candidate chooses otherwise shows in both lists', () => {
  const ways = (condition: string) => [router('r', condition, [noop('a')], [noop('b')])];
  const verdict = compare(ways('data.n == 2'), ways('data.n == 1'), { data: { n: 1 } });
  assert.equal(told(verdict), 'completed>completed +b -a');
});

test('at most 200 names are listed', () => {
  const many = Array.from({ length: 300 }, (_, i) => noop(`n${i}`));
  const verdict = compare(many, [noop('a')]);
  assert.ok(verdict.kind === 'divergence');
  assert.equal(verdict.divergence.blocks_added.length, 200);
});

// ---------------------------------------------------------------- what is recorded

test('later steps see what was recorded, whatever the handler of the candidate would give', () => {
  const tail = router('r', 'outputs.a.go', [noop('yes')], [noop('no')]);
  const baseline = [work('a'), tail];
  const answer = answers({ a: succeeds({ go: true }) });
  const candidate = [step('a', 'transform', { params: { go: false } }), tail];
  assert.deepEqual(compare(candidate, baseline, { answer }), MATCH);
});

test('what workers gave is merged into the data as it was', () => {
  const blocks = [work('a'), router('r', 'data.go', [noop('yes')], [noop('no')])];
  const seen = compare(blocks, blocks, { answer: answers({ a: succeeds({ go: true }) }) });
  assert.deepEqual(seen, MATCH);
});

test('the data is what it was at creation', () => {
  const blocks = [router('r', 'data.go', [noop('yes')], [noop('no')]), work('a')];
  const options = { data: { go: true }, answer: answers({ a: succeeds({ go: false }) }) };
  assert.deepEqual(compare(blocks, blocks, options), MATCH);
});

test('each pass of a loop gets what was recorded of it', () => {
  const blocks = [
    forEach('f', 'items', [work('a'), router('r', 'outputs.a.go', [noop('yes')], [noop('no')])]),
    loop('l', 'outputs.b.go != false', 9, [work('b')]),
  ];
  const answer = answers({
    a: ({ iteration }) => ({ output: { go: iteration === '1' } }),
    b: ({ iteration }) => ({ output: { go: iteration !== '3' } }),
  });
  assert.deepEqual(compare(blocks, blocks, { data: { items: [1, 2, 3] }, answer }), MATCH);
});

test('a step that left its loop gets what was recorded of its first pass', () => {
  const tail = router('r', 'outputs.a.go', [noop('yes')], [noop('no')]);
  const answer = answers({ a: ({ iteration }) => ({ output: { go: iteration === '0' } }) });
  const run = record([loop('l', 'true', 2, [work('a')]), tail], { answer });
  const candidate = [work('a'), tail];
  const verdict = judge(candidate, [loop('l', 'true', 2, [work('a')]), tail], run);
  assert.equal(told(verdict), 'completed>completed +yes -no');
});

test('a step that runs more often than it was recorded proves nothing', () => {
  const passes = (max: number) => [loop('l', 'true', max, [work('a')])];
  assert.deepEqual(compare(passes(3), passes(2)), {
    kind: 'inconclusive',
    reason: 'a step did what nobody has recorded',
  });
  assert.deepEqual(compare(passes(1), passes(2)), MATCH);
});

test('a run that nothing is recorded of diverges', () => {
  const run = { ...record([noop('a')]), outputs: [] };
  assert.equal(told(judge([noop('a')], [noop('a')], run)), 'completed>completed +a');
});

// ---------------------------------------------------------------- failures

test('a failed run matches the definition that it had', () => {
  for (const bad of [failing('b'), work('b'), http('b')]) {
    const blocks = [noop('a'), bad, noop('c')];
    const answer = answers({ b: fails() });
    assert.deepEqual(compare(blocks, blocks, { answer }), MATCH, JSON.stringify(bad));
  }
});

test('a step that is fixed is a difference of the ends alone', () => {
  assert.equal(told(compare([noop('a')], [failing('a')])), 'failed>completed');
  const answer = answers({ a: fails() });
  assert.equal(told(compare([http('a')], [work('a')], { answer })), 'failed>completed');
  assert.equal(told(compare([noop('a')], [noop('a'), failing('b')])), 'failed>completed');
});

test('a failure that was caught does not go unnoticed when its step has gone', () => {
  const baseline = [tryCatch('t', [failing('a')], [noop('b')])];
  assert.deepEqual(compare(baseline, baseline), MATCH);
  assert.equal(told(compare([noop('b')], baseline)), 'completed>completed -a');
  const fixed = [tryCatch('t', [noop('a')], [noop('b')])];
  assert.equal(told(compare(fixed, baseline)), 'completed>completed -b');
});

test('a fixed step whose failure did not matter proves nothing', () => {
  const baseline = [tryCatch('t', [failing('a')], [])];
  assert.equal(compare([tryCatch('t', [noop('a')], [])], baseline).kind, 'inconclusive');
});

test('failed tries come before the one that succeeded, and back-offs take no time', () => {
  const retry = { max_attempts: 4, initial_backoff: DAY, max_backoff: DAY };
  const answer = answers({
    a: ({ attempt }) => ({ kind: attempt < 2 ? 'retryable' : 'success' }),
  });
  for (const make of [work, http]) {
    const blocks = [make('a', { retry })];
    assert.deepEqual(compare(blocks, blocks, { answer }), MATCH);
    const fewer = [make('a', { retry: { ...retry, max_attempts: 2 } })];
    assert.equal(told(compare(fewer, blocks, { answer })), 'completed>failed');
  }
});

test('more tries than were recorded prove nothing', () => {
  const tries = (max_attempts: number) => [
    tryCatch('t', [work('a', { retry: { max_attempts, initial_backoff: 0 } })], []),
  ];
  const answer = answers({ a: fails(true) });
  assert.deepEqual(compare(tries(2), tries(2), { answer }), MATCH);
  assert.equal(compare(tries(3), tries(2), { answer }).kind, 'inconclusive');
});

test('retry_if is asked about failures that are recorded, and of no others', () => {
  const retry = {
    max_attempts: 3,
    initial_backoff: 0,
    retry_if: '_error.message == "retryable 0"',
  };
  const answer = answers({ a: ({ attempt }) => ({ kind: attempt < 1 ? 'retryable' : 'success' }) });
  const external = [work('a', { retry })];
  assert.deepEqual(compare(external, external, { answer }), MATCH);
  const inProcess = [http('a', { retry })];
  assert.deepEqual(compare(inProcess, inProcess, { answer }), {
    kind: 'inconclusive',
    reason: 'how step a failed before a retry is not recorded',
  });
});

test('a time-out is replayed as the failure that it was', () => {
  const blocks = (handlers: Block[]) => [tryCatch('t', handlers, [noop('caught')])];
  const answer = answers({ a: () => ({ kind: 'never' as const }) });
  for (const make of [work, http]) {
    const baseline = blocks([make('a', { timeout: 5_000 })]);
    assert.deepEqual(compare(baseline, baseline, { answer }), MATCH);
  }
});

test('what a step took is not held against the time that the candidate allows', () => {
  const answer = answers({ a: () => ({ after: 60_000 }) });
  assert.deepEqual(compare([work('a', { timeout: 10 })], [work('a')], { answer }), MATCH);
});

test('a run that was retried by hand replays by its last life', () => {
  const blocks = [work('a'), http('b'), work('c')];
  const answer = answers({
    b: (_, life) => ({ kind: life === 0 ? 'permanent' : 'success' }),
    c: (_, life) => ({ kind: life < 2 ? 'permanent' : 'success' }),
  });
  const run = record(blocks, { answer, retries: 2 });
  assert.equal(run.state, 'completed');
  assert.deepEqual(judge(blocks, blocks, run), MATCH);
});

test('an output that the candidate does not take fails its step, one of nobody does not', () => {
  const compileSchema = () => (value: unknown) =>
    (value as { n?: number }).n === 1 ? undefined : 'n must be 1';
  const schema = { output_schema: { type: 'object' } };
  const baseline = [work('a')];
  const run = record(baseline, { answer: answers({ a: succeeds({ n: 2 }) }) });
  const options = { unpoliciedRetry: 'redispatch' } as const;
  const strict = planOf([work('a', schema)], compileSchema);
  assert.equal(told(replay(strict, planOf(baseline), run, options)), 'completed>failed');
  const added = planOf([work('a'), work('b', schema)], compileSchema);
  assert.equal(told(replay(added, planOf(baseline), run, options)), 'completed>completed +b');
});

// ---------------------------------------------------------------- time

test('a race is won by the branch that won it, and the loser is not missed', () => {
  const blocks = [race('r', [work('a'), noop('x')], [http('b'), noop('y')]), noop('z')];
  for (const slow of ['a', 'b']) {
    const answer = answers({ [slow]: () => ({ after: 1_000 }) });
    assert.deepEqual(compare(blocks, blocks, { answer }), MATCH);
  }
});

test('a built-in step that waited for its next try when the race was lost is not missed', () => {
  const retry = { max_attempts: 2, initial_backoff: 1_000 };
  const fail = step('a', 'fail', { params: { retryable: true }, retry });
  const blocks = [race('r', [fail], [http('b')])];
  assert.deepEqual(compare(blocks, blocks), MATCH);
});

test('a step that the run did not come to proves nothing when it loses a race', () => {
  for (const make of [work, http]) {
    const baseline = [router('r', 'data.no', [make('b')], []), make('a')];
    const candidate = [race('r', [make('b')], [make('a')])];
    assert.equal(compare(candidate, baseline).kind, 'inconclusive');
  }
});

test('a step that nobody recorded is last to end, and that it loses a race proves nothing', () => {
  const verdict = compare([race('r', [work('new')], [work('a')])], [work('a')]);
  assert.equal(verdict.kind, 'inconclusive');
});

test('delays of days take no time, whether they were there or not', () => {
  const delayed = (days: number) => [noop('a'), work('b', { delay: { duration: days * DAY } })];
  for (const [candidate, baseline] of [
    [30, 30],
    [0, 30],
    [365, 0],
  ] as const) {
    assert.deepEqual(compare(delayed(candidate), delayed(baseline)), MATCH);
  }
});

test('what callers merged comes when it came', () => {
  const blocks = [
    work('a'),
    router('r', 'data.go', [noop('yes')], [noop('no')]),
    work('b'),
    router('q', 'data.go', [noop('on')], [noop('off')]),
  ];
  const run = record(blocks, {
    data: { go: false },
    merges: [{ after: 1_500, values: { go: true } }],
    answer: () => ({ after: 1_000 }),
  });
  assert.deepEqual(judge(blocks, blocks, run), MATCH);
  const before = { ...run, signals: [{ ...run.signals[0]!, created_at: run.created_at }] };
  assert.equal(told(judge(blocks, blocks, before)), 'completed>completed +yes -no');
  const unrecorded = { ...run, signals: [] };
  assert.equal(told(judge(blocks, blocks, unrecorded)), 'completed>completed +off -on');
});

test('expressions see the time at which the run began', () => {
  const baseline = [noop('a')];
  const run = record(baseline);
  assert.equal(run.execution.t, START);
  const condition = `now() == "${new Date(START).toISOString()}"`;
  const verdict = compare([router('r', condition, [noop('a')], [])], baseline);
  assert.deepEqual(verdict, MATCH);
});

// ---------------------------------------------------------------- what cannot be replayed

test('a replay that does not end within its turns is inconclusive', () => {
  const endless = [
    noop('a'),
    loop('l', 'true', 100_000, [loop('m', 'true', 100_000, [noop('b')])]),
  ];
  assert.deepEqual(compare(endless, [noop('a')]), {
    kind: 'inconclusive',
    reason: 'it takes more than 5000 turns',
  });
});

test('the ceiling counts tries, too', () => {
  const baseline = [loop('l', 'true', 10, [work('a')])];
  const run = record(baseline);
  assert.deepEqual(judge(baseline, baseline, run, { ticksMax: 11 }), MATCH);
  assert.equal(judge(baseline, baseline, run, { ticksMax: 10 }).kind, 'inconclusive');
});

test('a step that was tried thousands of times is not replayed', () => {
  const run = record([http('a')]);
  const [output] = run.outputs;
  assert.ok(output !== undefined);
  const verdict = judge([http('a')], [http('a')], { ...run, outputs: [{ ...output, try: 5_001 }] });
  assert.equal(verdict.kind, 'inconclusive');
});

// ---------------------------------------------------------------- people

const asked = (id: string, wait_for_input: object = {}, handler = 'noop') =>
  step(id, handler, { wait_for_input });

/** A run of these blocks in which people say this, by block, a second after they were asked. */
const answered = (blocks: Block[], says: Readonly<Record<string, string>>) =>
  record(blocks, { says });

test('what people said is said again, and a step that is called behind it is what it was', () => {
  const baseline = [
    asked('a', { store_as: 'ok' }, 'work'),
    router('r', 'ok == no', [noop('n')], [noop('y')]),
  ];
  const run = answered(baseline, { a: 'no' });
  assert.deepEqual(judge(baseline, baseline, run), MATCH);
  const other = [baseline[0]!, router('r', 'ok == yes', [noop('n')], [noop('y')])];
  assert.equal(told(judge(other, baseline, run)), 'completed>completed +y -n');
});

test('what nobody was asked, or could not have said, is no evidence', () => {
  const run = answered([asked('a')], { a: 'no' });
  const choices = [{ label: 'Go', value: 'go' }];
  assert.equal(judge([asked('a', { choices })], [asked('a')], run).kind, 'inconclusive');
  const two = [asked('a'), asked('b', { timeout: 5 })];
  assert.equal(judge(two, [asked('a')], run).kind, 'inconclusive');
  const plain = record([noop('a')]);
  assert.equal(judge([asked('a')], [noop('a')], plain).kind, 'inconclusive');
});

test('that nobody answered in time happens again, and says nothing of the handler behind it', () => {
  for (const escalation of [{}, { escalation_handler: 'boss' }]) {
    const baseline = [asked('a', { timeout: 1_000, ...escalation }, 'work')];
    const run = answered(baseline, {});
    assert.deepEqual(judge(baseline, baseline, run), MATCH);
    assert.notDeepEqual(judge([step('a', 'work')], baseline, run), MATCH);
  }
});

// ---------------------------------------------------------------- sagas, splits and hooks

test('only the last run of a saga counts, which a retry began anew', () => {
  const saga = (...names: string[]): Block => ({
    type: 'saga',
    id: 's',
    steps: names.map((name) => ({
      id: `step-${name}`,
      action: work(name),
      compensation: noop(`un-${name}`),
    })),
  });
  let failures = 0;
  const run = record([saga('a', 'b')], {
    retries: 1,
    answer: answers({ b: () => (failures++ === 0 ? { kind: 'permanent' } : {}) }),
  });
  assert.equal(run.state, 'completed');
  assert.deepEqual(judge([saga('a', 'b')], [saga('a', 'b')], run), MATCH);
  assert.equal(told(judge([saga('a')], [saga('a', 'b')], run)), 'completed>completed -b');
});

test('a split takes the variant that the run took, by the weights of the candidate', () => {
  const split = (...weights: [number, number]): Block => ({
    type: 'ab_split',
    id: 'v',
    variants: weights.map((weight, i) => ({ name: `v${i}`, weight, blocks: [noop(`n${i}`)] })),
  });
  const run = record([split(1, 1)]);
  assert.deepEqual(judge([split(1, 1)], [split(1, 1)], run), MATCH);
  const other = run.outputs.some(({ block_id }) => block_id === 'n0') ? split(0, 1) : split(1, 0);
  assert.notEqual(judge([other], [split(1, 1)], run).kind, 'match');
});
