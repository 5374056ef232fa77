/**
 * The client of every session of the engine: it connects only to the primary of a database, since reads of a standby
 * may be stale, and finds the primary if a URL names several hosts (docs/operate/availability.md).
 *
 * After a fail-over, the old primary may not know yet that another server was promoted, so both claim to be the
 * primary. Each promotion begins a timeline with a higher number; all threads leave sessions on a lower timeline than
 * the proven one. A commit that waited for the replicas, if any, proves a timeline: a server promoted by mistake must
 * not take sessions from the one with replicas.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import pg from 'pg';
import { hostUrlsOf } from './database-url.js';
import { isUnavailable } from './trouble.js';

/** The database in the upper bits, since an upgrade makes another; in the lower 32 its timeline; 0: unknown. */
type Timeline = bigint;

const NUMBER_BITS = 32n;
/** The result fits a signed number of 64 bits. */
const DATABASE_BITS = 31;
const UNKNOWN: Timeline = 0n;
const KEY = 'engine: proven timeline';

function memoryOfProcess(): SharedArrayBuffer {
  const found: unknown = getEnvironmentData(KEY);
  if (found instanceof SharedArrayBuffer) return found;
  const made = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT);
  setEnvironmentData(KEY, made as unknown as Parameters<typeof setEnvironmentData>[1]);
  return made;
}

const highest = new BigInt64Array(memoryOfProcess());

/** @param timeline eight hexadecimal digits, as in names of WAL files */
function timelineOf(system: string, timeline: string): Timeline {
  const id = BigInt(system);
  const database = BigInt.asUintN(DATABASE_BITS, id ^ (id >> NUMBER_BITS));
  return (database << NUMBER_BITS) | BigInt(`0x${timeline}`);
}

const numberOf = (timeline: Timeline): number =>
  Number(BigInt.asUintN(Number(NUMBER_BITS), timeline));

/** The highest proven timeline of the latest database. */
const provenTimeline = (): Timeline => Atomics.load(highest, 0);

function isOlder(timeline: Timeline, than = provenTimeline()): boolean {
  return timeline >> NUMBER_BITS === than >> NUMBER_BITS && timeline < than;
}

/** The replicas, if any, have a commit on this timeline. */
function proveTimeline(timeline: Timeline): void {
  if (timeline === UNKNOWN) return;
  for (let now = provenTimeline(); now !== timeline && !isOlder(timeline, now); ) {
    const found = Atomics.compareExchange(highest, 0, now, timeline);
    if (found === now) return;
    now = found;
  }
}

export interface PrimaryConfig extends pg.ClientConfig {
  readonly hostUrls: readonly string[];
}

type Place = Pick<pg.Client, 'host' | 'port'>;

/** The SQLSTATE of a server that is recovering and accepts no sessions. */
const CANNOT_CONNECT_NOW = '57P03';
const LOOK_MS = 2_000;
/** The others then have this long: one may be on a higher timeline. */
const GATHER_MS = 200;

/** Replaces only `off`, which does not wait for the disk, whatever the role sets. */
const DURABLE = `set_config('synchronous_commit', coalesce(
  nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)`;

/** Any role may run this. The name of the WAL file begins with the timeline. */
const BEGIN = `select system_identifier::text as system,
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline, ${DURABLE}
from pg_control_system()`;

/** SQLSTATEs if these functions do not exist or are not granted. */
const CANNOT_TELL: ReadonlySet<unknown> = new Set(['42501', '42883', '0A000']);

/** The last primary by the hosts of a URL. */
const lastPrimaries = new Map<string, Place>();

/** Hosts whose primary did not confirm a commit. */
const doubted = new Set<string>();

const sessions = new Set<PrimaryClient>();

/** The proven timeline when they were last checked. */
let seen = UNKNOWN;

/** Ends the sessions of this thread that are on an older timeline than the proven one. */
export function leaveOlder(): void {
  const proven = provenTimeline();
  if (proven === seen) return;
  seen = proven;
  for (const session of sessions) session.leaveIfOlder();
}

/** The replicas, if any, have confirmed a commit of this session. */
export function provePrimary(session: pg.Client): void {
  if (session instanceof PrimaryClient) session.prove();
}

/** A commit of this session was not confirmed: the next session checks all hosts. */
export function doubtPrimary(session: pg.Client): void {
  if (session instanceof PrimaryClient) session.doubt();
}

/** Additional time that a session may need to find the primary. */
export function lookMsMax(connectionString: string): number {
  return hostUrlsOf(connectionString).length > 1 ? LOOK_MS + GATHER_MS : 0;
}

export class PrimaryClient extends pg.Client {
  readonly #config: PrimaryConfig;
  /** Undefined for a single host. */
  readonly #hosts: string | undefined;
  #isStandby = false;
  #timeline = UNKNOWN;

