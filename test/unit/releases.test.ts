/** The owner of the releases in virtual time: lost words, dying threads, and what it does by itself. */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { Release } from '../../schema/release.js';
import type { Json } from '../helpers/api.js';
import { ReleaseWorld } from '../helpers/release-world.js';

const GATES = [{ metric: 'error_rate', max_regression: 0.1, min_sample: 1 }];
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

let world: ReleaseWorld;
beforeEach(() => {
  world = new ReleaseWorld();
});

/** The status of the answer; undefined when there is none yet. */
const statusOf = (request: number) => world.answers.get(request)?.status;

/** Sends a request and lets happen what happens at once. */
async function begin(...request: Parameters<ReleaseWorld['send']>): Promise<number> {
  const number = world.send(...request);
  await world.quiet();
  return number;
}

const asked = async (...request: Parameters<ReleaseWorld['ask']>) =>
  (await world.ask(...request)).status;

/** The version that shards were told of last. */
const toldVersion = () => Number(world.take().at(-1)?.split('@')[1]);

function fail(release: Release): void {
  world.ended(release, 'baseline', 'completed');
  world.ended(release, 'candidate', 'failed');
}

/** A canary whose gate fails. */
async function failing(): Promise<Release> {
  const release = await world.canary({ gates: GATES });
  fail(release);
  return release;
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
      const request = await begin(operation, release.id, body);
      assert.deepEqual(world.take(), [], 'told before it was durable');
      await world.flush();
      const told = world.take();
      const version = Number(told[0]?.split('@')[1]);
      assert.deepEqual(told, [`0@${version}`, `1@${version}`, `2@${version}`]);
      for (const shard of [2, 0]) world.settled(version, shard);
      await world.quiet();
      assert.equal(statusOf(request), undefined, 'answered before every shard had settled');
      world.settled(version, 1);
      await world.quiet();
      assert.equal(statusOf(request), 200);
    });
  }

  test('is told again every second to the shards that have not answered, and to no other', async () => {
    const release = await world.canary();
    world.answering.delete(1);
    const request = await begin('releases.pause', release.id);
    assert.deepEqual(world.takeShards(), [0, 1, 2]);
    await world.pass(3 * SECOND);
    const told = world.take();
    assert.deepEqual([told.length, new Set(told).size], [3, 1]);
    assert.match(told[0] ?? '', /^1@/);
    assert.equal(statusOf(request), undefined);
    world.answering.add(1);
    await world.pass(SECOND);
    assert.equal(statusOf(request), 200);
    world.take();
    await world.pass(9 * SECOND);
    assert.deepEqual(world.take(), [], 'told after everybody had settled');
  });

  test('is settled by an answer to its version or a later one, not by one to an earlier version', async () => {
    const release = await world.canary();
    world.answering.delete(1);
    const first = await begin('releases.pause', release.id);
    const version = toldVersion();
    const second = await begin('releases.rollback', release.id);
    const later = toldVersion();
    assert.ok(later > version);
    world.settled(version, 1);
    await world.quiet();
    assert.deepEqual([statusOf(first), statusOf(second)], [200, undefined]);
    world.settled(later, 1);
    await world.quiet();
    assert.equal(statusOf(second), 200);
    await world.pass(5);
    await world.restart();
    assert.ok(toldVersion() > later, 'also after a restart');
  });

  test('a rollback that was done before is answered behind a barrier as well', async () => {
    const release = await world.canary();
    world.answering.delete(1);
    const requests = [1, 2].map(() => world.send('releases.rollback', release.id));
    await world.quiet();
    assert.deepEqual(requests.map(statusOf), [undefined, undefined]);
    world.answering.add(1);
    await world.pass(SECOND);
    assert.deepEqual(requests.map(statusOf), [200, 200]);
    assert.deepEqual(world.chainOf(release).slice(3), ['canary→rolled_back operator']);
  });

  test('one that is refused tells nobody; at the start every shard is told, since a word may be lost', async () => {
    assert.equal(await asked('releases.canary', (await world.canary()).id, { percent: 5 }), 409);
    const ready = await world.ready();
    world.take();
    assert.equal(await asked('releases.pause', ready.id), 409);
    assert.deepEqual(world.take(), []);
    await world.restart();
    assert.deepEqual(world.takeShards(), [0, 1, 2]);
  });
});

