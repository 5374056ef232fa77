/**
 * Delivers the outbox of one shard and records the outcomes.
 *
 *   row committed ─► ready ─► sending ─► settling ─► deleted, or parked
 *                      ▲                    │
 *                      └────── waiting ◄────┘
 *
 * A slot is held until the outcome is committed. So while the database is unavailable, the number of slots limits the
 * attempts, and a webhook is sent again only if its first outcome could not be recorded.
 */

import {
  conflict,
  DATABASE_AWAY,
  EngineError,
  notFound,
  UNKNOWN_OUTCOME,
  unavailable,
} from '../../src/base/errors.js';
import { routeOf } from '../../src/base/ids.js';
import { FairSlots } from '../../src/base/quota/fair-slots.js';
import type { Keyring } from '../../src/core/sealing/keys.js';
import { openSecret } from '../../src/core/sealing/sealing.js';
import type { AttemptOutcome, WebhookRow } from '../../src/core/webhook.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import { TENANT_SUSPENDED } from '../runtime/commit.js';
import type { Settlement } from '../runtime/commit-log.js';
import type { HostDeps } from '../runtime/host.js';
import type { Kernel } from '../runtime/kernel.js';
import type { RouteOperations } from '../runtime/operation.js';
import type { Effects, Room } from '../runtime/room.js';
import { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { Entry } from './delivery-queue.js';
import { RELOAD_MS, WebhookMemory, type WebhookMemoryDeps } from './memory.js';
import { type Attempt, beginAttempt, claimed, recordAttempt, unclaimed } from './record.js';
import type { Subscribers } from './subscribers.js';
import { WEBHOOK } from './tables.js';

export interface WebhooksDeps extends WebhookMemoryDeps, HostDeps, Pick<Kernel, 'ids'> {
  readonly sender: Pick<WebhookSender, 'isSigned' | 'turn' | 'send'>;
  readonly subscribers: Pick<Subscribers, 'get'>;
  readonly keyring: Keyring | undefined;
}

/** Concurrent attempts of the engine, divided among the shards and further among the addresses. */
export const ATTEMPTS_AT_ONCE_MAX = 64;
/** Share of one tenant in the slots of a shard. */
const TENANT_SHARE = 3 / 4;
/** Maximum retries after the database has refused the outcome of an attempt. */
const REFUSALS_MAX = 5;

export class Webhooks implements Room {
  readonly #deps: WebhooksDeps;
  readonly #service: Service;
  readonly #memory: WebhookMemory;
  readonly #slotsMax: number;
  readonly #slots: FairSlots;
  #isDraining = false;

  readonly operations = {
    'webhooks.redeliver': { serve: ({ request, target }) => this.redeliver(target, request) },
    'webhooks.discard': { serve: ({ request, target }) => this.discard(target, request) },
  } satisfies RouteOperations;
  readonly effects = { webhook: ({ row }) => this.#memory.added(row) } satisfies Effects;

  constructor(deps: WebhooksDeps) {
    this.#deps = deps;
    this.#service = new Service('webhooks', deps);
    this.#memory = new WebhookMemory(deps);
    const slotsMax = Math.max(1, Math.floor(ATTEMPTS_AT_ONCE_MAX / deps.settings.shards));
    const ofTenant = Math.max(1, Math.floor(slotsMax * TENANT_SHARE));
    this.#slotsMax = slotsMax;
    this.#slots = new FairSlots([{ activeMax: slotsMax }, { activeMax: ofTenant }]);
  }

  start(): void {
    this.#memory.rescan();
  }

  /** A failed writer may have committed webhooks without reporting them. */
  writerReady(): void {
    this.#memory.rescan();
  }

  tenantBack(): void {
    this.#memory.rescan();
  }

  /** Aborts attempts, which do not count; their rows stay. */
  drain(): void {
    this.#isDraining = true;
    for (const entry of this.#memory.entries) this.#withdraw(entry);
  }

  stop(): void {
    this.#memory.stop();
    for (const entry of this.#memory.entries) entry.controller?.abort();
  }

  endTurn(): void {
    const memory = this.#memory;
    if (!memory.isTouched) return;
    memory.isTouched = false;
    if (this.#isDraining) return;
    memory.takeDue();
    this.#beginAttempts();
    memory.readOn();
    memory.arm();
  }

  redeliver(id: string, request: number): void {
    if (this.#isDraining) this.#fail(request, STOPPING);
    else this.#withEntry(id, request, (entry) => this.#deliverNow(entry, request));
  }

  discard(id: string, request: number): void {
    this.#withEntry(id, request, (entry) => this.#discard(entry, request));
  }

  /** Deletes the webhooks of deleted subscriptions that are in memory. Others follow when they are read. */
  giveUp(subscriptions: ReadonlySet<string>): void {
    for (const entry of this.#memory.entries) {
      const subscription = entry.row?.subscription_id;
      if (subscription != null && subscriptions.has(subscription)) this.#unsubscribed(entry);
    }
  }

  /** Drops the webhooks of suspended tenants. Their attempts do not count. */
  tenantSuspended(): void {
    const { suspended } = this.#deps.commits;
    for (const entry of this.#memory.entries) if (suspended.has(entry.tenant)) this.#drop(entry);
  }

  /** Forgets the webhook and ignores the outcomes of its units. */
  #drop(entry: Entry): void {
    this.#giveUp(entry, TENANT_SUSPENDED);
    this.#freeSlot(entry);
    entry.phase = 'doubtful';
    entry.recordAgain = undefined;
    this.#memory.forget(entry);
  }

  #withEntry(id: string, request: number, then: (entry: Entry) => void): void {
    this.#memory.find(
      id,
      (entry) => {
        if (entry === undefined) this.#fail(request, notFound(`webhook ${id}`));
        else if (this.#deps.commits.suspended.has(entry.tenant)) {
          this.#fail(request, TENANT_SUSPENDED);
          this.#drop(entry);
        } else then(entry);
      },
      () => this.#fail(request, DATABASE_AWAY),
    );
  }

  #deliverNow(entry: Entry, request: number): void {
    if (entry.phase === 'doubtful') {
      this.#fail(request, UNKNOWN_OUTCOME);
    } else if (entry.phase !== 'ready' && entry.phase !== 'waiting') {
      this.#fail(request, conflict(`webhook ${entry.id} is in flight`));
    } else if (entry.request !== undefined) {
      this.#fail(request, conflict(`webhook ${entry.id} is being redelivered`));
    } else {
      entry.request = request;
      entry.queue.unready(entry);
      entry.queue.makeReady(entry, 'first');
      this.#memory.isTouched = true;
    }
  }

  #discard(entry: Entry, request: number): void {
    if (entry.phase === 'doubtful') {
      this.#fail(request, UNKNOWN_OUTCOME);
      return;
    }
    this.#giveUp(entry, conflict(`webhook ${entry.id} was discarded`));
    this.#clear(entry, (turn) => turn.reply(request, 204, ''));
  }

  /** Deletes the webhook, unless its outcome is unknown: then it is checked later. */
  #unsubscribed(entry: Entry): void {
    if (entry.phase === 'doubtful') return;
    this.#giveUp(entry, notFound(`the subscription of webhook ${entry.id}`));
    this.#clear(entry);
  }

  #clear(entry: Entry, reply?: (turn: Turn) => void): void {
    entry.row = undefined;
    this.#record(entry, (turn) => turn.put(WEBHOOK.clear, entry.id, { id: entry.id }), reply);
  }

  #withdraw(entry: Entry): void {
    if (entry.phase !== 'sending' && entry.request === undefined) return;
    const { row, phase } = entry;
    this.#giveUp(entry, STOPPING);
    if (phase !== 'sending' || row?.status !== 'in_flight') {
      this.#freeSlot(entry);
      this.#memory.forget(entry);
      return;
    }
    const next = unclaimed(row);
    entry.row = next;
    this.#record(entry, (turn) => turn.put(WEBHOOK.set, entry.id, next));
  }

  /** Aborts the attempt and fails a requested redelivery. */
  #giveUp(entry: Entry, error: EngineError): void {
    entry.attempt = undefined;
    entry.controller?.abort();
    entry.queue.unready(entry);
    if (entry.request !== undefined) this.#fail(entry.request, error);
    entry.request = undefined;
  }

  #beginAttempts(): void {
    const share = Math.max(1, Math.floor(this.#slotsMax / this.#memory.queueCount));
    while (this.#slots.active < this.#slotsMax) {
      const next = this.#memory.turns.next(share, (tenant) => this.#slots.take([tenant]));
      if (next === undefined) return;
      this.#begin(next.entry, next.releaseSlot);
    }
  }

  #begin(entry: Entry, releaseSlot: () => void): void {
    const { clock, now, sender, subscribers, keyring } = this.#deps;
    const row = entry.row as WebhookRow;
    const { url, body, subscription_id, tenant_id } = row;
    const subscription = subscription_id === null ? undefined : subscribers.get(subscription_id);
    if (subscription_id !== null && subscription === undefined) {
      releaseSlot();
      this.#unsubscribed(entry);
      return;
    }
    const secret = subscription && openSecret(subscription, subscription.secret, keyring);
    const isSigned = subscription !== undefined || sender.isSigned;
    const attempt = beginAttempt(row, () => this.#newId(entry), now(), isSigned);
    entry.phase = 'sending';
    entry.attempt = attempt;
    const controller = new AbortController();
    const { signal } = controller;
    entry.controller = controller;
    entry.releaseSlot = releaseSlot;
    entry.queue.active += 1;
    // Nothing waits for the claim, which is informational. A parked webhook gets none, so that a restart does not send it.
    if (row.status !== 'parked') {
      entry.row = claimed(row, attempt);
      const turn = new Turn();
      turn.put(WEBHOOK.set, entry.id, entry.row);
      this.#commit(entry, turn);
    }
    let began = clock.monotonic();
    const isLocked = subscription !== undefined && secret === undefined;
    const send = () => {
      began = clock.monotonic();
      return sender.send({ url, body, secret }, signal);
    };
    const sending = isLocked
      ? Promise.resolve(LOCKED)
      : (sender.turn?.(tenant_id, signal).then(send) ?? send());
    sending.then((outcome) =>
      this.#deps.schedule(() => this.#ended(entry, attempt, outcome, clock.monotonic() - began)),
    );
  }

  #ended(entry: Entry, attempt: Attempt, outcome: AttemptOutcome, tookMs: number): void {
    const { row } = entry;
    if (entry.attempt !== attempt || row === undefined) return;
    const { request } = entry;
    const facts = { id: this.#newId(entry), tookMs, now: this.#deps.now() };
    entry.attempt = undefined;
    entry.request = undefined;
    this.#record(
      entry,
      (turn) => {
        entry.row = recordAttempt(turn, row, attempt, outcome, facts);
      },
      (turn) => {
        if (request !== undefined) answer(turn, request, attempt, outcome);
      },
    );
    if (entry.row?.status === 'parked') this.#logParked(entry.row, outcome);
  }

  /** Logs only the host, because the path or query of the address may contain a secret. */
  #logParked(row: WebhookRow, outcome: AttemptOutcome): void {
    const { id, instance_id: instanceId, attempts } = row;
    const errorClass = outcome.delivered ? undefined : outcome.errorClass;
    const host = URL.canParse(row.url) ? new URL(row.url).host : '';
    const facts = { webhookId: id, instanceId, host, attempts, errorClass };
    this.#deps.log.warn(facts, 'webhook parked');
  }

  /**
   * Commits the known state of the webhook.
   * @param fill puts the rows; called again if the database refuses them
   * @param reply answers the waiting request; called once
   */
  #record(entry: Entry, fill: (turn: Turn) => void, reply?: (turn: Turn) => void): void {
    const turn = new Turn();
    fill(turn);
    reply?.(turn);
    entry.phase = 'settling';
    entry.recordAgain = () => this.#record(entry, fill);
    this.#commit(entry, turn);
  }

  #commit(entry: Entry, turn: Turn): void {
    entry.unacked += 1;
    turn.tenant = entry.tenant;
    const { key, incarnation } = entry;
    this.#service.commitNow(turn, {
      key,
      incarnation,
      failure: failureIn,
      settled: (_error, ack) => this.#settled(entry, ack),
    });
  }

  #settled(entry: Entry, ack: Settlement): void {
    const { commits, log } = this.#deps;
    entry.unacked -= 1;
    if (ack.outcome === 'suspended') {
      this.#drop(entry);
      return;
    }
    if (ack.outcome !== 'committed') {
      // A failed claim does not affect its attempt.
      entry.isDoubtful ||= entry.phase === 'settling';
      if (ack.outcome === 'refused') {
        entry.incarnation = commits.nextIncarnation();
        const fields = { webhookId: entry.id, sqlState: ack.sqlState };
        log.error(fields, 'webhook refused by the database');
      }
    }
    if (entry.phase !== 'settling' || entry.unacked > 0) return;
    if (!entry.isDoubtful) this.#finish(entry);
    else this.#outcomeUnknown(entry, ack.outcome === 'lost');
  }

  #finish(entry: Entry): void {
    this.#freeSlot(entry);
    const dueAt = entry.row?.next_attempt_at ?? null;
    if (dueAt === null) this.#memory.forget(entry);
    else this.#memory.wait(entry, Date.parse(dueAt));
  }

  /**
   * If the outcome was lost, the row is read again. After a refusal the same outcome is committed again a few times,
   * because the outcome of another attempt would be refused, too; then the webhook is skipped until the next start.
   */
  #outcomeUnknown(entry: Entry, isLost: boolean): void {
    const { clock, schedule, whenWriterKnown } = this.#deps;
    this.#freeSlot(entry);
    entry.phase = 'doubtful';
    entry.isDoubtful = false;
    if (isLost) {
      whenWriterKnown(() => this.#readAgain(entry));
      return;
    }
    entry.refusals += 1;
    if (entry.refusals > REFUSALS_MAX) {
      this.#memory.abandon(entry);
      return;
    }
    clock.setTimeout(() => schedule(() => entry.recordAgain?.()), RELOAD_MS * entry.refusals);
  }

  #readAgain(entry: Entry): void {
    const memory = this.#memory;
    memory.readUntilKnown(
      () => this.#deps.loader.webhook(entry.id),
      (row) => {
        memory.forget(entry);
        if (row !== undefined && row.next_attempt_at !== null) memory.admit(entry.queue, row);
      },
    );
  }

  #freeSlot(entry: Entry): void {
    const { releaseSlot } = entry;
    if (releaseSlot === undefined) return;
    entry.releaseSlot = undefined;
    entry.queue.active -= 1;
    releaseSlot();
    this.#memory.isTouched = true;
  }

  #newId(entry: Entry): string {
    return this.#deps.ids.next(routeOf(entry.id));
  }

  #fail(request: number, error: EngineError): void {
    this.#deps.release([{ kind: 'error', request, error }]);
  }
}

const LOCKED: AttemptOutcome = {
  delivered: false,
  errorClass: 'signature_configuration',
  status: undefined,
  excerpt: 'the secret of the subscription was sealed with another ENGINE_ENCRYPTION_KEY',
};

const STOPPING = unavailable('ENG_STOPPING', 'the engine is stopping');

function answer(turn: Turn, request: number, attempt: Attempt, outcome: AttemptOutcome): void {
  if (outcome.delivered) {
    turn.reply(request, 200, `{"redelivered":true,"delivery_id":"${attempt.delivery}"}`);
    return;
  }
  const reason = outcome.status === undefined ? outcome.errorClass : `status ${outcome.status}`;
  turn.fail(request, new EngineError('ENG_DELIVERY_FAILED', `not delivered: ${reason}`));
}

/** The error for the request. A refused unit is repeated, so its outcome is unknown. */
function failureIn({ outcome }: Settlement): EngineError | undefined {
  if (outcome === 'committed') return undefined;
  return outcome === 'suspended' ? TENANT_SUSPENDED : UNKNOWN_OUTCOME;
}
