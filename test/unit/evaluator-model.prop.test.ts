/**
 * The evaluator held against a model of its semantics (`test/helpers/model.ts`), over random
 * definitions and random stories about their instances, and what that has found, one test each.
 *
 * Cost: 14 s, since thousands of stories are compared event by event.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { countOf } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import { Tally } from '../helpers/model-laws.js';
import { type Profile, type Request, type Story, stories } from '../helpers/model-stories.js';
import { Trial } from '../helpers/model-trial.js';
import {
  failing,
  forEach,
  http,
  loop,
  noop,
  type Player,
  play,
  race,
  START,
  transform,
  tryCatch,
  work,
} from '../helpers/player.js';
import { check, isWholeRun } from '../helpers/properties.js';
import { casesIn } from '../helpers/table.js';

const tally = new Tally();

/** What the stories of the fast and the full tier are; the deep tier tells others. */
const STORIES_SEED = 28;

const PROFILES: Record<string, Profile & { runs: number }> = {
  'of all kinds': { runs: byDepth(3_000, 12_000) },
  'with races and pauses': {
    runs: byDepth(2_000, 8_000),
    kinds: { race: 8, loop: 3, for_each: 3 },
    requests: { pause: 8, resume: 6, cancel: 0, stop: 0, park: 3, reschedule: 4 },
  },
  'with finally lists and cancels': {
    runs: byDepth(2_000, 8_000),
    kinds: { try_catch: 8 },
    requests: { cancel: 8, stop: 0 },
  },
  'with sagas, scopes and limits of time': {
    runs: byDepth(2_000, 8_000),
    kinds: { saga: 8, cancellation_scope: 5, ab_split: 3, try_catch: 4 },
    requests: { cancel: 4, pause: 6, resume: 4 },
  },
  'with catch lists and cancels': {
    runs: byDepth(2_000, 8_000),
    kinds: { try_catch: 12, parallel: 4, cancellation_scope: 3 },
    requests: { cancel: 10, stop: 1 },
  },
  'with races, cancels and what is owed': {
    runs: byDepth(2_000, 8_000),
    kinds: { race: 8, try_catch: 10 },
    requests: { cancel: 8, retry: 4 },
  },
  'with loops, deaths and stops': {
    runs: byDepth(2_000, 8_000),
    kinds: { loop: 5, for_each: 5 },
    requests: { pause: 9, stop: 7, resume: 1, cancel: 0 },
    deathsMax: 4,
  },
};

for (const [title, { runs, ...profile }] of Object.entries(PROFILES)) {
  test(`instances ${title} do what the model says`, (t) => {
    const law = (story: Story) => {
      tally.count('blocks', countOf(story.blocks));
      new Trial(story, tally).run();
    };
    check(t, runs, stories(profile), law, STORIES_SEED);
  });
}

/** About a third of what the stories of `npm test` come to: a generator that runs dry is noticed. */
const AT_LEAST = casesIn(`
stories 13000 | blocks 50000 | ran a step 3000 | ran a parallel 450 | ran a race 800
ran a router 350 | ran a try_catch 800 | ran a loop 400 | ran a for_each 400 | ran a saga 400
ran a cancellation_scope 300 | ran a ab_split 300 | ran a sub_sequence 400
ran a for_each with items side by side 120 | ran a hook 2500 | waited for said 1000
waited for event 800 | waited for child 600 | ended completed 1500 | ended failed 1000
ended cancelled 500 | loser of a race at work 900 | loser of a race cleans up 12 | cleaned up 2000
cancel during finally 60 | cancel with a protected step 60 | stop with work open 150
retry of a failed instance 1200 | dispatched again 1300 | timed out 600 | late outcome 1200
rate limited 500 | outcome during a pause 500 | outcome while parked 90
outcome before the time asked for 60 | death between two turns 120
death with handlers at work 150 | death with handlers at work in a loop 30
owes a cut catch list 20 | owes a catch list that failed before 20 | gives up what is owed 100
`).flat();

/** Draws end the comparison, so they must stay rare. */
const DRAWS_SHARE_MAX = 0.05;

test('the stories have seen every kind of block and of trouble', (t) => {
  if (!isWholeRun) return t.skip('only a part of the stories is run');
  for (const [what, count] of tally.counts) t.diagnostic(`${what}: ${count}`);
  for (const row of AT_LEAST) {
    const [, what = '', usual] = /^(.+) (\d+)$/.exec(row) ?? [];
    const least = Number(usual) * byDepth(1, 4);
    assert.ok(tally.of(what) >= least, `${what}: ${tally.of(what)} is less than ${least}`);
  }
  const share = tally.of('draws') / tally.of('stories');
  assert.ok(share <= DRAWS_SHARE_MAX, `${share} of the stories are draws`);
});

