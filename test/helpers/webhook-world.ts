/**
 * The sender of one shard by itself: over an outbox in memory, which is written as a writer would, a
 * unit at a time and acknowledged afterwards, receivers that answer when the test says so, and a
 * clock that the test moves.
 */

import assert from 'node:assert/strict';
import type { Effect } from '../../actors/runtime/turn.js';
import type { Loads } from '../../actors/shard/loads.js';
import type { Subscription } from '../../actors/webhook/loads.js';
import { Webhooks } from '../../actors/webhook/webhooks.js';
import { createIdGenerator } from '../../src/base/ids.js';
import { isoTime } from '../../src/base/time.js';
import type { AttemptOutcome, WebhookRow } from '../../src/core/webhook.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import { ActorWorld, committed, refused } from './actor-world.js';
import { HandClock } from './hand-clock.js';

const START_MS = Date.UTC(2031, 0, 1);

/** A request at a receiver, to be answered. */
export interface Sent {
  readonly url: string;
  readonly body: string;
  readonly secret?: string | undefined;
  readonly signal: AbortSignal;
  answer(outcome: AttemptOutcome): void;
}

export const TAKEN: AttemptOutcome = { delivered: true, status: 200 };
export const busy = (status = 503): AttemptOutcome => {
  return { delivered: false, errorClass: 'http_status', status, excerpt: `status ${status}` };
};

type DeliveryRow = { readonly attempt_number: number; readonly success: boolean };

export type WorldOptions = { readonly urls?: readonly string[] };

export class WebhookWorld extends ActorWorld {
  readonly outbox = new Map<string, WebhookRow>();
  /** Lines of the delivery log: number, success. */
  readonly log: { readonly webhook: string; readonly number: number; readonly success: boolean }[] =
    [];
  /** Requests that have no answer yet. */
  sent: Sent[] = [];
  /** Status or error code by request. */
  readonly replies = new Map<number, number | string>();
  readonly counts: Record<string, number> = {};
  /** Rows that were read, over all queries. */
  rowsRead = 0;
  /** What becomes of the next units. */
  fate: 'commit' | 'refuse' | 'hold' = 'commit';
  /** Reads have seen the rows and are not answered yet. */
  areReadsHeld = false;
  readonly clock = new HandClock(START_MS);
  readonly subscriptions = new Map<string, Subscription>();
  sender: Webhooks;
  readonly #options: WorldOptions;
  #held: UnitEnvelope[] = [];
  #heldReads: (() => void)[] = [];
  #ids = 0;

  constructor(options: WorldOptions = {}) {
    super();
    this.#options = options;
    this.sender = this.#born();
  }

  /** Only the outbox is left, and a new process takes it up. */
  async restart(): Promise<void> {
    this.sender.stop();
    this.forget();
    this.clock.forget();
    this.#held = [];
    this.sent = [];
    this.sender = this.#born();
    this.sender.start();
    await this.quiet();
  }

  /** A row as the end of an instance leaves it; nobody is told of it. */
  store(url: string, changes: Partial<WebhookRow> = {}): WebhookRow {
    this.#ids += 1;
    const id = changes.id ?? `00000000-0000-7000-8000-${String(this.#ids).padStart(12, '0')}`;
    const row: WebhookRow = {
      ...{ id, url, event_type: 'instance.completed', instance_id: id, tenant_id: 'tenant' },
      body: `"${id}"`,
      attempts: 0,
      last_error: null,
      delivery_id: null,
      status: 'pending',
      next_attempt_at: isoTime(this.clock.ms),
      claimed_at: null,
      created_at: isoTime(this.clock.ms),
      subscription_id: null,
      ...changes,
    };
    this.outbox.set(id, row);
    return row;
  }

  /** The same, and the sender is told. */
  async end(url: string, changes: Partial<WebhookRow> = {}): Promise<WebhookRow> {
    const row = this.store(url, changes);
    this.sender.effects.webhook({ kind: 'webhook', row });
    await this.quiet();
    return row;
  }

