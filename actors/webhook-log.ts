/**
 * Keeps the log of deliveries short: removes attempts of more than a week ago, so many at a time that
 * no commit takes long. On the first shard only.
 */

import type { Clock, TimerHandle } from '../src/core/clock.js';
import { isoTime, type UnixMs } from '../src/core/time.js';
import type { Logger } from '../src/log.js';
import type { CommitLog, PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import type { Rows } from './loader.js';
import { Turn } from './turn.js';

export interface WebhookLogDeps {
  readonly commits: CommitLog;
  readonly loader: Rows;
  readonly log: Logger;
  readonly clock: Clock;
  readonly now: () => UnixMs;
  readonly schedule: (work: () => void) => void;
}

const KEPT_MS = 7 * 24 * 60 * 60 * 1_000;
/** Between two looks at the oldest one. */
const LOOK_MS = 60 * 60 * 1_000;
/** While there are more to remove: the statement takes a thousand. */
const PAUSE_MS = 200;

export class WebhookLog implements UnitOwner {
  readonly key = 'webhook log';
  incarnation: number;
  readonly #deps: WebhookLogDeps;
  #timer: TimerHandle | undefined;
  #isStopped = false;

  constructor(deps: WebhookLogDeps) {
    this.#deps = deps;
    this.incarnation = deps.commits.nextIncarnation();
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

  settled(_unit: PendingUnit, ack: Settlement): void {
    if (ack[1] === 'refused') this.incarnation = this.#deps.commits.nextIncarnation();
    this.#again(ack[1] === 'committed' ? PAUSE_MS : LOOK_MS);
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
    this.#deps.commits.append(this, turn);
  }

  #again(ms: number): void {
    if (this.#isStopped) return;
    this.#timer = this.#deps.clock.setTimeout(() => this.start(), ms);
  }
}
