/** The owner of the releases in virtual time: lost words, dying threads, and what it does by itself. */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import type { Release } from '../../schema/release.js';
import { mayMove, type ReleaseState } from '../../src/core/releases/release.js';
import type { Json } from '../helpers/api.js';
import { ReleaseWorld, type WriterMood } from '../helpers/release-world.js';

const GATES = [{ metric: 'error_rate', max_regression: 0.1, min_sample: 1 }];
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

let world: ReleaseWorld;
beforeEach(() => {
  world = new ReleaseWorld();
});

/** The status of the answer; undefined when there is none yet. */
const statusOf = (request: number) => world.answers.get(request)?.status;

function fail(release: Release): void {
  world.ended(release, 'baseline', 'completed');
  world.ended(release, 'candidate', 'failed');
}

describe('a change of what is routed', () => {
  for (const [operation, from, body] of [
    ['releases.canary', 'ready', { percent: 10 }],
    ['releases.pause', 'canary', {}],
    ['releases.promote', 'canary', {}],
    ['releases.rollback', 'canary', {}],
  ] as const) {
    test(`is answered when it is durable and every shard has settled it (${operation})`, async () => {
      const release = await world[from]();
      world.take();
      world.answering.clear();
      world.mood = 'is slow';
      const request = world.send(operation, release.id, body);
      await world.quiet();
      assert.deepEqual(world.take(), [], 'told before it was durable');
      await world.flush();
      const told = world.take();
      const version = Number(told[0]?.split('@')[1]);
      assert.deepEqual(told, [`0@${version}`, `1@${version}`, `2@${version}`]);
      for (const shard of [2, 0]) world.actor.routesSettled(version, shard);
      await world.quiet();
      assert.equal(statusOf(request), undefined, 'answered before every shard had settled');
      world.actor.routesSettled(version, 1);
      await world.quiet();
      assert.equal(statusOf(request), 200);
    });
  }

  test('is told again every second to the shards that have not answered, and to no other', async () => {
    const release = await world.canary();
    world.answering.delete(1);
    const request = world.send('releases.pause', release.id);
    await world.quiet();
    assert.deepEqual(world.takeShards(), [0, 1, 2]);
    await world.pass(3 * SECOND);
    const told = world.take();
    assert.equal(told.length, 3);
    assert.deepEqual([...new Set(told)].length, 1);
    assert.match(told[0] ?? '', /^1@/);
    assert.equal(statusOf(request), undefined);
    world.answering.add(1);
    await world.pass(SECOND);
    assert.equal(statusOf(request), 200);
    world.take();
    await world.pass(9 * SECOND);
    assert.deepEqual(world.take(), [], 'told after everybody had settled');
  });

  test('is told to the successor of a shard at once', async () => {
    const release = await world.canary();
    world.answering.delete(2);
    const request = world.send('releases.rollback', release.id);
    await world.quiet();
    world.take();
    world.answering.add(2);
    world.actor.shardBack(2);
    assert.deepEqual(world.takeShards(), [2]);
    await world.quiet();
    assert.equal(statusOf(request), 200);
    world.actor.shardBack(1);
    assert.deepEqual(world.takeShards(), [], 'told what it had settled');
  });

  test('is not settled by an answer to an earlier version', async () => {
    const release = await world.canary();
    world.answering.delete(1);
    const first = world.send('releases.pause', release.id);
    await world.quiet();
    const version = Number(world.take()[0]?.split('@')[1]);
    const second = world.send('releases.rollback', release.id);
    await world.quiet();
    world.actor.routesSettled(version, 1);
    await world.quiet();
    assert.deepEqual([statusOf(first), statusOf(second)], [200, undefined]);
    const later = Math.max(...world.take().map((text) => Number(text.split('@')[1])));
    world.actor.routesSettled(later, 1);
    await world.quiet();
    assert.equal(statusOf(second), 200);
  });

  test('an answer to a later version settles the earlier ones too', async () => {
    const release = await world.canary();
    world.answering.delete(1);
    const first = world.send('releases.pause', release.id);
    await world.quiet();
    world.answering.add(1);
    await world.do('releases.rollback', release.id);
    assert.equal(statusOf(first), 200);
  });

  test('has a higher version than any before, also of an earlier life', async () => {
    const release = await world.canary();
    const versions: number[] = [];
    for (const operation of ['releases.pause', 'releases.rollback'] as const) {
      await world.do(operation, release.id);
      versions.push(Number(world.take().at(-1)?.split('@')[1]));
    }
    await world.pass(5);
    await world.restart();
    versions.push(Number(world.take().at(-1)?.split('@')[1]));
    assert.deepEqual(versions, [...new Set(versions)].sort());
  });

  test('a rollback that was done before is answered behind a barrier as well', async () => {
    const release = await world.canary();
    world.answering.delete(1);
    const first = world.send('releases.rollback', release.id);
    const second = world.send('releases.rollback', release.id);
    await world.quiet();
    assert.deepEqual([statusOf(first), statusOf(second)], [undefined, undefined]);
    world.answering.add(1);
    await world.pass(SECOND);
    assert.deepEqual([statusOf(first), statusOf(second)], [200, 200]);
    assert.deepEqual(world.chainOf(release).slice(3), ['canary→rolled_back operator']);
  });

  test('one that is refused tells nobody', async () => {
    const release = await world.canary();
    assert.equal((await world.ask('releases.canary', release.id, { percent: 5 })).status, 409);
    const ready = await world.ready();
    world.take();
    assert.equal((await world.ask('releases.pause', ready.id)).status, 409);
    assert.deepEqual(world.take(), []);
  });

  test('at the start of this actor every shard is told, since its last word may be lost', async () => {
    await world.restart();
    assert.deepEqual(world.takeShards(), [0, 1, 2]);
  });
});

