/** Creations. One with an idempotency key is forwarded to the shard that owns the key. */

import type { BatchCreated, CreateBatch, InstanceCreated } from '../../schema/instance.js';
import { DATABASE_AWAY, EngineError } from '../../src/base/errors.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import { checkTenant } from '../../src/base/tenancy.js';
import {
  type CreationBody,
  checkCallersId,
  idempotencyKeyOf,
} from '../../src/core/creation-key.js';
import type { Plans } from '../catalog/plans.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call } from '../runtime/operation.js';
import type { Messages, Room } from '../runtime/room.js';
import { type BatchDeps, createBatch } from './batch-creation.js';
import { asStarted, type Collected, collectedOf, refuseCollected } from './collected.js';
import {
  type CreationDeps,
  checkCreation,
  type Found,
  findPlace,
  mayBeRepeat,
  newId,
  newInstance,
  type PlaceDeps,
  type Placed,
  placed,
} from './creation.js';
import type { Instances } from './instances.js';
import type { InstanceEnv } from './live-instance.js';
import type { InstanceLoads } from './loads.js';
import { rawSections, rawSectionsOfItems } from './raw-sections.js';
import { ReceivedCreations } from './received-creations.js';
import type { NewInstance } from './record.js';
import type { SlotCreations } from './slot-creations.js';

export interface CreationsDeps extends BatchDeps, CreationDeps, PlaceDeps {
  readonly env: InstanceEnv;
  readonly loader: Pick<InstanceLoads, 'keyedInstance' | 'orphanedInstances'>;
  readonly plans: Pick<Plans, 'deletions' | 'get' | 'isBlocked' | 'seek'>;
  readonly instances: Pick<Instances, 'adopt' | 'create' | 'isResident' | 'send'>;
  readonly internalRequests: Kernel['internalRequests'];
  readonly underKeys: Pick<SlotCreations, 'create' | 'createSkipping' | 'maySkip'>;
}

export class Creations implements Room {
  readonly #deps: CreationsDeps;
  readonly #received = new ReceivedCreations();

