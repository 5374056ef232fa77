/** The evaluator on steps, requested states, bounds, the tree, turns, dry runs and concurrency keys. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { JsonObject } from '../../src/base/json.js';
import { advance } from '../../src/core/evaluator.js';
import type { EngineEvent, Env, Progress, Snapshot } from '../../src/core/progress.js';
import { treeOf } from '../../src/core/tree.js';
import { lines } from '../helpers/columns.js';
import {
  ENV,
  failing,
  forEach,
  freshSnapshot,
  http,
  loop,
  noop,
  Player,
  type PlayerOptions,
  parallel,
  planOf,
  play,
  race,
  START,
  transform,
  tryCatch,
  work,
} from '../helpers/player.js';

describe('pure steps', () => {
  test('run to the end in one turn, with one row each and every move audited', () => {
    const player = play([noop('a'), noop('b')]);
    player.shows({ state: 'completed', done: ['a', 'b'] });
    assert.deepEqual(player.transitions, ['scheduled>running', 'running>completed']);
    assert.equal(player.snapshot.nextFireAt, null);
    const { stepsExecuted, stepsInPlace, stepsFailed } = player.last!.counts;
    assert.deepEqual([stepsExecuted, stepsInPlace, stepsFailed], [2, 2, 0]);
  });

  test('leave what runs now in the runtime section', () => {
    const { runtime } = play([noop('a'), noop('b')]).snapshot;
    assert.deepEqual([runtime.current_step, runtime.total_steps_executed], ['b', 2]);
    assert.equal(runtime.started_at, new Date(START).toISOString());
  });
});

describe('external steps', () => {
  test('are dispatched rendered, wait, and merge an object into the data', () => {
    const player = play([work('a', { params: { x: '{{ data.n }}' }, queue_name: 'q' })], {
      data: { n: 3, keep: 1 },
    });
    player.shows({ state: 'waiting', wakeAt: null });
    const [dispatch] = player.dispatched;
    assert.deepEqual(dispatch!.params, { x: 3 });
    assert.deepEqual([dispatch!.queueName, dispatch!.external], ['q', true]);
    player.complete('a', JSON.parse('{"n": 4, "__proto__": {"polluted": 1}}') as JsonObject);
    assert.deepEqual([player.state, player.snapshot.data.n], ['completed', 4]);
    assert.equal(player.snapshot.data.keep, 1);
    assert.ok(Object.hasOwn(player.snapshot.data, '__proto__'));
    assert.equal(({} as JsonObject).polluted, undefined);
  });

  test('without a retry policy are dispatched again without limit: at once, then after twice as long each time', () => {
    const player = play([work('a')]);
    const waits: number[] = [];
    for (let attempt = 0; attempt < 40; attempt += 1) {
      assert.equal(player.dispatched.at(-1)!.attempt, attempt);
      const failedAt = player.now;
      player.fail('a', true);
      if (player.state === 'scheduled') player.tick();
      waits.push(player.now - failedAt);
    }
    assert.deepEqual(waits.slice(0, 5), [0, 200, 400, 800, 1_600]);
    assert.deepEqual(waits.slice(9, 12), [51_200, 60_000, 60_000]);
    player.complete('a');
    assert.equal(player.rows[0]!.attempt, 40);
  });

  test('wait as long as a failure says, or as the policy says if that is longer', () => {
    const retry = { max_attempts: 3, initial_backoff: 1_000, backoff_multiplier: 10 };
    const failed = { kind: 'failure', retryable: true, message: '', retryAfterMs: 5_000 } as const;
    const player = play([http('a', { retry })]);
    player.end('a', failed).shows({ nextFireAt: START + 5_000 });
    player
      .tick()
      .end('a', failed)
      .shows({ nextFireAt: START + 15_000 });
  });

  test('an output that the context has no room for is kept, and fails the step for good', () => {
    const env = { fitsContext: (data: JsonObject) => JSON.stringify(data).length < 20 };
    const retry = { max_attempts: 3, initial_backoff: 0 };
    const player = play([work('a', { retry }), work('b')], { env, data: { n: 1 } });
    player.complete('a', { text: 'x'.repeat(30) });
    player.shows({ state: 'failed', data: { n: 1 } });
    assert.match(player.snapshot.execution.y!.message, /^context limit: /);
    assert.deepEqual(player.outputOf('a'), { text: 'x'.repeat(30) });
  });

  test('an output with merge_output: false is read as an output only', () => {
    const env = { fitsContext: () => false };
    const blocks = [work('a', { merge_output: false }), transform('b', { n: '{{outputs.a.n}}' })];
    const player = play(blocks, { env });
    player.complete('a', { n: 7 });
    player.shows({ state: 'completed', data: {} });
    assert.deepEqual(player.outputOf('b'), { n: 7 });
  });

  test('without a retry policy fail at once when the engine is set so', () => {
    play([work('a')], { env: { unpoliciedRetry: 'fail' } })
      .after('again a')
      .shows({ state: 'failed', failure: 'broken' });
  });

  test('take no outcome of another try, iteration, kind or node', () => {
    const player = play([work('a')]);
    const outcome = { kind: 'success', output: {} } as const;
    const good = { kind: 'step.outcome', node: 0, iteration: '', attempt: 0, outcome } as const;
    for (const event of [
      { ...good, attempt: 1, external: true },
      { ...good, iteration: '0', external: true },
      { ...good, external: false },
      { ...good, node: 7, external: true },
    ]) {
      assert.equal(player.send(event).stale, true);
    }
    assert.equal(player.send({ ...good, external: true }).stale, undefined);
    assert.equal(player.send({ ...good, external: true }).stale, true);
  });

  test('whose data the database refused fail for good', () => {
    const player = play([work('a', { retry: { max_attempts: 5 } })]);
    player.send({ kind: 'step.refused', node: 0, iteration: '', attempt: 0, message: 'bad data' });
    player.shows({ state: 'failed', failure: 'bad data', atWork: [] });
  });
});

describe('in-process steps', () => {
  test('keep the instance running and leave an __error__ row when they fail', () => {
    const player = play([http('a')]);
    assert.deepEqual([player.state, player.dispatched[0]!.external], ['running', false]);
    player.fail('a', true, 'no route', { status: 500 });
    assert.equal(player.state, 'failed');
    assert.deepEqual(player.rows[0]!.output, {
      __error__: true,
      retryable: true,
      message: 'no route',
      details: { status: 500 },
    });
  });

  test('retry_if and non_retryable_codes stop the retries', () => {
    const retry = { max_attempts: 3, initial_backoff: 0, max_backoff: 0 };
    const policies: [object, JsonObject | undefined, number][] = [
      [{ ...retry, retry_if: '_error.message == broken' }, undefined, 3],
      [{ ...retry, retry_if: '_error.message == other' }, undefined, 1],
      [{ ...retry, non_retryable_codes: ['503'] }, { status: 503 }, 1],
      [{ ...retry, non_retryable_codes: ['E1'] }, { error_code: 'E2' }, 3],
    ];
    for (const [policy, details, tries] of policies) {
      const player = play([http('a', { retry: policy })]);
      while (player.state !== 'failed') player.fail('a', true, 'broken', details);
      assert.equal(player.dispatched.length, tries, JSON.stringify(policy));
    }
  });
});

describe('bounds', () => {
  test('a turn stops when its outputs are large enough', () => {
    const big = transform('a', { text: 'x'.repeat(1_000) });
    const player = new Player([loop('l', 'true', 10, [big])], {
      env: { outputBytesBudget: 3_000 },
    });
    player.sendOnce({ kind: 'wake' });
    assert.equal(player.rows.filter(({ blockId }) => blockId === 'a').length, 3);
  });

  test('many iterations are many short turns and leave a small execution', () => {
    const plan = planOf([loop('l', 'true', 20_000, [noop('a')])]);
    const snapshot = freshSnapshot();
    let rows = 0;
    for (let more = true; more; ) {
      const progress = advance(plan, snapshot, { kind: 'wake' }, ENV);
      assert.ok(progress.outputs.length <= 500);
      assert.ok(JSON.stringify(snapshot.execution).length < 200);
      rows += progress.outputs.length;
      more = progress.more;
    }
    assert.deepEqual([snapshot.state, rows], ['completed', 40_000]);
  });

  test('a race that is open beside an endless loop is decided all the same', () => {
    const endless = loop('l', 'true', 100_000, [noop('a')]);
    const player = new Player([race('r', [endless], [work('b')])], { env: { stepBudget: 50 } });
    player.sendOnce({ kind: 'wake' });
    assert.deepEqual(player.atWork, ['b']);
    player.after('ok b').shows({ state: 'completed' });
    assert.ok(player.rows.length < 200);
  });
});

describe('the tree', () => {
  test('has a node for every block, with parents, branches, times and stable ids', () => {
    const player = play([parallel('p', [work('a')], [noop('b')]), noop('z')]);
    player.now += 5;
    player.complete('a');
    const { plan, snapshot } = player;
    const nodes = treeOf(plan, snapshot.execution, snapshot.id);
    assert.deepEqual(nodes, treeOf(plan, snapshot.execution, snapshot.id));
    const shown = lines(nodes, 'block_id', 'branch_index', 'block_type');
    assert.deepEqual(shown, ['p null parallel', 'a 0 step', 'b 1 step', 'z null step']);
    assert.equal(nodes[1]!.parent_id, nodes[0]!.id);
    assert.equal(nodes[0]!.parent_id, null);
    assert.equal(nodes[1]!.started_at, new Date(START).toISOString());
    assert.equal(nodes[1]!.completed_at, new Date(START + 5).toISOString());
    assert.equal(new Set(nodes.map(({ id }) => id)).size, 4);
  });
});

const AGAIN_MS = 2_000;
const env = { isRateLimited: () => true };
const step = { node: 0, iteration: '', attempt: 0 };
const blocks = [work('a', { rate_limit_key: 'k', timeout: 500 })];

describe('a step that asks its rate limit', () => {
  test('asks again for the same try when no answer has come, as often as it takes', () => {
    const player = play(blocks, { env });
    for (let times = 2; times <= 4; times += 1) {
      player.tick();
      assert.equal(player.now, START + (times - 1) * AGAIN_MS);
      assert.equal(player.state, 'running');
      assert.deepEqual(player.asked, Array(times).fill({ ...step, blockId: 'a', key: 'k' }));
      assert.equal(player.last!.wakeAt, player.now + AGAIN_MS);
    }
    assert.equal(player.last!.counts.stepsExecuted, 0);
  });
});

describe('pause and resume', () => {
  test('a parked instance gets a slot of its key before it is parked again', () => {
    const player = play([work('a')], { env: { holdsPermit: true } });
    player.after('park', 'pause');
    player.env = { holdsPermit: false };
    player.after('resume').shows({ state: 'scheduled', waits: true });
    player.env = { holdsPermit: true };
    player.after('admitted').shows({ state: 'waiting', waits: false });
    assert.equal(player.snapshot.execution.p, 1);
  });

  test('a failed instance that is paused and then cancelled keeps its error', () => {
    const player = play([failing('a')]);
    player.send({ kind: 'pause' });
    assert.equal(player.send({ kind: 'cancel' }).dropErrorRows, false);
    assert.equal(player.state, 'cancelled');
  });
});

describe('retry of a failed instance', () => {
  test('runs the failed step again, with fresh tries, and nothing that completed', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = play([noop('a'), work('b', { retry }), noop('c')]);
    player.after('again b', 'again b').shows({ state: 'failed' });
    const progress = player.sendOnce({ kind: 'retry' });
    player.shows({ state: 'scheduled', nextFireAt: START });
    assert.deepEqual([progress.dropErrorRows, progress.more], [true, true]);
    player.send({ kind: 'wake' });
    assert.equal(player.dispatched.at(-1)!.attempt, 0);
    player.after('ok b').shows({ state: 'completed', done: ['a', 'b', 'c'] });
  });
});

const TURN_ENV: Env = { ...ENV, stepBudget: 1_000 };

const stepOf = (id: string, handler: string, params: JsonObject): Block => ({
  type: 'step',
  id,
  handler,
  params,
});

/** Wakes the instance until nothing is left to do; the block ids of the rows of each turn. */
function turns(blocks: Block[], env: Partial<Env>, data: JsonObject = {}): string[][] {
  const plan = planOf(blocks);
  const snapshot = freshSnapshot(data);
  const rows: string[][] = [];
  for (let more = true; more; ) {
    const progress = advance(plan, snapshot, { kind: 'wake' }, { ...TURN_ENV, ...env });
    rows.push(progress.outputs.map(({ blockId, attempt }) => `${blockId}${attempt}`));
    more = progress.more;
  }
  assert.equal(snapshot.state, 'completed');
  return rows;
}

