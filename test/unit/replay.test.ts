/**
 * Replays of ended runs, case by case. The runs are lived in the real evaluator.
 *
 * Cost: 3 s, since it replays loops up to the limits of a validation.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RecordedRun } from '../../actors/release/core/recording.js';
import { replay, type Verdict } from '../../actors/release/core/replay.js';
import type { RerunOptions } from '../../actors/release/core/rerun.js';
import type { Block } from '../../schema/blocks.js';
import type { ChildEnd } from '../../src/core/progress.js';
import { column } from '../helpers/columns.js';
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
const compare = (candidate: Block[], baseline: Block[], options: RecorderOptions = {}): Verdict =>
  judge(candidate, baseline, record(baseline, options));

/** `recorded>replayed +added -removed` of a divergence. */
function told(verdict: Verdict): string {
  if (verdict.kind !== 'divergence') return verdict.kind;
  const { recorded_state, replayed_state, blocks_added, blocks_removed } = verdict.divergence;
  const added = blocks_added.map((id) => ` +${id}`).join('');
  const removed = blocks_removed.map((id) => ` -${id}`).join('');
  return `${recorded_state}>${replayed_state}${added}${removed}`;
}

/** `block member` of every call that is another one. */
function changedIn(verdict: Verdict): string[] {
  assert.ok(verdict.kind === 'divergence', verdict.kind);
  const { calls_changed = [] } = verdict.divergence;
  return calls_changed.map(({ block_id, member }) => `${block_id} ${member}`);
}

const step = (id: string, handler: string, fields: object = {}): Block =>
  ({ type: 'step', id, handler, ...fields }) as Block;

const router = (id: string, condition: string, then: Block[], otherwise: Block[]): Block => {
  return { type: 'router', id, routes: [{ condition, blocks: then }], default: otherwise };
};

const answers =
  (list: Record<string, NonNullable<RecorderOptions['answer']>>) =>
  (...[dispatch, life]: Parameters<NonNullable<RecorderOptions['answer']>>) =>
    list[dispatch.blockId]?.(dispatch, life) ?? {};

const succeeds = (output: Record<string, number | boolean>) => () => ({ output });
const fails =
  (retryable = false) =>
  () =>
    ({ kind: retryable ? 'retryable' : 'permanent' }) as const;

const GO = { data: { go: true } };

/** Two ways on, by whether this is true. */
const fork = (condition: string) => router('r', condition, [noop('yes')], [noop('no')]);
const passes = (max: number, ...body: Block[]) => loop('l', 'true', max, body);
const assertInconclusive = (...given: Parameters<typeof compare>) =>
  assert.equal(compare(...given).kind, 'inconclusive');

// ---------------------------------------------------------------- what a run had

const retry = { max_attempts: 4, initial_backoff: DAY, max_backoff: DAY };
const twoRetries = { ...retry, max_attempts: 2 };
const slow = (id: string) => answers({ [id]: () => ({ after: 1_000 }) });
const never = () => ({ kind: 'never' as const });
const succeedsLate = ({ attempt }: { attempt: number }) =>
  ({ kind: attempt < 2 ? 'retryable' : 'success' }) as const;
const waiting = step('a', 'fail', { params: { retryable: true }, retry: twoRetries });
const contest = [race('r', [work('a'), noop('x')], [http('b'), noop('y')]), noop('z')];

type Life = readonly [title: string, blocks: Block[], options?: RecorderOptions];
const life = (...one: Life) => one;

const LIVES: readonly Life[] = [
  [
    'that was retried by hand, by its last life',
    [work('a'), http('b'), work('c')],
    {
      retries: 2,
      answer: answers({
        b: (_, life) => ({ kind: life === 0 ? 'permanent' : 'success' }),
        c: (_, life) => ({ kind: life < 2 ? 'permanent' : 'success' }),
      }),
    },
  ],
  ...['a', 'b'].map((loser) => life(`whose race ${loser} lost`, contest, { answer: slow(loser) })),
  [
    'whose built-in step waited for its next try when the race was lost',
    [race('r', [waiting], [http('b')])],
  ],
];

for (const [title, blocks, options] of LIVES) {
  test(`a run ${title} matches the definition that it had`, () => {
    assert.deepEqual(compare(blocks, blocks, options), MATCH);
  });
}

// ---------------------------------------------------------------- what is compared

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
  const many = Array.from({ length: 300 }, (_, i) => noop(`n${i}`));
  const longer = compare(many, [noop('a')]);
  assert.ok(longer.kind === 'divergence' && longer.divergence.blocks_added.length === 200);
});