/** A story in the evaluator and in the model. */
function liveBoth(story: Pick<Story, 'blocks' | 'answers'>, ...asked: [number, Request][]): void {
  const requests = asked.map(([after, request]) => ({ after, request }));
  const usual = { data: {}, deaths: [], startsAfter: 0, kept: [], hooks: {}, givesUp: false };
  const rest = { retries: 1, unpoliciedRetry: 'fail', stepBudget: 500 } as const;
  new Trial({ ...usual, ...rest, ...story, requests }, tally).run();
}

describe('what was owed before a hard stop', () => {
  const right = { kind: 'success', after: 1, output: {} } as const;
  const wrong = { kind: 'permanent', after: 2, output: {} } as const;
  const stop = { kind: 'stop', state: 'failed' } as const;

  test('is given up by it, so that a race that completes then is not run again', () => {
    const blocks = [
      race('r', [work('a')], [tryCatch('t', [work('b')], [], [http('f')])]),
      work('c'),
    ];
    const answers = { a: [right], b: [{ ...right, after: 500 }], f: [wrong], c: [wrong] };
    const player = play(blocks).after('ok a', 'fail f', stop, 'pause', 'resume', 'fail c', 'retry');
    assert.deepEqual(player.done, ['a', 'r']);
    liveBoth({ blocks, answers }, [8, stop], [1, { kind: 'pause' }], [1, { kind: 'resume' }]);
  });

  test('is owed again if it fails again', () => {
    const branch = [work('a'), tryCatch('t', [noop('n')], [], [http('f')])];
    const late = [work('b', { delay: { duration: 1 } })];
    const blocks = [{ ...race('r', branch, late), semantics: 'first_to_succeed' } as Block];
    const answers = { a: [right], b: [right], f: [{ ...wrong, after: 1 }] };
    liveBoth({ blocks, answers }, [2, { kind: 'cancel' }], [1, stop]);
  });
});

test('what has failed to clean up in a try list is not owed once its catch list has run, at any depth', () => {
  const refund = http('p', { cancellable: false });
  const inner = tryCatch('u', [work('b'), failing('y')], [refund, http('q')]);
  const outer = tryCatch('o', [tryCatch('t', [failing('x')], [inner])], [], [work('f')]);
  const blocks = [tryCatch('all', [{ ...outer, timeout: 100 } as Block], [])];
  const answer = { kind: 'success', after: 1, output: {} } as const;
  const answers = {
    b: [answer],
    p: [answer],
    q: [{ ...answer, kind: 'permanent' }],
    f: [{ ...answer, after: 200 }],
  } as const;
  play(blocks).after('ok b', 'ok p', 'fail q', 'tick', 'ok f').shows({ state: 'completed' });
  liveBoth({ blocks, answers });
});

