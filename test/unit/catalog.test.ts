/** The deletion of a sequence as its catalog leads it: shards and rows answer by hand. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Catalog } from '../../actors/catalog/catalog.js';
import type { InstanceCounts, SequenceRow } from '../../actors/catalog/loads.js';
import type { ReleaseStateRow } from '../../actors/release/loads.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { Effect } from '../../actors/runtime/turn.js';
import type { Loads } from '../../actors/shard/loads.js';
import { EngineError } from '../../src/base/errors.js';
import { createLogger } from '../../src/base/log.js';
import { realClock } from '../../src/base/real-clock.js';
import { MUTATION_KINDS } from '../helpers/store.js';

const ID = '01950000-0000-7000-8000-000000000001';
const REQUEST = 7;

const ROW: SequenceRow = {
  ...{ id: ID, tenant_id: 't', namespace: 'n', name: 's', version: 1, deprecated: false },
  ...{ definition: '{"blocks":[]}' },
};

let commits: CommitLog;
let catalog: Catalog;
/** What the catalog told, as `shard 0: block` and `204`. */
let told: string[];
let errors: string[];
/** A release that names the sequence. */
let naming: ReleaseStateRow | undefined;
/** Counts of instances that are not answered yet, in the order in which they were asked for. */
let counts: { readonly resolve: (found: InstanceCounts) => void; readonly reject: () => void }[];

beforeEach(async () => {
  commits = new CommitLog();
  told = [];
  errors = [];
  counts = [];
  naming = undefined;
  const rows: Pick<Loads, 'sequence' | 'instanceCounts' | 'releaseNaming'> = {
    sequence: async () => ROW,
    releaseNaming: async () => naming,
    instanceCounts: () =>
      new Promise((resolve, reject) => {
        counts.push({ resolve, reject: () => reject(new Error('the database is away')) });
      }),
  };
  catalog = new Catalog({
    commits,
    log: createLogger('silent', 'test'),
    loader: rows as Loads,
    now: () => 0,
    clock: realClock,
    stepTimeoutMaxMs: 300_000,
    deprecated: async () => undefined,
    newId: () => ID,
    shards: 2,
    release: (effects) => told.push(...effects.map(describeEffect)),
    schedule: (work) => work(),
    scheduleSpare: (work) => work(),
    whenWriterKnown: (then) => then(),
  });
  await askForDeletion(false);
});

async function askForDeletion(isCascading: boolean): Promise<void> {
  catalog.delete(REQUEST, 't', ID, { cascade: isCascading, dry_run: false });
  await settle();
  assert.deepEqual(take(), ['shard 0: block', 'shard 1: block']);
}

function describeEffect(effect: Effect): string {
  if (effect.kind === 'reply') return String(effect.status);
  if (effect.kind === 'error') {
    assert.ok(effect.error instanceof EngineError);
    errors.push(effect.error.message);
    return String(effect.error.status);
  }
  if (effect.kind !== 'peer') assert.fail(`an effect ${effect.kind}`);
  const { message } = effect;
  const isBlocked = message.kind === 'sequence.block' && message.isBlocked;
  const word = message.kind === 'sequence.evict' ? 'evict' : isBlocked ? 'block' : 'unblock';
  return `shard ${effect.shard}: ${word}`;
}

/** What was told since the last call. */
const take = (): string[] => told.splice(0).sort();

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function bothAnswer(): void {
  catalog.blocked(ID, 0);
  catalog.blocked(ID, 1);
}

const NONE: InstanceCounts = { live: 0, failed: 0, ended: 0 };

type Answer = Partial<InstanceCounts> | 'failed';

async function answerCount(index: number, answer: Answer): Promise<void> {
  const count = counts[index];
  assert.ok(count !== undefined, `there is no count number ${index}`);
  if (answer === 'failed') count.reject();
  else count.resolve({ ...NONE, ...answer });
  await settle();
}

/** The mutations that were made since the last call, all of which are committed. */
function commitAll(): string[] {
  const units = commits.take();
  commits.settle(units.map(({ seq }) => ({ seq, outcome: 'committed' })));
  return units.flatMap((unit) =>
    unit.mutations
      .filter((_, i) => i % 3 === 0)
      .map((kind) => MUTATION_KINDS[kind as number] as string),
  );
}

test('the rows are deleted when every shard has answered and nothing lives', async () => {
  catalog.blocked(ID, 0);
  assert.equal(counts.length, 0);
  catalog.blocked(ID, 1);
  await answerCount(0, {});
  assert.deepEqual(commitAll(), ['sequence.delete']);
  assert.deepEqual(take(), ['204', 'shard 0: evict', 'shard 1: evict']);
});

