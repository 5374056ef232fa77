/**
 * Removes instances in the background: those that ended long ago (docs/retention.md), and those of
 * deleted sequences. Failed instances stay, because they may be retried.
 */

import { BackgroundJob } from '../../../src/base/background-job.js';
import { firstIdAt } from '../../../src/base/ids.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import type { FrontKernel } from '../../../src/http/front-room.js';

/** Instances of one unit. Their rows are one statement, which delays others. */
const REMOVED_AT_ONCE = 50;

async function removeInSteps(
  job: BackgroundJob,
  ids: readonly string[],
  remove: (some: readonly string[]) => Promise<number>,
): Promise<number> {
  let removed = 0;
  for (let i = 0; i < ids.length && !job.isStopped; i += REMOVED_AT_ONCE) {
    removed += await job.step(() => remove(ids.slice(i, i + REMOVED_AT_ONCE)));
  }
  return removed;
}

export interface EndedPage {
  readonly ids: readonly string[];
  /** The last id of the page; undefined at the end of the table. */
  readonly last: string | undefined;
}

export interface RetentionDeps extends Pick<FrontKernel, 'clock' | 'log' | 'now'> {
  readonly keepMs: number;
  readonly page: (after: string, before: UnixMs, rows: number) => Promise<EndedPage>;
  /** Returns the number removed; instances that changed meanwhile stay. */
  readonly remove: (ids: readonly string[], before: UnixMs) => Promise<number>;
}

const ENDED_ROWS = 2_000;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

export class Retention extends BackgroundJob {
  readonly #deps: RetentionDeps;

  constructor(deps: RetentionDeps) {
    const { clock, log } = deps;
    const times = { firstAfterMs: 5_000, everyMs: 3_600_000 };
    super({ clock, log, name: 'retention', ...times, run: () => this.sweep() });
    this.#deps = deps;
  }

  /** Walks the table once. Resolves with the number of removed instances. */
  async sweep(): Promise<number> {
    const { now, keepMs, page, remove, log } = this.#deps;
    const before = now() - keepMs;
    // Ids of the engine are ordered by creation. Instances created since `before` are skipped.
    const skipFrom = firstIdAt(before);
    const skipTo = firstIdAt(now());
    let removed = 0;
    for (let after: string | undefined = FIRST_ID; after !== undefined && !this.isStopped; ) {
      const from: string = after >= skipFrom && after < skipTo ? skipTo : after;
      const { ids, last }: EndedPage = await this.step(() => page(from, before, ENDED_ROWS));
      removed += await removeInSteps(this, ids, (some) => remove(some, before));
      after = last;
    }
    if (removed > 0) log.info({ removed }, 'ended instances removed');
    return removed;
  }
}

const walked = lookup<{
  readonly id: string;
  readonly is_ended: boolean;
  readonly is_full: boolean;
}>(
  'retention_page',
  'with page as (select id, state, updated_at from instances where id > $1::uuid ' +
    'order by id limit $2::int) ' +
    "select id, state in ('completed', 'cancelled') and updated_at < $3::timestamptz as is_ended, " +
    '(select count(*) from page) = $2::int as is_full from page order by id',
);

export async function endedPage(
  reads: Reader,
  after: string,
  before: UnixMs,
  rows: number,
): Promise<EndedPage> {
  const found = await walked.rows(reads, after, rows, isoTime(before));
  const last = found.at(-1);
  return {
    ids: found.filter(({ is_ended }) => is_ended).map(({ id }) => id),
    last: last?.is_full === true ? last.id : undefined,
  };
}

/** An instance of a deleted sequence, or null for a sequence without instances. */
interface Orphan {
  readonly sequence: string;
  readonly instance: string | null;
}

export interface SequenceRemovalDeps extends Pick<FrontKernel, 'clock' | 'log'> {
  readonly orphans: (rows: number) => Promise<readonly Orphan[]>;
  /** Returns the number removed; instances with work in progress stay for the next run. */
  readonly remove: (instances: readonly string[]) => Promise<number>;
  readonly forget: (sequence: string) => Promise<unknown>;
}

const ORPHAN_ROWS = 1_000;

/** A deleted sequence has a tombstone until all of its instances are removed. */
export class SequenceRemoval extends BackgroundJob {
  readonly #deps: SequenceRemovalDeps;

  constructor(deps: SequenceRemovalDeps) {
    const { clock, log } = deps;
    // A deletion wakes the job; the interval serves instances that had work in progress.
    const times = { firstAfterMs: 1_000, everyMs: 10_000 };
    super({ clock, log, name: 'sequence removal', ...times, run: () => this.clear() });
    this.#deps = deps;
  }

  /** Repeats until nothing more can be removed. Resolves with the number of removed instances. */
  async clear(): Promise<number> {
    const { orphans, remove, forget, log } = this.#deps;
    let total = 0;
    for (let isMoving = true; isMoving && !this.isStopped; ) {
      const found = await this.step(() => orphans(ORPHAN_ROWS));
      const instances = found.flatMap(({ instance }) => instance ?? []);
      const removed = await removeInSteps(this, instances, remove);
      const empty = found.filter(({ instance }) => instance === null);
      for (const { sequence } of empty) await this.step(() => forget(sequence));
      isMoving = removed + empty.length > 0;
      total += removed;
    }
    if (total > 0) log.info({ removed: total }, 'instances of deleted sequences removed');
    return total;
  }
}

export const orphans = lookup<Orphan>(
  'orphans_page',
  'select t.id as sequence, i.id as instance from (' +
    'select id from sequence_tombstones order by id limit $1::int) t left join lateral (' +
    'select id from instances where sequence_id = t.id ' +
    'order by created_at desc, id desc limit $1::int) i on true limit $1::int',
);
