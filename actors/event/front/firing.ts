/**
 * Fires the triggers of events. Which triggers an event fires is stored with it, and stays there until
 * all of them have started their instances: whatever dies in between, the next run goes on. That each of
 * them starts one instance is up to whoever fires it.
 */

import { BackgroundJob } from '../../../src/base/background-job.js';
import type { Clock } from '../../../src/base/clock.js';
import { EngineError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { StoredRow } from '../../../src/db/table.js';
import type { EVENTS } from '../tables.js';

/** An event that has yet to fire triggers. */
export type FiringEvent = StoredRow<
  typeof EVENTS,
  | 'id'
  | 'key_id'
  | 'tenant_id'
  | 'event_name'
  | 'correlation_key'
  | 'payload'
  | 'fires'
  | 'created_at'
>;

export interface EventFiringDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** The next ones behind a time and an id, oldest first. */
  readonly page: (at: string, id: string, rows: number) => Promise<readonly FiringEvent[]>;
  /** Starts the instance of that slug, unless it was started before. @throws EngineError */
  readonly fire: (slug: string, event: FiringEvent) => Promise<unknown>;
  /** Stores which slugs are left; null: none. */
  readonly fired: (event: FiringEvent, left: readonly string[] | null) => Promise<unknown>;
}

/** Events in memory at once, with their payloads; each fires one trigger after the other. */
const PAGE_ROWS = 20;
/** An event wakes the job; this is for those whose word was lost, and for what could not be done. */
const EVERY_MS = 10_000;
/** Before all of them. */
const FIRST_PLACE = ['-infinity', '00000000-0000-0000-0000-000000000000'] as const;

export class EventFiring extends BackgroundJob {
  readonly #deps: EventFiringDeps;

  constructor(deps: EventFiringDeps) {
    const { clock, log } = deps;
    super({ clock, log, name: 'event triggers', everyMs: EVERY_MS, run: () => this.fireAll() });
    this.#deps = deps;
  }

  /** Goes through all that have yet to fire. */
  async fireAll(): Promise<void> {
    let place: readonly [string, string] = FIRST_PLACE;
    while (!this.isStopped) {
      const page = await this.step(() => this.#deps.page(...place, PAGE_ROWS));
      await Promise.all(page.map((event) => this.#fireAllOf(event)));
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) return;
      place = [last.created_at, last.id];
    }
  }

  async #fireAllOf(event: FiringEvent): Promise<void> {
    const slugs = JSON.parse(event.fires ?? '[]') as string[];
    const left: string[] = [];
    for (const slug of slugs) {
      if (this.isStopped || !(await this.#isOver(slug, event))) left.push(slug);
    }
    if (left.length === slugs.length) return;
    // What is not stored is fired again, which starts nothing.
    const stored = this.#deps.fired(event, left.length === 0 ? null : left);
    await stored.catch((error: unknown) => this.#later(error, event));
  }

  /** The trigger was fired, or never can be. */
  async #isOver(slug: string, event: FiringEvent): Promise<boolean> {
    try {
      await this.#deps.fire(slug, event);
      return true;
    } catch (error) {
      const isFinal = error instanceof EngineError && error.status < 500;
      if (isFinal) {
        const { id: eventId, tenant_id: tenantId } = event;
        const facts = { trigger: slug, eventId, tenantId, code: error.code };
        this.#deps.log.warn(facts, 'an event could not fire its trigger');
      } else this.#later(error, event);
      return isFinal;
    }
  }

  #later(error: unknown, { id: eventId }: FiringEvent): void {
    this.#deps.log.debug({ err: error, eventId }, 'triggers not fired yet; trying again');
  }
}