test('a tombstone stays for instances that are still to be removed', async () => {
  bothAnswer();
  await answerCount(0, { ended: 80_000 });
  assert.deepEqual(commitAll(), ['sequence.delete', 'tombstone.set']);
  catalog.forget(REQUEST, ID);
  assert.deepEqual(commitAll(), ['tombstone.clear']);
});

for (const [found, isCascading, status] of [
  [{ live: 2, ended: 5 }, false, '409'],
  [{ failed: 3 }, false, '409'],
  [{ live: 2, failed: 3 }, false, '409'],
  [{ failed: 3 }, true, '204'],
  [{ failed: 3, live: 1 }, true, '409'],
] as [Partial<InstanceCounts>, boolean, string][]) {
  const how = isCascading ? 'a cascading deletion' : 'a deletion';
  test(`${how} with ${JSON.stringify(found)} is ${status}`, async () => {
    bothAnswer();
    await answerCount(0, { live: 1 });
    take();
    await askForDeletion(isCascading);
    bothAnswer();
    await answerCount(1, found);
    const isRefused = status === '409';
    assert.equal(commitAll().length === 0, isRefused);
    const word = isRefused ? 'unblock' : 'evict';
    assert.deepEqual(take(), [status, `shard 0: ${word}`, `shard 1: ${word}`]);
    const { live, failed } = { ...NONE, ...found };
    const words = new RegExp(`has ${live} live and ${failed} failed instances`);
    if (isRefused) assert.match(errors.at(-1)!, words);
  });
}

for (const [found, isCascading, answer] of [
  [{ ended: 2 }, false, '200'],
  [{ ended: 2, failed: 1 }, true, '200'],
  [{ failed: 1 }, false, '409'],
  [{ live: 1 }, true, '409'],
] as const) {
  test(`a dry run is ${answer} with ${JSON.stringify(found)}, blocks nothing and deletes nothing`, async () => {
    take();
    catalog.delete(REQUEST, 't', ID, { cascade: isCascading, dry_run: true });
    await settle();
    await answerCount(0, found);
    assert.deepEqual(take(), [answer]);
    assert.deepEqual(commitAll(), []);
  });
}

test('a release that names it refuses it, and lifts the block', async () => {
  naming = { id: '01950000-0000-7000-8000-000000000009', state: 'ready' };
  bothAnswer();
  await answerCount(0, {});
  assert.deepEqual(commitAll(), []);
  assert.deepEqual(take(), ['409', 'shard 0: unblock', 'shard 1: unblock']);
});

const noneAnd = (then: () => void) => () => answerCount(0, {}).then(then);
const refuse = () => {
  const refusal = { outcome: 'refused', sqlState: '23503', reason: 'no' } as const;
  commits.settle(commits.take().map(({ seq }) => ({ seq, ...refusal })));
};

const FAILURES: Readonly<Record<string, readonly [status: string, happen: () => unknown]>> = {
  'the rows cannot be read': ['503', () => answerCount(0, 'failed')],
  'the database refuses the deletion': ['400', noneAnd(refuse)],
  'it is not known what became of the deletion': ['503', noneAnd(() => commits.lose())],
};

for (const [when, [status, happen]] of Object.entries(FAILURES)) {
  test(`the block is lifted when ${when}`, async () => {
    bothAnswer();
    await happen();
    assert.deepEqual(commitAll(), []);
    assert.deepEqual(take(), [status, 'shard 0: unblock', 'shard 1: unblock']);
  });
}

test('a shard that asks about a block of which nobody knows is told to lift it', () => {
  catalog.blocked('01950000-0000-7000-8000-000000000002', 1);
  assert.deepEqual(take(), ['shard 1: unblock']);
});

test('a shard that has not heard the word is told again when another one repeats its answer', () => {
  catalog.blocked(ID, 0);
  catalog.blocked(ID, 0);
  assert.deepEqual(take(), ['shard 1: block']);
});

test('the successor of a shard is blocked too, before anything is counted', async () => {
  catalog.blocked(ID, 1);
  catalog.peerLost(1);
  catalog.blocked(ID, 0);
  assert.equal(counts.length, 0);
  catalog.peerBack(1);
  assert.deepEqual(take(), ['shard 1: block']);
  catalog.blocked(ID, 1);
  assert.equal(counts.length, 1);
});

for (const stale of [{}, { live: 1 }, 'failed'] as const) {
  test(`a count that began before a shard died decides nothing (${JSON.stringify(stale)})`, async () => {
    bothAnswer();
    catalog.peerLost(1);
    catalog.peerBack(1);
    take();
    catalog.blocked(ID, 1);
    await answerCount(0, stale);
    assert.deepEqual(commitAll(), []);
    assert.deepEqual(take(), []);
    await answerCount(1, {});
    assert.deepEqual(commitAll(), ['sequence.delete']);
    assert.deepEqual(take(), ['204', 'shard 0: evict', 'shard 1: evict']);
  });
}
