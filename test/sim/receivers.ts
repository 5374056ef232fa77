/**
 * Stands for the receivers of webhooks: a request takes a while and comes to something, as the faults
 * say. Nothing may be sent that is not in the outbox, by what is committed: neither before the end of
 * its instance, nor after its delivery was recorded.
 */

import type { AttemptOutcome, WebhookEvent } from '../../src/core/webhook.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import type { Faults } from './faults.js';
import type { MemoryTables } from './memory-tables.js';
import { Violation } from './violation.js';
import type { Thread, World } from './world.js';

const URLS = ['http://north.example/hook', 'http://south.example/hook'];
/** Of so many seeds, in one instances that end are told of. */
const TOLD_EVERY = 3;

/** How requests end while there are faults; later ones are taken. */
const OUTCOMES = { taken: 6, 'failure for now': 3, refusal: 1, silence: 1 } as const;

export class Receivers {
  readonly urls: readonly string[];
  readonly #world: World;
  readonly #faults: Faults;
  readonly #tables: MemoryTables;
  readonly #isReplaced: (thread: Thread) => boolean;
  readonly #complain: (text: string, instance: string) => void;
  readonly #received = new Set<string>();

  constructor(
    world: World,
    faults: Faults,
    tables: MemoryTables,
    isReplaced: (thread: Thread) => boolean,
    complain: (text: string, instance: string) => void,
  ) {
    this.urls = world.seed % TOLD_EVERY === 2 ? URLS : [];
    this.#world = world;
    this.#faults = faults;
    this.#tables = tables;
    this.#isReplaced = isReplaced;
    this.#complain = complain;
  }

  senderOf(thread: Thread): WebhookSender {
    return {
      isSigned: false,
      problemOf: () => undefined,
      send: ({ url, body }, signal) => {
        // An engine that does not know that it was replaced may send once more what the next one sent.
        if (!this.#isReplaced(thread)) this.#checkOutbox(url, body);
        this.#world.note(`${thread.name} sends to ${url} ${body}`);
        const kind = this.#faults.isOver ? 'taken' : this.#faults.random.weighted(OUTCOMES);
        // A receiver may take what its sender never hears of.
        if (kind !== 'refusal') this.#received.add(`${url} ${namesOf(body)}`);
        const ms = kind === 'silence' ? 10_000 : this.#world.latency(1, 800);
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve(failed('aborted')), { once: true });
          this.#world.at(this.#world.now + ms, () => resolve(outcomeOf(kind)), thread);
        });
      },
    };
  }

  /** Something that is still to be sent. */
  get isBusy(): boolean {
    const rows = [...this.#tables.rows('webhook_outbox').values()];
    return rows.some((row) => row.status !== 'parked');
  }

  /** @throws Violation when a receiver was not told of an instance that ended */
  checkEnd(): void {
    const parked = new Set<string>();
    for (const { url, body } of this.#tables.rows('webhook_outbox').values()) {
      parked.add(`${url} ${namesOf(String(body))}`);
    }
    for (const [id, { state, runtime }] of this.#tables.rows('instances')) {
      if (state !== 'completed' && state !== 'failed') continue;
      if ((runtime as Record<string, unknown>).dry_run === true) continue;
      for (const url of this.urls) {
        const name = `${url} instance.${state} ${id}`;
        if (!this.#received.has(name) && !parked.has(name)) {
          throw new Violation(`nobody was told that it ${state}`, id);
        }
      }
    }
  }

  #checkOutbox(url: string, body: string): void {
    for (const row of this.#tables.rows('webhook_outbox').values()) {
      if (row.url === url && row.body === body) return;
    }
    this.#complain(`${url} was told ${body}, which is not in the outbox`, '');
  }
}

function namesOf(body: string): string {
  const { event_type, instance_id } = JSON.parse(body) as {
    readonly event_type: WebhookEvent;
    readonly instance_id: string;
  };
  return `${event_type} ${instance_id}`;
}

function outcomeOf(kind: keyof typeof OUTCOMES): AttemptOutcome {
  if (kind === 'taken') return { delivered: true, status: 200 };
  return kind === 'refusal' ? failed('http_status', 400) : failed('timeout');
}

function failed(errorClass: 'aborted' | 'timeout' | 'http_status', status?: number) {
  return { delivered: false, errorClass, status, excerpt: 'simulated' } as const;
}
