/**
 * An engine as a member of its cluster: it finds its cell in the directory, keeps what the residence of tenants knows
 * up to date, settles the tenants that its cell has already, and says every few seconds where and what it is.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { BackgroundJob } from '../base/background-job.js';
import type { Clock, TimerHandle } from '../base/clock.js';
import { ConfigError } from '../base/config-error.js';
import { DIRECTORY_AWAY } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import { within } from '../base/real-clock.js';
import { type ContinuityKeys, keyringOf, openingIds } from '../core/sealing/keys.js';
import { isAway } from '../db/away.js';
import { databaseRefusal } from '../db/database-refusal.js';
import { newestMigration } from '../db/migrate.js';
import { type CellRow, Directory, DirectoryError } from './directory.js';
import { CellResidence } from './residence.js';
import { WriterLag, type WriterReading } from './writer-lag.js';

export interface MembershipOptions {
  /** Of the directory. */
  readonly url: string;
  /** The cell of this engine. */
  readonly cell: string;
  /** Names this process in the directory and in its sessions. */
  readonly id: string;
  readonly version: string;
  /** Told to the directory; asked for when it joins. */
  readonly keyIds: () => readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

/** Undefined without a cluster: then nothing of it costs anything. */
export function membershipOf(
  url: string | undefined,
  keys: () => ContinuityKeys,
  options: Omit<MembershipOptions, 'url' | 'keyIds'>,
): Membership | undefined {
  const keyIds = () => openingIds(keyringOf(keys()));
  return url === undefined ? undefined : new Membership({ ...options, url, keyIds });
}

/** Tenants that have rows in the cell, by their names, from the one after on. */
export type TenantPage = (
  after: string,
  limit: number,
) => Promise<readonly { readonly tenant_id: string }[]>;

/** How soon a change is seen of which nothing was told. */
const LOOK_MS = 2_000;
const SAY_MS = 5_000;
/** How often tenants of the cell are looked for that are settled nowhere. */
const FOUND_MS = 3_600_000;
/** How often a directory that was not there at the start is tried again. */
const RETRY_MS = 500;
/** Of one question. */
const PAGE_ROWS = 1_000;
/** Tenants of the cell that are known from the start on; others are asked for with their first request. */
const KNOWN_MAX = 100_000;
/** How long an engine that takes its cell over waits for the directory. */
const PATIENCE_MS = 500;
/** Lines about tenants in two cells: the metric has them all. */
const SPLIT_LINES_MAX = 20;

export class Membership {
  readonly residence: CellResidence;
  readonly directory: Directory;
  readonly #options: MembershipOptions;
  /** Up to here it is known who was placed where. */
  #revision = 0;
  #isListening = false;
  #stopListening: () => void = () => undefined;
  #timers = new Set<TimerHandle>();
  #looking: Promise<void> | undefined;
  #isTold = false;
  #isAway = false;
  #address = '';
  #keyIds: readonly string[] = [];
  readonly #migration = newestMigration();
  #lag: WriterLag | undefined;
  #isOwner = false;
  /** The directory knows of all tenants that the cell has rows of. */
  #isFound = false;
  /** Once all that was to be said is said. */
  #said = Promise.resolve();
  readonly #found: BackgroundJob;
  #page: TenantPage = async () => [];
  #isStopped = false;
  readonly #split = new Set<string>();

