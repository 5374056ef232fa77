/**
 * A bank with a warehouse, outside of the engine: it takes payments for orders, gives them back and sends parcels. It
 * does a thing once under an idempotency key, whoever asks again. By chance it is busy, declines, or does what is asked
 * and its answer gets lost. Workers call it directly, `http_request` at its address.
 */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { FatalError, type HandlerFunction } from '../../client/src/index.js';
import type { Random } from '../chaos/random.js';

/** `close`: nothing more is taken or sent for the order, and the answer tells whether it was sent. */
export const OPERATIONS = ['charge', 'refund', 'ship', 'close', 'notify'] as const;
export type Operation = (typeof OPERATIONS)[number];

export interface Order {
  readonly price: number;
  /** Declined whenever it is asked for. */
  readonly never: readonly Operation[];
}

interface Account extends Order {
  balance: number;
  parcels: number;
  isClosed: boolean;
  /** What was asked, in order, with the end of its key and what came of it. */
  readonly history: string[];
}

export interface Asked {
  readonly order: string;
  /** Of a refund: null is all that was paid. */
  readonly amount?: number | null;
}

/** How often it declines what it could do as well. */
const DECLINES = { charge: 0.12, refund: 0.25, ship: 0.2, close: 0, notify: 0.1 } as const;
const BUSY = 0.08;
const LOST = 0.1;
/** How long it takes until a thing is done: most things little, some as long as somebody waits. */
const MS_MAX = { usual: 25, slow: 400 } as const;
const SLOW = 0.04;

/** For good, and nothing was done. */
class Declined extends Error {}
/** Nobody knows whether it was done. */
class NoAnswer extends Error {}

export class Bank {
  readonly counts = { done: 0, repeated: 0, busy: 0, declined: 0, lost: 0 };
  /** Sentences about what nobody who keeps to its rules would ask for. */
  readonly complaints: string[] = [];
  readonly #accounts = new Map<string, Account>();
  /** What was asked and answered, by operation and key. */
  readonly #answers = new Map<string, { readonly asked: string; readonly answer: object }>();
  readonly #random: Random;
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  constructor(random: Random) {
    this.#random = random;
  }

  /** For `http_request`. */
  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1').unref();
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  order(id: string, order: Order): void {
    this.#accounts.set(id, { ...order, balance: 0, parcels: 0, isClosed: false, history: [] });
  }

  account(id: string): Readonly<Account> {
    return this.#accounts.get(id) as Account;
  }

  /** The handlers of a worker, which gives the key of its task. */
  handlers(): Record<string, HandlerFunction> {
    const handler =
      (operation: Operation): HandlerFunction =>
      async ({ params, idempotency_key }) => {
        try {
          return await this.#perform(operation, params as never, String(idempotency_key));
        } catch (error) {
          throw error instanceof Declined ? new FatalError(error.message) : error;
        }
      };
    return Object.fromEntries(OPERATIONS.map((name) => [`bank_${name}`, handler(name)]));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = JSON.parse(Buffer.concat(await request.toArray()).toString());
    const key = String(request.headers['idempotency-key']);
    try {
      const answer = await this.#perform(request.url?.slice(1) as Operation, asked, key);
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    } catch (error) {
      if (error instanceof NoAnswer) request.socket.destroy();
      else response.writeHead(error instanceof Declined ? 402 : 503).end();
    }
  }

  async #perform(operation: Operation, { order, amount }: Asked, key: string): Promise<object> {
    const random = this.#random;
    await pause(random.integer(0, random.chance(SLOW) ? MS_MAX.slow : MS_MAX.usual));
    const { history } = this.account(order);
    const note = (what: string) => history.push(`${operation} ${key.slice(-4)} ${what}`);
    const id = `${operation} ${key}`;
    const asked = `${order} ${amount}`;
    const known = this.#answers.get(id);
    if (known !== undefined && known.asked !== asked) this.complaints.push(`${id} is of another`);
    if (known !== undefined) this.counts.repeated += 1;
    try {
      const answer = known?.answer ?? this.#first(operation, order, amount);
      this.#answers.set(id, { asked, answer });
      if (random.chance(LOST)) throw new NoAnswer(`no answer to ${JSON.stringify(answer)}`);
      note(`${known ? 'again' : 'done'} ${JSON.stringify(answer)}`);
      return answer;
    } catch (error) {
      if (error instanceof NoAnswer) this.counts.lost += 1;
      note((error as Error).message);
      throw error;
    }
  }

  #first(operation: Operation, order: string, amount: number | null | undefined): object {
    const account = this.#accounts.get(order) as Account;
    const isShut = account.isClosed && (operation === 'charge' || operation === 'ship');
    const isNever = isShut || account.never.includes(operation);
    if (isNever || this.#random.chance(DECLINES[operation])) {
      this.counts.declined += 1;
      throw new Declined(`the bank declines: ${operation}`);
    }
    if (this.#random.chance(BUSY)) {
      this.counts.busy += 1;
      throw new Error('the bank is busy');
    }
    this.counts.done += 1;
    const answer = this.#effect(operation, account, amount ?? account.balance);
    const { balance, parcels, price } = account;
    if (balance < 0 || balance > price || parcels > 1) {
      this.complaints.push(`${order} has ${balance} of ${price}, and ${parcels} parcels`);
    }
    return answer;
  }

  #effect(operation: Operation, account: Account, amount: number): object {
    switch (operation) {
      case 'charge':
        account.balance += amount;
        return { paid: amount };
      case 'refund':
        account.balance -= amount;
        return { refunded: amount };
      case 'ship':
        account.parcels += 1;
        return { parcel: account.parcels };
      case 'close':
        account.isClosed = true;
        return { shipped: account.parcels > 0 };
      case 'notify':
        return {};
    }
  }
}
