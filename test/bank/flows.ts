/**
 * Flows of orders as a payments team writes them, by chance. Each is protected in one of the ways that
 * docs/reference/blocks.md has under "Money": against cancels, time-outs, and against what nobody answered.
 */

import type { Random } from '../chaos/random.js';
import { forEach, type Json, loop, race, step, tryCatch } from '../helpers/api.js';
import type { Operation } from './bank.js';

/** What a flow is told of its order. */
export const inputOf = (order: string, price: number) => ({
  order,
  price,
  part: price / PARTS,
  parts: Array.from({ length: PARTS }, (_, at) => at),
});

/** A price is a multiple of it. */
export const PARTS = 3;
/** The sequence of the child that pays. */
export const PAYING = 'paying';

/** What is not answered is asked until it is. */
const RETRY = { max_attempts: 1_000, initial_backoff: 5, max_backoff: 100 };
/** Of a try: a claim whose answer is lost with the server is not waited for. */
const TRY_MS = 2_000;
/** So long a race or a time limit leaves to an order: some need longer. */
const RACE_MS = [20, 250] as const;

export interface Flow {
  readonly kind: string;
  readonly blocks: readonly Json[];
  readonly more: Json;
  /** Whether it gives back what was paid also when it is stopped hard, or cancelled after it failed. */
  readonly hasHook: boolean;
}

export class FlowMaker {
  readonly #random: Random;
  readonly #url: string;

  constructor(random: Random, url: string) {
    this.#random = random;
    this.#url = url;
  }

  next(): Flow {
    const kind = this.#random.pick(['saga', 'actions', 'caught', 'raced', 'limited', 'hooked']);
    const flow = { kind, hasHook: kind === 'hooked' };
    switch (kind) {
      case 'saga':
        return {
          ...flow,
          more: {},
          blocks: [scope(this.#saga(this.#pay(), this.#refund('{{ data.price }}')))],
        };
      case 'actions':
        return { ...flow, more: {}, blocks: [this.#saga([this.#charge()], this.#settle())] };
      case 'caught':
        return { ...flow, more: {}, blocks: [scope(this.#caught(this.#refund()))] };
      case 'hooked': {
        const more = { on_cancel: this.#settle('hook_', true) };
        return { ...flow, more, blocks: [this.#caught(this.#settle())] };
      }
      default:
        return { ...flow, more: {}, blocks: this.#inTime(kind === 'raced') };
    }
  }

  /** What the child does that pays. */
  paying(): readonly Json[] {
    return [this.#charge()];
  }

  #ask(id: string, operation: Operation, more: Json = {}, isHook = false, body: Json = {}): Json {
    const asked = { order: '{{ data.order }}', ...body };
    const common = { ...(isHook ? {} : { retry: RETRY }), ...more };
    if (isHook || this.#random.chance(0.5)) {
      const params = { url: `${this.#url}/${operation}`, method: 'POST', body: asked };
      return step(id, 'http_request', { params, ...common });
    }
    return step(id, `bank_${operation}`, { params: asked, timeout: TRY_MS, ...common });
  }

  #charge(id = 'charge', amount = '{{ data.price }}'): Json {
    return this.#ask(id, 'charge', { cancellable: false }, false, { amount });
  }

  /** At once, in parts beside or behind each other, or by a child. */
  #pay(): Json[] {
    const part = this.#charge('charge', '{{ data.part }}');
    switch (this.#random.pick(['once', 'parts', 'instalments', 'child'])) {
      case 'parts':
        return [forEach('pay', 'parts', [part], { concurrency: this.#random.integer(1, PARTS) })];
      case 'instalments':
        return [loop('pay', 'true', [part], PARTS)];
      case 'child': {
        const input = { order: '{{ data.order }}', price: '{{ data.price }}' };
        return [{ type: 'sub_sequence', id: 'pay', sequence_name: PAYING, input }];
      }
      default:
        return [this.#charge()];
    }
  }

  #refund(amount: string | null = null, id = 'refund'): Json[] {
    return [this.#ask(id, 'refund', {}, false, { amount })];
  }

  /** Asks first whether it was sent; from then on it is not. */
  #settle(prefix = '', isHook = false): Json[] {
    const close = this.#ask(`${prefix}close`, 'close', {}, isHook);
    const shipped = `outputs.${prefix}close${close.handler === 'http_request' ? '.json' : ''}.shipped`;
    const more = { when: `${shipped} == false` };
    return [close, this.#ask(`${prefix}refund`, 'refund', more, isHook, { amount: null })];
  }

  #ship(): Json {
    return this.#ask('ship', 'ship', { cancellable: false });
  }

  /** An action of several blocks takes back itself what it did before it failed. */
  #saga(pay: Json[], compensation: Json[]): Json {
    const isOne = pay[0]?.type === 'step';
    const undone = [...this.#refund(null, 'undo'), step('unpaid', 'fail')];
    const action = isOne ? pay : [tryCatch('paying', pay, undone)];
    const steps = [
      { id: 'payment', action, compensation },
      { id: 'parcel', action: this.#ship() },
    ];
    return { type: 'saga', id: 'order', steps };
  }

  #caught(caught: Json[], last = [this.#ask('notify', 'notify')]): Json {
    return tryCatch('order', [...this.#pay(), this.#ship()], caught, last);
  }

  #inTime(isRace: boolean): Json[] {
    const ms = this.#random.integer(...RACE_MS);
    const order = this.#caught([], this.#settle());
    if (!isRace) return [{ ...order, timeout: ms }];
    const late = step('late', 'sleep', { params: { duration_ms: ms } });
    return [race('first', [[order], [late]])];
  }
}

function scope(...blocks: Json[]): Json {
  return { type: 'cancellation_scope', id: 'whole', blocks };
}
