/**
 * What one instance may keep in memory: outputs that expressions read, items, and parameters of tasks.
 * The actor alone, without a database, since what it is about is a hundred megabytes.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InstanceActor, type InstanceEnv } from '../../actors/instance.js';
import { newRecord } from '../../actors/instance-record.js';
import type { Turn } from '../../actors/turn.js';
import type { Block } from '../../schema/blocks.js';
import { LIMITS } from '../../src/config.js';
import { createIdGenerator } from '../../src/core/ids.js';
import type { JsonObject } from '../../src/core/json.js';
import { MUTATION_KINDS } from '../../src/core/unit.js';
import { loop, noop, planOf, work } from '../helpers/player.js';

const NOW = 1_700_000_000_000;
const MIB = 1024 * 1024;

const ENV: InstanceEnv = {
  now: () => NOW,
  stamp: () => NOW,
  random: () => 0.5,
  ids: createIdGenerator(
    () => NOW,
    () => 1,
  ),
  shards: 1,
  unpoliciedRetry: 'redispatch',
  requireClaimEpoch: false,
  workerStaleMs: 60_000,
  maxContextBytes: 0,
  webhookUrls: [],
  readySince: () => 0,
  monotonic: () => 0,
};

function actorOf(blocks: Block[], data: JsonObject): InstanceActor {
  const instance = {
    id: ENV.ids.next(1),
    sequenceId: 'sequence',
    tenantId: 't',
    namespace: 'n',
    priority: 1,
    timezone: 'UTC',
    metadata: {},
    data,
    config: {},
    nextFireAt: null,
    concurrencyKey: null,
    maxConcurrency: null,
    idempotencyKey: null,
    dryRun: false,
  };
  return new InstanceActor(newRecord(instance, NOW), planOf(blocks), ENV);
}

/** Runs until it needs somebody else or has ended; the reason of its dead letter, if there is one. */
function play(actor: InstanceActor): string | undefined {
  const isLeft = (turn: Turn) => turn.effects.some(({ kind }) => kind === 'continue');
  let turn = actor.create(1, false);
  while (isLeft(turn)) turn = actor.handle({ kind: 'wake', recovered: false });
  const at = turn.mutations.indexOf(MUTATION_KINDS.indexOf('deadLetter.set'));
  if (at < 0) return undefined;
  return (JSON.parse(String(turn.mutations[at + 2])) as { reason: string }).reason;
}

const copy = (id: string): Block => ({
  type: 'step',
  id,
  handler: 'transform',
  params: { x: '{{data.x}}' },
});

const reading = (id: string, ids: readonly string[]): Block => ({
  type: 'step',
  id,
  handler: 'transform',
  params: { sizes: ids.map((read) => `{{len(outputs.${read}.x)}}`) },
});

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
