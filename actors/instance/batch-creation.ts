/**
 * A batch of instances as one commit unit: all are inserted, or none is. Each is advanced before that as
 * one that is created alone (eager start), as far as its actor need not be there when the commit is
 * known, and stays in memory as such a one does; the others are inserted in their plain first state, with
 * a timer by which their actors find them and a hint that tells them so.
 *
 * A large batch takes several turns to make, with those of others in between. Its place among the
 * units is taken in the first one: where its instances go is decided there.
 */

import { rankOf } from '../../schema/states.js';
import type { Clock } from '../../src/base/clock.js';
import { DATABASE_AWAY, type EngineError } from '../../src/base/errors.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Plan } from '../../src/core/plan.js';
import { BATCH_ACTOR } from '../../src/db/units.js';
import type { StoredSequence } from '../catalog/plans.js';
import { type CommitDeps, INTERNAL } from '../runtime/commit.js';
import type { Settlement, UnitOwner } from '../runtime/commit-log.js';
import { ownerOf } from '../runtime/service.js';
import { type Effect, Turn } from '../runtime/turn.js';
import { start } from './actor.js';
import { beingRemoved } from './creation.js';
import type { Instances } from './instances.js';
import { type InstanceEnv, type LiveInstance, liveInstance } from './live-instance.js';
import type { InstanceLoads } from './loads.js';
import { type NewInstance, newRecord, wholeLine } from './record.js';
import { INSTANCE, TIMER } from './tables.js';

export interface BatchDeps extends CommitDeps {
  readonly loader: Pick<InstanceLoads, 'orphanedInstances'>;
  readonly env: InstanceEnv;
  readonly shards: number;
  readonly clock: Pick<Clock, 'monotonic' | 'setTimeout'>;
  readonly schedule: (work: () => void) => void;
  readonly instances: Pick<Instances, 'adopt'>;
}

/** Of one turn of the shard: requests and timers need the rest. */
const SLICE_MS = LIMITS.turnMs / 2;

/** Its caller waits: what eager starts have not done by then, the actors do after the commit. */
const EAGER_MS_MAX = 2_000;
const EAGER_CHARACTERS_MAX = 16 * 1024 * 1024;

/**
 * @param asked all that were asked for; those with the same idempotency key have the same id
 * @param known which of them are there already; the others are checked
 */
export function createBatch(
  deps: BatchDeps,
  request: number,
  asked: readonly NewInstance[],
  known: ReadonlySet<string>,
  sequenceOf: (instance: NewInstance) => StoredSequence | undefined,
): void {
  const born = new Map<string, NewInstance>();
  for (const instance of asked) {
    const { id } = instance;
    if (!known.has(id) && !born.has(id)) born.set(id, instance);
  }
  if (born.size === 0) answer(deps, request, asked, born);
  else new BatchUnit(deps, request, asked, born, sequenceOf).begin();
}

/** When somebody has to look at an instance that was not started. */
interface Start {
  readonly id: string;
  readonly at: UnixMs;
  readonly rank: number;
  readonly tenant: string;
}

/** One that was advanced, and how many characters its rows have. */
interface Started {
  readonly actor: LiveInstance;
  readonly characters: number;
}

class BatchUnit {
  readonly #owner: UnitOwner;
  readonly #deps: BatchDeps;
  readonly #request: number;
  readonly #asked: readonly NewInstance[];
  readonly #born: ReadonlyMap<string, NewInstance>;
  readonly #left: Iterator<NewInstance>;
  readonly #sequenceOf: (instance: NewInstance) => StoredSequence | undefined;
  readonly #place: number;
  readonly #turn = new Turn();
  readonly #starts: Start[] = [];
  readonly #started: Started[] = [];
  /** Plans whose instances need their actor at once. */
  readonly #attended = new Set<Plan>();
  #eagerMs = 0;
  #eagerCharacters = 0;
  #isLost = false;

