/**
 * Delivers the tasks of one worker endpoint. It is a worker inside the engine: it claims tasks by polls that wait at
 * their queues, keeps the claims alive by heartbeats, and reports by the same results as every other worker.
 *
 *   queue ─claim─► waiting for a slot ─► sending ─► decision ─► result ─► slot free
 *     ▲                                                │
 *     └──────────────── returned, with a pause ────────┘
 *
 * A claim is delivered once: if this thread dies, its silence ends the claim, and the next one delivers the task again.
 */

import {
  ENDPOINT_WORKER_PREFIX,
  type TaskOutcome,
  type TaskResult,
  type WorkerTask,
} from '../../schema/worker.js';
import type { EndpointStatus } from '../../schema/worker-endpoint.js';
import { ChurningMap } from '../../src/base/churning-map.js';
import type { FairSlots } from '../../src/base/quota/fair-slots.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Keyring } from '../../src/core/sealing/keys.js';
import { openSecret } from '../../src/core/sealing/sealing.js';
import type { PushReply, PushSender } from '../../src/handlers/push-sender.js';
import type { CounterName } from '../../src/metrics/catalog.js';
import type { Exchanges } from '../queue/exchanges.js';
import type { Kernel } from '../runtime/kernel.js';
import type { FoundTask } from '../runtime/protocol.js';
import { type Decision, decisionOn } from './core/decision.js';
import { Pause } from './core/pause.js';
import type { Endpoint } from './loads.js';

export interface PusherDeps
  extends Pick<Kernel, 'clock' | 'now' | 'random' | 'schedule' | 'log' | 'meter'> {
  readonly exchanges: Pick<Exchanges, 'pollForOwn' | 'reportOwn'>;
  readonly sender: PushSender;
  readonly slots: FairSlots;
  readonly keyring: Keyring | undefined;
  /** `endTurn` is to be called. */
  readonly touch: () => void;
}

interface Delivery {
  readonly task: string;
  readonly epoch: number;
  readonly controller: AbortController;
  /** Releases the slot and the text of the response. */
  free: () => void;
}

interface Report {
  readonly delivery: Delivery;
  readonly result: TaskResult;
  readonly bytes: number;
}

/** Between polls that end without a task, such as those of an engine that stops. */
const EMPTY_POLL_MS = 200;
/** Between reports of a result whose outcome is unknown, or that the engine cannot take now. */
const REPORT_AGAIN_MS = 1_000;
/** Of the results in one exchange. */
const REPORT_BYTES_MAX = 1024 * 1024;

const COUNTED: Readonly<Record<Decision['kind'], CounterName | undefined>> = {
  complete: 'engine_push_completed_total',
  fail: 'engine_push_failed_total',
  keep: 'engine_push_accepted_total',
  return: 'engine_push_returned_total',
  drop: undefined,
};

const workerOf = (endpoint: Pick<Endpoint, 'name'>) => `${ENDPOINT_WORKER_PREFIX}${endpoint.name}`;

export class Pusher {
  endpoint: Endpoint;
  readonly #deps: PusherDeps;
  readonly #deliveries = new ChurningMap<string, Delivery>();
  readonly #pause = new Pause();
  #reports: Report[] = [];
  #isOpen = true;
  #isPolling = false;
  #endPoll: (() => void) | undefined;
  #isResting = false;
  #lastError: string | null = null;
  #lastSuccessAt: UnixMs | undefined;

  constructor(endpoint: Endpoint, deps: PusherDeps) {
    this.endpoint = endpoint;
    this.#deps = deps;
  }

  get inFlight(): number {
    return this.#deliveries.size;
  }

  get status(): EndpointStatus {
    const until = this.#pause.until(this.#deps.now());
    const isBusy = this.inFlight > 0;
    const state = until !== undefined ? 'paused' : isBusy ? 'delivering' : 'idle';
    return {
      state: this.endpoint.enabled ? state : 'disabled',
      in_flight: this.inFlight,
      last_error: this.#lastError,
      last_success_at: this.#lastSuccessAt === undefined ? null : isoTime(this.#lastSuccessAt),
      paused_until: until === undefined ? null : isoTime(until),
    };
  }

  /** Requests in flight keep their settings; a pause ends. */
  change(endpoint: Endpoint): void {
    this.endpoint = endpoint;
    this.#pause.lift();
    this.#endPoll?.();
    this.#deps.touch();
  }

  /** Takes no more tasks; requests in flight go on. */
  close(): void {
    this.#isOpen = false;
    this.#endPoll?.();
  }

