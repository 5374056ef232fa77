/**
 * The membership of an engine in its cluster: looks up the cell in the directory, follows the placements of tenants,
 * settles the tenants that already have rows in the cell, and reports the state of the engine every few seconds.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { BackgroundJob } from '../base/background-job.js';
import type { Clock } from '../base/clock.js';
import { ConfigError } from '../base/config-error.js';
import type { Logger } from '../base/log.js';
import { within } from '../base/real-clock.js';
import { databaseRefusal } from '../db/database-refusal.js';
import { newestMigration } from '../db/migrate.js';
import { isUnavailable } from '../db/trouble.js';
import { type CellRow, Directory } from './directory.js';
import { CellPlacement, DIRECTORY_UNAVAILABLE } from './placement.js';
import { WriterLag, type WriterReading } from './writer-lag.js';

export interface MembershipOptions {
  readonly url: string;
  readonly cell: string;
  /** Names the process in the directory and in its sessions. */
  readonly id: string;
  readonly version: string;
  readonly keyIds: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

/** One page of the tenants with rows in the cell, by name. */
export type TenantPage = (
  after: string,
  limit: number,
) => Promise<readonly { readonly tenant_id: string }[]>;

/** Polls, because a notification may be lost. */
const FOLLOW_MS = 2_000;
const REPORT_MS = 5_000;
/** Between searches of the cell for tenants that are settled nowhere. */
const SEARCH_MS = 3_600_000;
/** While the directory is unavailable at the start. */
const RETRY_MS = 500;
const PAGE_ROWS = 1_000;
/** Loaded at the start; other tenants are looked up with their first request. */
const LOADED_MAX = 100_000;
/** Wait of a take-over for the directory. */
const TAKE_OVER_WAIT_MS = 500;
/** Log lines; the metric counts all of them. */
const SPLIT_LINES_MAX = 20;

export class Membership {
  readonly placement: CellPlacement;
  readonly directory: Directory;
  protected readonly options: MembershipOptions;
  /** All placements up to this revision are loaded. */
  #revision = 0;
  #stopListening: (() => void) | undefined;
  #following: Promise<void> | undefined;
  #isUnavailable = false;
  #address = '';
  readonly #migration = newestMigration();
  #lag: WriterLag | undefined;
  #isOwner = false;
  /** All tenants with rows in the cell are settled. */
  #isSearched = false;
  #reported = Promise.resolve();
  readonly #search: BackgroundJob;
  readonly #changes: BackgroundJob;
  readonly #reports: BackgroundJob;
  #page: TenantPage = async () => [];
  #isStopped = false;
  readonly #split = new Set<string>();