const BLOCKS = [noop('a'), loop('l', 'true', 5, [noop('b'), noop('c')]), noop('d')];

test('a turn ends when its time is over, and the next one goes on from there', () => {
  const all = turns(BLOCKS, {});
  assert.equal(all.length, 1);
  let asked = 0;
  const cut = turns(BLOCKS, {
    isOver: () => {
      asked += 1;
      return asked % 3 === 0;
    },
  });
  assert.ok(cut.length > 4);
  assert.deepEqual(cut.flat(), all.flat());
});

test('data that a step keeps as a whole is that of its own item', () => {
  const plan = planOf([forEach('f', 'items', [stepOf('s', 'transform', { all: '{{data}}' })])]);
  const { outputs } = advance(plan, freshSnapshot({ items: [7, 8] }), { kind: 'wake' }, TURN_ENV);
  assert.deepEqual(
    outputs.filter(({ blockId }) => blockId === 's').map(({ output }) => JSON.stringify(output)),
    [7, 8].map((item) => JSON.stringify({ all: { items: [7, 8], item } })),
  );
});

test('a reason is cut between characters, never inside of one', () => {
  const message = `${'x'.repeat(499)}🙂 and more`;
  const plan = planOf([stepOf('a', 'fail', { message })]);
  const snapshot = freshSnapshot();
  const progress = advance(plan, snapshot, { kind: 'wake' }, TURN_ENV);
  const reason = snapshot.execution.y?.message ?? '';
  assert.equal(reason, `${'x'.repeat(499)}…`);
  assert.equal(progress.audit.find((entry) => entry.blockId === 'a')?.details?.message, reason);
});