  constructor(
    deps: BatchDeps,
    request: number,
    asked: readonly NewInstance[],
    born: ReadonlyMap<string, NewInstance>,
    sequenceOf: (instance: NewInstance) => StoredSequence | undefined,
  ) {
    const { commits } = deps;
    this.#deps = deps;
    this.#request = request;
    this.#asked = asked;
    this.#born = born;
    this.#left = born.values();
    this.#sequenceOf = sequenceOf;
    this.#owner = ownerOf(deps, {
      key: BATCH_ACTOR + born.keys().next().value,
      committed: () => this.#adopt(),
      settled: (error, ack) => {
        if (error === undefined) this.#created(ack);
        else this.#failed(error, ack);
      },
    });
    this.#place = commits.reserve(this.#owner);
    const isKeyed = [...born.values()].some(({ body }) => Boolean(body.idempotency_key));
    if (isKeyed) this.#turn.gate = 'batch';
  }

  begin(): void {
    this.#deps.schedule(() => this.#make());
  }

  #make(): void {
    const { commits, release } = this.#deps;
    if (this.#isLost) return;
    try {
      if (!this.#makeSome()) return;
      // Who names no tenant may create for several: one of them that is held turns all away.
      const tenants = [...this.#born.values()].map(({ body }) => body.tenant_id);
      this.#turn.tenant = tenants.find((tenant) => commits.suspended.has(tenant)) ?? tenants[0];
      commits.append(this.#owner, this.#turn, this.#place);
    } catch (error) {
      commits.forgo(this.#place);
      release([{ kind: 'error', request: this.#request, error: INTERNAL }]);
      throw error;
    }
  }

  /** @returns false when the rest is left to a later turn */
  #makeSome(): boolean {
    const { clock, schedule } = this.#deps;
    const began = clock.monotonic();
    for (;;) {
      const { value, done } = this.#left.next();
      if (done === true) break;
      this.#put(value);
      const ms = clock.monotonic() - began;
      if (ms < SLICE_MS) continue;
      this.#eagerMs += ms;
      // Not at once: what is scheduled within a turn becomes a part of it.
      clock.setTimeout(() => schedule(() => this.#make()), 0);
      return false;
    }
    return true;
  }

  #put(instance: NewInstance): void {
    const plan = this.#sequenceOf(instance)?.plan;
    // Whether one with a key is new only its commit tells: what it does would have to be taken back.
    const isEager =
      plan !== undefined &&
      this.#turn.gate === 'none' &&
      this.#eagerMs < EAGER_MS_MAX &&
      this.#eagerCharacters < EAGER_CHARACTERS_MAX &&
      !this.#attended.has(plan);
    if (!isEager || !this.#start(instance, plan)) this.#putPlain(instance);
  }

  /** @returns false when nothing came of it */
  #start(instance: NewInstance, plan: Plan): boolean {
    const { env } = this.#deps;
    const actor = liveInstance(newRecord(instance, env.now()), plan, env);
    const turn = new Turn();
    try {
      start(actor, turn);
    } catch {
      // Its actor meets the same, as the only one whom that concerns.
      return false;
    }
    if (actor.running.size > 0) {
      // What it has under way here reports to the actor: another one would begin it anew.
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

  #putPlain(instance: NewInstance): void {
    const record = newRecord(instance, this.#deps.env.now());
    const { id, priority, created_at, snapshot } = record;
    const rank = rankOf(priority);
    const at = snapshot.nextFireAt ?? Date.parse(created_at);
    this.#turn.put(INSTANCE.insert, id, wholeLine(record));
    this.#turn.put(
      TIMER.set,
      id,
      `{"instance_id":"${id}","fire_at":"${isoTime(at)}","recover":false,"rank":${rank}}`,
    );
    this.#starts.push({ id, at, rank, tenant: record.tenant_id });
  }

  /** Before the effects leave: these wake their instances. */
  #adopt(): void {
    const { instances } = this.#deps;
    for (const { actor, characters } of this.#started) instances.adopt(actor, characters);
  }

  #created(ack: Settlement): void {
    const created = ack.outcome === 'inserted' ? new Set(ack.ids) : this.#born;
    for (const start of this.#starts) {
      if (!created.has(start.id)) continue;
      const counted = { kind: 'counted', tenant: start.tenant, change: 'created' } as const;
      this.#deps.release([counted, this.#hint(start)]);
    }
    answer(this.#deps, this.#request, this.#asked, created);
  }

  #failed(error: EngineError, { outcome }: Settlement): void {
    const { release } = this.#deps;
    this.#isLost = true;
    release([{ kind: 'error', request: this.#request, error }]);
    // They may exist although their messages were lost; loading an instance sends them again.
    if (outcome !== 'lost') return;
    const hint = ({ actor: { record } }: Started): Effect => {
      return { kind: 'continue', instance: record.id, rank: LOST_RANK };
    };
    release(this.#started.map(hint));
  }

  #hint({ id, at, rank, tenant }: Start): Effect {
    const shard = shardOf(routeOf(id), this.#deps.shards);
    return { kind: 'peer', shard, message: { kind: 'wake', instance: id, at, rank, tenant } };
  }
}

/** As that of normal priority. */
const LOST_RANK = 2;

/** Those that are there already may be on their way out: nothing is said to be there that is not. */
function answer(
  { loader, schedule, release }: BatchDeps,
  request: number,
  asked: readonly NewInstance[],
  created: { readonly size: number; has(id: string): boolean },
): void {
  const fail = (error: EngineError) => release([{ kind: 'error', request, error }]);
  const body = `{"count":${asked.length},"created":${created.size}}`;
  const reply = () => release([{ kind: 'reply', request, status: 201, body }]);
  const others = asked.flatMap(({ id }) => (created.has(id) ? [] : [id]));
  if (others.length === 0) {
    reply();
    return;
  }
  loader.orphanedInstances(others).then(
    ([orphan]) => schedule(() => (orphan === undefined ? reply() : fail(beingRemoved(orphan)))),
    () => schedule(() => fail(DATABASE_AWAY)),
  );
}
