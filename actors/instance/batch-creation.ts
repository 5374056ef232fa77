/**
 * Creates a batch of instances in one commit unit: all are inserted, or none. Instances that need
 * no actor before the commit start eagerly and stay in memory; the others are inserted in their
 * first state, with a timer and a hint. A large batch takes several turns, and reserves its place
 * among the units in the first one.
 */

import type { Clock } from '../../src/base/clock.js';
import { DATABASE_AWAY, type EngineError } from '../../src/base/errors.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Plan } from '../../src/core/plan.js';
import { BATCH_ACTOR } from '../../src/db/units.js';
import { type CommitDeps, INTERNAL } from '../runtime/commit.js';
import type { Settlement, UnitOwner } from '../runtime/commit-log.js';
import { ownerOf } from '../runtime/service.js';
import { type Effect, Turn } from '../runtime/turn.js';
import { start } from './actor.js';
import { beingRemoved, type Placed, putFirstTimer, type WakeMessage } from './creation.js';
import type { Instances } from './instances.js';
import { type InstanceEnv, type LiveInstance, liveInstance } from './live-instance.js';
import type { InstanceLoads } from './loads.js';
import { type NewInstance, newRecord, wholeLine } from './record.js';
import { INSTANCE } from './tables.js';

export interface BatchDeps extends CommitDeps {
  readonly loader: Pick<InstanceLoads, 'orphanedInstances'>;
  readonly env: InstanceEnv;
  readonly clock: Pick<Clock, 'monotonic' | 'setTimeout'>;
  readonly schedule: (work: () => void) => void;
  readonly instances: Pick<Instances, 'adopt'>;
}

/** The share of a turn, which also serves requests and timers. */
const SLICE_MS = LIMITS.turnMs / 2;

/** Limits of eager starts, for which the caller waits. */
const EAGER_MS_MAX = 2_000;
const EAGER_CHARACTERS_MAX = 16 * 1024 * 1024;

export function createBatch(
  deps: BatchDeps,
  request: number,
  requested: readonly Placed[],
  known: ReadonlySet<string>,
): void {
  const created = new Map<string, Placed>();
  for (const placed of requested) {
    const { id } = placed.instance;
    // Instances with the same idempotency key have the same id.
    if (!known.has(id) && !created.has(id)) created.set(id, placed);
  }
  const batch = { request, requested, created };
  if (created.size === 0) answer(deps, batch, created);
  else new BatchUnit(deps, batch).begin();
}

interface Batch {
  readonly request: number;
  readonly requested: readonly Placed[];
  readonly created: ReadonlyMap<string, Placed>;
}

interface Started {
  readonly actor: LiveInstance;
  readonly characters: number;
}

class BatchUnit {
  readonly #owner: UnitOwner;
  readonly #deps: BatchDeps;
  readonly #batch: Batch;
  readonly #remaining: Iterator<Placed>;
  readonly #place: number;
  readonly #turn = new Turn();
  /** Hints for the instances that were not started. */
  readonly #wakes: WakeMessage[] = [];
  readonly #started: Started[] = [];
  /** Plans whose instances need their actor in their first turn. */
  readonly #attended = new Set<Plan>();
  #eagerMs = 0;
  #eagerCharacters = 0;
  #isLost = false;