  constructor(config: PrimaryConfig) {
    super({ ...config, connectionString: config.hostUrls[0] });
    this.#config = config;
    this.#hosts = config.hostUrls.length > 1 ? config.hostUrls.join(' ') : undefined;
    // Callers add their listener some microtasks later; an earlier error would end the process.
    this.on('error', () => undefined);
    const { connection } = this;
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'in_hot_standby') this.#isStandby = parameterValue === 'on';
    });
    // Before the query resolves: its rows may be older than a commit of another thread.
    connection.on('readyForQuery', leaveOlder);
    connection.on('portalSuspended', leaveOlder);
    connection.on('end', () => sessions.delete(this));
  }

  get timeline(): Timeline {
    return this.#timeline;
  }

  override connect(): Promise<pg.Client>;
  override connect(
    callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void),
  ): void;
  override connect(
    callback?: (error: never, client: never) => void,
  ): Promise<pg.Client> | undefined {
    const opened = this.#open();
    if (callback === undefined) return opened;
    const tell = callback as (error: unknown, client?: pg.Client) => void;
    opened.then((client) => tell(null, client), tell);
    return undefined;
  }

  prove(): void {
    proveTimeline(this.#timeline);
    if (this.#hosts !== undefined) doubted.delete(this.#hosts);
  }

  doubt(): void {
    if (this.#hosts === undefined) return;
    doubted.add(this.#hosts);
    lastPrimaries.delete(this.#hosts);
  }

  leaveIfOlder(): void {
    if (!isOlder(this.#timeline)) return;
    sessions.delete(this);
    if (this.#hosts !== undefined) lastPrimaries.delete(this.#hosts);
    this.connection.emit('error', this.#refusal());
    this.connection.stream.destroy();
  }

  async #open(): Promise<pg.Client> {
    const hosts = this.#hosts;
    try {
      if (hosts !== undefined) {
        const last = lastPrimaries.get(hosts);
        Object.assign(this, last ?? (await findPrimary(this.#config, doubted.has(hosts))));
        // The caller may have destroyed the connection meanwhile.
        if (this.connection.stream.destroyed) throw new Error('Connection terminated');
      }
      await super.connect();
      await this.#begin();
    } catch (error) {
      // The next attempt checks all hosts.
      if (hosts !== undefined) lastPrimaries.delete(hosts);
      throw error;
    }
    if (hosts !== undefined) lastPrimaries.set(hosts, { host: this.host, port: this.port });
    return this;
  }

  async #begin(): Promise<void> {
    try {
      if (this.#isStandby) throw cannotConnect(`${this.#place} is a standby, not the primary`);
      this.#timeline = await this.#askTimeline();
      if (isOlder(this.#timeline)) throw this.#refusal();
    } catch (error) {
      void this.end();
      throw error;
    }
    sessions.add(this);
  }

  async #askTimeline(): Promise<Timeline> {
    const limit = { query_timeout: this.#config.connectionTimeoutMillis };
    try {
      const query = { text: BEGIN, ...limit };
      const { rows } = await this.query<{ system: string; timeline: string }>(query);
      return timelineOf(rows[0]!.system, rows[0]!.timeline);
    } catch (error) {
      if (!CANNOT_TELL.has((error as { code?: unknown }).code)) throw error;
      await this.query({ text: `select ${DURABLE}`, ...limit });
      return UNKNOWN;
    }
  }

  get #place(): string {
    return `${this.host}:${this.port}`;
  }

  #refusal(): Error {
    const [own, proven] = [this.#timeline, provenTimeline()].map(numberOf);
    return cannotConnect(
      `${this.#place} is on an older timeline, ${own}, than the primary that has replicas, ${proven}`,
    );
  }
}

/**
 * Queries all hosts at once, so that a silent one causes no long wait. If several claim to be the primary,
 * chooses the one on the proven timeline, where the writer is. If there is none or it is doubted, chooses
 * the highest timeline, which was promoted last.
 * @throws Error when none is the primary
 */
async function findPrimary(config: PrimaryConfig, isDoubted: boolean): Promise<Place> {
  const found: { readonly place: Place; readonly timeline: Timeline }[] = [];
  const failures: Error[] = [];
  const looks = config.hostUrls.map(async (url): Promise<void> => {
    const own = { hostUrls: [url], connectionTimeoutMillis: LOOK_MS };
    const client = new PrimaryClient({ ...config, ...own });
    try {
      await client.connect();
    } catch (error) {
      failures.push(error as Error);
      throw error;
    }
    void client.end();
    const { host, port, timeline } = client;
    found.push({ place: { host, port }, timeline });
  });
  try {
    await Promise.any(looks);
  } catch {
    throw foldFailures(failures);
  }
  await Promise.race([Promise.allSettled(looks), pause(GATHER_MS, undefined, { ref: false })]);
  const proven = provenTimeline();
  const kept = isDoubted ? undefined : found.find(({ timeline }) => timeline === proven);
  const byTimeline = found.sort((a, b) => numberOf(b.timeline) - numberOf(a.timeline));
  return (kept ?? byTimeline[0]!).place;
}

/** Only a refusal by all hosts, such as of a password, is permanent: any other host may be promoted. */
function foldFailures(failures: readonly Error[]): Error {
  if (!failures.some(isUnavailable)) return failures[0]!;
  const reasons = failures.map(({ message }) => message).join('; ');
  return cannotConnect(`no host is the primary: ${reasons}`);
}

function cannotConnect(message: string): Error {
  return Object.assign(new Error(message), { code: CANNOT_CONNECT_NOW });
}
