/**
 * What one instance may keep in memory: outputs that expressions read, items, and parameters of tasks;
 * and what a shard keeps of many. Actors alone, without a database, since what it is about is a
 * hundred megabytes.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Plans, StoredSequence } from '../../actors/catalog/plans.js';
import { Instances } from '../../actors/instance/instances.js';
import { type LiveInstance, liveInstance } from '../../actors/instance/live-instance.js';
import { failureOf, newRecord } from '../../actors/instance/record.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { Rows } from '../../actors/runtime/loader.js';
import type { Turn } from '../../actors/runtime/turn.js';
import type { Block } from '../../schema/blocks.js';
import type { JsonObject } from '../../src/core/json.js';
import { MUTATION_KINDS } from '../../src/db/mutations.js';
import { LIMITS } from '../../src/limits.js';
import { createLogger } from '../../src/log.js';
import { idsOf, instanceEnv, newInstance } from '../helpers/instances.js';
import { loop, noop, planOf, sleep, transform, work } from '../helpers/player.js';
import { created, told } from '../helpers/turns.js';

const MIB = 1024 * 1024;

const ENV = instanceEnv();

function actorOf(blocks: Block[], data: JsonObject): LiveInstance {
  return liveInstance(
    newRecord(newInstance(ENV.ids.next(1), { context: { data } }), ENV.now()),
    planOf(blocks),
    ENV,
  );
}

/** Runs until it needs somebody else or has ended; the reason of its dead letter, if there is one. */
function play(actor: LiveInstance): string | undefined {
  const isLeft = (turn: Turn) => turn.effects.some(({ kind }) => kind === 'continue');
  let turn = created(actor);
  while (isLeft(turn)) turn = told(actor, { kind: 'wake', recovered: false });
  const at = turn.mutations.indexOf(MUTATION_KINDS.indexOf('deadLetter.set'));
  if (at < 0) return undefined;
  return (JSON.parse(String(turn.mutations[at + 2])) as { reason: string }).reason;
}

const copy = (id: string) => transform(id, { x: '{{data.x}}' });

const reading = (id: string, ids: readonly string[]) =>
  transform(id, { sizes: ids.map((read) => `{{len(outputs.${read}.x)}}`) });

const EACH = 10 * MIB;
const data = { x: 'x'.repeat(EACH) };
const FIT = Math.floor(LIMITS.keptCharactersMax / EACH);
const ids = (count: number) => Array.from({ length: count }, (_, i) => `s${i}`);

test('outputs that are read later are kept up to the limit', () => {
  const actor = actorOf([...ids(FIT).map(copy), reading('last', ids(FIT))], data);
  assert.equal(play(actor), undefined);
  assert.equal(actor.record.snapshot.state, 'completed');
});

test('an instance that keeps more fails with a reason, and runs nothing more', () => {
  const actor = actorOf([...ids(FIT + 2).map(copy), reading('last', ids(FIT + 2))], data);
  assert.match(play(actor) ?? '', /^the outputs that .* are together larger than 128 MiB$/);
  assert.equal(failureOf(actor.record)?.code, 'memory_limit');
  assert.equal(actor.record.snapshot.state, 'failed');
  assert.ok(!actor.record.snapshot.outputs.has(`s${FIT + 1}`));
});

test('outputs that nothing reads do not count, and of a loop only the last ones do', () => {
  const unread = actorOf([...ids(FIT + 2).map(copy), noop('last')], data);
  assert.equal(play(unread), undefined);
  const again = actorOf([loop('l', 'true', FIT + 2, [copy('s0')]), reading('last', ['s0'])], data);
  assert.equal(play(again), undefined);
  assert.equal(again.record.snapshot.state, 'completed');
});

test('parameters of open tasks count, and are counted again when they are loaded', () => {
  const branches = ids(FIT + 2).map((id) => [work(id, { params: { x: '{{data.x}}' } })]);
  const actor = actorOf([{ type: 'parallel', id: 'p', branches }], data);
  assert.match(play(actor) ?? '', /larger than 128 MiB/);
  const [task] = actor.tasks.values();
  assert.ok(task);
  const loaded = actorOf([work('a')], {});
  loaded.tasks.set(task.id, task);
  assert.ok(loaded.tasks.characters > EACH);
  loaded.tasks.delete(task.id);
  assert.equal(loaded.tasks.characters, 0);
});

// ---------------------------------------------------------------- many instances

/** Enough for some three times as many as are made in a turn. */
const RESIDENT_BYTES_MAX = 4 * MIB;
const EACH_TURN = 300;