test('the order of steps is not compared, nor are blocks that are no steps', () => {
  const baseline = [parallel('p', [noop('a')], [noop('b')]), passes(2, noop('c'))];
  const candidate = [noop('c'), forEach('f', 'items', [noop('b')]), noop('a')];
  assert.deepEqual(compare(candidate, baseline, { data: { items: [1] } }), MATCH);
});

test('steps whose names begin with an underscore are not compared', () => {
  assertInconclusive([noop('a'), work('_new')], [noop('a')]);
  assert.deepEqual(compare([noop('a'), noop('_new')], [noop('a')]), MATCH);
  assert.deepEqual(compare([noop('a')], [noop('a'), noop('_old')]), MATCH);
});

test('a route that the candidate chooses otherwise shows in both lists', () => {
  const verdict = compare([fork('data.n == 2')], [fork('data.n == 1')], { data: { n: 1 } });
  assert.equal(told(verdict), 'completed>completed +no -yes');
});

test('what a handler does that needs nothing but its parameters is run, and never read', () => {
  const first = (handler: string, params: object) => [
    step('a', handler, { params }),
    fork('outputs.a.go'),
  ];
  const baseline = first('transform', { go: true });
  assert.deepEqual(compare(first('transform', { go: '{{data.go}}' }), baseline, GO), MATCH);
  const other = compare(first('transform', { go: false }), baseline);
  assert.equal(told(other), 'completed>completed +no -yes');
  const [right, wrong] = ['go', 'goo'].map((condition) => first('assert', { condition }));
  assert.equal(told(compare(wrong!, right!, GO)), 'completed>failed -no');
});

