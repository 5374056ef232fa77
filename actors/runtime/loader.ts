/**
 * What actors read when they come to life: rows by primary key, many actors in one query per turn,
 * and pages of what is due or open on their shard. Reads only.
 */

import type pg from 'pg';
import type { JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import type { UnixMs } from '../../src/base/time.js';
import { isoTime } from '../../src/base/time.js';
import { isProgressNote } from '../../src/core/item-outputs.js';
import type { Plan } from '../../src/core/plan.js';
import type { KeptOutput } from '../../src/core/progress.js';
import type { Outcomes, RunsToJudge } from '../../src/core/releases/gates.js';
import {
  type ReleaseRow,
  releaseRowOf,
  type StoredRelease,
} from '../../src/core/releases/record.js';
import type { RoutingRow } from '../../src/core/releases/routes.js';
import { Runner, type Statement } from '../../src/db/runner.js';
import type { StoredRow } from '../../src/db/tables.js';
import {
  type BlocksAsk,
  columnOf,
  type EventName,
  eventNamesOf,
  itemsOf,
  namesOf,
  pairsOf,
} from './asked-columns.js';
import { BatchedReads } from './batched-reads.js';
import { LOAD_SQL, TASK_ALIASES } from './load-sql.js';
import type {
  BulkJobRow,
  ChildEndRow,
  CredentialRow,
  DueSchedule,
  DueTimer,
  EventRow,
  EventTakeRow,
  EventTriggerRow,
  EventWaitRow,
  InstanceCounts,
  InstanceRow,
  ItemOutputRow,
  ItemsAsk,
  KeptSignalRow,
  KinNoteRow,
  ListedOutput,
  LoadedInstance,
  NamedId,
  OpenReleaseRow,
  OpenTaskRow,
  PermitHolderRow,
  PermitWaiterRow,
  PollScope,
  RateGrantRow,
  RateLimitRow,
  ReleaseStateRow,
  ScheduleRow,
  SequenceName,
  SequenceRow,
  StoredOutput,
  SubscriptionRow,
  TaskPlace,
  TriggerRow,
  WebhookRow,
  WorkerTaskRow,
} from './rows.js';
import { INSTANCE_COLUMNS } from './rows.js';

/** What actors are given of the loader: another store may stand in for the tables. */
export type Rows = Pick<Loader, keyof Loader>;

/** Whose rows are read where each shard has its own. */
export interface ShardPlace {
  readonly shard: number;
  readonly shards: number;
}

/** A database that went silent is given up: what waits for the rows is refused, or tried again. */
const QUERY_TIMEOUT_MS = 10_000;
/** Of pages that are read at the start: longer than the server gives to any statement. */
const PAGE_TIMEOUT_MS = 35_000;

/** Before every id. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

type Name = keyof typeof LOAD_SQL;

/** The ended instances that the gates of a release are judged by. */
/** What hangs on an instance; snapshots and signals are rows as JSON, null when there are none. */
interface Beside {
  readonly has_timer: boolean;
  readonly fire_at: string | null;
  readonly recover: boolean;
  readonly snapshots: string | null;
  readonly signals: string | null;
  /** Of the task in this row, from 1; null: it has none that is open. */
  readonly place: number | null;
}

interface OutputRow {
  readonly block_id: string;
  readonly iteration: string;
  readonly output: string | null;
}

interface ClaimRow {
  readonly task_id: string;
  readonly instance_id: string;
  readonly tenant_id: string;
  readonly heartbeat_at: string | null;
}

interface OutputTotals {
  readonly rows: number;
  readonly bytes: number;
}

export class Loader {
  readonly #queries: Runner;
  readonly #pages: Runner;
  /** The last parameters of statements that read what one shard has. */
  readonly #place: readonly [shard: number, shards: number];
  readonly #outputs = this.#batch<BlocksAsk, OutputRow>('outputs', pairsOf);
  readonly #allOutputs = this.#batch<string, OutputRow>('allOutputs', columnOf);
  readonly #itemOutputs = this.#batch<ItemsAsk, ItemOutputRow>('itemOutputs', itemsOf);
  readonly #outputTotals = this.#batch<BlocksAsk, OutputTotals>('outputTotals', pairsOf);
  readonly #endedBlocks = this.#batch<string, { block_id: string }>('endedBlocks', columnOf);
  readonly #checkpoints = this.#batch<string, { stored: number }>('checkpoints', columnOf);
  readonly #namedSequence = this.#batch<SequenceName, { id: string; is_on_hold: boolean }>(
    'namedSequence',
    namesOf,
  );
  readonly #childEnds = this.#batch<string, ChildEndRow>('childEnds', columnOf);
  readonly #childOutputs = this.#batch<string, ListedOutput>('childOutputs', columnOf);
  readonly #openEvents = this.#batch<string, EventRow>('openEvents', columnOf);
  readonly #eventWaits = this.#batch<string, EventWaitRow>('eventWaits', columnOf);
  readonly #eventTriggers = this.#batch<EventName, EventTriggerRow>('eventTriggers', eventNamesOf);
  readonly #activeRuns = this.#batch<string, { id: string }>('activeRuns', columnOf);

  constructor(pool: pg.Pool, { shard, shards }: ShardPlace) {
    this.#queries = new Runner(pool, QUERY_TIMEOUT_MS);
    this.#pages = new Runner(pool, PAGE_TIMEOUT_MS);
    this.#place = [shard, shards];
  }

  /** Rows with everything an actor needs but outputs, which depend on its plan. */
  async instances(ids: readonly string[]): Promise<Map<string, LoadedInstance>> {
    const found = new Map<string, LoadedInstance & { readonly tasks: WorkerTaskRow[] }>();
    for (const columns of await this.#all<InstanceRow & Beside>('instances', [ids])) {
      let loaded = found.get(columns.id);
      if (loaded === undefined) {
        loaded = loadedOf(columns);
        found.set(columns.id, loaded);
      }
      if (columns.place !== null) loaded.tasks[columns.place - 1] = picked(columns, TASK_ALIASES);
    }
    return found;
  }

  /** Those of the instances that ended, and were not changed since that time. */
  async endedInstances(ids: readonly string[], before: UnixMs): Promise<string[]> {
    return idsOf(await this.#all('endedInstances', [ids, isoTime(before)]));
  }

  /** Those of the instances whose sequence was deleted. */
  async orphanedInstances(ids: readonly string[]): Promise<string[]> {
    return idsOf(await this.#all('orphanedInstances', [ids]));
  }

  // ---------------------------------------------------------------- what instances have stored

  /** The latest outputs that the plan's expressions can read. */
  async outputs(instance: string, refs: Plan['outputRefs']): Promise<Map<string, KeptOutput>> {
    if (refs !== 'all' && refs.size === 0) return new Map();
    const rows = await (refs === 'all'
      ? this.#allOutputs.read(instance)
      : this.#outputs.read({ instance, blocks: refs }));
    const kept = rows.map(({ block_id, iteration, output: text }) => {
      const output = text === null ? null : (JSON.parse(text) as JsonValue);
      return [block_id, { iteration, output }] as const;
    });
    return new Map(kept.filter(([, { output }]) => !isProgressNote(output)));
  }

  /** What items of for_each blocks have given, in the order in which it came. */
  itemOutputs(ask: ItemsAsk): Promise<ItemOutputRow[]> {
    return this.#itemOutputs.read(ask);
  }

  /** How many rows of these blocks there are, and the bytes of their outputs. */
  async outputTotals(instance: string, blocks: readonly string[]): Promise<OutputTotals> {
    const totals = await this.#outputTotals.read({ instance, blocks });
    return {
      rows: totals.reduce((sum, { rows }) => sum + rows, 0),
      bytes: totals.reduce((sum, { bytes }) => sum + bytes, 0),
    };
  }

  /** The rows of these blocks, oldest first: of one instance, since they may be many and large. */
  outputRows(instance: string, blocks: readonly string[]): Promise<StoredOutput[]> {
    return this.#all('outputRows', [instance, blocks]);
  }

  /** The blocks of an instance that have an output. */
  async endedBlocks(instance: string): Promise<Set<string>> {
    return new Set((await this.#endedBlocks.read(instance)).map((row) => row.block_id));
  }

  /** How many checkpoints an instance has. */
  async checkpoints(instance: string): Promise<number> {
    return (await this.#checkpoints.read(instance))[0]?.stored ?? 0;
  }

  /** The id of the checkpoint that an instance saved last. */
  async newestCheckpoint(instance: string): Promise<string | undefined> {
    return (await this.#one<{ id: string }>('newestCheckpoint', [instance]))?.id;
  }

  /** Whether it is unknown, and nobody has found out, what became of something it did outside. */
  async hasDoubtfulEffect(instance: string): Promise<boolean> {
    return (await this.#one('doubtfulEffect', [instance])) !== undefined;
  }

  task(id: string): Promise<WorkerTaskRow | undefined> {
    return this.#one('task', [id]);
  }

  async taskOwners(tasks: readonly string[]): Promise<Map<string, string>> {
    const rows = await this.#all<{ id: string; instance_id: string }>('taskOwners', [tasks]);
    return new Map(rows.map((row) => [row.id, row.instance_id]));
  }

  // ---------------------------------------------------------------- sequences and releases

  sequence(id: string): Promise<SequenceRow | undefined> {
    return this.#one('sequence', [id]);
  }

  async namedSequence(name: SequenceName): Promise<NamedId> {
    const [found] = await this.#namedSequence.read(name);
    return found?.is_on_hold ? null : found?.id;
  }

  /** How many instances the sequence has. */
  async instanceCounts(sequence: string): Promise<InstanceCounts> {
    return (await this.#one<InstanceCounts>('instanceCounts', [sequence])) as InstanceCounts;
  }

  async release(id: string): Promise<ReleaseRow | undefined> {
    const stored = await this.#one<StoredRelease>('release', [id]);
    return stored && releaseRowOf(stored);
  }

  /** The release that routes new instances of the sequence, if there is one. */
  routingRelease(baseline: string): Promise<ReleaseStateRow | undefined> {
    return this.#one('routingRelease', [baseline]);
  }

  /** A release that needs the sequence, on either side. */
  releaseNaming(sequence: string): Promise<ReleaseStateRow | undefined> {
    return this.#one('releaseNaming', [sequence]);
  }

  /** Releases that route creations to the sequence. */
  leadingReleases(candidate: string): Promise<ReleaseStateRow[]> {
    return this.#all('leadingReleases', [candidate]);
  }

  /** Releases that are being validated, and canaries with gates or a deprecated candidate. */
  openReleases(): Promise<OpenReleaseRow[]> {
    return this.#all('openReleases', []);
  }

  /**
   * How the instances ended that the release routed, of those created since its canary began; and as
   * many of the newest runs of its baseline from before that as these lack.
   */
  releaseOutcomes(release: string, runs: RunsToJudge): Promise<Outcomes[]> {
    const { since, baseline, from, sample } = runs;
    return this.#all('releaseOutcomes', [release, since, baseline, from, sample]);
  }

  /** The releases that route creations now. */
  routingReleases(): Promise<RoutingRow[]> {
    return this.#all('routingReleases', []);
  }

  // ---------------------------------------------------------------- keys and limits

  /** The shard's concurrency keys with an instance that waits or runs, in order, after the one given. */
  async permitKeys(after: string, limit: number): Promise<string[]> {
    const rows = await this.#own<{ key_id: string }>('permitKeys', [after, limit]);
    return rows.map((row) => row.key_id);
  }

  permitHolders(key: string): Promise<PermitHolderRow[]> {
    return this.#all('permitHolders', [key]);
  }

  /** The first instances that wait for a slot, oldest first. */
  permitWaiters(key: string, limit: number): Promise<PermitWaiterRow[]> {
    return this.#all('permitWaiters', [key, limit]);
  }

  rateLimit(id: string): Promise<RateLimitRow | undefined> {
    return this.#one('rateLimit', [id]);
  }

  rateGrants(limit: string, since: UnixMs): Promise<RateGrantRow[]> {
    return this.#all('rateGrants', [limit, isoTime(since)]);
  }

  // ---------------------------------------------------------------- parents and children

  /** The next notes to instances of the shard that are older than the id, behind the place. */
  kinNotes(
    after: { readonly to: string; readonly from: string },
    before: string,
    limit: number,
  ): Promise<KinNoteRow[]> {
    return this.#own('kinNotes', [after.to, after.from, before, limit]);
  }

  /** What became of an instance; undefined: it is not there. */
  async childEnd(id: string): Promise<ChildEndRow | undefined> {
    return (await this.#childEnds.read(id))[0];
  }

  /** All its outputs, oldest first. */
  childOutputs(id: string): Promise<ListedOutput[]> {
    return this.#childOutputs.read(id);
  }

  // ---------------------------------------------------------------- events

  /** The first events of the key that are pending, or that somebody has yet to answer. */
  openEvents(key: string): Promise<EventRow[]> {
    return this.#openEvents.read(key);
  }

  /** The open waits for events of the key, in their order. */
  eventWaits(key: string): Promise<EventWaitRow[]> {
    return this.#eventWaits.read(key);
  }

  /** What became of these events so far. */
  async eventTakes(events: readonly string[]): Promise<EventTakeRow[]> {
    return events.length === 0 ? [] : this.#all('eventTakes', [events]);
  }

  /** What the answer about an event says that is there already. */
  storedEvent(id: string): Promise<StoredRow<'events', 'status' | 'matched'> | undefined> {
    return this.#one('storedEvent', [id]);
  }

  /** The triggers that are switched on and fired by events with the name. */
  eventTriggers(name: EventName): Promise<EventTriggerRow[]> {
    return this.#eventTriggers.read(name);
  }

  /** The shard's keys, in order, after the one given, whose actor has something to do at that time. */
  async dueEventKeys(after: string, now: UnixMs, limit: number): Promise<string[]> {
    const rows = await this.#own<{ key_id: string }>('dueEventKeys', [after, isoTime(now), limit]);
    return rows.map((row) => row.key_id);
  }

  /** When the first of those ended that are still there. */
  async oldestEndedEvent(): Promise<UnixMs | undefined> {
    const oldest = await this.#one<{ ended_at: string }>('oldestEndedEvent', []);
    return oldest && Date.parse(oldest.ended_at);
  }

  // ---------------------------------------------------------------- webhooks and schedules

  /** The next addresses that the shard still has something to send to, in order. */
  async webhookUrls(after: string, limit: number): Promise<string[]> {
    return (await this.#own<{ url: string }>('webhookUrls', [after, limit])).map((row) => row.url);
  }

  bulkJob(id: string): Promise<BulkJobRow | undefined> {
    return this.#one('bulkJob', [id]);
  }

  async openBulkJobs(tenant: string): Promise<number> {
    return (await this.#one<{ count: number }>('openBulkJobs', [tenant]))?.count ?? 0;
  }

  /** Those that ended before, oldest first. */
  async oldBulkJobs(tenant: string, before: string, limit: number): Promise<string[]> {
    const rows = await this.#all<{ id: string }>('oldBulkJobs', [tenant, before, limit]);
    return rows.map(({ id }) => id);
  }

  /** Those of these that are there. */
  credentials(
    places: readonly Pick<CredentialRow, 'tenant_id' | 'id'>[],
  ): Promise<CredentialRow[]> {
    const tenants = places.map(({ tenant_id }) => tenant_id);
    return this.#all('credentials', [tenants, places.map(({ id }) => id)]);
  }

  async credentialCount(tenant: string): Promise<number> {
    return (await this.#one<{ count: number }>('credentialCount', [tenant]))?.count ?? 0;
  }

  trigger(slug: string): Promise<TriggerRow | undefined> {
    return this.#one('trigger', [slug]);
  }

  subscription(id: string): Promise<SubscriptionRow | undefined> {
    return this.#one('subscription', [id]);
  }

  /** Those of some tenants. */
  subscriptions(tenants: readonly string[]): Promise<SubscriptionRow[]> {
    return this.#all('subscriptions', [tenants]);
  }

  /** Those of all tenants, in the order of their ids. */
  allSubscriptions(after: string | undefined, limit: number): Promise<SubscriptionRow[]> {
    return this.#all('allSubscriptions', [after ?? NO_ID, limit]);
  }

  /** What the shard has to send to the address, by time, after the one given; parked ones are left out. */
  dueWebhooks(
    url: string,
    after: { readonly at: string; readonly id: string },
    limit: number,
  ): Promise<WebhookRow[]> {
    return this.#own('dueWebhooks', [url, after.at, after.id, limit]);
  }

  webhook(id: string): Promise<WebhookRow | undefined> {
    return this.#one('webhook', [id]);
  }

  /** When the first attempt of those in the log was made. */
  async oldestDelivery(): Promise<UnixMs | undefined> {
    const oldest = await this.#one<{ attempted_at: string }>('oldestDelivery', []);
    return oldest && Date.parse(oldest.attempted_at);
  }

  async oldestActivity(): Promise<UnixMs | undefined> {
    const oldest = await this.#one<{ at: string }>('oldestActivity', []);
    return oldest && Date.parse(oldest.at);
  }

  async schedules(ids: readonly string[]): Promise<Map<string, ScheduleRow>> {
    const rows = await this.#all<ScheduleRow>('schedules', [ids]);
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** The shard's next enabled schedules in the order of their times, after the one given. */
  dueSchedules(after: DueSchedule, to: UnixMs, limit: number): Promise<DueSchedule[]> {
    return this.#own('dueSchedules', [after.next_fire_at, after.id, isoTime(to), limit]);
  }

  /** Those of the schedule's thousand newest runs that have not ended. */
  async activeRuns(schedule: string): Promise<string[]> {
    return idsOf(await this.#activeRuns.read(schedule));
  }

  // ---------------------------------------------------------------- what is due or open on the shard

  /** Streams timers that are due after `from` and until `to`. */
  dueTimers(
    from: UnixMs,
    to: UnixMs,
    each: (fireAt: UnixMs, timer: DueTimer) => void,
  ): Promise<void> {
    return this.#each<DueTimer & { readonly fire_at: string }>(
      'dueTimers',
      [boundOf(from), isoTime(to)],
      ({ fire_at, instance, rank, tenant }) =>
        each(Date.parse(fire_at), { instance, rank, tenant }),
    );
  }

  /** The first instances whose timers were due in that time and have not been served. */
  overdueTimers(from: UnixMs, to: UnixMs): Promise<DueTimer[]> {
    return this.#own('overdueTimers', [boundOf(from), isoTime(to)]);
  }

  /** Instances that were in the middle of work inside a process that is gone. */
  recoverable(each: (timer: DueTimer) => void): Promise<void> {
    return this.#each<DueTimer>('recover', [], each);
  }

  claimedTasks(
    each: (task: string, instance: string, heartbeatAt: UnixMs, tenant: string) => void,
  ): Promise<void> {
    return this.#each<ClaimRow>('claimedTasks', [], (row) => {
      const { task_id, instance_id, tenant_id, heartbeat_at } = row;
      each(task_id, instance_id, heartbeat_at === null ? 0 : Date.parse(heartbeat_at), tenant_id);
    });
  }

  /** The next waiting tasks in the order in which they are offered, after the place. */
  readyTasks(scope: PollScope, after: TaskPlace, limit: number): Promise<OpenTaskRow[]> {
    const { handler, tenant, queue } = scope;
    const ofAll = queue === '' ? 'readyTasks' : 'readyTasksOfQueue';
    const ofTenant = queue === '' ? 'readyTasksOfTenant' : 'readyTasksOfTenantQueue';
    const place = [after.rank, isoTime(after.createdAt), after.id];
    const names = [tenant, queue].filter((text) => text !== '');
    return this.#all(tenant === '' ? ofAll : ofTenant, [handler, ...place, limit, ...names]);
  }

  // ---------------------------------------------------------------- running statements

  #all<Row extends object>(name: Name, values: readonly unknown[]): Promise<Row[]> {
    return this.#queries.all(statementOf(name, values));
  }

  #one<Row extends object>(name: Name, values: readonly unknown[]): Promise<Row | undefined> {
    return this.#queries.one(statementOf(name, values));
  }

  /** Of rows that each shard has its own of. */
  #own<Row extends object>(name: Name, values: readonly unknown[]): Promise<Row[]> {
    return this.#all(name, [...values, ...this.#place]);
  }

  /** The same, however many there are. */
  #each<Row>(name: Name, values: readonly unknown[], take: (row: Row) => void): Promise<void> {
    const statement = statementOf(name, [...values, ...this.#place]);
    return this.#pages.each(statement, LIMITS.recoveryPageRows, take);
  }

  /**
   * Reads for many who ask in one go, each of whom gets the rows that name it in `n`, from 1.
   *
   * @param values of the statement
   */
  #batch<Ask, Row>(
    name: Name,
    values: (asks: readonly Ask[]) => readonly unknown[],
  ): BatchedReads<Ask, Row[]> {
    return new BatchedReads(async (asks) => {
      const found: Row[][] = asks.map(() => []);
      const rows = await this.#all<Row & { readonly n: number }>(name, values(asks));
      for (const row of rows) found[row.n - 1]!.push(row);
      return found;
    });
  }
}

function loadedOf(columns: InstanceRow & Beside): LoadedInstance & { tasks: WorkerTaskRow[] } {
  const { has_timer, fire_at, recover, snapshots, signals } = columns;
  const fireAt = fire_at === null ? null : Date.parse(fire_at);
  const items = parsedRows<{ key: string; items: JsonValue[] }>(snapshots);
  return {
    row: picked<InstanceRow>(columns, ROW_COLUMNS),
    timer: has_timer ? { fireAt, recover } : undefined,
    tasks: [],
    signals: parsedRows<KeptSignalRow>(signals),
    snapshots: new Map(items.map((snapshot) => [snapshot.key, snapshot.items])),
  };
}

const ROW_COLUMNS = [...INSTANCE_COLUMNS, 'injected'].map((column) => [column, column] as const);

/** @param columns with the names that they have in the row */
function picked<Row extends object>(
  row: object,
  columns: readonly (readonly [column: string, name: string])[],
): Row {
  const from = row as Readonly<Record<string, unknown>>;
  const to: Record<string, unknown> = {};
  for (const [column, name] of columns) to[column] = from[name];
  return to as Row;
}

function parsedRows<Row>(text: string | null): Row[] {
  return text === null ? [] : (JSON.parse(text) as Row[]);
}

function statementOf(name: Name, values: readonly unknown[]): Statement {
  return { name: `load_${name}`, text: LOAD_SQL[name], values };
}

function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

function boundOf(from: UnixMs): string {
  return from === Number.NEGATIVE_INFINITY ? '-infinity' : isoTime(from);
}
