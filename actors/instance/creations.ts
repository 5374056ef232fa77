/** Creations. One with an idempotency key is forwarded to the shard that owns the key. */

import type { CreateBatch } from '../../schema/instance.js';
import { DATABASE_AWAY, EngineError } from '../../src/base/errors.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import { checkTenant } from '../../src/base/tenancy.js';
import type { CreationBody } from '../../src/core/creation-key.js';
import type { Plans } from '../catalog/plans.js';
import type { Call } from '../runtime/operation.js';
import type { Messages, Room } from '../runtime/room.js';
import { type BatchDeps, createBatch } from './batch-creation.js';
import {
  type CreationDeps,
  checkCreation,
  type Found,
  findPlace,
  mayBeRepeat,
  newInstance,
  type PlaceDeps,
  type Placed,
  placed,
} from './creation.js';
import type { Instances } from './instances.js';
import type { InstanceEnv } from './live-instance.js';
import type { InstanceLoads } from './loads.js';
import { rawSections, rawSectionsOfItems } from './raw-sections.js';
import type { NewInstance } from './record.js';

export interface CreationsDeps extends BatchDeps, CreationDeps, PlaceDeps {
  readonly env: InstanceEnv;
  readonly loader: Pick<InstanceLoads, 'instances' | 'orphanedInstances'>;
  readonly plans: Pick<Plans, 'deletions' | 'get' | 'isBlocked' | 'seek'>;
  readonly instances: Pick<Instances, 'adopt' | 'create' | 'send'>;
}

export class Creations implements Room {
  readonly #deps: CreationsDeps;

  readonly messages = {
    create: ({ request, creation }) => this.again(request, JSON.parse(creation) as NewInstance),
  } satisfies Messages;

  constructor(deps: CreationsDeps) {
    this.#deps = deps;
  }

  create({ request, tenant, body, text, traceparent }: Call<CreationBody>): void {
    checkTenant(tenant, body.tenant_id);
    const texts = text === undefined ? undefined : rawSections(text);
    const instance = newInstance(this.#deps, body, texts, traceparent);
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
    this.#answering(request, () => this.#createOne(request, requested));
  }

  createBatch({ request, tenant, body, text, traceparent }: Call<CreateBatch>): void {
    const { instances: items } = body;
    items.forEach((item, index) => {
      checkTenant(tenant, item.tenant_id, `instances[${index}].`);
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
      const sequence = checkCreation(this.#deps, place, '');
      instances.create({ kind: 'create', request, instance, sequence });
    } catch (error) {
      if (!mayBeRepeat(instance, error)) throw error;
      instances.send(instance.id, { kind: 'repeat', request, instance, otherwise: error });
    }
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
        checkCreation(this.#deps, place, `instances[${index}]: `);
      } catch (error) {
        if (!mayBeRepeat(instance, error)) throw error;
        refused.set(instance.id, error);
      }
    });
    if (refused.size === 0) {
      createBatch(this.#deps, request, places, known);
      return;
    }
    // An invalid item is accepted only if its instance already exists.
    this.#read(request, this.#deps.loader.instances([...refused.keys()]), (stored) => {
      for (const [id, error] of refused) if (!stored.has(id)) throw error;
      this.#createMany(request, requested, new Set([...known, ...stored.keys()]));
    });
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