  constructor(options: MembershipOptions) {
    this.#options = options;
    const { cell, url, id, clock } = options;
    this.directory = new Directory(url, `${id} cluster`);
    this.residence = new CellResidence({
      cell,
      directory: this.directory,
      onAway: (error) => this.#away(error),
      clock,
    });
    this.#found = new BackgroundJob({
      clock,
      log: options.log,
      name: 'tenants of the cell',
      everyMs: FOUND_MS,
      run: () => this.#settleFound((work) => this.#found.step(work)),
    });
  }

  /** What the directory says for people. @throws EngineError 503 */
  async asked<Answer>(question: (directory: Directory) => Promise<Answer>): Promise<Answer> {
    try {
      return await question(this.directory);
    } catch (error) {
      this.#away(error);
      throw DIRECTORY_AWAY;
    }
  }

  /** 1 while the directory answers. */
  get isUp(): boolean {
    return !this.#isAway;
  }

  /** Tenants that have rows here and are settled in another cell, without a move. */
  get splitCount(): number {
    return this.#split.size;
  }

  /**
   * Waits for the directory, finds the cell in it and learns who lives there; from then on it follows.
   *
   * @param address where others reach this engine, as host:port
   * @throws ConfigError or DirectoryError, which say what to do
   */
  async join(signal: AbortSignal, address: string, writer: () => WriterReading): Promise<void> {
    const { log } = this.#options;
    this.#address = address;
    this.#keyIds = this.#options.keyIds();
    this.#lag = new WriterLag(writer);
    while (!signal.aborted) {
      try {
        await this.#enter();
        break;
      } catch (error) {
        if (error instanceof ConfigError || error instanceof DirectoryError) throw error;
        if (!isAway(error)) {
          throw databaseRefusal(this.#options.url, error as Error, 'ENGINE_CLUSTER_URL');
        }
        this.#away(error);
        await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    signal.throwIfAborted();
    this.#back();
    log.info({ tenants: this.residence.size, revision: this.#revision }, 'joined the cluster');
    this.#every(LOOK_MS, () => this.#look());
    this.#every(SAY_MS, () => this.#say());
    await Promise.all([this.#look(), this.#say()]);
  }

  /** @throws ConfigError when the cluster has no such cell */
  async #enter(): Promise<void> {
    const { directory, residence } = this;
    const { cell } = this.#options;
    await directory.check();
    const revision = await directory.revision();
    const cells = await directory.cells();
    const own = cells.find(({ name }) => name === cell);
    if (own === undefined) {
      throw new ConfigError(
        `the cluster of ENGINE_CLUSTER_URL has no cell ${cell}: make it with ` +
          `durable-workflow-engine cells create ${cell} --database URL, or set ENGINE_DB_SCHEMA to the cell of this engine`,
      );
    }
    if (own.joined_at === null) await directory.noteJoined(cell);
    this.#tellCells(cells);
    for (let after = ''; residence.size < KNOWN_MAX; ) {
      const page = await directory.placements({ after, limit: PAGE_ROWS, cell });
      residence.tellPlacements(page);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) break;
      after = last.tenant_id;
    }
    this.#revision = revision;
  }

  /**
   * This engine owns its cell now: it learns what has changed up to this moment; while the directory is away or
   * silent it goes on with what it knew. Which tenants are being moved the cell's own rows say (`moves-of-cell.ts`).
   * Tenants that have rows here are settled: before it serves if the cell was never looked through, since it may be
   * older than its cluster, else beside the requests.
   */
  async own(page: TenantPage): Promise<void> {
    this.#page = page;
    const isFirst = (await this.#isCaughtUp()) && !this.#isFound;
    if (isFirst) {
      await this.#settleFound((work) => work()).catch((error: unknown) =>
        this.#options.log.warn(
          { err: error },
          'tenants of the cell are settled beside the requests',
        ),
      );
    }
    this.#found.start(isFirst && this.#isFound ? FOUND_MS : 0);
    this.#isOwner = true;
    void this.#say();
  }

  /** Whether all that has changed up to now is known. */
  async #isCaughtUp(): Promise<boolean> {
    if (this.#isAway) return false;
    let isLooked = false;
    const look = async () => {
      // One that is under way may have begun before the last owner's end.
      await this.#looking;
      await this.#look();
      isLooked = true;
    };
    const { clock } = this.#options;
    await within(clock.monotonic() + PATIENCE_MS, look(), clock);
    return isLooked && !this.#isAway;
  }

  // ---------------------------------------------------------------- tenants that are there

  /**
   * One that is settled elsewhere without a move would be in two cells: it is told of, and refused here.
   *
   * @param step does a part of it
   */
  async #settleFound(
    step: <Result>(work: () => Promise<Result>) => Promise<Result>,
  ): Promise<void> {
    for (let after = ''; !this.#isStopped; ) {
      const from = after;
      const tenants = await step(() => this.#page(from, PAGE_ROWS));
      await step(() => this.#settle(tenants.map(({ tenant_id }) => tenant_id)));
      const last = tenants.at(-1);
      if (last === undefined || tenants.length < PAGE_ROWS) break;
      after = last.tenant_id;
    }
    if (this.#isFound || this.#isStopped) return;
    await step(() => this.directory.noteFound(this.residence.cell));
    await this.#look();
  }

  async #settle(tenants: readonly string[]): Promise<void> {
    const { residence } = this;
    const unknown = tenants.filter(
      (tenant) => !['here', 'held'].includes(residence.of(tenant)?.is ?? ''),
    );
    if (unknown.length > 0) await this.#settleHere(unknown);
  }

  async #settleHere(unknown: readonly string[]): Promise<void> {
    const { residence, directory } = this;
    const settled = await directory.settle(unknown, residence.cell, 'found');
    const placed = [...settled].map(([tenant_id, cell]) => ({ tenant_id, cell }));
    residence.tellPlacements(placed);
    await this.#tellSplit(placed.filter(({ cell }) => cell !== residence.cell));
  }

  async #tellSplit(placed: readonly { readonly tenant_id: string; readonly cell: string }[]) {
    if (placed.length === 0) return;
    const moved = new Set(await this.directory.movedOf(placed.map(({ tenant_id }) => tenant_id)));
    for (const { tenant_id: tenantId, cell: settledIn } of placed) {
      if (moved.has(tenantId) || this.#split.has(tenantId)) continue;
      this.#split.add(tenantId);
      if (this.#split.size > SPLIT_LINES_MAX) continue;
      this.#options.log.error(
        { tenantId, settledIn },
        'a tenant has rows in this cell and is settled in another one: its requests are refused here',
      );
    }
  }

  // ---------------------------------------------------------------- what changes

  /** Looks at the revision, and at what has changed if it was raised. Never rejects. */
  #look(): Promise<void> {
    this.#looking ??= this.#follow().finally(() => {
      this.#looking = undefined;
      if (!this.#isTold || this.#isStopped) return;
      this.#isTold = false;
      void this.#look();
    });
    return this.#looking;
  }

  async #follow(): Promise<void> {
    const { directory, residence } = this;
    try {
      const revision = await directory.revision();
      if (revision !== this.#revision) {
        if (revision < this.#revision) await this.#refill();
        this.#tellCells(await directory.cells());
        for (let after = { revision: this.#revision, tenant_id: '' }; ; ) {
          const page = await directory.placedSince(after, PAGE_ROWS);
          residence.tellPlacements(page);
          const last = page.at(-1);
          if (last === undefined || page.length < PAGE_ROWS) break;
          after = last;
        }
        this.#revision = revision;
      }
      this.#back();
      // Without it, changes are seen with the next look.
      await this.#listen().catch(() => undefined);
    } catch (error) {
      if (!this.#isStopped) this.#away(error);
    }
  }

  #tellCells(cells: readonly CellRow[]): void {
    this.residence.tellCells(cells);
    const own = cells.find(({ name }) => name === this.residence.cell);
    this.#isFound = own?.found_at != null;
  }

  /**
   * The directory is an earlier one, that was restored: it is read anew. Who was settled here since then is settled
   * again by the owner, of those without rows that this engine knows as well; until that is done nobody new is.
   */
  async #refill(): Promise<void> {
    const { directory, residence } = this;
    this.#options.log.warn('the directory of the cluster is an earlier one: it is filled again');
    if (this.#isOwner) {
      await directory.noteUnfound(residence.cell);
      const tenants = residence.tenants();
      for (let at = 0; at < tenants.length; at += PAGE_ROWS) {
        await this.#settleHere(tenants.slice(at, at + PAGE_ROWS));
      }
      this.#isFound = false;
      this.#found.wake();
    }
    this.#revision = 0;
  }

  async #listen(): Promise<void> {
    if (this.#isListening || this.#isStopped) return;
    const stop = await this.directory.listen(
      (revision) => {
        if (revision === this.#revision) return;
        // One that is being looked at may have been read before this change.
        if (this.#looking !== undefined) this.#isTold = true;
        else void this.#look();
      },
      () => {
        this.#isListening = false;
      },
    );
    this.#isListening = true;
    this.#stopListening = stop;
    if (this.#isStopped) stop();
  }

  /** Says what this engine is. Never rejects. */
  #say(): Promise<void> {
    this.#said = this.#said.then(() => this.#sayNow());
    return this.#said;
  }

  async #sayNow(): Promise<void> {
    const { id, cell, version } = this.#options;
    const role = this.#isOwner ? 'owner' : 'standby';
    const lag_ms = this.#isOwner ? (this.#lag?.ms() ?? 0) : null;
    const own = { address: this.#address, migration: this.#migration, key_ids: this.#keyIds };
    try {
      if (this.#isStopped) return;
      await this.directory.say({ ...own, id, cell, role, version, lag_ms });
    } catch (error) {
      if (!this.#isStopped) this.#away(error);
    }
  }

  #away(error: unknown): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#options.log.warn({ err: error }, 'the directory of the cluster cannot be reached');
  }

  #back(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#options.log.info('the directory of the cluster is back');
  }

  #every(ms: number, work: () => Promise<void>): void {
    if (this.#isStopped) return;
    const { clock } = this.#options;
    const timer = clock.setTimeout(() => {
      this.#timers.delete(timer);
      void work().then(() => this.#every(ms, work));
    }, ms);
    this.#timers.add(timer);
  }

  /** The engine is gone from the directory at once. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#found.stop();
    for (const timer of this.#timers) this.#options.clock.clearTimeout(timer);
    this.#stopListening();
    await this.#said;
    // When the directory is away, the row is soon taken for one of an engine that is gone.
    await this.directory.forgetEngine(this.#options.id).catch(() => undefined);
    await this.directory.close();
  }
}