function rehearse(blocks: Block[], options: PlayerOptions = {}): Player {
  const player = new Player(blocks, options);
  player.snapshot.runtime.dry_run = true;
  return player.start();
}

test('a dry run ends without a single dispatch', () => {
  const player = rehearse([work('a'), http('b'), noop('c')]);
  player.shows({ state: 'completed', done: ['a', 'b', 'c'] });
  assert.deepEqual(player.dispatched, []);
  const { stepsExecuted, stepsInPlace } = player.last!.counts;
  assert.deepEqual([stepsExecuted, stepsInPlace], [3, 1]);
});

test('an external step gives what its worker would have got, rendered', () => {
  const params = { order: '{{ data.id }}', fixed: [1] };
  const player = rehearse([work('a', { params })], { data: { id: 7 } });
  assert.deepEqual(player.outputOf('a'), {
    dry_run: true,
    handler: 'work',
    would: { params: { order: 7, fixed: [1] } },
  });
});

test('an http_request says its method and url, as far as it has them', () => {
  const url = 'https://example.org/{{ data.id }}';
  const player = rehearse(
    [http('a', { params: { url, method: 'POST', body: 'x' } }), http('b', { params: { url } })],
    { data: { id: 7 } },
  );
  const sent = 'https://example.org/7';
  const given = { dry_run: true, handler: 'http_request' };
  const posted = { params: { url: sent, method: 'POST', body: 'x' }, method: 'POST', url: sent };
  assert.deepEqual(player.outputOf('a'), { ...given, would: posted });
  const got = { params: { url: sent }, url: sent };
  assert.deepEqual(player.outputOf('b'), { ...given, would: got });
});

