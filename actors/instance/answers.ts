/**
 * Requests that wait: for the end of their instance, or for a step to take their signal. What they wait for is
 * committed before they are parked, and their response follows from committed state only. A waiting request is in
 * memory: if its thread dies, the front thread answers it with what it knows (`actors/shard/client.ts`).
 *
 * 1. A reply that may wait arrives here instead of at the front thread, when its unit is committed.
 * 2. After a change of the instance, and at the end of the wait, the instance is asked. It answers, or says how things
 *    stand, and the request waits on.
 * 3. The reply to a signal comes with the unit in which a step took it, possibly while the instance is being asked.
 */

import type { SignalAnswer } from '../../schema/signal.js';
import { ChurningMap } from '../../src/base/churning-map.js';
import { LIMITS } from '../../src/base/limits.js';
import { FairSlots } from '../../src/base/quota/fair-slots.js';
import { valueFor } from '../../src/base/quota/last-used.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Parking, Reply, SuccessReply } from '../runtime/protocol.js';
import type { Effects, Room, Timers } from '../runtime/room.js';
import type { Instances } from './instances.js';

export interface AnswersDeps extends Pick<Kernel, 'now' | 'timers'> {
  readonly instances: Pick<Instances, 'isUnderWay' | 'send'>;
  readonly reply: (reply: Reply) => void;
}

interface Waiting {
  readonly parking: Parking;
  readonly leave: () => void;
  /** The instance has been asked, and has not answered yet. Until then a reply to its signal may come as well. */
  isAsked: boolean;
  /** The wait is over: the answer of the instance is the last one. */
  isOver: boolean;
}

export class Answers implements Room {
  readonly #deps: AnswersDeps;
  readonly #parked = new ChurningMap<number, Waiting>();
  readonly #byInstance = new Map<string, Set<number>>();
  readonly #slots = new FairSlots([
    { activeMax: LIMITS.parkedPollsMax },
    { activeMax: LIMITS.parkedPollsPerTenantMax },
  ]);
  #isDraining = false;

  readonly effects = {
    'signal.taken': ({ instance, seq, answer }) => {
      for (const request of this.#byInstance.get(instance) ?? []) {
        const { signal } = (this.#parked.get(request) as Waiting).parking;
        if (signal?.seq !== seq) continue;
        this.#unpark(request);
        const body = signalAnswer(signal.id, answer);
        this.#deps.reply({ request, status: 200, body });
      }
    },
  } satisfies Effects;

  readonly timers = { answer: ({ request }) => this.#ask(request, true) } satisfies Timers;

  constructor(deps: AnswersDeps) {
    this.#deps = deps;
  }

  /** @param reply says how things stand: the response if nothing happens, or if nobody else may wait */
  park({ request, status, body, known }: SuccessReply, parking: Parking): void {
    const { reply, now, timers } = this.#deps;
    if (parking.isAsked === true) {
      this.#waitOn({ request, status, body });
      return;
    }
    const mayWait = !this.#isDraining && parking.until > now();
    const leave = mayWait ? this.#slots.take([parking.tenant]) : undefined;
    if (leave === undefined) {
      reply({ request, status, body, known });
      return;
    }
    this.#parked.set(request, { parking, leave, isAsked: false, isOver: false });
    valueFor(this.#byInstance, parking.instance, () => new Set()).add(request);
    timers.push(parking.until, { kind: 'answer', request });
    reply({ request, status, body, parks: true });
  }

  /** The instance had nothing to answer. */
  #waitOn(reply: SuccessReply): void {
    const { request } = reply;
    const waiting = this.#parked.get(request);
    // Answered or disconnected meanwhile.
    if (waiting === undefined) return;
    waiting.isAsked = false;
    if (!waiting.isOver) return;
    this.#unpark(request);
    this.#deps.reply(reply);
  }

  /** The request has its response. */
  answered(request: number): void {
    if (this.#parked.size > 0) this.#unpark(request);
  }

  instanceChanged(instance: string): void {
    const requests = this.#byInstance.get(instance);
    if (requests === undefined || this.#deps.instances.isUnderWay(instance)) return;
    for (const request of requests) this.#ask(request, false);
  }

  requestAborted(request: number): void {
    this.#unpark(request);
  }

  drain(): void {
    this.#isDraining = true;
    this.#askAll();
  }

  clockSet(jumpMs: number): void {
    if (jumpMs !== 0) this.#askAll();
  }

  tenantSuspended(tenant: string): void {
    for (const [request, parked] of this.#parked)
      if (parked.parking.tenant === tenant) this.#ask(request, true);
  }

  sequenceEvicted(): void {
    this.#askAll();
  }

  #askAll(): void {
    for (const request of this.#parked.keys()) this.#ask(request, true);
  }

  /** @param isLast the wait is over */
  #ask(request: number, isLast: boolean): void {
    const waiting = this.#parked.get(request);
    if (waiting === undefined) return;
    if (isLast) waiting.isOver = true;
    if (waiting.isAsked) return;
    waiting.isAsked = true;
    const parking = { ...waiting.parking, isAsked: true } as const;
    const { instance, tenant } = parking;
    this.#deps.instances.send(instance, { kind: 'result', request, tenant, parking });
  }

  #unpark(request: number): Waiting | undefined {
    const waiting = this.#parked.get(request);
    if (waiting === undefined) return undefined;
    this.#parked.delete(request);
    waiting.leave();
    const { instance } = waiting.parking;
    const others = this.#byInstance.get(instance);
    others?.delete(request);
    if (others?.size === 0) this.#byInstance.delete(instance);
    return waiting;
  }
}

export function signalAnswer(signal_id: string, answer: Omit<SignalAnswer, 'signal_id'>): string {
  return JSON.stringify({ signal_id, ...answer } satisfies SignalAnswer);
}
