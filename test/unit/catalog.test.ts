/** The deletion of a sequence as its catalog leads it: shards and rows answer by hand. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Catalog } from '../../actors/catalog.js';
import { CommitLog } from '../../actors/commit-log.js';
import type { Rows, SequenceRow } from '../../actors/loader.js';
import type { ReleaseStateRow } from '../../actors/release-reads.js';
import type { Effect } from '../../actors/turn.js';
import { EngineError } from '../../src/errors.js';

const ID = '01950000-0000-7000-8000-000000000001';
const REQUEST = 7;

const ROW: SequenceRow = {
  id: ID,
  tenant_id: 't',
  namespace: 'n',
  name: 's',
  version: 1,
  deprecated: false,
  definition: '{"blocks":[]}',
};

let commits: CommitLog;
let catalog: Catalog;
/** What the catalog told, as `shard 0: block` and `204`. */
let told: string[];
/** A release that names the sequence. */
let naming: ReleaseStateRow | undefined;
/** Counts of live instances that are not answered yet, in the order in which they were asked for. */
let counts: { readonly resolve: (isLive: boolean) => void; readonly reject: () => void }[];

beforeEach(async () => {
  commits = new CommitLog();
  told = [];
  counts = [];
  naming = undefined;
  const rows: Pick<Rows, 'sequence' | 'hasLiveInstance' | 'releaseNaming'> = {
    sequence: async () => ROW,
    releaseNaming: async () => naming,
    hasLiveInstance: () =>
      new Promise((resolve, reject) => {
        counts.push({ resolve, reject: () => reject(new Error('the database is away')) });
      }),
  };
  catalog = new Catalog({
    commits,
    loader: rows as Rows,
    now: () => 0,
    newId: () => ID,
    shards: 2,
    release: (effects) => told.push(...effects.map(describeEffect)),
    schedule: (work) => work(),
    whenWriterKnown: (then) => then(),
  });
  catalog.delete(REQUEST, 't', ID);
  await settle();
  assert.deepEqual(take(), ['shard 0: block', 'shard 1: block']);
});

function describeEffect(effect: Effect): string {
  if (effect.kind === 'reply') return String(effect.status);
  if (effect.kind === 'error') {
    assert.ok(effect.error instanceof EngineError);
    return String(effect.error.status);
  }
  if (effect.kind !== 'peer') assert.fail(`an effect ${effect.kind}`);
  const [kind, , isBlocked] = effect.message;
  const word = kind === 'sequence.evict' ? 'evict' : isBlocked === true ? 'block' : 'unblock';
  return `shard ${effect.shard}: ${word}`;
}

/** What was told since the last call. */
function take(): string[] {
  return told.splice(0).sort();
}

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function bothAnswer(): void {
  catalog.blocked(ID, 0);
  catalog.blocked(ID, 1);
}

async function answerCount(index: number, answer: boolean | 'failed'): Promise<void> {
  const count = counts[index];
  assert.ok(count !== undefined, `there is no count number ${index}`);
  if (answer === 'failed') count.reject();
  else count.resolve(answer);
  await settle();
}

/** The units that were made since the last call, all of which are committed. */
function commitAll(): number {
  const units = commits.take();
  commits.settle(units.map(([seq]) => [seq, 'committed']));
  return units.length;
}

test('the rows are deleted when every shard has answered and nothing lives', async () => {
  catalog.blocked(ID, 0);
  assert.equal(counts.length, 0);
  catalog.blocked(ID, 1);
  await answerCount(0, false);
  assert.equal(commitAll(), 1);
  assert.deepEqual(take(), ['204', 'shard 0: evict', 'shard 1: evict']);
});

test('a live instance refuses it, and lifts the block', async () => {
  bothAnswer();
  await answerCount(0, true);
  assert.equal(commitAll(), 0);
  assert.deepEqual(take(), ['409', 'shard 0: unblock', 'shard 1: unblock']);
});

test('a release that names it refuses it, and lifts the block', async () => {
  naming = { id: '01950000-0000-7000-8000-000000000009', state: 'ready' };
  bothAnswer();
  await answerCount(0, false);
  assert.equal(commitAll(), 0);
  assert.deepEqual(take(), ['409', 'shard 0: unblock', 'shard 1: unblock']);
});

test('it is given up when the rows cannot be read', async () => {
  bothAnswer();
  await answerCount(0, 'failed');
  assert.equal(commitAll(), 0);
  assert.deepEqual(take(), ['503', 'shard 0: unblock', 'shard 1: unblock']);
});

test('the block is lifted when the database refuses the deletion', async () => {
  bothAnswer();
  await answerCount(0, false);
  const [unit] = commits.take();
  assert.ok(unit !== undefined);
  commits.settle([[unit[0], 'refused', '23503', 'no']]);
  assert.deepEqual(take(), ['400', 'shard 0: unblock', 'shard 1: unblock']);
});

test('the block is lifted when it is not known what became of the deletion', async () => {
  bothAnswer();
  await answerCount(0, false);
  commits.lose();
  assert.deepEqual(take(), ['503', 'shard 0: unblock', 'shard 1: unblock']);
});

test('a shard that asks about a block of which nobody knows is told to lift it', () => {
  const unknown = '01950000-0000-7000-8000-000000000002';
  catalog.blocked(unknown, 1);
  assert.deepEqual(take(), ['shard 1: unblock']);
});

test('a shard that has not heard the word is told again when another one repeats its answer', () => {
  catalog.blocked(ID, 0);
  catalog.blocked(ID, 0);
  assert.deepEqual(take(), ['shard 1: block']);
});

test('the successor of a shard is blocked too, before anything is counted', async () => {
  catalog.blocked(ID, 1);
  catalog.shardDied(1);
  catalog.blocked(ID, 0);
  assert.equal(counts.length, 0);
  catalog.shardBack(1);
  assert.deepEqual(take(), ['shard 1: block']);
  catalog.blocked(ID, 1);
  assert.equal(counts.length, 1);
});

for (const stale of [false, true, 'failed'] as const) {
  test(`a count that began before a shard died decides nothing (${stale})`, async () => {
    bothAnswer();
    catalog.shardDied(1);
    catalog.shardBack(1);
    take();
    catalog.blocked(ID, 1);
    await answerCount(0, stale);
    assert.equal(commitAll(), 0);
    assert.deepEqual(take(), []);
    await answerCount(1, false);
    assert.equal(commitAll(), 1);
    assert.deepEqual(take(), ['204', 'shard 0: evict', 'shard 1: evict']);
  });
}