describe('an outcome that is not known', () => {
  for (const mood of ['dies before', 'dies after'] as const) {
    test(`is 503, and every shard reads the rows when they can be trusted (the writer ${mood})`, async () => {
      const release = await world.canary();
      world.mood = mood;
      const { status } = await world.ask('releases.rollback', release.id);
      assert.equal(status, 503);
      assert.deepEqual(world.take(), [], 'told before the rows could be trusted');
      await world.writerReady();
      assert.deepEqual(world.takeShards(), [0, 1, 2]);
      assert.equal((await world.ask('releases.rollback', release.id)).status, 200);
      assert.deepEqual(world.chainOf(release).slice(3), ['canary→rolled_back operator']);
    });
  }

  test('nothing is read while a dead writer may still commit', async () => {
    const release = await world.canary();
    world.mood = 'dies after';
    await world.ask('releases.pause', release.id);
    const request = world.send('releases.pause', release.id);
    await world.quiet();
    assert.equal(statusOf(request), undefined);
    await world.writerReady();
    // By the rows it is paused.
    assert.equal(statusOf(request), 409);
  });

  test('what the database refuses has not happened, and says nothing about the next', async () => {
    const release = await world.canary();
    world.mood = 'refuses';
    assert.equal((await world.ask('releases.pause', release.id)).status, 400);
    world.mood = 'commits';
    assert.equal((await world.ask('releases.pause', release.id)).status, 200);
    assert.equal(world.chainOf(release).length, 4);
  });

  test('while the database is away everything is 503, and nothing is stored', async () => {
    const release = await world.canary();
    world.isDatabaseAway = true;
    for (const operation of ['releases.pause', 'releases.evaluate', 'releases.promote'] as const) {
      assert.equal((await world.ask(operation, release.id)).status, 503);
    }
    assert.equal((await world.ask('releases.create', '', world.pair())).status, 503);
    assert.equal(world.decisions.length, 3);
  });
});

