/**
 * Removes instances that ended long ago (docs/retention.md): walks the table of instances by key in
 * small pages, and asks the shards to remove what it finds. Failed instances stay: they are not at
 * their end (docs/reference/instances.md).
 */

import { BackgroundJob } from '../../../src/base/background-job.js';
import type { Clock } from '../../../src/base/clock.js';
import { firstIdAt } from '../../../src/base/ids.js';
import type { Logger } from '../../../src/base/log.js';
import type { UnixMs } from '../../../src/base/time.js';
import { removeInSteps } from './many-instances.js';

/** What one page of the walk found. */
export interface EndedPage {
  /** Ended before the time that was asked for. */
  readonly ids: readonly string[];
  /** The last id that was looked at; undefined at the end of the table. */
  readonly last: string | undefined;
}

export interface RetentionDeps {
  readonly clock: Clock;
  /** Engine time. */
  readonly now: () => UnixMs;
  /** How long an instance stays after its end. */
  readonly keepMs: number;
  readonly log: Logger;
  readonly page: (after: string, before: UnixMs, rows: number) => Promise<EndedPage>;
  /** Resolves with how many were removed; those that changed meanwhile are left alone. */
  readonly remove: (ids: readonly string[], before: UnixMs) => Promise<number>;
}

/** Instances looked at in one query. */
const PAGE_ROWS = 2_000;
const FIRST_AFTER_MS = 5_000;
const EVERY_MS = 3_600_000;

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

export class Retention extends BackgroundJob {
  readonly #deps: RetentionDeps;

  constructor(deps: RetentionDeps) {
    const { clock, log } = deps;
    super({
      clock,
      log,
      name: 'retention',
      firstAfterMs: FIRST_AFTER_MS,
      everyMs: EVERY_MS,
      run: () => this.sweep(),
    });
    this.#deps = deps;
  }

  /** One walk over the table. Resolves with how many instances were removed. */
  async sweep(): Promise<number> {
    const before = this.#deps.now() - this.#deps.keepMs;
    // Ids that are made of their time lie in its order. What was created since cannot have ended
    // before, so that the walk leaves that stretch out.
    const skipFrom = firstIdAt(before);
    const skipTo = firstIdAt(this.#deps.now());
    let removed = 0;
    for (let after: string | undefined = FIRST_ID; after !== undefined && !this.isStopped; ) {
      const from: string = after >= skipFrom && after < skipTo ? skipTo : after;
      const { ids, last }: EndedPage = await this.step(() =>
        this.#deps.page(from, before, PAGE_ROWS),
      );
      removed += await removeInSteps(this, ids, (some) => this.#deps.remove(some, before));
      after = last;
    }
    if (removed > 0) this.#deps.log.info({ removed }, 'ended instances removed');
    return removed;
  }
}
