/**
 * Creations that take a slot of their sequence's `concurrency`. The shard of the key serves them, so that a free slot is
 * taken in the unit that creates the instance, and `when_full: skip` creates nothing. Other creations make an instance
 * that requests its slot: its idempotency key names another shard, its start is later, or no slot is free.
 */

import { ChurningMap } from '../../src/base/churning-map.js';
import { type ErrorData, fromErrorData, RESTARTING, unavailable } from '../../src/base/errors.js';
import { concurrencyKeyId, routeOf, shardOf } from '../../src/base/ids.js';
import { idempotencyKeyOf } from '../../src/core/creation-key.js';
import type { ConcurrencyPlan } from '../../src/core/flow-limits.js';
import type { StoredSequence } from '../catalog/plans.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Messages, Room } from '../runtime/room.js';
import { Service } from '../runtime/service.js';
import type { Slot, SlotAnswer, Slots } from '../runtime/slots.js';
import { type Effect, Turn } from '../runtime/turn.js';
import { askForResult, putFirstTimer, repeatedReply } from './creation.js';
import type { Instances } from './instances.js';
import { giveSlot, recordSlot } from './limits.js';
import type { InstanceLoads } from './loads.js';
import type { Creation } from './messages.js';
import { firstStart, keysOf, type NewInstance, newRecord, wholeLine } from './record.js';
import { INSTANCE } from './tables.js';

export interface SlotCreationsDeps
  extends Pick<
    Kernel,
    | 'commits'
    | 'internalRequests'
    | 'log'
    | 'now'
    | 'schedule'
    | 'shard'
    | 'shards'
    | 'whenWriterKnown'
  > {
  readonly loader: Pick<InstanceLoads, 'keyedInstance'>;
  readonly release: (effects: readonly Effect[]) => void;
  readonly instances: Pick<Instances, 'create' | 'send'>;
  readonly slots: Slots;
  /** Serves a creation of another shard. */
  readonly createAgain: (request: number, requested: NewInstance) => void;
}

/** The slot that a creation needs now. */
interface Needed extends Pick<ConcurrencyPlan, 'whenFull'> {
  readonly key: string;
  readonly max: number;
}

/** A creation for a batch of another shard. */
interface Asked {
  readonly shard: number;
  readonly answered: (answer: Answer) => void;
}

type Answer = { readonly body: string } | { readonly error: ErrorData };

export class SlotCreations implements Room {
  readonly #deps: SlotCreationsDeps;
  readonly #service: Service;
  readonly #asked = new ChurningMap<number, Asked>();
  #lastTicket = 0;

