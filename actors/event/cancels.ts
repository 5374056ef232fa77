/**
 * Delivers the orders to cancel that events have left to the instances of one shard. An order is a row, which the
 * instance completes in the unit that cancels it; events wake the delivery by a hint, which may be lost, so the rows
 * are also read periodically. Carrying out an order twice has no effect.
 */

import { BackgroundJob } from '../../src/base/background-job.js';
import type { Kernel } from '../runtime/kernel.js';
import { NO_ID } from '../runtime/queries.js';
import type { Effects, Messages, Room } from '../runtime/room.js';
import type { Effect } from '../runtime/turn.js';
import type { EventCancelRow, EventLoads } from './loads.js';

export type EventCancelsDeps = Pick<
  Kernel<EventLoads>,
  'clock' | 'loader' | 'log' | 'release' | 'schedule' | 'shard'
>;

/** The longest delay by a lost hint. */
const RESCAN_MS = 30_000;
/** Instances that are loaded at a time. */
const PAGE_ROWS = 500;
/** The next page is not delayed longer by instances that do not answer. */
const PATIENCE_MS = 5_000;

export class EventCancels implements Room {
  readonly #deps: EventCancelsDeps;
  readonly #job: BackgroundJob;
  /** Orders of the page that have not been carried out. */
  readonly #sent = new Set<string>();
  #allTaken: (() => void) | undefined;

  readonly messages = { 'event.cancels': () => this.#job.wake() } satisfies Messages;
  readonly effects = {
    'event.cancelled': ({ instance, event }) => {
      if (this.#sent.delete(`${instance}:${event}`) && this.#sent.size === 0) this.#allTaken?.();
    },
  } satisfies Effects;

  constructor(deps: EventCancelsDeps) {
    this.#deps = deps;
    const { clock, log } = deps;
    this.#job = new BackgroundJob({
      clock,
      log,
      name: 'cancellations by events',
      everyMs: RESCAN_MS,
      run: () => this.#deliver(),
    });
  }

  readonly start = () => this.#job.wake();
  readonly peerBack = this.start;
  readonly writerReady = this.start;
  readonly tenantBack = this.start;

  stop(): void {
    this.#job.stop();
    this.#allTaken?.();
  }

  async #deliver(): Promise<void> {
    for (let after = { instance: NO_ID, event: NO_ID }; ; ) {
      const page = await this.#deps.loader.pendingCancels(after, PAGE_ROWS);
      const last = page.at(-1);
      if (last === undefined || this.#job.isStopped) return;
      await this.#send(page);
      if (page.length < PAGE_ROWS || this.#job.isStopped) return;
      after = { instance: last.instance_id, event: last.event_id };
    }
  }

  /** Resolves when all orders have been carried out, or after a while. */
  #send(page: readonly EventCancelRow[]): Promise<void> {
    const { clock, release, schedule, shard } = this.#deps;
    return new Promise((resolve) => {
      const timer = clock.setTimeout(() => this.#allTaken?.(), PATIENCE_MS);
      this.#allTaken = () => {
        this.#allTaken = undefined;
        this.#sent.clear();
        clock.clearTimeout(timer);
        resolve();
      };
      const effects = page.map((row): Effect => {
        const { instance_id: instance, event_id: event, event_name, correlation_key: key } = row;
        this.#sent.add(`${instance}:${event}`);
        const message = {
          kind: 'event.cancel',
          instance,
          event,
          name: event_name ?? '',
          key,
        } as const;
        return { kind: 'peer', shard, message };
      });
      schedule(() => release(effects));
    });
  }
}
