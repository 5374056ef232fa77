/**
 * Creations, on the shard that makes their units. Which sequence a new instance runs is decided in
 * that very turn: whatever had to be read or waited for before, the routes are asked again.
 * A creation that is handed on to the owner of its idempotency key travels as its caller asked for it.
 */

import type { CreateBatch } from '../../schema/instance.js';
import { DATABASE_AWAY, EngineError } from '../../src/base/errors.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import { checkTenant } from '../../src/base/tenancy.js';
import type { CreationBody } from '../../src/core/creation-key.js';
import type { Names } from '../catalog/names.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import { targetOf } from '../release/attribution.js';
import type { Routing } from '../release/routing.js';
import type { Call } from '../runtime/operation.js';
import type { Messages, Room } from '../runtime/room.js';
import type { NamedId } from '../runtime/sequence-name.js';
import { type BatchDeps, createBatch } from './batch-creation.js';
import { type CreationDeps, checkCreation, mayBeRepeat, newInstance } from './creation.js';
import type { Instances } from './instances.js';
import type { InstanceLoads } from './loads.js';
import { rawSections, rawSectionsOfItems } from './raw-sections.js';
import { type NewInstance, nameIn } from './record.js';

export interface CreationsDeps extends BatchDeps, CreationDeps {
  readonly loader: Pick<InstanceLoads, 'instances' | 'orphanedInstances'>;
  readonly plans: Pick<Plans, 'deletions' | 'get' | 'isBlocked' | 'seek'>;
  readonly names: Pick<Names, 'get' | 'load'>;
  readonly routing: Pick<Routing, 'routed'>;
  readonly instances: Pick<Instances, 'adopt' | 'create' | 'tell'>;
}

/** What is made of instances when it is known where they go, and the sequences there are at hand. */
type Make = (routed: readonly NewInstance[], sequenceOf: SequenceOf) => void;
type SequenceOf = (instance: NewInstance) => StoredSequence | undefined;

/** What was read, found or not: sequences by their ids, and where the names of instances lead. */
interface Loaded {
  readonly sequences: ReadonlyMap<string, StoredSequence | undefined>;
  readonly names: ReadonlyMap<NewInstance, NamedId>;
}

const NONE: Loaded = { sequences: new Map(), names: new Map() };

export class Creations implements Room {
  readonly #deps: CreationsDeps;

  readonly messages = {
    create: ({ request, creation }) => this.again(request, JSON.parse(creation) as NewInstance),
  } satisfies Messages;

  constructor(deps: CreationsDeps) {
    this.#deps = deps;
  }

  /** @throws EngineError what the caller has to change, or 503 */
  create({ request, tenant, body, text, traceparent }: Call<CreationBody>): void {
    checkTenant(tenant, body.tenant_id);
    const texts = text === undefined ? undefined : rawSections(text);
    const instance = newInstance(this.#deps, body, texts, traceparent);
    const { shard, shards, release } = this.#deps;
    const owner = shardOf(routeOf(instance.id), shards);
    if (owner === shard) this.#createOne(request, instance);
    else {
      const creation = JSON.stringify({ ...instance, texts: undefined });
      const message = { kind: 'create', request, creation } as const;
      release([{ kind: 'peer', shard: owner, message }]);
    }
  }

  /** A keyed creation that another shard parsed, or one whose instance has turned out to be gone. */
  again(request: number, { route: _, named: __, ...asked }: NewInstance): void {
    this.#answering(request, () => this.#createOne(request, asked));
  }

  /** @throws EngineError as `create` */
  createBatch({ request, tenant, body, text, traceparent }: Call<CreateBatch>): void {
    const { instances: items } = body;
    items.forEach((item, index) => {
      checkTenant(tenant, item.tenant_id, `instances[${index}].`);
    });
    const texts = text === undefined ? [] : rawSectionsOfItems(text);
    const asked = items.map((item, i) => newInstance(this.#deps, item, texts[i], traceparent));
    this.#createMany(request, asked, new Set());
  }

  #createOne(request: number, asked: NewInstance): void {
    if (asked.body.sequence == null) {
      // Almost always everything is at hand.
      const { routing, plans } = this.#deps;
      const routed = routing.routed(asked);
      const sequence = plans.get(targetOf(routed));
      if (sequence?.tenantId === asked.body.tenant_id) {
        this.#begin(request, routed, sequence);
        return;
      }
    }
    this.#place(request, [asked], ([routed], sequenceOf) => {
      this.#begin(request, routed as NewInstance, sequenceOf(routed as NewInstance));
    });
  }