test('the output is not held against output_schema, which is about the real one', () => {
  const compileSchema = () => () => 'never conforms';
  const blocks = [work('a', { output_schema: {} })];
  assert.equal(rehearse(blocks, { compileSchema }).state, 'completed');
  play(blocks, { compileSchema }).after('ok a').shows({ state: 'failed' });
});

test('the gates of a step hold, but no rate limit is asked', () => {
  const env = { isRateLimited: () => true };
  const skipped = rehearse([work('a', { when: 'no' })]);
  assert.deepEqual([skipped.tree.a, skipped.rows], ['skipped', []]);
  const delayed = rehearse([work('a', { delay: { duration: 50 }, rate_limit_key: 'k' })], { env });
  assert.equal(delayed.state, 'scheduled');
  delayed.after('tick').shows({ state: 'completed' });
  assert.deepEqual(delayed.asked, []);
  const closed = rehearse([work('a', { send_window: { start_hour: 1, end_hour: 2 } })]);
  assert.deepEqual([closed.state, closed.tick().state], ['scheduled', 'completed']);
});

test('only true makes a dry run', () => {
  for (const value of [false, null, 'true', 1]) {
    const player = new Player([work('a')]);
    player.snapshot.runtime.dry_run = value;
    assert.deepEqual(player.start().atWork, ['a']);
  }
});