  constructor(deps: BatchDeps, batch: Batch) {
    const { created } = batch;
    this.#deps = deps;
    this.#batch = batch;
    this.#remaining = created.values();
    this.#owner = ownerOf(deps, {
      key: BATCH_ACTOR + created.keys().next().value,
      // Runs before the effects are released, which wake the instances.
      committed: () => {
        for (const { actor, characters } of this.#started) {
          deps.instances.adopt(actor, characters);
        }
      },
      settled: (error, ack) => {
        if (error === undefined) this.#created(ack);
        else this.#failed(error, ack);
      },
    });
    this.#place = deps.commits.reserve(this.#owner);
    const isKeyed = ({ instance: { body } }: Placed) => Boolean(body.idempotency_key);
    if ([...created.values()].some(isKeyed)) this.#turn.gate = 'batch';
  }

  begin(): void {
    this.#deps.schedule(() => this.#make());
  }

  #make(): void {
    const { commits, release } = this.#deps;
    if (this.#isLost) return;
    try {
      if (!this.#putSome()) return;
      // One suspended tenant fails the whole batch.
      const tenants = [...this.#batch.created.values()].map(
        ({ instance }) => instance.body.tenant_id,
      );
      this.#turn.tenant = tenants.find((tenant) => commits.suspended.has(tenant)) ?? tenants[0];
      commits.append(this.#owner, this.#turn, this.#place);
    } catch (error) {
      commits.forgo(this.#place);
      release([{ kind: 'error', request: this.#batch.request, error: INTERNAL }]);
      throw error;
    }
  }

  /** @returns false when a later turn continues */
  #putSome(): boolean {
    const { clock, schedule } = this.#deps;
    const began = clock.monotonic();
    for (;;) {
      const { value, done } = this.#remaining.next();
      if (done === true) break;
      this.#put(value);
      const ms = clock.monotonic() - began;
      if (ms < SLICE_MS) continue;
      this.#eagerMs += ms;
      // A timer, because work that is scheduled within a turn still belongs to that turn.
      clock.setTimeout(() => schedule(() => this.#make()), 0);
      return false;
    }
    return true;
  }

  #put({ instance, sequence }: Placed): void {
    const plan = sequence?.plan;
    // Only the commit decides whether a keyed instance is new.
    const isEager =
      plan !== undefined &&
      this.#turn.gate === 'none' &&
      this.#eagerMs < EAGER_MS_MAX &&
      this.#eagerCharacters < EAGER_CHARACTERS_MAX &&
      !this.#attended.has(plan);
    if (!isEager || !this.#start(instance, plan)) this.#putPlain(instance, plan);
  }

  /** @returns false when the actor has to start it after the commit */
  #start(instance: NewInstance, plan: Plan): boolean {
    const { env } = this.#deps;
    const actor = liveInstance(newRecord(instance, env.now(), plan), plan, env);
    const turn = new Turn();
    try {
      start(actor, turn);
    } catch {
      // Its own actor will fail in the same way, without failing the batch.
      return false;
    }
    if (actor.running.size > 0) {
      // In-process steps report to this actor; another actor would execute them again.
      this.#attended.add(plan);
      return false;
    }
    const { mutations } = turn;
    let characters = 0;
    for (let i = 2; i < mutations.length; i += 3) characters += (mutations[i] as string).length;
    this.#eagerCharacters += characters;
    this.#started.push({ actor, characters });
    this.#turn.join(turn);
    return true;
  }

  #putPlain(instance: NewInstance, plan: Plan | undefined): void {
    const record = newRecord(instance, this.#deps.env.now(), plan);
    this.#turn.put(INSTANCE.insert, record.id, wholeLine(record));
    this.#wakes.push(putFirstTimer(this.#turn, record, plan));
  }

  #created(ack: Settlement): void {
    const { release, env } = this.#deps;
    const created = ack.outcome === 'inserted' ? new Set(ack.ids) : this.#batch.created;
    for (const message of this.#wakes) {
      const { instance, tenant } = message;
      if (!created.has(instance)) continue;
      const shard = shardOf(routeOf(instance), env.shards);
      const hint = { kind: 'peer', shard, message } as const;
      release([{ kind: 'counted', tenant, change: 'created' }, hint]);
    }
    answer(this.#deps, this.#batch, created);
  }

  #failed(error: EngineError, { outcome }: Settlement): void {
    const { release } = this.#deps;
    this.#isLost = true;
    release([{ kind: 'error', request: this.#batch.request, error }]);
    // The rows may exist although their messages were lost; loading an instance sends them again.
    if (outcome !== 'lost') return;
    const hint = ({ actor: { record } }: Started): Effect => {
      return { kind: 'continue', instance: record.id, rank: LOST_RANK };
    };
    release(this.#started.map(hint));
  }
}

/** The rank of normal priority. */
const LOST_RANK = 2;

/** Refuses the batch if an existing instance is being deleted with its sequence. */
function answer(
  { loader, schedule, release }: BatchDeps,
  { request, requested }: Batch,
  created: { readonly size: number; has(id: string): boolean },
): void {
  const fail = (error: EngineError) => release([{ kind: 'error', request, error }]);
  const body = `{"count":${requested.length},"created":${created.size}}`;
  const reply = () => release([{ kind: 'reply', request, status: 201, body }]);
  const others = requested.flatMap(({ instance: { id } }) => (created.has(id) ? [] : [id]));
  if (others.length === 0) {
    reply();
    return;
  }
  loader.orphanedInstances(others).then(
    ([orphan]) => schedule(() => (orphan === undefined ? reply() : fail(beingRemoved(orphan)))),
    () => schedule(() => fail(DATABASE_AWAY)),
  );
}