describe('what the model has found', () => {
  const cleaning = tryCatch('t', [work('a')], [], [noop('f')]);

  test('a loser that has cleaned up is cancelled, and begins again in a retry', () => {
    const player = play([race('r', [cleaning], [work('b')])]);
    player.after('fail b').shows({ state: 'failed', tree: { t: 'cancelled', f: 'completed' } });
    player.send({ kind: 'retry' });
    assert.deepEqual(player.atWork.sort(), ['a', 'b']);
  });

  test('a cancelled block without a finally list is not completed by what cleans up inside', () => {
    play([tryCatch('o', [cleaning, noop('z')], [])])
      .after('cancel')
      .shows({ state: 'cancelled', tree: { t: 'completed', o: 'cancelled' } });
  });

  test('an instance stopped as failed with nothing left to do completes when it is retried', () => {
    const player = play([work('a')]);
    player.after('pause', 'ok a', { kind: 'stop', state: 'failed' }, 'retry');
    player.shows({ state: 'completed', done: ['a'] });
  });

  test('a race that a failure wins is decided at once, whatever holds the instance', () => {
    for (const event of [{ kind: 'pause' }, { kind: 'reschedule', at: START + 1_000 }] as const) {
      const inner = race('i', [work('a')], [work('b')]);
      const player = play([race('o', [inner], [work('c')])]);
      player.send(event);
      player.fail('a');
      assert.deepEqual(player.atWork, [], event.kind);
      player.send({ kind: 'reschedule', at: null });
      assert.equal(player.state, 'failed', event.kind);
    }
  });

  for (const [title, block] of [
    ['loop', loop('l', 'true', 3, [work('a')])],
    ['for_each', forEach('l', 'items', [work('a')])],
  ] as const) {
    test(`a retry goes on with the iteration of a ${title} that had yet to begin`, () => {
      const player = play([block], { data: { items: [1, 2, 3] } });
      player.after('pause', 'ok a', { kind: 'stop', state: 'failed' }, 'retry');
      for (let i = 0; i < 2; i += 1) player.complete('a');
      assert.equal(player.state, 'completed');
      const passes = player.done.filter((id) => id.startsWith('a'));
      assert.deepEqual(passes, ['a@0', 'a@1', 'a@2']);
    });
  }

  test('a retry tests the condition of an iteration that had yet to begin', () => {
    const player = play([loop('l', 'go', 3, [work('a')])], { data: { go: true } });
    player.send({ kind: 'pause' });
    player.complete('a', { go: false });
    player.after({ kind: 'stop', state: 'failed' }, 'retry');
    player.shows({ state: 'completed', done: ['a@0', 'l'] });
  });

  test('what a rate limit answers leaves a parked instance parked', () => {
    const env = { isRateLimited: () => true };
    const player = play([work('a', { rate_limit_key: 'k' })], { env });
    player.send({ kind: 'park' });
    const until = START + 100;
    player.send({ kind: 'rate.deferred', node: 0, iteration: '', attempt: 0, until });
    player.shows({ state: 'waiting', wakeAt: null });
  });

  test('a claim of a task leaves a parked instance parked', () => {
    const player = play([work('a', { timeout: 100 })]);
    player.after('park', 'claim a').shows({ state: 'waiting', wakeAt: START + 100 });
    assert.equal(player.snapshot.execution.p, 1);
    player.after('return a').shows({ state: 'waiting', wakeAt: null });
    assert.equal(player.snapshot.execution.p, 1);
  });

  test('a paused instance with nothing left to do ends when it is resumed, before the start that was asked for', () => {
    const player = play([work('a')]);
    player.send({ kind: 'reschedule', at: START + 1_000 });
    player.after('pause', 'ok a').shows({ state: 'paused' });
    player.after('resume').shows({ state: 'completed' });
    assert.equal(player.now, START);
  });

  describe('a race tells', () => {
    const winnerOf = (player: Player) => player.outputOf('r');

    test('what came before a failure that was caught', () => {
      const caught = tryCatch('t', [transform('a', { n: 1 }), failing('b')], []);
      const player = play([race('r', [work('w'), caught])]);
      player.complete('w');
      assert.deepEqual(winnerOf(player), { winner: 0, output: { n: 1 } });
    });

    test('the outputs of the items of a for_each, nothing when there were none', () => {
      const body = [transform('t', { n: '{{ data.item }}' })];
      const branch = [transform('a', {}), forEach('f', 'items', body, { concurrency: 2 })];
      const some = play([race('r', branch)], { data: { items: [1, 2] } });
      assert.deepEqual(winnerOf(some), { winner: 0, output: [{ n: 1 }, { n: 2 }] });
      assert.deepEqual(winnerOf(play([race('r', branch)])), { winner: 0, output: {} });
    });

    test('the output of the variant of a split, which tells its choice when there is none', () => {
      const split = (blocks: Block[]): Block => {
        return { type: 'ab_split', id: 's', variants: [{ name: 'v', weight: 1, blocks }] };
      };
      const given = play([race('r', [split([transform('a', { n: 1 })])])]);
      assert.deepEqual(winnerOf(given), { winner: 0, output: { n: 1 } });
      const none = play([race('r', [split([])])]);
      assert.deepEqual(winnerOf(none), { winner: 0, output: { variant: 'v', variant_index: 0 } });
    });
  });

  test('a compensation sees why its own saga failed, whatever fails beside it', () => {
    const undo = transform('undo', { why: '{{ data._error.failed_block_id }}@{{ data.item }}' });
    const steps = [
      { id: 'one', action: noop('x'), compensation: [work('wait'), undo] },
      { id: 'two', action: work('y') },
    ];
    const other = tryCatch('t', [work('z')], []);
    const body: Block[] = [
      {
        type: 'router',
        id: 'o',
        routes: [{ condition: 'item == saga', blocks: [{ type: 'saga', id: 's', steps }] }],
        default: [other],
      },
    ];
    const items = forEach('f', 'items', body, { concurrency: 2 });
    const player = play([items], { data: { items: ['saga', 'other'] } });
    player.after('fail y', 'fail z', 'ok wait');
    assert.deepEqual(player.outputOf('undo'), { why: 'y@saga' });
  });

  test('a person may answer for as long as the instance is parked', () => {
    const player = play([work('a', { wait_for_input: { prompt: 'Go on?', timeout: 100 } })]);
    player.after('park').shows({ state: 'waiting', wakeAt: null });
  });

  test('a block that is cut off times out no more while it cleans up', () => {
    const guarded = {
      ...tryCatch('t', [work('p', { cancellable: false })], [], [work('f')]),
      timeout: 100,
    };
    const player = play([guarded]).after('cancel');
    player.now += 200;
    player.after('ok p', 'ok f').shows({ state: 'cancelled', tree: { t: 'completed' } });
  });
});