describe('an outcome that is not known', () => {
  for (const mood of ['dies before', 'dies after'] as const) {
    test(`is 503, and every shard reads the rows when they can be trusted (the writer ${mood})`, async () => {
      const release = await world.canary();
      world.mood = mood;
      assert.equal(await asked('releases.rollback', release.id), 503);
      assert.deepEqual(world.take(), [], 'told before the rows could be trusted');
      await world.writerReady();
      assert.deepEqual(world.takeShards(), [0, 1, 2]);
      assert.equal(await asked('releases.rollback', release.id), 200);
      assert.deepEqual(world.chainOf(release).slice(3), ['canary→rolled_back operator']);
    });
  }

  test('nothing is read while a dead writer may still commit', async () => {
    const release = await world.canary();
    world.mood = 'dies after';
    await world.ask('releases.pause', release.id);
    const request = await begin('releases.pause', release.id);
    assert.equal(statusOf(request), undefined);
    await world.writerReady();
    // By the rows it is paused.
    assert.equal(statusOf(request), 409);
  });

  test('what the database refuses has not happened, and while it is away everything is 503', async () => {
    const release = await world.canary();
    world.mood = 'refuses';
    assert.equal(await asked('releases.pause', release.id), 400);
    world.mood = 'commits';
    world.isDatabaseAway = true;
    for (const operation of ['releases.pause', 'releases.evaluate', 'releases.promote'] as const) {
      assert.equal(await asked(operation, release.id), 503);
    }
    assert.equal(await asked('releases.create', '', world.pair()), 503);
    assert.equal(world.decisions.length, 3);
    world.isDatabaseAway = false;
    assert.equal(await asked('releases.pause', release.id), 200);
    assert.equal(world.chainOf(release).length, 4);
  });
});

test('of two ready releases of one baseline the second is refused while the first is in flight', async () => {
  const first = await world.ready();
  const { baseline_sequence_id, candidate_sequence_id } = first;
  const pair = { baseline_sequence_id, candidate_sequence_id };
  const second = await world.ready(pair);
  world.mood = 'is slow';
  const requests = [first, second].map(({ id }) =>
    world.send('releases.canary', id, { percent: 10 }),
  );
  await world.quiet();
  requests.push(await begin('releases.create', '', pair));
  assert.deepEqual(requests.map(statusOf), [undefined, undefined, undefined]);
  await world.flush();
  assert.deepEqual(requests.map(statusOf), [200, 409, 409]);
  assert.deepEqual([world.stateOf(first), world.stateOf(second)], ['canary', 'ready']);
});

describe('a validation', () => {
  const EVIDENCE = { replayed: 4, matches: 2, diverged: 1, inconclusive: 1, divergences: [] };
  const READY = { outcome: 'ready', evidence: EVIDENCE };

  test('The release shows validation_summary and validated_at, and the decision is by `validation`', async () => {
    const { id } = await world.draft();
    const { release } = await world.do('releases.beginValidation', id, { sample: 4 });
    assert.equal((release as Release).state, 'validating');
    const ended = (await world.do('releases.endValidation', id, READY)) as unknown as Release;
    assert.equal(ended.state, 'ready');
    const { validated_at, ...summary } = ended.validation_summary ?? {};
    assert.deepEqual(summary, EVIDENCE);
    assert.equal(validated_at, ended.updated_at);
    const [, begun, end] = world.chainOf({ id });
    assert.deepEqual([begun, end], ['draft→validating operator', 'validating→ready validation']);
    const { reason = '' } = world.decisions.at(-1) ?? {};
    assert.match(reason, /4 replayed: 2 matched, 1 diverged, 1 inconclusive/);
  });

  for (const outcome of ['draft', 'failed'] as const) {
    test(`that could not be done ends in ${outcome}, with its reason`, async () => {
      const { id } = await world.draft();
      await world.do('releases.beginValidation', id);
      const ended = await world.do('releases.endValidation', id, { outcome, reason: 'gone' });
      assert.deepEqual([ended.state, ended.validation_summary], [outcome, undefined]);
      assert.equal(world.decisions.at(-1)?.reason, 'gone');
      assert.equal(world.chainOf({ id }).at(-1), `validating→${outcome} validation`);
      assert.equal(await asked('releases.beginValidation', id), outcome === 'draft' ? 200 : 409);
    });
  }

  test('that is under way cannot be begun again, and one that is not cannot be ended', async () => {
    const { id } = await world.draft();
    assert.equal(await asked('releases.endValidation', id, READY), 409);
    assert.equal(world.stateOf({ id }), 'draft');
    await world.do('releases.beginValidation', id);
    for (const skip of [false, true]) {
      assert.equal(await asked('releases.beginValidation', id, { skip }), 409);
    }
    assert.equal(world.stateOf({ id }), 'validating');
  });

  for (const isAway of [false, true]) {
    const when = isAway ? ', when the database can be asked again' : ', with a decision';
    test(`found at the start goes back to draft${when}`, async () => {
      const release = await world.draft();
      await world.do('releases.beginValidation', release.id);
      world.isDatabaseAway = isAway;
      await world.restart();
      world.isDatabaseAway = false;
      if (isAway) await world.pass(MINUTE);
      assert.equal(world.stateOf(release), 'draft');
      assert.equal(world.chainOf(release).at(-1), 'validating→draft validation');
      assert.equal(await asked('releases.beginValidation', release.id), 200);
    });
  }

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
      const isEnd = operation === 'releases.endValidation';
      if (isEnd) await world.do('releases.beginValidation', release.id);
      world.mood = isEnd ? 'dies before' : 'dies after';
      assert.equal(await asked(operation, release.id, READY), 503);
      await world.writerReady();
      assert.equal(world.stateOf(release), 'validating');
      await world.pass(MINUTE);
      assert.equal(world.stateOf(release), 'draft');
    });
  }
});