  readonly messages = {
    create: ({ request, creation }) => {
      const instance = JSON.parse(creation) as NewInstance;
      if (!this.#received.isSecond(instance)) this.again(request, instance);
    },
  } satisfies Messages;

  constructor(deps: CreationsDeps) {
    this.#deps = deps;
  }

  create({ request, tenant, body, text, traceparent }: Call<CreationBody>, waitMs?: number): void {
    checkTenant(tenant, body.tenant_id);
    const texts = text === undefined ? undefined : rawSections(text);
    const created = newInstance(this.#deps, body, texts, traceparent);
    const instance = waitMs === undefined ? created : { ...created, waitMs };
    const { shard, env, release } = this.#deps;
    const owner = shardOf(routeOf(instance.id), env.shards);
    if (owner === shard) this.#createOne(request, instance);
    else {
      const creation = JSON.stringify({ ...instance, texts: undefined });
      const message = { kind: 'create', request, creation } as const;
      release([{ kind: 'peer', shard: owner, message }]);
    }
  }

  /** A creation that another shard forwarded, or whose existing instance has been deleted. */
  again(request: number, { route: _, named: __, ...requested }: NewInstance): void {
    const isBound = this.#isOwn(requested) || idempotencyKeyOf(requested.body) !== null;
    // An instance without a key lives where it is created.
    const instance = isBound ? requested : { ...requested, id: newId(this.#deps) };
    this.#answering(request, () => this.#createOne(request, instance));
  }

  #isOwn({ id }: NewInstance): boolean {
    const { shard, env } = this.#deps;
    return shardOf(routeOf(id), env.shards) === shard;
  }

  createBatch({ request, tenant, body, text, traceparent }: Call<CreateBatch>): void {
    const { instances: items } = body;
    items.forEach((item, index) => {
      checkTenant(tenant, item.tenant_id, `instances[${index}].`);
      checkCallersId(item.idempotency_key, `instances[${index}].idempotency_key`);
    });
    const texts = text === undefined ? [] : rawSectionsOfItems(text);
    const all = items.map((item, i) => newInstance(this.#deps, item, texts[i], traceparent));
    this.#createMany(request, all, new Set());
  }

  #createOne(request: number, requested: NewInstance, found?: Found): void {
    const place = placed(this.#deps, requested, found);
    if (place === undefined) {
      const reading = findPlace(this.#deps, requested);
      this.#read(request, reading, (read) => this.#createOne(request, requested, read));
      return;
    }
    const { instances } = this.#deps;
    const { instance } = place;
    try {
      const started = asStarted(place);
      const sequence = checkCreation(this.#deps, place, '', started);
      const collected = collectedOf(instance, sequence);
      const made = collected === undefined ? started : instance;
      const creation = { kind: 'create', request, instance: made, sequence } as const;
      // An instance in memory may already have the idempotency key.
      if (collected !== undefined && !instances.isResident(instance.id)) {
        this.#collect(request, collected);
      } else if (sequence.plan.flow === undefined && this.#isOwn(instance)) {
        instances.create(creation);
      } else this.#deps.underKeys.create(creation);
    } catch (error) {
      if (!mayBeRepeat(instance, error)) throw error;
      const otherwise = [{ kind: 'error', request, error }] as const;
      instances.send(instance.id, { kind: 'repeat', request, instance, otherwise });
    }
  }

  /** Another room collects the creation (`actors/pending-start`). */
  #collect(request: number, collected: Collected): void {
    const { env, release, shard } = this.#deps;
    const owner = shardOf(routeOf(collected.key_id), env.shards);
    const message = { kind: 'collect', request, creation: JSON.stringify(collected) } as const;
    // Internal requests are answered on the shard that made them.
    const sent = request < 0 ? { ...message, replyTo: shard } : message;
    release([{ kind: 'peer', shard: owner, message: sent }]);
  }

  #createMany(
    request: number,
    requested: readonly NewInstance[],
    known: ReadonlySet<string>,
    found: ReadonlyMap<NewInstance, Found> = new Map(),
  ): void {
    const places = requested.map((one) => placed(this.#deps, one, found.get(one)));
    const unknown = requested.filter((_, index) => places[index] === undefined);
    if (unknown.length > 0) {
      const reads = unknown.map(async (one) => [one, await findPlace(this.#deps, one)] as const);
      this.#read(request, Promise.all(reads), (read) =>
        this.#createMany(request, requested, known, new Map([...found, ...read])),
      );
      return;
    }
    this.#createPlaced(request, requested, places as Placed[], known);
  }

  #createPlaced(
    request: number,
    requested: readonly NewInstance[],
    places: readonly Placed[],
    known: ReadonlySet<string>,
  ): void {
    const refused = new Map<string, EngineError>();
    places.forEach((place, index) => {
      const { instance } = place;
      if (known.has(instance.id)) return;
      try {
        const item = `instances[${index}]: `;
        refuseCollected(place, checkCreation(this.#deps, place, item, asStarted(place)), item);
      } catch (error) {
        if (!mayBeRepeat(instance, error)) throw error;
        refused.set(instance.id, error);
      }
    });
    if (refused.size === 0) {
      this.#createValid(request, places.map(startedPlace), known);
      return;
    }
    // An invalid item is accepted only if its key has been used.
    const ids = [...refused.keys()];
    const reading = Promise.all(ids.map((id) => this.#deps.loader.keyedInstance(id)));
    this.#read(request, reading, (found) => {
      for (const [i, id] of ids.entries()) if (found[i] === undefined) throw refused.get(id)!;
      this.#createMany(request, requested, new Set([...known, ...ids]));
    });
  }

  /** Items that may create nothing are decided one by one after the unit of the others. */
  #createValid(request: number, places: readonly Placed[], known: ReadonlySet<string>): void {
    const { underKeys } = this.#deps;
    const maySkip = ({ instance, sequence }: Placed) =>
      sequence?.plan.flow !== undefined &&
      !known.has(instance.id) &&
      underKeys.maySkip(instance, sequence);
    const single = places.filter(maySkip);
    if (single.length === 0) {
      createBatch(this.#deps, request, places, known);
      return;
    }
    const unit = places.filter((place) => !single.includes(place));
    this.#read(request, this.#createBoth(unit, single, known), (answer) => {
      const body = JSON.stringify(answer);
      this.#deps.release([{ kind: 'reply', request, status: 201, body }]);
    });
  }

  async #createBoth(
    unit: readonly Placed[],
    single: readonly Placed[],
    known: ReadonlySet<string>,
  ): Promise<BatchCreated> {
    const { internalRequests, underKeys } = this.#deps;
    const body = await new Promise<string>((resolve, reject) => {
      const request = internalRequests.open((answer) => {
        if ('error' in answer) reject(answer.error);
        else resolve(answer.body);
      });
      createBatch(this.#deps, request, unit, known);
    });
    const { count, created } = JSON.parse(body) as BatchCreated;
    const replies = await Promise.all(
      single.map(({ instance, sequence }) => underKeys.createSkipping(instance, sequence!)),
    );
    const answers = replies.map((reply) => JSON.parse(reply) as InstanceCreated);
    const skipped = answers.filter((answer) => answer.skipped === true).length;
    const repeated = answers.filter(({ deduplicated }) => deduplicated).length;
    const made = single.length - skipped - repeated;
    return {
      count: count + single.length - skipped,
      created: created + made,
      ...(skipped === 0 ? {} : { skipped }),
    };
  }

  #read<T>(request: number, reading: Promise<T>, then: (read: T) => void): void {
    const { schedule } = this.#deps;
    reading.then(
      (read) => schedule(() => this.#answering(request, () => then(read))),
      (error) =>
        schedule(() => this.#fail(request, error instanceof EngineError ? error : DATABASE_AWAY)),
    );
  }

  #answering(request: number, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#fail(request, error);
    }
  }

  #fail(request: number, error: EngineError): void {
    this.#deps.release([{ kind: 'error', request, error }]);
  }
}

/** Dry runs of a sequence with `batch`. */
function startedPlace(place: Placed): Placed {
  const instance = asStarted(place);
  return instance === place.instance ? place : { ...place, instance };
}