// ---------------------------------------------------------------- calls
describe('what was recorded counts for the same call only', () => {
  const pay = (params: object, handler = 'pay') => step('a', handler, { params });
  const amount = (value: unknown) => ({ body: { amount: value, to: ['x', 'y'] } });
  const DATA = { data: { amount: 5, other: 6 } };

  test('a call that is written otherwise and is the same matches', () => {
    const said = { body: { to: ['x', '{{data.y}}'], amount: '{{data.other}}' } };
    for (const handler of ['pay', 'http_request']) {
      const options = { data: { amount: 5, other: 5, y: 'y' } };
      const baseline = [pay(amount('{{data.amount}}'), handler)];
      assert.deepEqual(compare([pay(said, handler)], baseline, options), MATCH);
    }
  });

  test('another one is a divergence that names block and member', () => {
    const cases: [string, object, string[]][] = [
      ['a value', amount('{{data.other}}'), ['params.body.amount']],
      ['a type', amount('5'), ['params.body.amount']],
      ['an item', { body: { amount: '{{data.amount}}', to: ['x', 'z'] } }, ['params.body.to.1']],
      ['a list', { body: { amount: '{{data.amount}}', to: [] } }, ['params.body.to']],
      ['one more', { ...amount('{{data.amount}}'), url: 'u' }, ['params.url']],
      ['one less', {}, ['params.body']],
    ];
    for (const handler of ['pay', 'http_request']) {
      const baseline = [pay(amount('{{data.amount}}'), handler), work('b')];
      for (const [name, params, members] of cases) {
        const verdict = compare([pay(params, handler), work('b')], baseline, DATA);
        const expected = members.map((member) => `a ${member}`);
        assert.equal(told(verdict), 'completed>completed', name);
        assert.deepEqual(changedIn(verdict), expected, name);
      }
    }
  });

  test('a step that asks others, or nobody any more, is told by its handler', () => {
    const baseline = [pay({}), noop('b')];
    for (const handler of ['refund', 'http_request', 'transform']) {
      const verdict = compare([pay({}, handler), noop('b')], baseline);
      assert.deepEqual(changedIn(verdict), ['a handler'], handler);
    }
  });

  test('a step that asks for the first time proves nothing', () => {
    const verdict = compare([pay({})], [step('a', 'transform', { params: {} })]);
    const reason = 'step a makes a call that nobody recorded';
    assert.deepEqual(verdict, { kind: 'inconclusive', reason });
  });

  test('all steps that ask otherwise are told, those in loops once, and those that a changed step feeds', () => {
    const both = (value: string) => [
      passes(3, pay(amount(value))),
      step('c', 'http_request', { params: { url: value } }),
    ];
    const verdict = compare(both('{{data.other}}'), both('{{data.amount}}'), DATA);
    assert.deepEqual(changedIn(verdict), ['a params.body.amount', 'c params.url']);
    const fed = (n: number) => [
      step('price', 'transform', { params: { n } }),
      pay({ n: '{{outputs.price.n}}' }),
    ];
    assert.deepEqual(changedIn(compare(fed(2), fed(1))), ['a params.n']);
  });

  test('the calls of a failed try, and of one that was cut off, count as well', () => {
    for (const handler of ['pay', 'http_request']) {
      const asking = (value: string) => step('a', handler, { params: { value }, retry });
      const answer = answers({ a: succeedsLate });
      const failed = compare([asking('x')], [asking('y')], { answer });
      assert.deepEqual(changedIn(failed), ['a params.value']);
      const cut = (value: string) => [race('r', [asking(value)], [work('b')])];
      const options = { answer: answers({ a: never }) };
      assert.deepEqual(compare(cut('x'), cut('x'), options), MATCH);
      assert.deepEqual(changedIn(compare(cut('x'), cut('y'), options)), ['a params.value']);
    }
  });

  test('a sleep is the same for the same duration', () => {
    const rest = (duration_ms: unknown) => [step('s', 'sleep', { params: { duration_ms } })];
    assert.deepEqual(compare(rest('{{data.ms}}'), rest(50), { data: { ms: 50 } }), MATCH);
    assert.deepEqual(changedIn(compare(rest(60), rest(50))), ['s params.duration_ms']);
    assert.deepEqual(compare(rest('x'), rest('x')), MATCH);
  });

  test('a call that depends on time, or on what nobody recorded, proves nothing', () => {
    const reason = 'the call of step a depends on time or on what nobody recorded';
    for (const handler of ['pay', 'http_request']) {
      const timed = [work('first'), pay({ at: '{{runtime.current_step_started_at}}' }, handler)];
      const run = record(timed, { answer: () => ({ after: 7 }) });
      const late = { ...run, execution: { ...run.execution, t: START + 1 } };
      assert.deepEqual(judge(timed, timed, late), { kind: 'inconclusive', reason });
      // The context was changed by a request, of which nothing is left.
      const merged = [work('first'), pay({ n: '{{data.n}}' }, handler)];
      const merges = [{ after: 2, values: { n: 1 } }];
      const patched = record(merged, { merges, answer: () => ({ after: 7 }) });
      const seen = judge(merged, merged, { ...patched, signals: [] });
      assert.deepEqual(seen, { kind: 'inconclusive', reason });
    }
  });

  test('behind a step that nobody recorded, only a call that is written otherwise is told', () => {
    const blocks = (max: number, text: string) => [passes(max, work('b')), pay({ n: text })];
    const baseline = blocks(1, '{{outputs.b.n}}');
    const options = { answer: answers({ b: succeeds({ n: 1 }) }) };
    assertInconclusive(blocks(2, '{{outputs.b.n}}'), baseline, options);
    assert.deepEqual(changedIn(compare(blocks(2, '7'), baseline, options)), ['a params.n']);
  });

  test('whose parameters nobody kept, it is as if it had not been recorded', () => {
    const blocks = [step('a', 'http_request', { params: { url: 'u' } })];
    const run = record(blocks);
    const forked = { ...run, outputs: run.outputs.map((row) => ({ ...row, call: null })) };
    assert.equal(judge(blocks, blocks, forked).kind, 'inconclusive');
    const tasks = record([work('a')]);
    assert.equal(judge([work('a')], [work('a')], { ...tasks, tasks: [] }).kind, 'inconclusive');
  });
});

// ---------------------------------------------------------------- what tries gave

test('a step that runs more often than it was recorded, or in another place, proves nothing', () => {
  const reason = 'step a makes a call that nobody recorded';
  const more = compare([passes(3, work('a'))], [passes(2, work('a'))]);
  assert.deepEqual(more, { kind: 'inconclusive', reason });
  assert.deepEqual(compare([passes(1, work('a'))], [passes(2, work('a'))]), MATCH);
  assert.deepEqual(compare([passes(3, noop('a'))], [passes(2, noop('a'))]), MATCH);
  assertInconclusive([work('a')], [passes(2, work('a'))]);
  assertInconclusive([passes(2, work('a'))], [work('a')]);
});

test('a run that nothing is recorded of diverges', () => {
  const run = { ...record([noop('a')]), outputs: [] };
  assert.equal(told(judge([noop('a')], [noop('a')], run)), 'completed>completed +a');
});

// ---------------------------------------------------------------- failures

test('a step that is fixed is a difference of the ends alone', () => {
  assert.equal(told(compare([noop('a')], [failing('a')])), 'failed>completed');
  const answer = answers({ a: fails() });
  assert.equal(told(compare([http('a')], [work('a')], { answer })), 'failed>completed');
  assert.equal(told(compare([noop('a')], [noop('a'), failing('b')])), 'failed>completed');
});

