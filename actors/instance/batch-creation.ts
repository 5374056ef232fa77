/**
 * A batch of instances as one commit unit: all are inserted in their plain first state, or none is.
 * Their own actors find them by their timers, and are told so by a hint after the commit.
 */

import { routeOf, shardOf } from '../../src/core/ids.js';
import { rankOf } from '../../src/core/states.js';
import { isoTime, type UnixMs } from '../../src/core/time.js';
import { DATABASE_AWAY, type EngineError } from '../../src/errors.js';
import { type CommitDeps, commitUnit } from '../runtime/commit.js';
import type { Rows } from '../runtime/loader.js';
import { type Effect, Turn } from '../runtime/turn.js';
import { beingRemoved } from './creation.js';
import { type InstanceRecord, type NewInstance, newRecord, wholeLine } from './record.js';

export interface BatchDeps extends CommitDeps {
  readonly loader: Pick<Rows, 'orphanedInstances'>;
  readonly now: () => UnixMs;
  readonly shards: number;
  readonly schedule: (work: () => void) => void;
}

/**
 * @param asked all that were asked for; those with the same idempotency key have the same id
 * @param known which of them are there already; the others are checked
 */
export function createBatch(
  deps: BatchDeps,
  request: number,
  asked: readonly NewInstance[],
  known: ReadonlySet<string>,
): void {
  const now = deps.now();
  const records = new Map<string, InstanceRecord>();
  for (const instance of asked) {
    const { id } = instance;
    if (!known.has(id) && !records.has(id)) records.set(id, newRecord(instance, now));
  }
  const ids = [...records.keys()];
  if (ids.length === 0) {
    answer(deps, request, asked, ids);
    return;
  }
  const turn = new Turn();
  for (const [id, record] of records) {
    if (record.idempotency_key !== null) turn.gate = 'batch';
    turn.put('instance.insert', id, wholeLine(record));
    turn.put('timer.set', id, {
      instance_id: id,
      fire_at: isoTime(startOf(record)),
      recover: false,
      rank: rankOf(record.priority),
    });
  }
  commitUnit(deps, `batch:${ids[0]}`, turn, (error, ack) => {
    if (error !== undefined) {
      deps.release([{ kind: 'error', request, error }]);
      return;
    }
    const created = ack.outcome === 'inserted' ? ack.ids : ids;
    deps.release(created.map((id) => hint(deps, records.get(id) as InstanceRecord)));
    answer(deps, request, asked, created);
  });
}

function startOf({ snapshot, created_at }: InstanceRecord): UnixMs {
  return snapshot.nextFireAt ?? Date.parse(created_at);
}

function hint({ shards }: BatchDeps, record: InstanceRecord): Effect {
  const { id, priority } = record;
  return {
    kind: 'peer',
    shard: shardOf(routeOf(id), shards),
    message: { kind: 'wake', instance: id, at: startOf(record), rank: rankOf(priority) },
  };
}

/** Those that are there already may be on their way out: nothing is said to be there that is not. */
function answer(
  { loader, schedule, release }: BatchDeps,
  request: number,
  asked: readonly NewInstance[],
  created: readonly string[],
): void {
  const fail = (error: EngineError) => release([{ kind: 'error', request, error }]);
  const body = JSON.stringify({ count: asked.length, created: created.length });
  const reply = () => release([{ kind: 'reply', request, status: 201, body }]);
  const isCreated = new Set(created);
  const others = asked.flatMap(({ id }) => (isCreated.has(id) ? [] : [id]));
  if (others.length === 0) {
    reply();
    return;
  }
  loader.orphanedInstances(others).then(
    ([orphan]) => schedule(() => (orphan === undefined ? reply() : fail(beingRemoved(orphan)))),
    () => schedule(() => fail(DATABASE_AWAY)),
  );
}
