/** Replays of ended runs, case by case. The runs are lived in the real evaluator. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
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

/** `block member` of every call that is another one. */
function changedIn(verdict: Verdict): string[] {
  assert.ok(verdict.kind === 'divergence', verdict.kind);
  const { calls_changed = [] } = verdict.divergence;
  return calls_changed.map(({ block_id, member }) => `${block_id} ${member}`);
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
  assert.deepEqual(compare([noop('a'), work('_new')], [noop('a')]).kind, 'inconclusive');
  assert.deepEqual(compare([noop('a'), noop('_new')], [noop('a')]), MATCH);
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

test('what a handler does that needs nothing but its parameters is run, and never read', () => {
  const tail = router('r', 'outputs.a.go', [noop('yes')], [noop('no')]);
  const first = (handler: string, params: object) => [step('a', handler, { params }), tail];
  const baseline = first('transform', { go: true });
  assert.deepEqual(compare(first('transform', { go: '{{data.go}}' }), baseline, GO), MATCH);
  const other = compare(first('transform', { go: false }), baseline);
  assert.equal(told(other), 'completed>completed +no -yes');
  const misspelt = compare(first('assert', { condition: 'goo' }), first('assert', GO_THERE), GO);
  assert.equal(told(misspelt), 'completed>failed -no');
});

// ---------------------------------------------------------------- calls

const GO = { data: { go: true } };
const GO_THERE = { condition: 'go' };

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
        assert.equal(told(verdict), 'completed>completed', name);
        assert.deepEqual(
          changedIn(verdict),
          members.map((member) => `a ${member}`),
          name,
        );
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
    assert.deepEqual(verdict, {
      kind: 'inconclusive',
      reason: 'step a makes a call that nobody recorded',
    });
  });

  test('all steps that ask otherwise are told, those in loops once', () => {
    const both = (value: string) => [
      loop('l', 'true', 3, [pay(amount(value))]),
      step('c', 'http_request', { params: { url: value } }),
    ];
    const verdict = compare(both('{{data.other}}'), both('{{data.amount}}'), DATA);
    assert.deepEqual(changedIn(verdict), ['a params.body.amount', 'c params.url']);
  });

  test('what a changed step in place gives is what later calls ask with', () => {
    const blocks = (n: number) => [
      step('price', 'transform', { params: { n } }),
      pay({ n: '{{outputs.price.n}}' }),
    ];
    assert.deepEqual(changedIn(compare(blocks(2), blocks(1))), ['a params.n']);
  });

  test('the calls of a failed try, and of one that was cut off, count as well', () => {
    const retry = { max_attempts: 2, initial_backoff: 0 };
    const answer = answers({
      a: ({ attempt }) => ({ kind: attempt < 1 ? 'retryable' : 'success' }),
    });
    for (const handler of ['pay', 'http_request']) {
      const first = (value: string) => [step('a', handler, { params: { value }, retry })];
      const told = changedIn(compare(first('x'), first('y'), { answer }));
      assert.deepEqual(told, ['a params.value']);
      const cut = (value: string) => [
        race('r', [step('a', handler, { params: { value } })], [work('b')]),
      ];
      const never = { answer: answers({ a: () => ({ kind: 'never' as const }) }) };
      assert.deepEqual(compare(cut('x'), cut('x'), never), MATCH);
      assert.deepEqual(changedIn(compare(cut('x'), cut('y'), never)), ['a params.value']);
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
      const patched = record(merged, {
        merges: [{ after: 2, values: { n: 1 } }],
        answer: () => ({ after: 7 }),
      });
      const seen = judge(merged, merged, { ...patched, signals: [] });
      assert.deepEqual(seen, { kind: 'inconclusive', reason });
    }
  });

  test('behind a step that nobody recorded, only a call that is written otherwise is told', () => {
    const tail = (text: string) => pay({ n: text });
    const baseline = [loop('l', 'true', 1, [work('b')]), tail('{{outputs.b.n}}')];
    const answer = answers({ b: succeeds({ n: 1 }) });
    const more = [loop('l', 'true', 2, [work('b')]), tail('{{outputs.b.n}}')];
    assert.equal(compare(more, baseline, { answer }).kind, 'inconclusive');
    const other = [loop('l', 'true', 2, [work('b')]), tail('7')];
    assert.deepEqual(changedIn(compare(other, baseline, { answer })), ['a params.n']);
  });

  test('whose parameters nobody kept, it is as if it had not been recorded', () => {
    const blocks = [step('a', 'http_request', { params: { url: 'u' } })];
    const run = record(blocks);
    const forked = { ...run, outputs: run.outputs.map((row) => ({ ...row, call: null })) };
    assert.equal(judge(blocks, blocks, forked).kind, 'inconclusive');
    const tasks = record([work('a')]);
    const copied = { ...tasks, tasks: [] };
    assert.equal(judge([work('a')], [work('a')], copied).kind, 'inconclusive');
  });
});

// ---------------------------------------------------------------- what tries gave

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

test('a step that left its loop is in no pass that was recorded', () => {
  const baseline = [loop('l', 'true', 2, [work('a')])];
  assert.equal(compare([work('a')], baseline).kind, 'inconclusive');
  assert.equal(compare(baseline, [work('a')]).kind, 'inconclusive');
});

test('a step that runs more often than it was recorded proves nothing', () => {
  const passes = (max: number) => [loop('l', 'true', max, [work('a')])];
  assert.deepEqual(compare(passes(3), passes(2)), {
    kind: 'inconclusive',
    reason: 'step a makes a call that nobody recorded',
  });
  assert.deepEqual(compare(passes(1), passes(2)), MATCH);
  const inPlace = (max: number) => [loop('l', 'true', max, [noop('a')])];
  assert.deepEqual(compare(inPlace(3), inPlace(2)), MATCH);
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

test('a task that could not be made in a loop leaves no trace, and is neither missed nor added', () => {
  const list = (when: object): Block[] => [
    loop('l', 'true', 2, [tryCatch('t', [work('w', when)], [noop('c')])]),
  ];
  const broken = list({ when: 'data.go == 1 && (' });
  assert.deepEqual(compare(broken, broken), MATCH);
  assert.equal(told(compare(broken, list({ when: 'false' }))), 'completed>completed +c +w');
  assert.equal(told(compare(list({ when: 'false' }), broken)), 'completed>completed -c');
});

test('a fixed step whose failure did not matter makes no difference', () => {
  const baseline = [tryCatch('t', [failing('a')], [])];
  assert.deepEqual(compare([tryCatch('t', [noop('a')], [])], baseline), MATCH);
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
