/**
 * Creations, on the shard that makes their units. Which sequence a new instance runs is decided in
 * that very turn: whatever had to be read or waited for before, the routes are asked again.
 * A creation that is handed on to the owner of its idempotency key travels as its caller asked for it.
 */

import type { CreateBatch } from '../../schema/instance.js';
import { routeOf, shardOf } from '../../src/core/ids.js';
import { DATABASE_AWAY, EngineError } from '../../src/errors.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import { targetOf } from '../release/attribution.js';
import type { Routing } from '../release/routing.js';
import type { CommitLog } from '../runtime/commit-log.js';
import type { Rows } from '../runtime/loader.js';
import type { Call } from '../runtime/operation.js';
import type { Effect } from '../runtime/turn.js';
import { BatchCreation } from './batch-creation.js';
import {
  type CheckDeps,
  type CreationBody,
  checkCreation,
  checkTenant,
  type NewInstanceDeps,
  newInstance,
} from './creation.js';
import type { Creation } from './creation-messages.js';
import type { Instances } from './instances.js';
import type { NewInstance } from './record.js';

export interface CreationsDeps extends CheckDeps, NewInstanceDeps {
  readonly commits: CommitLog;
  readonly now: () => number;
  readonly loader: Pick<Rows, 'instances' | 'orphanedInstances'>;
  readonly plans: Pick<Plans, 'deletions' | 'get' | 'isBlocked' | 'load'>;
  readonly routing: Pick<Routing, 'routed'>;
  readonly instances: Pick<Instances, 'create' | 'createKeyed' | 'tell'>;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
}

type Loaded = ReadonlyMap<string, StoredSequence | undefined>;

const NOBODY: ReadonlySet<string> = new Set();

export class Creations {
  readonly #deps: CreationsDeps;

  constructor(deps: CreationsDeps) {
    this.#deps = deps;
  }

  /** @throws EngineError what the caller has to change, or 503 */
  create({ request, tenant, body, traceparent }: Call<CreationBody>): void {
    checkTenant(tenant, body.tenant_id, '');
    const instance = newInstance(this.#deps, body, traceparent);
    const { shard, shards, release } = this.#deps;
    const owner = shardOf(routeOf(instance.id), shards);
    if (owner === shard) this.#place(request, instance);
    else {
      const creation = JSON.stringify(instance);
      const message = { kind: 'create', request, creation } as const;
      release([{ kind: 'peer', shard: owner, message }]);
    }
  }

  /** A keyed creation that another shard parsed, or one whose instance has turned out to be gone. */
  again(request: number, { route: _, ...asked }: NewInstance): void {
    this.#answering(request, () => this.#place(request, asked));
  }

  /** @throws EngineError as `create` */
  createBatch({ request, tenant, body, traceparent }: Call<CreateBatch>): void {
    const { instances: items } = body;
    items.forEach((item, index) => {
      checkTenant(tenant, item.tenant_id, `instances[${index}].`);
    });
    const asked = items.map((item) => newInstance(this.#deps, item, traceparent));
    this.#placeBatch(request, asked, NOBODY);
  }

  // ---------------------------------------------------------------- one

  #place(request: number, asked: NewInstance): void {
    const { routing, plans } = this.#deps;
    const instance = routing.routed(asked);
    const target = targetOf(instance);
    const sequence = plans.get(target);
    if (sequence !== undefined) this.#make(request, instance, sequence);
    else {
      this.#withPlans(request, [target], (loaded) => {
        const routed = routing.routed(asked);
        if (targetOf(routed) === target) this.#make(request, routed, loaded.get(target));
        else this.#place(request, asked);
      });
    }
  }

  #make(request: number, instance: NewInstance, sequence: StoredSequence | undefined): void {
    const { instances } = this.#deps;
    const creation = this.#checked(request, instance, sequence);
    if (creation === undefined) return;
    if (instance.idempotencyKey === null) instances.create(creation);
    else instances.createKeyed(creation);
  }

  /**
   * With a key the instance may be there already, and is the answer then, although its data would be
   * refused today: the sequence that it was created with may have been another.
   *
   * @returns undefined when that is looked for
   */
  #checked(
    request: number,
    instance: NewInstance,
    sequence: StoredSequence | undefined,
  ): Creation | undefined {
    try {
      const usable = checkCreation(this.#deps, instance, sequence, '');
      return { kind: 'create', request, instance, sequence: usable };
    } catch (error) {
      if (!isRefusedInput(error) || instance.idempotencyKey === null) throw error;
      const repeat = { kind: 'repeat', request, instance, otherwise: error } as const;
      this.#deps.instances.tell(instance.id, repeat);
      return undefined;
    }
  }

  // ---------------------------------------------------------------- many

  /** @param known instances that are there already, under their keys */
  #placeBatch(request: number, asked: readonly NewInstance[], known: ReadonlySet<string>): void {
    const { routing } = this.#deps;
    const targets = asked.map((instance) => targetOf(routing.routed(instance)));
    this.#withPlans(request, [...new Set(targets)], (loaded) => {
      const routed = asked.map((instance) => routing.routed(instance));
      const isMoved = routed.some((instance) => !loaded.has(targetOf(instance)));
      if (isMoved) this.#placeBatch(request, asked, known);
      else this.#makeBatch(request, routed, known, loaded);
    });
  }

  #makeBatch(
    request: number,
    routed: readonly NewInstance[],
    known: ReadonlySet<string>,
    loaded: Loaded,
  ): void {
    const refused = new Map<string, EngineError>();
    routed.forEach((instance, index) => {
      if (known.has(instance.id)) return;
      try {
        checkCreation(
          this.#deps,
          instance,
          loaded.get(targetOf(instance)),
          `instances[${index}]: `,
        );
      } catch (error) {
        if (!isRefusedInput(error) || instance.idempotencyKey === null) throw error;
        refused.set(instance.id, error);
      }
    });
    if (refused.size > 0) this.#findRepeats(request, routed, known, refused);
    else {
      const others = routed.filter(({ id }) => !known.has(id));
      new BatchCreation(this.#deps, request, others, routed).commit();
    }
  }

  /** Refused unless all of them are repeats. */
  #findRepeats(
    request: number,
    asked: readonly NewInstance[],
    known: ReadonlySet<string>,
    refused: ReadonlyMap<string, EngineError>,
  ): void {
    const { loader, schedule } = this.#deps;
    loader.instances([...refused.keys()]).then(
      (stored) =>
        schedule(() => {
          const [, error] = [...refused].find(([id]) => !stored.has(id)) ?? [];
          if (error !== undefined) this.#fail(request, error);
          else {
            const repeats = new Set([...known, ...stored.keys()]);
            this.#answering(request, () => this.#placeBatch(request, asked, repeats));
          }
        }),
      () => schedule(() => this.#fail(request, DATABASE_AWAY)),
    );
  }

  // ---------------------------------------------------------------- both

  #withPlans(request: number, sequences: readonly string[], then: (plans: Loaded) => void): void {
    const { plans, schedule } = this.#deps;
    const { deletions } = plans;
    Promise.all(sequences.map((id) => plans.load(id))).then(
      (loaded) =>
        schedule(() => {
          if (deletions !== plans.deletions) this.#withPlans(request, sequences, then);
          else {
            const found = new Map(sequences.map((id, index) => [id, loaded[index]]));
            this.#answering(request, () => then(found));
          }
        }),
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

function isRefusedInput(error: unknown): error is EngineError {
  return error instanceof EngineError && error.code === 'ENG_INPUT_SCHEMA';
}