/** Under a key: as an actor does, it tells the evaluator at each event whether there is a slot. */
class KeyedPlayer extends Player {
  override sendOnce(event: EngineEvent): Progress {
    const holdsPermit = event.kind === 'admitted' || holdsSlot(this.snapshot);
    this.env = { ...this.env, holdsPermit };
    const progress = super.sendOnce(event);
    if (event.kind !== 'admitted' && !holdsPermit) {
      assert.ok(!holdsSlot(this.snapshot), `${event.kind} took a slot unasked`);
    }
    return progress;
  }

  /** Whether it waits for a slot. */
  get waits(): boolean {
    return this.snapshot.execution.w === 1;
  }

  admit(): this {
    this.send({ kind: 'admitted' });
    return this;
  }
}

const holdsSlot = ({ state }: Snapshot): boolean => state === 'running' || state === 'waiting';

/** Under a key, started and let in. */
const admitted = (...blocks: Block[]): KeyedPlayer => new KeyedPlayer(blocks).start().admit();

describe('the start', () => {
  test('nothing starts without a slot: the instance stays scheduled, due since it was created', () => {
    const player = new KeyedPlayer([noop('a')]);
    player.now += 7;
    player.start().shows({ state: 'scheduled', waits: true, nextFireAt: START });
    assert.equal(player.snapshot.execution.t, null);
    assert.deepEqual(player.transitions, []);
    const { wakeAt, more } = player.last!;
    assert.deepEqual([wakeAt, more], [null, false]);
  });
});

describe('what needs no slot', () => {
  test('the last step that ends while its instance waits for a slot ends the instance', () => {
    const player = admitted(work('a'));
    player.after({ kind: 'reschedule', at: null }).shows({ state: 'scheduled', waits: true });
    player.after('ok a').shows({ state: 'completed', waits: false });
  });
});

describe('one that waits for a slot', () => {
  /** Its task is open, and the slot was given away. */
  const waiting = (...more: Block[]) => {
    const player = admitted(work('a', { timeout: 1_000 }), ...more).after('claim a');
    player.after({ kind: 'reschedule', at: null }).shows({ waits: true });
    return player;
  };

  const events: readonly [EngineEvent, string][] = [
    [{ kind: 'pause' }, 'paused'],
    [{ kind: 'cancel' }, 'cancelled'],
    [{ kind: 'stop', state: 'failed' }, 'failed'],
    [{ kind: 'stop', state: 'completed' }, 'completed'],
    [{ kind: 'stop', state: 'cancelled' }, 'cancelled'],
    [{ kind: 'reschedule', at: START + 500 }, 'scheduled'],
  ];
  for (const [event, state] of events) {
    const at = event.kind === 'reschedule' ? ' for later' : '';
    test(`gives its wish up with ${event.kind}${at}: ${state}`, () => {
      const player = waiting();
      player.send(event);
      assert.deepEqual([player.state, player.waits], [state, false]);
      player.after('admitted').shows({ state });
    });
  }
});

describe('a slot that was given back is asked for again', () => {
  const returns: Record<string, (player: KeyedPlayer) => void> = {
    'after a pause': (player) => player.after('pause', 'resume'),
    'after a failure': (player) => player.after({ kind: 'stop', state: 'failed' }, 'retry'),
    'when its new time comes': (player) => {
      player.after({ kind: 'reschedule', at: START + 500 }).shows({ waits: false });
      player.tick();
    },
  };
  for (const [when, leave] of Object.entries(returns)) {
    test(when, () => {
      const player = admitted(noop('x'), work('a'));
      leave(player);
      assert.deepEqual([player.state, player.waits], ['scheduled', true]);
      player.after('admitted').shows({ state: 'waiting', atWork: ['a'], done: ['x'] });
    });
  }

  test('a parked instance keeps its slot', () => {
    const player = admitted(work('a'), work('b'));
    player.after('park').shows({ state: 'waiting', waits: false });
    player.after('ok a').shows({ state: 'waiting', atWork: ['b'] });
  });
});

describe('protected work of a cancelled instance', () => {
  const guarded = [tryCatch('t', [work('a')], [], [noop('last')]), noop('after')];

  test('goes on in the slot that the instance has', () => {
    const player = admitted(...guarded);
    player.after('cancel').shows({ state: 'cancelled', done: ['last'] });
  });

  test('waits for a slot when it has none', () => {
    const player = admitted(...guarded);
    player.after('pause', 'cancel').shows({ state: 'scheduled', waits: true, done: [] });
    player.after('admitted').shows({ state: 'cancelled', done: ['last'] });
  });
});