test('a failure that was caught goes unnoticed only where it did not matter', () => {
  const attempt = (first: Block, ...rescue: Block[]) => [tryCatch('t', [first], rescue)];
  const baseline = attempt(failing('a'), noop('b'));
  assert.equal(told(compare([noop('b')], baseline)), 'completed>completed -a');
  assert.equal(told(compare(attempt(noop('a'), noop('b')), baseline)), 'completed>completed -b');
  assert.deepEqual(compare(attempt(noop('a')), attempt(failing('a'))), MATCH);
});

test('a task that could not be made in a loop leaves no trace, and is neither missed nor added', () => {
  const list = (when: string) => [passes(2, tryCatch('t', [work('w', { when })], [noop('c')]))];
  const [broken, skipped] = [list('data.go == 1 && ('), list('false')];
  assert.equal(told(compare(broken, skipped)), 'completed>completed +c +w');
  assert.equal(told(compare(skipped, broken)), 'completed>completed -c');
});

test('fewer tries than were recorded fail, and more prove nothing', () => {
  for (const make of [work, http]) {
    const answer = answers({ a: succeedsLate });
    const fewer = compare([make('a', { retry: twoRetries })], [make('a', { retry })], { answer });
    assert.equal(told(fewer), 'completed>failed');
  }
  const tries = (max_attempts: number) => [
    tryCatch('t', [work('a', { retry: { max_attempts, initial_backoff: 0 } })], []),
  ];
  const answer = answers({ a: fails(true) });
  assertInconclusive(tries(3), tries(2), { answer });
});

test('retry_if is asked about failures that are recorded, and of no others', () => {
  const asked = { ...retry, retry_if: '_error.message == "retryable 0"' };
  const answer = answers({ a: ({ attempt }) => ({ kind: attempt < 1 ? 'retryable' : 'success' }) });
  const [external, inProcess] = [[work('a', { retry: asked })], [http('a', { retry: asked })]];
  assert.deepEqual(compare(external, external, { answer }), MATCH);
  assert.deepEqual(compare(inProcess, inProcess, { answer }), {
    kind: 'inconclusive',
    reason: 'how step a failed before a retry is not recorded',
  });
});

