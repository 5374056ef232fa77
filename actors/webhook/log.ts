/**
 * Keeps the log of deliveries short: removes attempts of more than a week ago, so many at a time that
 * no commit takes long. On the first shard only.
 */

import type { TimerHandle } from '../../src/core/clock.js';
import { isoTime, type UnixMs } from '../../src/core/time.js';
import type { Room } from '../runtime/room.js';
import { Singleton, type SingletonDeps } from '../runtime/singleton.js';
import { Turn } from '../runtime/turn.js';

export interface WebhookLogDeps
  extends SingletonDeps,
    Pick<Room, 'loader' | 'clock' | 'now' | 'schedule'> {}

const KEPT_MS = 7 * 24 * 60 * 60 * 1_000;
/** Between two looks at the oldest one. */
const LOOK_MS = 60 * 60 * 1_000;
/** While there are more to remove: the statement takes a thousand. */
const PAUSE_MS = 200;

export class WebhookLog {
  readonly #self: Singleton;
  readonly #deps: WebhookLogDeps;
  #timer: TimerHandle | undefined;
  #isStopped = false;

  constructor(deps: WebhookLogDeps) {
    this.#deps = deps;
    this.#self = new Singleton('webhook log', deps);
  }

  start(): void {
    const { loader, schedule, log } = this.#deps;
    loader.oldestDelivery().then(
      (at) => schedule(() => this.#prune(at)),
      (error: unknown) => {
        log.debug({ err: error }, 'the delivery log could not be read');
        this.#again(LOOK_MS);
      },
    );
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#timer);
  }

  #prune(oldest: UnixMs | undefined): void {
    const before = this.#deps.now() - KEPT_MS;
    if (this.#isStopped) return;
    if (oldest === undefined || oldest >= before) {
      this.#again(LOOK_MS);
      return;
    }
    const turn = new Turn();
    turn.put('delivery.prune', 'log', { before: isoTime(before) });
    this.#self.commit(turn, (error) => this.#again(error === undefined ? PAUSE_MS : LOOK_MS));
  }

  #again(ms: number): void {
    if (this.#isStopped) return;
    this.#timer = this.#deps.clock.setTimeout(() => this.start(), ms);
  }
}