describe('what follows one another', () => {
  test('of two ready releases of one baseline the second is refused while the first is in flight', async () => {
    const first = await world.ready();
    const { baseline_sequence_id, candidate_sequence_id } = first;
    const second = await world.ready({ baseline_sequence_id, candidate_sequence_id });
    world.mood = 'is slow';
    const requests = [first, second].map(({ id }) =>
      world.send('releases.canary', id, { percent: 10 }),
    );
    await world.quiet();
    const pair = { baseline_sequence_id, candidate_sequence_id };
    const creation = world.send('releases.create', '', pair);
    await world.quiet();
    assert.deepEqual(requests.map(statusOf), [undefined, undefined]);
    await world.flush();
    assert.deepEqual([...requests, creation].map(statusOf), [200, 409, 409]);
    assert.deepEqual([world.stateOf(first), world.stateOf(second)], ['canary', 'ready']);
  });

  test('releases of another baseline do not wait', async () => {
    const first = await world.canary();
    const second = await world.canary();
    world.mood = 'is slow';
    const slow = world.send('releases.pause', first.id);
    await world.quiet();
    world.mood = 'commits';
    assert.equal((await world.ask('releases.pause', second.id)).status, 200);
    assert.equal(statusOf(slow), undefined);
  });

  test('decisions are in the order of their times, also after the clock was set back', async () => {
    const release = await world.canary();
    world.clock.ms -= MINUTE;
    await world.do('releases.pause', release.id);
    await world.do('releases.rollback', release.id);
    const times = world.decisions.map(({ decided_at }) => decided_at);
    assert.deepEqual(times, times.toSorted());
    assert.equal(world.releases.get(release.id)?.updated_at, times.at(-1));
  });

  test('when too many wait, the next is refused', async () => {
    const release = await world.canary();
    world.mood = 'is slow';
    const requests = Array.from({ length: 1_100 }, () => world.send('releases.pause', release.id));
    await world.quiet();
    const statuses = requests.map(statusOf);
    assert.equal(statuses.filter((status) => status === 503).length, 99);
    await world.flush();
    assert.equal(requests.map(statusOf).filter((status) => status === 200).length, 1);
    assert.equal(requests.map(statusOf).filter((status) => status === 409).length, 1_000);
  });
});

