/**
 * What is promised about releases while real threads die, and callers go away. A file of its own: an engine whose
 * threads die too often gives up.
 *
 * Cost: 10 s, since it kills the threads of an engine.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import type { Release } from '../../schema/release.js';
import { eventually } from '../helpers/api.js';
import { persist, startThreadEngine, type ThreadEngine } from '../helpers/thread-engine.js';

const SHARDS = 3;
const TENANT = 'release-threads';

let engine: ThreadEngine;

before(async () => {
  engine = await startThreadEngine({ shards: SHARDS, lanes: 1, tenant: TENANT });
});

after(async () => {
  await engine?.stop();
});

/** Of the first shard, which owns the releases. */
async function askFirst<T>(operation: string, target: string, body: unknown): Promise<T> {
  const text = JSON.stringify(body);
  return JSON.parse((await engine.client.ask(0, operation, TENANT, target, text)).body) as T;
}

/** Under a name of its own, so that it can be asked for again. */
async function canary(): Promise<Release> {
  const name = randomUUID();
  const blocks = [{ type: 'step', id: 'a', handler: 'noop' }];
  const version = async (number: number) => {
    const body = { tenant_id: TENANT, namespace: 'n', name, version: number, blocks };
    return (await askFirst<{ id: string }>('sequences.create', '', body)).id;
  };
  const pair = { baseline_sequence_id: await version(1), candidate_sequence_id: await version(2) };
  const { id } = await askFirst<Release>('releases.create', '', pair);
  await askFirst('releases.beginValidation', id, { skip: true });
  return askFirst<Release>('releases.canary', id, { percent: 100 });
}

/** The sequence of a new instance, which any shard creates. */
async function sequenceOfNew(baseline: string): Promise<string> {
  const creation = engine.creation(baseline);
  const { id } = await engine.ask<{ id: string }>('instances.create', '', creation);
  const get = () => engine.ask<{ sequence_id: string }>('instances.get', id);
  return (await persist(get)).sequence_id;
}

const VICTIMS: readonly (readonly [what: string, find: () => Promise<Worker | undefined>])[] = [
  ['another shard', async () => (await engine.supervisor.threads()).shards[1]],
  ['the first shard', async () => (await engine.supervisor.threads()).shards[0]],
  ['the writer', async () => (await engine.supervisor.threads()).writer],
];

for (const [what, find] of VICTIMS) {
  test(`a rollback that is answered while ${what} dies holds on every shard, and is decided once`, async () => {
    const release = await persist(canary);
    const { id, baseline_sequence_id: baseline, candidate_sequence_id: candidate } = release;
    for (let i = 0; i < SHARDS; i++) assert.equal(await sequenceOfNew(baseline), candidate);
    const victim = await find();
    assert.ok(victim !== undefined);
    let isAnswered = false;
    /** Of creations that were asked for after the answer. */
    const later: string[] = [];
    const creator = async () => {
      while (later.length < 60) {
        const isLater = isAnswered;
        const sequence = await persist(() => sequenceOfNew(baseline));
        if (isLater) later.push(sequence);
      }
    };
    const creators = Array.from({ length: 4 }, creator);
    const rollback = () => askFirst<Release>('releases.rollback', id, {});
    const [, { state }] = await Promise.all([victim.terminate(), persist(rollback)]);
    isAnswered = true;
    await Promise.all(creators);
    assert.equal(state, 'rolled_back');
    assert.deepEqual([...new Set(later)], [baseline]);
    const { rows } = await engine.sql.query<{ to_state: string }>(
      'select to_state from release_decisions where release_id = $1 order by decided_at, id',
      [id],
    );
    const states = rows.map(({ to_state }) => to_state);
    assert.deepEqual(states, ['draft', 'ready', 'canary', 'rolled_back']);
  });
}

for (const [operation, expected] of [
  ['releases.pause', 'paused'],
  ['releases.rollback', 'rolled_back'],
  ['releases.promote', 'promoted'],
] as const) {
  test(`${operation} is done although its caller has gone`, async () => {
    const { id } = await persist(canary);
    const caller = new AbortController();
    const asked = engine.client.ask(0, operation, TENANT, id, '{}', caller);
    caller.abort();
    await assert.rejects(asked);
    await eventually(async () => {
      const { rows } = await engine.sql.query<{ state: string }>(
        'select state from releases where id = $1',
        [id],
      );
      assert.equal(rows[0]?.state, expected);
    });
  });
}
