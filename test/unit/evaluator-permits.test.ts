/** The evaluator's part in concurrency keys: who has to wait for a slot, and until when. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { EngineEvent, Progress, Snapshot } from '../../src/core/evaluator.js';
import { noop, Player, parallel, START, sleep, tryCatch, work } from '../helpers/player.js';

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

function holdsSlot({ state }: Snapshot): boolean {
  return state === 'running' || state === 'waiting';
}

/** Under a key, started and let in. */
function admitted(...blocks: Block[]): KeyedPlayer {
  return new KeyedPlayer(blocks).start().admit();
}

const step = (id: string, fields: object): Block => ({
  type: 'step',
  id,
  handler: 'noop',
  ...fields,
});
const delayed = (id: string, duration: number) => step(id, { delay: { duration } });
const limited = (id: string) => step(id, { rate_limit_key: 'k' });

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

  test('the slot lets it start, and is asked for once', () => {
    const player = admitted(noop('a'), work('b'), noop('c'));
    assert.deepEqual([player.state, player.waits], ['waiting', false]);
    player.after('ok b').shows({ state: 'completed', done: ['a', 'b', 'c'] });
  });

  test('no wake, whatever its kind, starts one that waits', () => {
    const player = new KeyedPlayer([noop('a')]).start();
    player.now += 1_000;
    player.send({ kind: 'wake' });
    player.send({ kind: 'wake', recovered: true });
    assert.deepEqual([player.waits, player.done], [true, []]);
  });

  test('one that starts later asks when its time comes', () => {
    const player = new KeyedPlayer([noop('a')]);
    player.snapshot.nextFireAt = START + 500;
    player.start();
    assert.deepEqual([player.waits, player.last!.wakeAt], [false, START + 500]);
    player.after('tick').shows({ waits: true });
    player.after('admitted').shows({ state: 'completed' });
  });

  test('a slot that comes although nobody waits for one changes nothing', () => {
    const player = new KeyedPlayer([work('a')]);
    player.snapshot.nextFireAt = START + 500;
    player.start().admit();
    assert.deepEqual([player.state, player.dispatched], ['scheduled', []]);
  });

  test('without a key there is nothing to wait for', () => {
    for (const env of [{}, { holdsPermit: true }]) {
      const player = new Player([work('a')], { env }).start();
      assert.deepEqual([player.state, player.snapshot.execution.w], ['waiting', undefined]);
    }
  });
});

describe('what needs no slot', () => {
  const cases: Record<string, { blocks: Block[]; next?: (player: KeyedPlayer) => void }> = {
    'a delay': { blocks: [delayed('d', 100), work('a')] },
    'a back-off': {
      blocks: [work('a', { retry: { max_attempts: 2, initial_backoff: 100, max_backoff: 100 } })],
      next: (player) => player.fail('a', true),
    },
    'a rate limit': {
      blocks: [limited('r'), work('a')],
      next: (player) => {
        const [{ node, iteration, attempt }] = player.asked as [Progress['rateRequests'][number]];
        const until = player.now + 100;
        player.send({ kind: 'rate.deferred', node, iteration, attempt, until });
      },
    },
    'a delay beside another one': {
      blocks: [parallel('p', [delayed('d', 100), work('a')], [delayed('e', 150)])],
    },
  };
  for (const [what, { blocks, next }] of Object.entries(cases)) {
    test(`${what} does not; what comes after it does`, () => {
      const player = new KeyedPlayer(blocks, { env: { isRateLimited: () => true } });
      player.start().admit();
      next?.(player);
      assert.deepEqual([player.state, player.waits], ['scheduled', false]);
      player.tick();
      const due = START + 100;
      player.shows({ state: 'scheduled', waits: true, nextFireAt: due, atWork: [] });
      player.admit();
      assert.equal(holdsSlot(player.snapshot), true);
    });
  }

  test('a sleep and an open task do', () => {
    const mixed = admitted(parallel('p', [sleep('s', 100)], [delayed('d', 50)]));
    assert.equal(mixed.state, 'running');
    mixed.after('tick').shows({ state: 'running', waits: false });
    assert.equal(admitted(parallel('p', [work('a')], [delayed('d', 50)])).state, 'running');
  });

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

  test('takes in the outcome of a task, and starts nothing after it', () => {
    const player = waiting(work('b'));
    player.complete('a', { x: 1 });
    player.shows({ state: 'scheduled', waits: true, done: ['a'], atWork: [] });
    player.after('admitted').shows({ state: 'waiting', atWork: ['b'] });
  });

  test('lets a task time out, and takes a failure in', () => {
    const player = waiting();
    assert.equal(player.last!.wakeAt, START + 1_000);
    player.after('tick').shows({ state: 'failed', waits: false });
  });

  test('dispatches a retry when it has its slot', () => {
    const player = waiting();
    player.after('again a').shows({ state: 'scheduled', atWork: [] });
    player.after('admitted').shows({ state: 'waiting', atWork: ['a'] });
    assert.equal(player.dispatched.at(-1)!.attempt, 1);
  });

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
    'after a pause': (player) => {
      player.after('pause', 'resume');
    },
    'after a failure': (player) => {
      player.after({ kind: 'stop', state: 'failed' }, 'retry');
    },
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

test('the audit shows no state in between while a slot is waited for', () => {
  const player = admitted(delayed('d', 100), work('a'));
  player.tick().admit();
  player.complete('a');
  assert.deepEqual(player.transitions, [
    'scheduled>running',
    'running>waiting',
    'waiting>running',
    'running>completed',
  ]);
});
