/**
 * What one instance may keep in memory: outputs that expressions read, items, and parameters of tasks;
 * and what a shard keeps of many. Actors alone, without a database, since what it is about is a
 * hundred megabytes.
 *
 * Cost: 3 s, since it fills a hundred megabytes.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Plans, StoredSequence } from '../../actors/catalog/plans.js';
import { Instances } from '../../actors/instance/instances.js';
import { type LiveInstance, liveInstance } from '../../actors/instance/live-instance.js';
import { failureOf, newRecord } from '../../actors/instance/record.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { Turn } from '../../actors/runtime/turn.js';
import type { Loads } from '../../actors/shard/loads.js';
import type { Block } from '../../schema/blocks.js';
import type { JsonObject } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { instancesDeps } from '../helpers/host-deps.js';
import { idsOf, instanceEnv, newInstance } from '../helpers/instances.js';
import { loop, planOf, transform, work } from '../helpers/player.js';
import { MUTATION_KINDS } from '../helpers/store.js';
import { created, told } from '../helpers/turns.js';

const MIB = 1024 * 1024;

const ENV = instanceEnv();

function actorOf(blocks: Block[], data: JsonObject): LiveInstance {
  return liveInstance(
    newRecord(newInstance(ENV.ids.next(1), { context: { data } }), ENV.now(), undefined),
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

test('outputs that are read later are kept up to the limit, of a loop its last ones, and others do not count', () => {
  const [inLoop, ...rest] = ids(FIT) as [string, ...string[]];
  const actor = actorOf(
    [
      loop('l', 'true', 2, [copy(inLoop)]),
      ...[...rest, 'unread'].map(copy),
      reading('last', ids(FIT)),
    ],
    data,
  );
  assert.deepEqual([play(actor), actor.record.snapshot.state], [undefined, 'completed']);
});

test('an instance that keeps more fails with a reason, and runs nothing more', () => {
  const actor = actorOf([...ids(FIT + 2).map(copy), reading('last', ids(FIT + 2))], data);
  assert.match(play(actor) ?? '', /^the outputs that .* are together larger than 128 MiB$/);
  assert.equal(failureOf(actor.record)?.code, 'memory_limit');
  assert.equal(actor.record.snapshot.state, 'failed');
  assert.ok(!actor.record.snapshot.outputs.has(`s${FIT + 1}`));
});

test('parameters of open tasks count, and are counted again when they are loaded', () => {
  const branches = ids(FIT + 2).map((id) => [work(id, { params: { x: '{{data.x}}' } })]);
  const actor = actorOf([{ type: 'parallel', id: 'p', branches }], data);
  assert.match(play(actor) ?? '', /larger than 128 MiB/);
  const [task] = actor.tasks.values();
  assert.ok(task);
  const loaded = actorOf([work('a')], {});
  loaded.tasks.set(task);
  assert.ok(loaded.tasks.characters > EACH);
  loaded.tasks.set({ ...task, params: '{}' });
  assert.equal(loaded.tasks.characters, 2);
});

// ---------------------------------------------------------------- many instances

/** Of waiting tasks, two turns' worth fit. */
const RESIDENT_BYTES_MAX = 16 * MIB;
const EACH_TURN = 300;

/** The actors of a shard whose units are durable at once. */
class Resident {
  readonly commits = new CommitLog();
  /** How many were looked for in the rows. */
  loaded = 0;
  readonly #ids = idsOf(ENV.now);
  /** By instance. */
  readonly #tasks = new Map<string, string>();
  readonly instances = new Instances({
    ...instancesDeps(),
    env: { ...ENV, ids: this.#ids },
    commits: this.commits,
    loader: {
      instances: async (ids: readonly string[]) => {
        this.loaded += ids.length;
        return new Map();
      },
    } as unknown as Loads,
    plans: {} as Plans,
    release: (effects) => {
      for (const effect of effects) {
        if (effect.kind !== 'peer' || effect.message.kind !== 'task.ready') continue;
        this.#tasks.set(effect.message.instance, effect.message.task);
      }
    },
    residentBytesMax: RESIDENT_BYTES_MAX,
  });

  /** In one turn of the shard. @returns the ids */
  create(count: number, blocks: Block[]): string[] {
    const sequence = { plan: planOf(blocks) } as StoredSequence;
    const ids = Array.from({ length: count }, () => this.#ids.next(1));
    for (const id of ids) {
      const instance = newInstance(id, { context: { data: { text: 'x'.repeat(300) } } });
      this.instances.create({ kind: 'create', request: 1, instance, sequence });
    }
    this.#endTurn();
    return ids;
  }

  /** Workers take the tasks of these. */
  claim(ids: readonly string[]): void {
    for (const id of ids) {
      const task = this.#tasks.get(id) as string;
      const poll = { handler: 'h', poll: 1, queueShard: 0 };
      this.instances.send(id, { kind: 'claim', task, worker: 'w', ...poll });
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

test('however many instances wait for workers, a shard keeps a fifth of its memory for them', () => {
  const shard = new Resident();
  for (let turn = 0; turn < 5; turn += 1) shard.create(EACH_TURN, [work('a')]);
  const { actors, bytes } = shard.instances.resident;
  assert.ok(actors < 5 * EACH_TURN, `${actors} actors`);
  const share = bytes / RESIDENT_BYTES_MAX;
  assert.ok(share > 0.15 && share < 0.2, `${share} of the memory`);
  // A backlog that nobody works at keeps no others out of memory.
  for (let turn = 0; turn < 5; turn += 1) shard.claim(shard.create(20, [work('b')]));
  assert.ok(shard.loaded < 10, `${shard.loaded} of 100`);
});