describe('a failing gate', () => {
  test('is seen after a hint, rolls back by its own name, and every shard is told', async () => {
    const release = await failing();
    world.hint(release.id);
    await world.quiet();
    assert.equal(world.stateOf(release), 'rolled_back');
    assert.equal(world.chainOf(release).at(-1), 'canary→rolled_back gate:error_rate');
    assert.deepEqual(world.takeShards(), [0, 1, 2]);
  });

  test('is seen at the start, and soon when the hint was lost', async () => {
    const first = await failing();
    await world.restart();
    assert.equal(world.stateOf(first), 'rolled_back');
    const second = await failing();
    await world.pass(11 * SECOND);
    assert.equal(world.stateOf(second), 'rolled_back');
  });

  for (const [operation, status] of [
    ['releases.evaluate', 200],
    ['releases.promote', 409],
  ] as const) {
    test(`is answered behind the barrier (${operation})`, async () => {
      const release = await failing();
      world.answering.delete(1);
      const request = await begin(operation, release.id, { force: true });
      assert.deepEqual([world.stateOf(release), statusOf(request)], ['rolled_back', undefined]);
      world.answering.add(1);
      await world.pass(SECOND);
      assert.equal(statusOf(request), status);
    });
  }

  test('changes nothing in any other state, is reported, and counts from the last start of the canary', async () => {
    const release = await world.canary({ gates: GATES });
    await world.do('releases.pause', release.id);
    fail(release);
    world.hint(release.id);
    await world.pass(SECOND);
    const report = await world.do('releases.evaluate', release.id);
    assert.equal((report.gates as Json[])[0]?.verdict, 'fail');
    assert.deepEqual([report.auto_rolled_back, report.release_state], [false, 'paused']);
    await world.do('releases.canary', release.id, { percent: 50 });
    world.hint(release.id);
    await world.pass(5 * SECOND);
    assert.equal(world.stateOf(release), 'canary');
  });
});

test('looks that nobody asked for are one a second at most, however many instances end, and none when none ends', async () => {
  const release = await world.canary({ gates: GATES });
  for (let at = 0; at < 100; at++) {
    for (let i = 0; i < 10; i++) world.hint(release.id);
    await world.pass(SECOND / 10);
  }
  assert.ok(world.looks >= 10 && world.looks <= 11, `${world.looks} looks in 10 s`);
  await world.pass(2 * SECOND);
  const { looks } = world;
  await world.pass(MINUTE);
  assert.equal(world.looks, looks);
  // What ends while a look is under way is seen by the next.
  world.hint(release.id);
  await world.quiet();
  fail(release);
  world.hint(release.id);
  await world.pass(SECOND);
  assert.equal(world.stateOf(release), 'rolled_back');
});

describe('a sequence that is being deleted', () => {
  for (const side of ['baseline_sequence_id', 'candidate_sequence_id'] as const) {
    test(`is the ${side} of no new release`, async () => {
      const pair = world.pair();
      world.plans.block(pair[side]);
      assert.equal(await asked('releases.create', '', pair), 503);
      world.plans.unblock(pair[side]);
      assert.equal(await asked('releases.create', '', pair), 201);
    });
  }

  test('may have been deleted since its row was read', async () => {
    const pair = world.pair();
    world.onSequenceRead = () => world.plans.sequenceEvicted(pair.candidate_sequence_id);
    assert.equal(await asked('releases.create', '', pair), 503);
    assert.equal(world.releases.size, 0);
  });

  test('holds up the validation of a draft that has it as its candidate, and no roll-back of a canary', async () => {
    const release = await world.draft();
    world.plans.block(release.candidate_sequence_id);
    for (const skip of [false, true]) {
      assert.equal(await asked('releases.beginValidation', release.id, { skip }), 503);
    }
    assert.equal(world.stateOf(release), 'draft');
    const canary = await world.canary();
    world.plans.block(canary.candidate_sequence_id);
    assert.equal(await asked('releases.rollback', canary.id), 200);
  });
});