  readonly messages = {
    'create.ask': ({ ticket, replyTo: shard, creation }) => {
      const { release } = this.#deps;
      this.#serve(JSON.parse(creation) as NewInstance, (answer) => {
        const message = { kind: 'create.answer', ticket, answer: JSON.stringify(answer) } as const;
        release([{ kind: 'peer', shard, message }]);
      });
    },
    'create.answer': ({ ticket, answer }) => this.#answered(ticket, JSON.parse(answer) as Answer),
  } satisfies Messages;

  constructor(deps: SlotCreationsDeps) {
    this.#deps = deps;
    this.#service = new Service('creations', deps);
  }

  /** Its answers are lost with its thread. */
  peerLost(shard: number): void {
    for (const [ticket, asked] of this.#asked) {
      if (asked.shard === shard) this.#answered(ticket, { error: RESTARTING.toData() });
    }
  }

  /** Whether the creation may create nothing, and so is no part of a batch's unit. */
  maySkip(instance: NewInstance, sequence: StoredSequence): boolean {
    return this.#neededBy(instance, sequence)?.whenFull === 'skip';
  }

  create(creation: Creation): void {
    const { shard, instances, slots, now } = this.#deps;
    const { request, instance, sequence } = creation;
    const { tenant_id: tenant } = instance.body;
    const needed = this.#neededBy(instance, sequence);
    const home = this.#shardOf(instance.id);
    const keyed = idempotencyKeyOf(instance.body) !== null;
    const at = needed === undefined ? home : this.#shardOf(needed.key);
    if (at !== shard && (home !== shard || !keyed || needed?.whenFull === 'skip')) {
      this.#forward(creation, at);
    } else if (needed === undefined || at !== shard) instances.create(creation);
    else {
      const { key, max } = needed;
      const asked = { key, tenant, instance: instance.id, max, createdAt: now(), request };
      slots.take(asked, (answer) => this.#take(creation, needed, answer));
    }
  }

  /** Resolves with the reply to one creation, which may be served by another shard. */
  createSkipping(instance: NewInstance, sequence: StoredSequence): Promise<string> {
    const { shard, release } = this.#deps;
    const needed = this.#neededBy(instance, sequence);
    const at = needed === undefined ? shard : this.#shardOf(needed.key);
    return new Promise((resolve, reject) => {
      const answered = (answer: Answer) => {
        if ('error' in answer) reject(fromErrorData(answer.error));
        else resolve(answer.body);
      };
      if (at === shard) {
        this.#serve(instance, answered);
        return;
      }
      this.#lastTicket += 1;
      const ticket = this.#lastTicket;
      this.#asked.set(ticket, { shard: at, answered });
      const creation = textOf(instance);
      const message = { kind: 'create.ask', ticket, replyTo: shard, creation } as const;
      release([{ kind: 'peer', shard: at, message }]);
    });
  }

  #answered(ticket: number, answer: Answer): void {
    const asked = this.#asked.get(ticket);
    this.#asked.delete(ticket);
    asked?.answered(answer);
  }

  #serve(instance: NewInstance, then: (answer: Answer) => void): void {
    const { internalRequests, createAgain } = this.#deps;
    const request = internalRequests.open((answer) =>
      then('error' in answer ? { error: answer.error.toData() } : answer),
    );
    createAgain(request, instance);
  }

  #neededBy(instance: NewInstance, { plan }: StoredSequence): Needed | undefined {
    const { body } = instance;
    if (plan.flow?.concurrency === undefined || body.dry_run === true) return undefined;
    const now = this.#deps.now();
    if (firstStart(body, now) > now) return undefined;
    const keys = keysOf(instance, plan);
    if (!keys.ok) throw new Error(`unchecked creation: ${keys.message}`);
    const { concurrency_key, max_concurrency } = keys.value;
    const key = concurrencyKeyId(body.tenant_id, concurrency_key ?? '');
    const { whenFull } = plan.flow.concurrency;
    return { key, max: max_concurrency ?? 0, whenFull };
  }

  #shardOf(id: string): number {
    return shardOf(routeOf(id), this.#deps.shards);
  }

  #forward({ request, instance }: Creation, shard: number): void {
    const { release } = this.#deps;
    // Only this shard can answer its internal requests. Names or routes have changed meanwhile.
    if (request < 0) release([{ kind: 'error', request, error: RESTARTING }]);
    else {
      const message = { kind: 'create', request, creation: textOf(instance) } as const;
      release([{ kind: 'peer', shard, message }]);
    }
  }

  #take(creation: Creation, { whenFull }: Needed, answer: SlotAnswer): void {
    const { instances, shard } = this.#deps;
    const isHome = this.#shardOf(creation.instance.id) === shard;
    if (answer.kind === 'free') {
      if (isHome) instances.create(creation, answer.slot);
      else this.#createFor(creation, answer.slot);
    } else if (answer.kind === 'full' && whenFull === 'skip') {
      this.#skip(creation, isHome, answer.holder);
    } else if (isHome) instances.create(creation);
    else this.#ifStored(creation, [{ kind: 'error', request: creation.request, error: IN_FLIGHT }]);
  }

  #skip({ request, instance }: Creation, isHome: boolean, holder: string): void {
    const { instances, release } = this.#deps;
    const body = `{"id":"${holder}","deduplicated":false,"skipped":true}`;
    const otherwise: readonly Effect[] = [
      { kind: 'count', counter: 'engine_creations_skipped_total', by: 1 },
      { kind: 'reply', request, status: 200, body },
    ];
    if (idempotencyKeyOf(instance.body) === null) release(otherwise);
    else if (!isHome) this.#ifStored({ request, instance }, otherwise);
    else instances.send(instance.id, { kind: 'repeat', request, instance, otherwise });
  }

  /** Inserts an instance of another shard, which starts it. */
  #createFor(creation: Creation, slot: Slot): void {
    const { now, release } = this.#deps;
    const { request, instance, sequence } = creation;
    const { id, body } = instance;
    const record = newRecord(instance, now(), sequence.plan);
    giveSlot(record);
    const turn = new Turn(body.tenant_id);
    turn.gate = 'exists';
    turn.put(INSTANCE.insert, id, wholeLine(record));
    const message = putFirstTimer(turn, record, sequence.plan);
    turn.effects.push({ kind: 'counted', tenant: body.tenant_id, change: 'created' });
    turn.effects.push({ kind: 'peer', shard: this.#shardOf(id), message });
    recordSlot(turn, record, slot);
    this.#service.commitNow(turn, {
      key: `creation:${id}`,
      settled: (error, { outcome }) => {
        const reply = `{"id":"${id}","deduplicated":false}`;
        if (error === undefined && instance.waitMs !== undefined) {
          release([askForResult(id, body.tenant_id, request, instance.waitMs, false, this.#deps)]);
        } else if (error === undefined) {
          release([{ kind: 'reply', request, status: 201, body: reply }]);
        } else if (outcome !== 'exists') release([{ kind: 'error', request, error }]);
        else this.#ifStored(creation, [{ kind: 'error', request, error }]);
      },
    });
  }

  /** Answers with the stored instance of the idempotency key, or as given without one. */
  #ifStored(
    { request, instance }: Pick<Creation, 'request' | 'instance'>,
    otherwise: readonly Effect[],
  ): void {
    const { loader, release, schedule } = this.#deps;
    this.#service
      .read(() => loader.keyedInstance(instance.id))
      .then(
        (stored) =>
          schedule(() => {
            if (stored === undefined) release(otherwise);
            else release([repeatedReply(request, instance, stored, this.#deps)]);
          }),
        (error: unknown) =>
          schedule(() =>
            release([{ kind: 'error', request, error: this.#service.errorOf(error) }]),
          ),
      );
  }
}

const IN_FLIGHT = unavailable('ENG_OVERLOADED', 'an instance with this key is being created');

const textOf = (instance: NewInstance) => JSON.stringify({ ...instance, texts: undefined });
