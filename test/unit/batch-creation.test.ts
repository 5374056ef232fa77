/** A batch of instances: what its one unit holds, and how it is made in several turns of the shard. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { StoredSequence } from '../../actors/catalog/plans.js';
import { createBatch } from '../../actors/instance/batch-creation.js';
import type { LiveInstance } from '../../actors/instance/live-instance.js';
import type { NewInstance } from '../../actors/instance/record.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { UnitEnvelope } from '../../actors/runtime/protocol.js';
import type { Effect } from '../../actors/runtime/turn.js';
import type { Block } from '../../schema/blocks.js';
import type { Plan } from '../../src/core/plan.js';
import { MUTATION_KINDS } from '../../src/db/mutations.js';
import { instanceEnv, newInstance } from '../helpers/instances.js';
import { planOf } from '../helpers/player.js';
import { readRow } from '../helpers/unit-rows.js';

const ENV = instanceEnv();
const NOOP = planOf([step('noop')]);
const WORKING = planOf([step('packs')]);
const ACTING = planOf([step('http_request', { url: 'https://example.org' })]);

let commits: CommitLog;
let effects: Effect[];
/** What is to be done in a later turn. */
let later: (() => void)[];
let msPerLook: number;
/** Actors that stay in memory. */
let adopted: string[];

beforeEach(() => {
  commits = new CommitLog();
  effects = [];
  later = [];
  msPerLook = 0;
  adopted = [];
});

function step(handler: string, params = {}): Block {
  return { type: 'step', id: 'a', handler, params } as Block;
}

function batch(plan: Plan, asked: readonly NewInstance[]): void {
  let ms = 0;
  const deps = {
    commits,
    release: (released: readonly Effect[]) => void effects.push(...released),
    loader: { orphanedInstances: async () => [] },
    env: ENV,
    shards: 1,
    clock: {
      monotonic: () => {
        ms += msPerLook;
        return ms;
      },
      setTimeout: (work: () => void) => void later.push(work),
    },
    schedule: (work: () => void) => work(),
    instances: { adopt: (actor: LiveInstance) => void adopted.push(actor.record.id) },
  };
  const sequence = { plan } as StoredSequence;
  createBatch(deps, 1, asked, new Set(), () => sequence);
}

function instances(count: number, more: Parameters<typeof newInstance>[1] = {}): NewInstance[] {
  return Array.from({ length: count }, () => newInstance(ENV.ids.next(1), more));
}

function unit(): UnitEnvelope | undefined {
  const units = commits.take();
  assert.ok(units.length <= 1);
  return units[0];
}

/** The rows of a kind. */
function rowsOf({ mutations }: UnitEnvelope, kind: (typeof MUTATION_KINDS)[number]): object[] {
  const rows: object[] = [];
  for (let at = 0; at < mutations.length; at += 3) {
    if (MUTATION_KINDS[mutations[at] as number] !== kind) continue;
    rows.push(readRow(kind, mutations[at + 2] as string));
  }
  return rows;
}

const statesOf = (made: UnitEnvelope) =>
  rowsOf(made, 'instance.insert').map((row) => (row as { state: string }).state);

const answers = () => effects.filter(({ kind }) => kind === 'reply' || kind === 'error');

test('instances of a batch run as far as they can in the unit that inserts them', () => {
  batch(NOOP, instances(3));
  const made = unit()!;
  assert.deepEqual(statesOf(made), ['completed', 'completed', 'completed']);
  assert.equal(rowsOf(made, 'output.insert').length, 3);
  assert.deepEqual(rowsOf(made, 'timer.set'), []);
  commits.settle([{ seq: made.seq, outcome: 'committed' }]);
  assert.deepEqual(answers(), [
    { kind: 'reply', request: 1, status: 201, body: '{"count":3,"created":3}' },
  ]);
  assert.equal(effects.filter(({ kind }) => kind === 'completed').length, 3);
});

test('what a batch has started stays in memory once it is committed, and not before', () => {
  const asked = instances(2);
  batch(WORKING, asked);
  const made = unit()!;
  assert.deepEqual(adopted, []);
  commits.settle([{ seq: made.seq, outcome: 'committed' }]);
  assert.deepEqual(
    adopted,
    asked.map(({ id }) => id),
  );
});

test('with a key in the batch all are inserted as they stand, since they may be there already', () => {
  batch(NOOP, [...instances(1), ...instances(1, { idempotency_key: 'k' })]);
  const made = unit()!;
  assert.equal(made.gate, 'batch');
  assert.deepEqual(statesOf(made), ['scheduled', 'scheduled']);
  assert.equal(rowsOf(made, 'timer.set').length, 2);
});

test('a step that reports to its actor is begun by that, after the commit', () => {
  batch(ACTING, instances(2));
  const made = unit()!;
  assert.deepEqual(statesOf(made), ['scheduled', 'scheduled']);
  assert.equal(rowsOf(made, 'timer.set').length, 2);
  commits.settle([{ seq: made.seq, outcome: 'committed' }]);
  const told = effects.map((effect) =>
    effect.kind === 'peer' ? effect.message.kind : effect.kind,
  );
  assert.deepEqual(told, ['counted', 'wake', 'counted', 'wake', 'reply']);
});

test('of a batch with keys only the instances that are new are counted', () => {
  const asked = instances(3, { idempotency_key: 'k' });
  batch(NOOP, asked);
  const ids = asked.slice(0, 2).map(({ id }) => id);
  commits.settle([{ seq: unit()!.seq, outcome: 'inserted', ids }]);
  assert.equal(effects.filter(({ kind }) => kind === 'counted').length, 2);
});

test('a large batch takes several turns, and is waited for as if it were made in the first', () => {
  msPerLook = 1;
  let isSettled = false;
  batch(NOOP, instances(20));
  commits.whenSettled(() => {
    isSettled = true;
  });
  let turns = 1;
  for (; later.length > 0; turns++) later.shift()!();
  assert.ok(turns > 2, `it took ${turns} turns`);
  assert.equal(isSettled, false);
  const made = unit()!;
  assert.equal(statesOf(made).length, 20);
  commits.settle([{ seq: made.seq, outcome: 'committed' }]);
  assert.equal(isSettled, true);
});

test('a batch whose eager starts take too long leaves the others to their actors', () => {
  msPerLook = 100;
  batch(NOOP, instances(50));
  while (later.length > 0) later.shift()!();
  const states = statesOf(unit()!);
  assert.equal(states[0], 'completed');
  assert.equal(states.at(-1), 'scheduled');
  assert.equal(states.length, 50);
});

test('nothing is sent of a batch that was being made when the writer died', () => {
  msPerLook = 5;
  const asked = instances(3);
  batch(NOOP, asked);
  commits.lose();
  while (later.length > 0) later.shift()!();
  assert.equal(unit(), undefined);
  const [answer] = answers();
  assert.equal(answer?.kind === 'error' && answer.error.status, 503);
});

test('when it is unknown what became of a batch its instances are looked for', () => {
  const asked = instances(2);
  batch(NOOP, asked);
  unit();
  commits.lose();
  const woken = effects.flatMap((effect) => (effect.kind === 'continue' ? [effect.instance] : []));
  assert.deepEqual(
    woken,
    asked.map(({ id }) => id),
  );
});
