/** The times an instance is created with, when the stamp of its creation is ahead of the clock. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { type LiveInstance, liveInstance } from '../../actors/instance/live-instance.js';
import { type CreationBody, newRecord } from '../../actors/instance/record.js';
import type { Turn } from '../../actors/runtime/turn.js';
import { isoTime, type UnixMs } from '../../src/core/time.js';
import { MUTATION_KINDS } from '../../src/db/mutations.js';
import { instanceEnv, newInstance } from '../helpers/instances.js';
import { planOf, work } from '../helpers/player.js';
import { created, told } from '../helpers/turns.js';
import { readRow } from '../helpers/unit-rows.js';

const NOW = 1_700_000_000_000;
/** What a reader of the change feed may have been shown everything below. */
const STAMP = NOW + 5;

let now: UnixMs;
let actor: LiveInstance;

const ENV = instanceEnv({ now: () => now, stamp: () => STAMP });

/** @returns the row that it is inserted with */
function create(more: Partial<CreationBody>): { created_at: string; next_fire_at: string | null } {
  const instance = newInstance(ENV.ids.next(1), more);
  actor = liveInstance(newRecord(instance, NOW), planOf([work('a')]), ENV);
  const { mutations } = created(actor);
  const at = mutations.indexOf(MUTATION_KINDS.indexOf('instance.insert'));
  return readRow('instance.insert', String(mutations[at + 2])) as ReturnType<typeof create>;
}

const KEYED = { concurrency_key: 'k', max_concurrency: 1 };

function grant(): Turn {
  const number = actor.record.snapshot.execution.n ?? 0;
  return told(actor, { kind: 'permit.granted', number });
}

const timersOf = ({ effects }: Turn) =>
  effects.flatMap((effect) => (effect.kind === 'timer' ? [effect.at] : []));

beforeEach(() => {
  now = NOW;
});

test('one that waits for a slot is due since it was created, not before', () => {
  const row = create(KEYED);
  assert.equal(actor.record.snapshot.state, 'scheduled');
  assert.equal(row.created_at, isoTime(STAMP));
  assert.equal(row.next_fire_at, row.created_at);
});

test('a slot that comes before that is given back, and asked for again when it is due', () => {
  create(KEYED);
  assert.deepEqual(timersOf(grant()), [STAMP]);
  assert.equal(actor.record.snapshot.state, 'scheduled');
  now = STAMP;
  told(actor, { kind: 'wake', recovered: false });
  grant();
  assert.equal(actor.record.snapshot.state, 'waiting');
});

test('one that was given its time keeps it, and one that starts at once is due no more', () => {
  const at = NOW + 60_000;
  assert.equal(create({ next_fire_at: isoTime(at) }).next_fire_at, isoTime(at));
  assert.equal(create({}).next_fire_at, null);
  assert.equal(actor.record.snapshot.state, 'waiting');
});