  /** Gives up requests in flight, whose claims end by silence. */
  abort(): void {
    this.close();
    for (const delivery of this.#deliveries.values()) this.#drop(delivery);
    this.#reports = [];
  }

  endTurn(): void {
    this.#flush();
    this.#poll();
  }

  #poll(): void {
    const { enabled, concurrency, tenant_id: tenant, handlers, receives_secrets } = this.endpoint;
    if (!this.#isOpen || !enabled || this.#pause.until(this.#deps.now()) !== undefined) {
      this.#endPoll?.();
      return;
    }
    const limit = (this.#pause.isDoubtful ? 1 : concurrency) - this.inFlight;
    if (limit <= 0 || this.#isPolling || this.#isResting) return;
    this.#isPolling = true;
    let isEnded = false;
    const end = this.#deps.exchanges.pollForOwn({
      tenant,
      worker: workerOf(this.endpoint),
      handlers,
      limit,
      maySeeSecrets: receives_secrets || undefined,
      answer: (found) => {
        this.#isPolling = false;
        this.#endPoll = undefined;
        if (found.length === 0 && !isEnded) this.#rest();
        for (const task of found) this.#take(task);
        this.#deps.touch();
      },
    });
    if (!this.#isPolling) return;
    this.#endPoll = () => {
      this.#endPoll = undefined;
      isEnded = true;
      end();
    };
  }