describe('a validation', () => {
  const EVIDENCE = {
    replayed: 4,
    matches: 2,
    diverged: 1,
    inconclusive: 1,
    divergences: [],
  };

  test('validation_summary readable on the release with validated_at; decision validating→ready by actor `validation`', async () => {
    const { id } = await world.draft();
    const { release } = await world.do('releases.beginValidation', id, { sample: 4 });
    assert.equal((release as Release).state, 'validating');
    const end = { outcome: 'ready', evidence: EVIDENCE };
    const ended = (await world.do('releases.endValidation', id, end)) as unknown as Release;
    assert.equal(ended.state, 'ready');
    const { validated_at, ...summary } = ended.validation_summary ?? {};
    assert.deepEqual(summary, EVIDENCE);
    assert.equal(validated_at, ended.updated_at);
    const decision = world.decisions.at(-1);
    assert.deepEqual(world.chainOf({ id }).slice(1), [
      'draft→validating operator',
      'validating→ready validation',
    ]);
    assert.match(decision?.reason ?? '', /4 replayed: 2 matched, 1 diverged, 1 inconclusive/);
  });

  for (const outcome of ['draft', 'failed'] as const) {
    test(`that could not be done ends in ${outcome}, with its reason`, async () => {
      const { id } = await world.draft();
      await world.do('releases.beginValidation', id);
      const ended = await world.do('releases.endValidation', id, { outcome, reason: 'gone' });
      assert.equal(ended.state, outcome);
      assert.equal(ended.validation_summary, undefined);
      assert.equal(world.decisions.at(-1)?.reason, 'gone');
      assert.equal(world.chainOf({ id }).at(-1), `validating→${outcome} validation`);
      const again = await world.ask('releases.beginValidation', id);
      assert.equal(again.status, outcome === 'draft' ? 200 : 409);
    });
  }

  for (const skip of [false, true]) {
    test(`that is under way cannot be begun again (skip: ${skip})`, async () => {
      const { id } = await world.draft();
      await world.do('releases.beginValidation', id);
      assert.equal((await world.ask('releases.beginValidation', id, { skip })).status, 409);
      assert.equal(world.stateOf({ id }), 'validating');
    });
  }

  test('that is not under way cannot be ended', async () => {
    const { id } = await world.draft();
    const end = { outcome: 'ready', evidence: EVIDENCE };
    assert.equal((await world.ask('releases.endValidation', id, end)).status, 409);
    assert.equal(world.stateOf({ id }), 'draft');
  });

  test('found at the start goes back to draft, with a decision', async () => {
    const release = await world.draft();
    await world.do('releases.beginValidation', release.id);
    await world.restart();
    assert.equal(world.stateOf(release), 'draft');
    assert.equal(world.chainOf(release).at(-1), 'validating→draft validation');
    assert.equal((await world.ask('releases.beginValidation', release.id)).status, 200);
  });

  test('found at the start goes back when the database can be asked again', async () => {
    const release = await world.draft();
    await world.do('releases.beginValidation', release.id);
    world.isDatabaseAway = true;
    await world.restart();
    world.isDatabaseAway = false;
    await world.pass(MINUTE);
    assert.equal(world.stateOf(release), 'draft');
  });

  test('that was begun since then is left alone, until nobody can be leading it any more', async () => {
    await world.restart();
    const release = await world.draft();
    await world.do('releases.beginValidation', release.id);
    await world.pass(5 * MINUTE);
    assert.equal(world.stateOf(release), 'validating');
    await world.pass(10 * MINUTE);
    assert.equal(world.stateOf(release), 'draft');
  });

  for (const operation of ['releases.beginValidation', 'releases.endValidation'] as const) {
    test(`whose ${operation} is in doubt does not stay as it is`, async () => {
      await world.restart();
      const release = await world.draft();
      if (operation === 'releases.endValidation') {
        await world.do('releases.beginValidation', release.id);
      }
      world.mood = operation === 'releases.beginValidation' ? 'dies after' : 'dies before';
      const { status } = await world.ask(operation, release.id, {
        outcome: 'ready',
        evidence: EVIDENCE,
      });
      assert.equal(status, 503);
      await world.writerReady();
      assert.equal(world.stateOf(release), 'validating');
      await world.pass(MINUTE);
      assert.equal(world.stateOf(release), 'draft');
    });
  }
});

describe('a failing gate', () => {
  test('is seen after a hint, rolls back by its own name, and every shard is told', async () => {
    const release = await world.canary({ gates: GATES });
    fail(release);
    world.actor.ended(release.id);
    await world.quiet();
    assert.equal(world.stateOf(release), 'rolled_back');
    assert.equal(world.chainOf(release).at(-1), 'canary→rolled_back gate:error_rate');
    assert.deepEqual(world.takeShards(), [0, 1, 2]);
  });

  test('is seen at the start, without any hint', async () => {
    const release = await world.canary({ gates: GATES });
    fail(release);
    await world.restart();
    assert.equal(world.stateOf(release), 'rolled_back');
  });

  test('is seen soon when the hint was lost', async () => {
    await world.restart();
    const release = await world.canary({ gates: GATES });
    fail(release);
    await world.pass(11 * SECOND);
    assert.equal(world.stateOf(release), 'rolled_back');
  });

  test('is seen when the rows can be read again, or the writer is back', async () => {
    const release = await world.canary({ gates: GATES });
    fail(release);
    world.isDatabaseAway = true;
    world.actor.ended(release.id);
    await world.pass(3 * SECOND);
    world.isDatabaseAway = false;
    world.mood = 'dies before';
    await world.pass(3 * SECOND);
    assert.equal(world.stateOf(release), 'canary');
    await world.writerReady();
    await world.pass(3 * SECOND);
    assert.equal(world.stateOf(release), 'rolled_back');
    assert.deepEqual(world.chainOf(release).slice(3), ['canary→rolled_back gate:error_rate']);
  });

  for (const operation of ['releases.evaluate', 'releases.promote'] as const) {
    test(`is answered behind the barrier (${operation})`, async () => {
      const release = await world.canary({ gates: GATES });
      fail(release);
      world.answering.delete(1);
      const request = world.send(operation, release.id, { force: true });
      await world.quiet();
      assert.equal(world.stateOf(release), 'rolled_back');
      assert.equal(statusOf(request), undefined);
      world.answering.add(1);
      await world.pass(SECOND);
      assert.equal(statusOf(request), operation === 'releases.evaluate' ? 200 : 409);
    });
  }

  test('changes nothing in any other state, and is reported', async () => {
    const release = await world.canary({ gates: GATES });
    await world.do('releases.pause', release.id);
    fail(release);
    world.actor.ended(release.id);
    await world.pass(SECOND);
    const report = await world.do('releases.evaluate', release.id);
    assert.equal((report.gates as Json[])[0]?.verdict, 'fail');
    assert.deepEqual([report.auto_rolled_back, report.release_state], [false, 'paused']);
    assert.equal(world.stateOf(release), 'paused');
  });

  test('judges what was created since the last start of the canary', async () => {
    const release = await world.canary({ gates: GATES });
    fail(release);
    await world.do('releases.pause', release.id);
    await world.pass(10);
    await world.do('releases.canary', release.id, { percent: 50 });
    world.actor.ended(release.id);
    await world.pass(5 * SECOND);
    assert.equal(world.stateOf(release), 'canary');
  });
});