  /** Answers all requests there are, or those to one address. */
  async answer(outcome: AttemptOutcome, url?: string): Promise<void> {
    const answered = this.sent.filter((sent) => url === undefined || sent.url === url);
    this.sent = this.sent.filter((sent) => !answered.includes(sent));
    for (const sent of answered) sent.answer(outcome);
    await this.quiet();
  }

  async pass(ms: number): Promise<void> {
    this.clock.jump(ms);
    await this.quiet();
  }

  /** The writer dies with the units under way; `isCommitted`: they had been committed before. */
  async loseWriter(isCommitted: boolean): Promise<void> {
    const held = this.#held.splice(0);
    if (isCommitted) for (const unit of held) this.#commit(unit);
    this.isWriterAway = true;
    this.fate = 'commit';
    this.commits.lose();
    await this.quiet();
  }

  async findWriter(): Promise<void> {
    this.writerKnown();
    this.sender.writerReady();
    await this.quiet();
  }

  /** Answers the reads that were held. */
  async answerReads(): Promise<void> {
    this.areReadsHeld = false;
    for (const answer of this.#heldReads.splice(0)) answer();
    await this.quiet();
  }

  /** Acknowledges the units that were held. */
  async settle(): Promise<void> {
    this.fate = 'commit';
    this.write(this.#held.splice(0));
    await this.quiet();
  }

  protected override endTurn(): void {
    this.sender.endTurn();
  }

  protected override write(units: readonly UnitEnvelope[]): void {
    if (this.fate === 'hold') this.#held.push(...units);
    else this.commits.settle(units.map((unit) => this.#commit(unit)));
  }

  protected override perform(effect: Effect): void {
    if (effect.kind === 'reply') this.replies.set(effect.request, effect.status);
    if (effect.kind === 'error') this.replies.set(effect.request, effect.error.code);
  }

  #born(): Webhooks {
    const { urls = [] } = this.#options;
    let random = 0;
    const rows: Pick<Loads, 'webhook' | 'webhookUrls' | 'dueWebhooks'> = {
      webhook: (id) => this.#read(this.outbox.get(id)),
      webhookUrls: async (after, limit) =>
        [...new Set(this.#open().map(({ url }) => url))]
          .filter((url) => url > after)
          .sort()
          .slice(0, limit),
      dueWebhooks: async (url, after, limit) => {
        const place = after.at === '-infinity' ? '' : after.at + after.id;
        const found = this.#open()
          .filter((row) => row.url === url && placeOf(row) > place)
          .sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
          .slice(0, limit);
        this.rowsRead += found.length;
        return this.#read(found);
      },
    };
    return new Webhooks({
      settings: { shards: 1, webhookUrls: urls },
      sender: {
        isSigned: false,
        send: (request, signal) =>
          new Promise((answer) => {
            assert.ok(this.#isInOutbox(request.body), 'sent what is not in the outbox');
            this.sent.push({ ...request, signal, answer });
          }),
      },
      subscribers: { get: (id) => this.subscriptions.get(id) },
      keyring: undefined,
      ids: createIdGenerator(
        () => this.clock.ms,
        () => random++,
      ),
      ...this.host(),
      loader: rows as Loads,
      clock: this.clock,
      now: this.clock.now,
    });
  }

  #read<T>(answer: T): Promise<T> {
    if (!this.areReadsHeld) return Promise.resolve(answer);
    return new Promise((resolve) => this.#heldReads.push(() => resolve(answer)));
  }

  #open(): WebhookRow[] {
    return [...this.outbox.values()].filter((row) => row.next_attempt_at !== null);
  }

  #isInOutbox(body: string): boolean {
    return this.outbox.has(JSON.parse(body) as string);
  }

  #commit(unit: UnitEnvelope): Ack {
    if (this.fate === 'refuse') return refused(unit, '22023');
    return committed(unit, (kind, row: WebhookRow & DeliveryRow) => {
      if (kind === 'webhook.set') this.outbox.set(row.id, row);
      else if (kind === 'webhook.clear') this.outbox.delete(row.id);
      else if (kind === 'delivery.insert') {
        const { instance_id: webhook, attempt_number: number, success } = row;
        this.log.push({ webhook, number, success });
      }
    });
  }
}

const placeOf = (row: WebhookRow) => `${row.next_attempt_at}${row.id}`;