  #rest(): void {
    this.#isResting = true;
    this.#later(EMPTY_POLL_MS, () => {
      this.#isResting = false;
    });
  }

  #take({ task, epoch, record }: FoundTask): void {
    const { enabled } = this.endpoint;
    // The claim of an earlier epoch was lost meanwhile.
    const earlier = this.#deliveries.get(task);
    if (earlier !== undefined) this.#drop(earlier);
    const controller = new AbortController();
    const delivery: Delivery = { task, epoch, controller, free: () => undefined };
    this.#deliveries.set(task, delivery);
    const isTaken = this.#isOpen && enabled && this.#pause.until(this.#deps.now()) === undefined;
    if (isTaken) void this.#deliver(delivery, record);
    else this.#giveBack(delivery);
  }

  async #deliver(delivery: Delivery, record: string): Promise<void> {
    const { slots, sender, keyring, clock, schedule } = this.#deps;
    const { signal } = delivery.controller;
    const { endpoint } = this;
    const { tenant_id: tenant, name, url, timeout_ms: timeoutMs } = endpoint;
    const secret = openSecret({ tenant_id: tenant, id: name }, endpoint.secret, keyring);
    const slot = await slots.acquire([tenant], signal);
    if (!slot.ok) return;
    delivery.free = slot.release;
    if (secret === undefined) {
      schedule(() => this.#decided(delivery, LOCKED));
      return;
    }
    const { idempotency_key: idempotencyKey, traceparent } = JSON.parse(record) as WorkerTask;
    const id = `${delivery.task}_${delivery.epoch}`;
    const facts = { id, body: record, idempotencyKey, traceparent };
    const began = clock.monotonic();
    const reply = await sender.send({ tenant, url, secret, timeoutMs, ...facts }, signal);
    const decision = decisionOn(reply, { endpoint: name, secret, timeoutMs });
    schedule(() => this.#ended(delivery, reply, decision, (clock.monotonic() - began) / 1_000));
  }

  #ended(delivery: Delivery, reply: PushReply, decision: Decision, seconds: number): void {
    const freeSlot = delivery.free;
    delivery.free = () => {
      freeSlot();
      if (reply.kind === 'answered') reply.free();
    };
    if (this.#deliveries.get(delivery.task) !== delivery) {
      delivery.free();
      return;
    }
    this.#deps.meter.observe('engine_push_duration_seconds', seconds);
    const text = reply.kind === 'answered' ? reply.text.length : 0;
    this.#decided(delivery, decision, text);
  }

  #decided(delivery: Delivery, decision: Decision, bytes = 0): void {
    const { meter, now } = this.#deps;
    const counter = COUNTED[decision.kind];
    if (counter !== undefined) meter.count(counter);
    switch (decision.kind) {
      case 'drop':
        this.#drop(delivery);
        break;
      case 'return':
        this.#lastError = decision.reason;
        this.#pauseFor(decision.reason, decision.pauseMs);
        this.#giveBack(delivery);
        break;
      case 'fail':
        this.#lastError = decision.message;
        this.#answered();
        this.#report(delivery, decision, bytes);
        break;
      case 'keep':
      case 'complete': {
        this.#lastSuccessAt = now();
        this.#answered();
        const isKept = decision.kind === 'keep';
        this.#report(delivery, isKept ? { kind: 'heartbeat' } : decision, bytes);
      }
    }
    this.#deps.touch();
  }

  #pauseFor(reason: string, askedMs: number | undefined): void {
    const { now, random, log } = this.#deps;
    if (!this.#pause.begin(now(), askedMs, random())) return;
    const ms = Math.ceil((this.#pause.until(now()) ?? now()) - now());
    log.warn({ ...this.#place, reason, pauseMs: ms }, 'a worker endpoint takes no tasks');
    this.#resumeLater();
  }

  /** The timer may fire too early: the pause was extended meanwhile, or a manual clock stood still. */
  #resumeLater(): void {
    const now = this.#deps.now();
    const until = this.#pause.until(now);
    if (until !== undefined) this.#later(Math.ceil(until - now) + 1, () => this.#resumeLater());
  }

  #answered(): void {
    if (!this.#pause.end()) return;
    this.#deps.log.info(this.#place, 'a worker endpoint takes tasks again');
  }

  get #place() {
    return { tenant: this.endpoint.tenant_id, endpoint: this.endpoint.name };
  }

  #giveBack(delivery: Delivery): void {
    this.#report(delivery, { kind: 'heartbeat', release: true });
  }

  #report(
    delivery: Delivery,
    result:
      | Extract<Decision, { kind: 'complete' | 'fail' }>
      | { readonly kind: 'heartbeat'; readonly release?: true },
    bytes = 0,
  ): void {
    const { task: task_id, epoch: claim_epoch } = delivery;
    this.#reports.push({
      delivery,
      result: { task_id, claim_epoch, ...result } as TaskResult,
      bytes,
    });
    this.#deps.touch();
  }

  #flush(): void {
    while (this.#reports.length > 0) {
      const sent: Report[] = [];
      for (let bytes = 0; this.#reports.length > 0 && bytes < REPORT_BYTES_MAX; ) {
        const report = this.#reports.shift() as Report;
        bytes += report.bytes;
        sent.push(report);
      }
      const results = sent.map(({ result }) => result);
      this.#exchange(results, (outcome, at) => this.#settled(sent[at] as Report, outcome));
    }
  }

  #exchange(
    results: readonly TaskResult[],
    settled: (outcome: TaskOutcome, at: number) => void,
  ): void {
    const { tenant_id: tenant } = this.endpoint;
    this.#deps.exchanges.reportOwn(tenant, workerOf(this.endpoint), results, (outcomes) => {
      outcomes.forEach((outcome, at) => {
        settled(JSON.parse(outcome) as TaskOutcome, at);
      });
    });
  }

  /** A result counts once, so that one with an unknown outcome can be repeated. */
  #settled({ delivery, result, bytes }: Report, { status, error }: TaskOutcome): void {
    if (this.#deliveries.get(delivery.task) !== delivery) return;
    if (status >= 500) {
      this.#later(REPORT_AGAIN_MS, () => this.#reports.push({ delivery, result, bytes }));
    } else if (isRefused(status) && result.kind === 'complete') {
      const message = `endpoint ${this.endpoint.name}: ${error}`;
      this.#report(delivery, { kind: 'fail', message, retryable: true });
    } else this.#drop(delivery);
  }

  /** Renews the claims of deliveries. One that is over is given up: its instance was cancelled, or it was lost. */
  beat(): void {
    const beaten = [...this.#deliveries.values()];
    if (beaten.length === 0) return;
    const results = beaten.map(({ task: task_id, epoch: claim_epoch }) => {
      return { kind: 'heartbeat', task_id, claim_epoch } as const;
    });
    this.#exchange(results, ({ status }, at) => {
      if (status === 404 || status === 409) this.#drop(beaten[at] as Delivery);
    });
  }

  #drop(delivery: Delivery): void {
    if (this.#deliveries.get(delivery.task) === delivery) this.#deliveries.delete(delivery.task);
    delivery.controller.abort();
    delivery.free();
    delivery.free = () => undefined;
    this.#deps.touch();
  }

  #later(ms: number, then: () => void): void {
    const { clock, schedule, touch } = this.#deps;
    clock.setTimeout(
      () =>
        schedule(() => {
          then();
          touch();
        }),
      ms,
    );
  }
}

const isRefused = (status: number) => status === 400 || status === 413 || status === 422;

const LOCKED: Decision = {
  kind: 'return',
  reason: 'the secret was sealed with another ENGINE_ENCRYPTION_KEY',
  pauseMs: undefined,
};