describe('looks that nobody asked for', () => {
  test('are one a second at most, however many instances end, and none when none ends', async () => {
    const release = await world.canary({ gates: GATES });
    for (let at = 0; at < 100; at++) {
      for (let i = 0; i < 10; i++) world.actor.ended(release.id);
      await world.pass(SECOND / 10);
    }
    assert.ok(world.looks >= 10 && world.looks <= 11, `${world.looks} looks in 10 s`);
    await world.pass(2 * SECOND);
    const { looks } = world;
    await world.pass(MINUTE);
    assert.equal(world.looks, looks);
  });

  test('see what ended while the one before was under way', async () => {
    const release = await world.canary({ gates: GATES });
    world.actor.ended(release.id);
    await world.quiet();
    fail(release);
    world.actor.ended(release.id);
    await world.pass(SECOND);
    assert.equal(world.stateOf(release), 'rolled_back');
  });

  test('take a twentieth of the time at most', async () => {
    const release = await world.canary({ gates: GATES });
    world.lookMs = 300;
    const began = world.clock.ms;
    while (world.clock.ms < began + MINUTE) {
      world.actor.ended(release.id);
      await world.pass(SECOND / 10);
    }
    assert.ok(world.looks >= 9 && world.looks <= 11, `${world.looks} looks in a minute`);
  });

  test('count nothing for a release without gates, or that is no canary', async () => {
    const plain = await world.canary();
    const promoted = await world.canary({ gates: GATES });
    world.ended(promoted, 'baseline', 'completed');
    world.ended(promoted, 'candidate', 'completed');
    await world.do('releases.promote', promoted.id);
    const { looks } = world;
    for (const { id } of [plain, promoted]) world.actor.ended(id);
    await world.pass(MINUTE);
    assert.equal(world.looks, looks);
  });

  test('are over with the actor', async () => {
    const release = await world.canary({ gates: GATES });
    await world.restart();
    world.actor.ended(release.id);
    world.answering.clear();
    world.send('releases.pause', release.id);
    await world.quiet();
    world.actor.stop();
    assert.equal(world.clock.waiting, 0);
  });
});