test('what a step took is not held against the time that the candidate allows, nor are delays of days', () => {
  const answer = answers({ a: () => ({ after: 60_000 }) });
  assert.deepEqual(compare([work('a', { timeout: 10 })], [work('a')], { answer }), MATCH);
  const delayed = (days: number) => [noop('a'), work('b', { delay: { duration: days * DAY } })];
  for (const [candidate, baseline] of ['30 30', '0 30', '365 0'].map((row) => row.split(' '))) {
    assert.deepEqual(compare(delayed(Number(candidate)), delayed(Number(baseline))), MATCH);
  }
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

test('a step that the run did not come to, or nobody recorded, proves nothing when it loses a race', () => {
  for (const make of [work, http]) {
    const baseline = [router('r', 'data.no', [make('b')], []), make('a')];
    assertInconclusive([race('r', [make('b')], [make('a')])], baseline);
  }
  assertInconclusive([race('r', [work('new')], [work('a')])], [work('a')]);
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
  assert.equal(record(baseline).execution.t, START);
  const condition = `now() == "${new Date(START).toISOString()}"`;
  assert.deepEqual(compare([router('r', condition, [noop('a')], [])], baseline), MATCH);
});

// ---------------------------------------------------------------- what cannot be replayed

test('a replay that does not end within its turns is inconclusive, and tries count, too', () => {
  const inner = loop('m', 'true', 100_000, [noop('b')]);
  const endless = [noop('a'), loop('l', 'true', 100_000, [inner])];
  const reason = 'it takes more than 5000 turns';
  assert.deepEqual(compare(endless, [noop('a')]), { kind: 'inconclusive', reason });
  const baseline = [passes(10, work('a'))];
  const ten = record(baseline);
  assert.deepEqual(judge(baseline, baseline, ten, { ticksMax: 11 }), MATCH);
  assert.equal(judge(baseline, baseline, ten, { ticksMax: 10 }).kind, 'inconclusive');
  const run = record([http('a')]);
  const outputs = run.outputs.map((output) => ({ ...output, try: 5_001 }));
  assert.equal(judge([http('a')], [http('a')], { ...run, outputs }).kind, 'inconclusive');
});

// ---------------------------------------------------------------- events

test('an event that came is evidence for a step that waits for the same one', () => {
  const wait = (name: string, handler = 'wait_for_event') =>
    step('a', handler, { params: { name, key: '{{data.order}}' } });
  // The row that a wait leaves is that of any step, and says nothing of what was waited for.
  const rest = router('r', 'outputs.a.paid == true', [noop('y')], [noop('n')]);
  const data = { order: 'A-1', other: 'A-1' };
  const answer = answers({ a: succeeds({ paid: true }) });
  const like = record([wait('settled', 'http_request'), rest], { data, answer });
  const run = { ...like, outputs: like.outputs.map((row) => ({ ...row, call: null })) };
  const baseline = [wait('settled'), rest];
  assert.deepEqual(judge(baseline, baseline, run), MATCH);
  assert.deepEqual(changedIn(judge([wait('refused'), rest], baseline, run)), ['a params.name']);
  assert.deepEqual(changedIn(judge([wait('settled', 'transform'), rest], baseline, run)), [
    'a handler',
  ]);
  const keyed = step('a', 'wait_for_event', { params: { name: 'settled', key: '{{data.other}}' } });
  assert.equal(judge([keyed, rest], baseline, run).kind, 'inconclusive');
});

// ---------------------------------------------------------------- people

const asked = (id: string, wait_for_input: object = {}, handler = 'noop') =>
  step(id, handler, { wait_for_input });

test('what people said is said again, and a step that is called behind it is what it was', () => {
  const baseline = [
    asked('a', { store_as: 'ok' }, 'work'),
    router('r', 'ok == no', [noop('n')], [noop('y')]),
  ];
  const run = record(baseline, { says: { a: 'no' } });
  assert.deepEqual(judge(baseline, baseline, run), MATCH);
  const other = [baseline[0]!, router('r', 'ok == yes', [noop('n')], [noop('y')])];
  assert.equal(told(judge(other, baseline, run)), 'completed>completed +y -n');
});

test('what nobody was asked, or could not have said, is no evidence', () => {
  const run = record([asked('a')], { says: { a: 'no' } });
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
    const run = record(baseline, { says: {} });
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

const child = (more: object = {}): Block =>
  ({ type: 'sub_sequence', id: 'child', sequence_name: 'other', ...more }) as Block;
const seen = (params: object): Block =>
  ({ type: 'step', id: 'seen', handler: 'transform', params }) as Block;

const kindOf = (...given: Parameters<typeof compare>) => compare(...given).kind;

const BASELINE = [work('before'), child({ input: { n: '{{ data.n }}' } }), noop('after')];

test('the definition that a run with a child had matches, whether or not the child failed', () => {
  const end = { kind: 'failed', code: 'child_failed', message: 'no' } as const;
  assert.equal(kindOf(BASELINE, BASELINE, { data: { n: 1 } }), 'match');
  assert.equal(kindOf(BASELINE, BASELINE, { data: { n: 1 }, child: () => end }), 'match');
});

test('a later block sees what the recorded child gave', () => {
  const end: ChildEnd = { kind: 'completed', output: [{ output: { go: true } }] };
  const blocks = [child(), { ...noop('after'), when: 'outputs.child.0.output.go' } as Block];
  const run = record(blocks, { child: () => end });
  assert.deepEqual(column(run.outputs, 'block_id'), ['child', 'after']);
  assert.equal(kindOf(blocks, blocks, { child: () => end }), 'match');
});

for (const [what, more] of [
  ['another sequence', { sequence_name: 'third', input: { n: '{{ data.n }}' } }],
  ['another version', { version: 2, input: { n: '{{ data.n }}' } }],
  ['another input', { input: { n: '{{ data.n }}', more: true } }],
] as const) {
  test(`the recorded child is no evidence for ${what}`, () => {
    const candidate = [work('before'), child(more), noop('after')];
    assert.equal(kindOf(candidate, BASELINE, { data: { n: 1 } }), 'inconclusive');
  });
}

test('nor is it where an earlier block gives the child other data by now', () => {
  const baseline = [seen({ n: 1 }), child({ input: { n: '{{ outputs.seen.n }}' } })];
  const candidate = [seen({ n: 2 }), child({ input: { n: '{{ outputs.seen.n }}' } })];
  assert.equal(kindOf(baseline, baseline), 'match');
  assert.equal(kindOf(candidate, baseline), 'inconclusive');
  const moved = [child({ input: { n: '{{ outputs.seen.n }}' } }), seen({ n: 1 })];
  assert.equal(kindOf(moved, baseline), 'inconclusive');
});