  #begin(request: number, instance: NewInstance, found: StoredSequence | undefined): void {
    const { instances } = this.#deps;
    try {
      const sequence = checkCreation(this.#deps, instance, found, '');
      instances.create({ kind: 'create', request, instance, sequence });
    } catch (error) {
      if (!mayBeRepeat(instance, error)) throw error;
      instances.tell(instance.id, { kind: 'repeat', request, instance, otherwise: error });
    }
  }

  /** @param known instances that are there already, under their keys */
  #createMany(request: number, asked: readonly NewInstance[], known: ReadonlySet<string>): void {
    this.#place(request, asked, (routed, sequenceOf) => {
      const refused = new Map<string, EngineError>();
      routed.forEach((instance, index) => {
        if (known.has(instance.id)) return;
        try {
          checkCreation(this.#deps, instance, sequenceOf(instance), `instances[${index}]: `);
        } catch (error) {
          if (!mayBeRepeat(instance, error)) throw error;
          refused.set(instance.id, error);
        }
      });
      if (refused.size > 0) this.#findRepeats(request, asked, known, refused);
      else createBatch(this.#deps, request, routed, known, sequenceOf);
    });
  }

  /** Refused unless all of them are repeats. */
  #findRepeats(
    request: number,
    asked: readonly NewInstance[],
    known: ReadonlySet<string>,
    refused: ReadonlyMap<string, EngineError>,
  ): void {
    this.#read(request, this.#deps.loader.instances([...refused.keys()]), (stored) => {
      for (const [id, error] of refused) if (!stored.has(id)) throw error;
      this.#createMany(request, asked, new Set([...known, ...stored.keys()]));
    });
  }

  /**
   * Finds out where instances go, and reads names and sequences that are not at hand.
   *
   * @param loaded what was read, found or not, and no sequence was deleted since
   */
  #place(request: number, asked: readonly NewInstance[], make: Make, loaded = NONE): void {
    const { routing, plans, names } = this.#deps;
    const atHand: SequenceOf = (instance) => {
      const sequence = plans.get(targetOf(instance));
      return sequence?.tenantId === instance.body.tenant_id ? sequence : undefined;
    };
    const sequenceOf: SequenceOf = (instance) =>
      atHand(instance) ?? loaded.sequences.get(targetOf(instance));
    const nameless: NewInstance[] = [];
    const missing = new Map<string, string>();
    const routed = asked.map((instance) => {
      const name = nameIn(instance.body);
      const named = name && (names.get(name) ?? loaded.names.get(instance));
      if (name !== undefined && named == null) {
        if (!loaded.names.has(instance)) nameless.push(instance);
        return { ...instance, named };
      }
      const placed = routing.routed(name === undefined ? instance : { ...instance, named });
      const target = targetOf(placed);
      if (atHand(placed) === undefined && !loaded.sequences.has(target)) {
        missing.set(target, placed.body.tenant_id);
      }
      return placed;
    });
    if (missing.size === 0 && nameless.length === 0) {
      make(routed, sequenceOf);
      return;
    }
    const { deletions } = plans;
    const found = Promise.all([
      readAll([...missing], async ([id, by]) => [id, await plans.seek(id, by)] as const),
      readAll(nameless, async (it) => [it, await names.load(nameIn(it.body)!)] as const),
    ]);
    this.#read(request, found, ([sequences, ids]) => {
      const isCurrent = deletions === plans.deletions;
      const known = isCurrent
        ? {
            sequences: new Map([...loaded.sequences, ...sequences]),
            names: new Map([...loaded.names, ...ids]),
          }
        : NONE;
      this.#place(request, asked, make, known);
    });
  }

  /** Goes on in a turn with what was read. */
  #read<T>(request: number, reading: Promise<T>, then: (found: T) => void): void {
    const { schedule } = this.#deps;
    reading.then(
      (found) => schedule(() => this.#answering(request, () => then(found))),
      () => schedule(() => this.#fail(request, DATABASE_AWAY)),
    );
  }

  /** Answers with what the work throws. */
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

function readAll<Ask, Found>(asks: readonly Ask[], read: (ask: Ask) => Promise<Found>) {
  return Promise.all(asks.map(read));
}