  constructor(options: MembershipOptions) {
    this.options = options;
    const { cell, url, id, clock, log } = options;
    this.directory = new Directory(url, `${id} cluster`);
    this.placement = new CellPlacement({
      cell,
      directory: this.directory,
      onUnavailable: (error) => this.#unavailable(error),
      clock,
    });
    const job = (name: string, everyMs: number, run: () => Promise<void>) =>
      new BackgroundJob({ clock, log, name, firstAfterMs: everyMs, everyMs, run });
    this.#search = job('tenants of the cell', SEARCH_MS, () =>
      this.#settleFound((work) => this.#search.step(work)),
    );
    this.#changes = job('changes of the directory', FOLLOW_MS, () => this.#followAnew());
    this.#reports = job('report to the directory', REPORT_MS, () => this.#report());
  }

  /** @throws EngineError 503 while the directory is unavailable */
  async query<Answer>(question: (directory: Directory) => Promise<Answer>): Promise<Answer> {
    try {
      return await question(this.directory);
    } catch (error) {
      this.#unavailable(error);
      throw DIRECTORY_UNAVAILABLE;
    }
  }

  get isUp(): boolean {
    return !this.#isUnavailable;
  }

  /** Tenants with rows here that are settled in another cell without a move. */
  get splitCount(): number {
    return this.#split.size;
  }

  /**
   * Waits for the directory, loads the placements of the cell, and follows their changes from then on.
   * @param address where others reach this engine, as host:port
   * @throws ConfigError that says what to do
   */
  async join(signal: AbortSignal, address: string, writer: () => WriterReading): Promise<void> {
    this.#address = address;
    this.#lag = new WriterLag(writer);
    while (!signal.aborted) {
      try {
        await this.#load();
        break;
      } catch (error) {
        if (error instanceof ConfigError) throw error;
        if (!isUnavailable(error)) {
          throw databaseRefusal(this.options.url, error as Error, 'ENGINE_CLUSTER_URL');
        }
        this.#unavailable(error);
        await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    signal.throwIfAborted();
    this.#available();
    const facts = { tenants: this.placement.size, revision: this.#revision };
    this.options.log.info(facts, 'joined the cluster');
    this.#changes.start();
    this.#reports.start();
    await Promise.all([this.#follow(), this.#report()]);
  }

  /** @throws ConfigError when the cluster has no such cell */
  async #load(): Promise<void> {
    const { directory, placement } = this;
    const { cell } = this.options;
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
    if (own.joined_at === null) await directory.markCell(cell, 'joined');
    this.#setCells(cells);
    for (let after = ''; placement.size < LOADED_MAX; ) {
      const page = await directory.placements({ after, limit: PAGE_ROWS, cell });
      placement.setPlacements(page);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) break;
      after = last.tenant_id;
    }
    this.#revision = revision;
  }

  /**
   * Called when this engine becomes the owner: reads all changes up to now, or continues with the known state while
   * the directory is unavailable. A cell that was never searched may be older than its cluster: its tenants are
   * settled before the engine serves, otherwise in the background.
   */
  async takeOver(page: TenantPage): Promise<void> {
    this.#page = page;
    const isFirst = (await this.#isCaughtUp()) && !this.#isSearched;
    if (isFirst) {
      await this.#settleFound((work) => work()).catch((error: unknown) =>
        this.options.log.warn(
          { err: error },
          'tenants of the cell are settled beside the requests',
        ),
      );
    }
    this.#search.start(isFirst && this.#isSearched ? SEARCH_MS : 0);
    this.#isOwner = true;
    void this.#report();
  }

  async #isCaughtUp(): Promise<boolean> {
    if (this.#isUnavailable) return false;
    let isRead = false;
    const read = async () => {
      await this.#followAnew();
      isRead = true;
    };
    const { clock } = this.options;
    await within(clock.monotonic() + TAKE_OVER_WAIT_MS, read(), clock);
    return isRead && !this.#isUnavailable;
  }

  async #settleFound(step: <Result>(work: () => Promise<Result>) => Promise<Result>) {
    const { placement } = this;
    for (let after = ''; !this.#isStopped; ) {
      const from = after;
      const tenants = await step(() => this.#page(from, PAGE_ROWS));
      const unknown = tenants
        .map(({ tenant_id }) => tenant_id)
        .filter((tenant) => !['here', 'suspended'].includes(placement.of(tenant)?.is ?? ''));
      if (unknown.length > 0) await step(() => this.#settle(unknown));
      const last = tenants.at(-1);
      if (last === undefined || tenants.length < PAGE_ROWS) break;
      after = last.tenant_id;
    }
    if (this.#isSearched || this.#isStopped) return;
    await step(() => this.directory.markCell(placement.cell, 'searched'));
    await this.#follow();
  }

  /** A tenant settled elsewhere without a move would be in two cells: it is logged, and refused here. */
  async #settle(tenants: readonly string[]): Promise<void> {
    const { placement, directory } = this;
    const settled = await directory.settle(tenants, placement.cell, 'found');
    const placed = [...settled].map(([tenant_id, cell]) => ({ tenant_id, cell }));
    placement.setPlacements(placed);
    const elsewhere = placed.filter(({ cell }) => cell !== placement.cell);
    if (elsewhere.length === 0) return;
    const moved = new Set(await directory.movedOf(elsewhere.map(({ tenant_id }) => tenant_id)));
    for (const { tenant_id: tenantId, cell: settledIn } of elsewhere) {
      if (moved.has(tenantId) || this.#split.has(tenantId)) continue;
      this.#split.add(tenantId);
      if (this.#split.size > SPLIT_LINES_MAX) continue;
      this.options.log.error(
        { tenantId, settledIn },
        'a tenant has rows in this cell and is settled in another one: its requests are refused here',
      );
    }
  }

  /** Reads the changes since the last revision. Never rejects. */
  #follow(): Promise<void> {
    this.#following ??= this.#read().finally(() => {
      this.#following = undefined;
    });
    return this.#following;
  }

  /** Does not rely on a read under way, which may have begun before the latest change. */
  async #followAnew(): Promise<void> {
    await this.#following;
    await this.#follow();
  }

  async #read(): Promise<void> {
    const { directory, placement } = this;
    try {
      const revision = await directory.revision();
      if (revision !== this.#revision) {
        if (revision < this.#revision) await this.#refill();
        this.#setCells(await directory.cells());
        for (let after = { revision: this.#revision, tenant_id: '' }; ; ) {
          const page = await directory.placedSince(after, PAGE_ROWS);
          placement.setPlacements(page);
          const last = page.at(-1);
          if (last === undefined || page.length < PAGE_ROWS) break;
          after = last;
        }
        this.#revision = revision;
      }
      this.#available();
      // Without a listener, the next poll finds changes.
      await this.#listen().catch(() => undefined);
    } catch (error) {
      if (!this.#isStopped) this.#unavailable(error);
    }
  }

  #setCells(cells: readonly CellRow[]): void {
    this.placement.setCells(cells);
    const own = cells.find(({ name }) => name === this.placement.cell);
    this.#isSearched = own?.found_at != null;
  }

  /**
   * The directory was restored to an earlier state and is read from the start. The owner settles its known tenants,
   * and those in its rows, again; until then no new tenant is settled.
   */
  async #refill(): Promise<void> {
    const { directory, placement } = this;
    this.options.log.warn('the directory of the cluster is an earlier one: it is filled again');
    if (this.#isOwner) {
      await directory.markCell(placement.cell, 'unsearched');
      const tenants = placement.tenants();
      for (let at = 0; at < tenants.length; at += PAGE_ROWS) {
        await this.#settle(tenants.slice(at, at + PAGE_ROWS));
      }
      this.#isSearched = false;
      this.#search.wake();
    }
    this.#revision = 0;
  }

  async #listen(): Promise<void> {
    if (this.#stopListening !== undefined || this.#isStopped) return;
    const stop = await this.directory.listen(
      (revision) => {
        if (revision !== this.#revision) this.#changes.wake();
      },
      () => {
        this.#stopListening = undefined;
      },
    );
    this.#stopListening = stop;
    if (this.#isStopped) stop();
  }

  /** Sends reports one after the other. Never rejects. */
  #report(): Promise<void> {
    this.#reported = this.#reported.then(() => this.#reportNow());
    return this.#reported;
  }

  async #reportNow(): Promise<void> {
    const { id, cell, version, keyIds: key_ids } = this.options;
    const role = this.#isOwner ? 'owner' : 'standby';
    const lag_ms = this.#isOwner ? (this.#lag?.ms() ?? 0) : null;
    const own = { address: this.#address, migration: this.#migration, key_ids };
    try {
      if (this.#isStopped) return;
      await this.directory.report({ ...own, id, cell, role, version, lag_ms });
    } catch (error) {
      if (!this.#isStopped) this.#unavailable(error);
    }
  }

  #unavailable(error: unknown): void {
    if (this.#isUnavailable) return;
    this.#isUnavailable = true;
    this.options.log.warn({ err: error }, 'the directory of the cluster cannot be reached');
  }

  #available(): void {
    if (!this.#isUnavailable) return;
    this.#isUnavailable = false;
    this.options.log.info('the directory of the cluster is back');
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#search.stop();
    this.#changes.stop();
    this.#reports.stop();
    this.#stopListening?.();
    await this.#reported;
    // While the directory is unavailable the row stays and soon counts as a stopped engine.
    await this.directory.forgetEngine(this.options.id).catch(() => undefined);
    await this.directory.close();
  }
}