describe('a sequence that is being deleted', () => {
  for (const side of ['baseline_sequence_id', 'candidate_sequence_id'] as const) {
    test(`is the ${side} of no new release`, async () => {
      const pair = world.pair();
      world.plans.block(pair[side]);
      assert.equal((await world.ask('releases.create', '', pair)).status, 503);
      world.plans.unblock(pair[side]);
      assert.equal((await world.ask('releases.create', '', pair)).status, 201);
    });
  }

  test('may have been deleted since its row was read', async () => {
    const pair = world.pair();
    const request = world.send('releases.create', '', pair);
    world.onSequenceRead = () => world.plans.evict(pair.candidate_sequence_id);
    await world.quiet();
    assert.equal(statusOf(request), 503);
    assert.equal(world.releases.size, 0);
  });

  for (const skip of [false, true]) {
    test(`holds up the validation of a draft that has it as its candidate (skip: ${skip})`, async () => {
      const release = await world.draft();
      world.plans.block(release.candidate_sequence_id);
      const { status } = await world.ask('releases.beginValidation', release.id, { skip });
      assert.equal(status, 503);
      assert.equal(world.stateOf(release), 'draft');
    });
  }

  test('keeps no canary from being rolled back', async () => {
    const release = await world.canary();
    world.plans.block(release.candidate_sequence_id);
    assert.equal((await world.ask('releases.rollback', release.id)).status, 200);
  });
});

describe('whatever is asked, and whatever dies', () => {
  const OPERATIONS = [
    'releases.beginValidation',
    'releases.endValidation',
    'releases.canary',
    'releases.evaluate',
    'releases.promote',
    'releases.pause',
    'releases.rollback',
  ] as const;
  const MOODS: readonly WriterMood[] = [
    'commits',
    'commits',
    'refuses',
    'dies before',
    'dies after',
  ];
  const deed = fc.record({
    operation: fc.constantFrom(...OPERATIONS),
    release: fc.nat(2),
    skip: fc.boolean(),
    fails: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
    mood: fc.constantFrom(...MOODS),
    /** Whether it is asked together with the next. */
    isTogether: fc.boolean(),
    restarts: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
  });

  const EVIDENCE = { replayed: 0, matches: 0, diverged: 0, inconclusive: 0, divergences: [] };

  function assertLawful(releases: readonly Release[]): void {
    for (const release of releases) {
      const own = world.decisions.filter(({ release_id }) => release_id === release.id);
      let state: ReleaseState = 'draft';
      for (const { from_state, to_state, actor } of own.slice(1)) {
        assert.equal(actor === 'validation', from_state === 'validating', `by ${actor}`);
        assert.equal(from_state, state);
        assert.ok(mayMove(from_state, to_state), `${from_state} → ${to_state}`);
        state = to_state;
      }
      assert.equal(world.stateOf(release), state);
      const times = own.map(({ decided_at }) => decided_at);
      assert.deepEqual(times, times.toSorted());
    }
    const routing = releases.filter((release) =>
      ['canary', 'promoted'].includes(world.stateOf(release) ?? ''),
    );
    assert.ok(routing.length <= 1, `${routing.length} releases route one baseline`);
  }

  test('decisions are a chain of legal moves that ends in the state, and one release routes a baseline', async () => {
    const law = fc.asyncProperty(fc.array(deed, { maxLength: 40 }), async (deeds) => {
      world = new ReleaseWorld();
      const pair = world.pair();
      const releases: Release[] = [];
      for (const _ of [1, 2, 3]) releases.push(await world.draft({ ...pair, gates: GATES }));
      const acknowledged: (readonly [number, string])[] = [];
      for (const { operation, release: at, skip, fails, mood, isTogether, restarts } of deeds) {
        const release = releases[at] as Release;
        if (fails) fail(release);
        else world.ended(release, at === 0 ? 'baseline' : 'candidate', 'completed');
        world.mood = mood;
        const body = { skip, percent: 30, outcome: 'ready', evidence: EVIDENCE };
        acknowledged.push([world.send(operation, release.id, body), release.id]);
        if (isTogether) continue;
        await world.quiet();
        await world.writerReady();
        if (restarts) await world.restart();
        await world.pass(10);
        assertLawful(releases);
      }
      await world.writerReady();
      assertLawful(releases);
      for (const [request, id] of acknowledged) {
        const answer = world.answers.get(request);
        if (answer?.status !== 200 || typeof answer.body.state !== 'string') continue;
        const states = world.decisions
          .filter(({ release_id }) => release_id === id)
          .map(({ to_state }) => to_state);
        assert.ok(states.includes(answer.body.state as ReleaseState), 'acknowledged and lost');
      }
    });
    await fc.assert(law, { numRuns: 100 });
  });
});
