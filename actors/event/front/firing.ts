/**
 * Fires the triggers of events. An event is stored with its triggers until all have started their instances, so that
 * firing continues after a crash. `fire` starts only one instance per trigger and event.
 */

import { BackgroundJob } from '../../../src/base/background-job.js';
import type { Clock } from '../../../src/base/clock.js';
import { EngineError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { columnsOf, type StoredRow, selected } from '../../../src/db/table.js';
import { EVENTS } from '../tables.js';

const COLUMNS = columnsOf(
  EVENTS,
  ...(['id', 'key_id', 'tenant_id', 'event_name', 'correlation_key'] as const),
  ...(['payload', 'fires', 'created_at'] as const),
);

export type FiringEvent = StoredRow<typeof EVENTS, (typeof COLUMNS)[number]>;

/** Events with triggers to fire, oldest first, after a time and an id. */
export const firingEvents = lookup<FiringEvent>(
  'read_firing_events',
  `select ${selected(COLUMNS)} from events where fires is not null ` +
    'and (created_at, id) > ($1::timestamptz, $2::uuid) order by created_at, id limit $3::int',
);

export interface EventFiringDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly page: (at: string, id: string, rows: number) => Promise<readonly FiringEvent[]>;
  /** Starts the instance of the trigger unless it exists. @throws EngineError */
  readonly fire: (slug: string, event: FiringEvent) => Promise<unknown>;
  /** Stores the remaining slugs; null for none. */
  readonly fired: (event: FiringEvent, remaining: readonly string[] | null) => Promise<unknown>;
}

/** Concurrent events, which are in memory with their payloads. Each fires one trigger after the other. */
const PAGE_ROWS = 20;
/** Events wake the job; the interval covers lost messages and retries. */
const EVERY_MS = 10_000;
const FIRST_PLACE = ['-infinity', '00000000-0000-0000-0000-000000000000'] as const;

export class EventFiring extends BackgroundJob {
  readonly #deps: EventFiringDeps;

  constructor(deps: EventFiringDeps) {
    const { clock, log } = deps;
    super({ clock, log, name: 'event triggers', everyMs: EVERY_MS, run: () => this.fireAll() });
    this.#deps = deps;
  }

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
    const remaining: string[] = [];
    for (const slug of slugs) {
      if (this.isStopped || !(await this.#isFinished(slug, event))) remaining.push(slug);
    }
    if (remaining.length === slugs.length) return;
    // If this is not stored, firing again starts no new instances.
    const stored = this.#deps.fired(event, remaining.length === 0 ? null : remaining);
    await stored.catch((error: unknown) => this.#later(error, event));
  }

  /** Whether the trigger was fired, or never can be. */
  async #isFinished(slug: string, event: FiringEvent): Promise<boolean> {
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