/** The actors of a shard whose units are durable at once. */
class Resident {
  readonly commits = new CommitLog();
  /** How many were looked for in the rows. */
  loaded = 0;
  /** The same as the metrics have it. */
  counted = 0;
  readonly #ids = idsOf(ENV.now);
  /** By instance. */
  readonly #tasks = new Map<string, string>();
  readonly instances = new Instances({
    shard: 0,
    taskDecided: () => undefined,
    env: { ...ENV, ids: this.#ids },
    commits: this.commits,
    loader: {
      instances: async (ids: readonly string[]) => {
        this.loaded += ids.length;
        return new Map();
      },
    } as unknown as Rows,
    plans: {} as Plans,
    log: createLogger('silent', 'test'),
    changed: () => undefined,
    release: (effects) => {
      for (const effect of effects) {
        if (effect.kind === 'task.opened') this.#tasks.set(effect.instance, effect.task);
        if (effect.kind === 'count' && effect.counter === 'engine_instances_loaded_total') {
          this.counted += effect.by;
        }
      }
    },
    schedule: (work) => work(),
    scheduleSpare: (work) => work(),
    whenWriterKnown: (then) => then(),
    createAgain: () => undefined,
    residentBytesMax: RESIDENT_BYTES_MAX,
  });

  /** As many as in so many turns of the shard. @returns the ids */
  createMany(turns: number, blocks: Block[]): string[] {
    return Array.from({ length: turns }, () => this.create(EACH_TURN, blocks)).flat();
  }

  /** In one turn of the shard. @returns the ids */
  create(count: number, blocks: Block[], characters = 300): string[] {
    const sequence = { plan: planOf(blocks) } as StoredSequence;
    const ids = Array.from({ length: count }, () => this.#ids.next(1));
    for (const id of ids) {
      const instance = newInstance(id, { context: { data: { text: 'x'.repeat(characters) } } });
      this.instances.create({ kind: 'create', request: 1, instance, sequence });
    }
    this.#endTurn();
    return ids;
  }

  touch(ids: readonly string[]): void {
    const call = { request: 1, tenant: '', body: undefined, traceparent: undefined };
    for (const id of ids) this.instances.tell(id, { kind: 'get', target: id, ...call });
    this.#endTurn();
  }

  /** Workers take the tasks of these. */
  claim(ids: readonly string[]): void {
    for (const id of ids) {
      const task = this.#tasks.get(id) as string;
      const poll = { handler: 'h', poll: 1, queueShard: 0 };
      this.instances.tell(id, { kind: 'claim', task, worker: 'w', ...poll });
    }
    this.#endTurn();
  }

  #endTurn(): void {
    this.instances.endTurn();
    this.commits.settle(this.commits.take().map(({ seq }) => ({ seq, outcome: 'committed' })));
    this.instances.endTurn();
    const { bytes } = this.instances.resident;
    assert.ok(bytes <= RESIDENT_BYTES_MAX, `${bytes} bytes`);
  }
}

test('however many instances wait, a shard keeps a bounded part of them after every turn', () => {
  const shard = new Resident();
  shard.createMany(5, [work('a')]);
  const { actors, bytes } = shard.instances.resident;
  assert.ok(actors < 5 * EACH_TURN, `${actors} actors`);
  assert.ok(bytes > 0.9 * RESIDENT_BYTES_MAX, `${bytes} bytes`);
});

test('instances that ended leave before those whose tasks are offered, whichever were used last', () => {
  const shard = new Resident();
  const offered = shard.create(EACH_TURN, [work('a')]);
  const ended = shard.create(EACH_TURN, [noop('a')]);
  shard.touch(ended.slice(-1));
  assert.equal(shard.loaded, 0);
  shard.touch(offered);
  assert.equal(shard.loaded, 0);
  shard.touch(ended.slice(0, -EACH_TURN / 10));
  assert.equal(shard.loaded, 0.9 * EACH_TURN);
  assert.equal(shard.counted, shard.loaded);
});

test('instances that wait for their time leave before those whose tasks are offered', () => {
  const shard = new Resident();
  const offered = shard.create(EACH_TURN, [work('a')]);
  const waiting = shard.createMany(5, [sleep('a', 3_600_000)]);
  shard.touch(offered);
  assert.equal(shard.loaded, 0);
  shard.touch(waiting.slice(0, EACH_TURN));
  assert.equal(shard.loaded, EACH_TURN);
});

test('of a backlog that memory is too small for a part stays, also of those whose turn comes first', () => {
  const shard = new Resident();
  const [first, ...others] = [1, 2, 3, 4, 5].map(() => shard.create(EACH_TURN, [work('a')]));
  shard.claim(first!);
  const missed = shard.loaded;
  assert.ok(missed > 0 && missed < 0.7 * EACH_TURN, `${missed} of the first ${EACH_TURN}`);
  shard.touch(others.at(-1)!);
  assert.ok(shard.loaded - missed < 0.7 * EACH_TURN, `${shard.loaded - missed} of the last`);
});

test('a backlog that nobody works at keeps no others out of memory', () => {
  const shard = new Resident();
  shard.createMany(5, [work('a')]);
  for (let turn = 0; turn < 5; turn += 1) shard.claim(shard.create(20, [work('b')]));
  assert.ok(shard.loaded < 10, `${shard.loaded} of 100`);
});

test('instances whose tasks are in the hands of workers leave last', () => {
  const shard = new Resident();
  const claimed = shard.create(EACH_TURN, [work('a')]);
  shard.claim(claimed);
  shard.createMany(5, [work('a')]);
  shard.touch(claimed);
  assert.equal(shard.loaded, 0);
});

test('a large instance leaves before many small ones, and takes their room only while it is at work', () => {
  const shard = new Resident();
  const small = shard.create(EACH_TURN / 3, [work('a')]);
  const large = shard.create(1, [work('a')], RESIDENT_BYTES_MAX);
  shard.claim(large);
  assert.equal(shard.loaded, 1);
  shard.touch(small);
  assert.equal(shard.loaded, 1);
});
