/**
 * The client of every session of the engine: it connects to the primary of a database only, since reads of a
 * standby may be stale. If a URL names several hosts, the primary is found among them
 * (docs/operate/availability.md).
 *
 * A server reports by itself whether it is a standby when a session begins. Its timeline is queried once per
 * session: if two servers claim to be the primary, all threads must use the same one.
 */

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { hostUrlsOf } from './database-url.js';
import {
  isOlder,
  numberOf,
  provenTimeline,
  proveTimeline,
  type Timeline,
  timelineOf,
  UNTOLD,
} from './timeline.js';
import { isUnavailable } from './trouble.js';

export interface PrimaryConfig extends pg.ClientConfig {
  /** A URL for each host of the database, one of which is the primary. */
  readonly hostUrls: readonly string[];
}

type Place = Pick<pg.Client, 'host' | 'port'>;

/** The code of Postgres while it recovers and takes no sessions. */
const CANNOT_CONNECT_NOW = '57P03';

/** How long a host may take to respond when the primary is looked for. */
const LOOK_MS = 2_000;

/** Then the others may take this long: another may be on a higher timeline. */
const GATHER_MS = 200;

/** Acknowledged commits must be on disk, whatever the role sets: only `off` does not wait. */
const DURABLE = `set_config('synchronous_commit', coalesce(
  nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)`;

/** Any role may run this. The name of the file begins with the timeline. */
const BEGIN = `select system_identifier::text as system,
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline, ${DURABLE}
from pg_control_system()`;

/** A substitute for Postgres may lack these functions, or not grant them. */
const CANNOT_TELL: ReadonlySet<unknown> = new Set(['42501', '42883', '0A000']);

/** By the hosts of a URL, the primary at the last start of a session. */
const lastPrimaries = new Map<string, Place>();

/** Hosts whose primary had a commit that was not confirmed. */
const doubted = new Set<string>();

/** The open ones of this thread. */
const sessions = new Set<PrimaryClient>();

/** The timeline by which they were last checked. */
let seen = UNTOLD;

/** Ends the sessions of this thread on an older timeline than the proven one; their queries fail. */
export function leaveOlder(): void {
  const proven = provenTimeline();
  if (proven === seen) return;
  seen = proven;
  for (const session of sessions) session.leaveIfOlder();
}

/** The replicas, if any, have confirmed a commit of the session. */
export function provePrimary(session: pg.Client): void {
  if (session instanceof PrimaryClient) session.prove();
}

/** A commit of the session was not confirmed: the next session checks all hosts for a promoted one. */
export function doubtPrimary(session: pg.Client): void {
  if (session instanceof PrimaryClient) session.doubt();
}

/** How much longer a session may take to begin while the primary is looked for. */
export function lookMsMax(connectionString: string): number {
  return hostUrlsOf(connectionString).length > 1 ? LOOK_MS + GATHER_MS : 0;
}

export class PrimaryClient extends pg.Client {
  readonly #config: PrimaryConfig;
  /** Undefined if there is only one. */
  readonly #hosts: string | undefined;
  #isStandby = false;
  #timeline = UNTOLD;

  constructor(config: PrimaryConfig) {
    super({ ...config, connectionString: config.hostUrls[0] });
    this.#config = config;
    this.#hosts = config.hostUrls.length > 1 ? config.hostUrls.join(' ') : undefined;
    // Callers add their listener some microtasks later: until then an error would end the process.
    this.on('error', () => undefined);
    const { connection } = this;
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'in_hot_standby') this.#isStandby = parameterValue === 'on';
    });
    // Before the query is answered: its rows may be older than a commit of another thread elsewhere.
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
        // It was given up meanwhile.
        if (this.connection.stream.destroyed) throw new Error('Connection terminated');
      }
      await super.connect();
      await this.#begin();
    } catch (error) {
      // The next attempt checks all of them.
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
      return UNTOLD;
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
 * Queries all hosts at once, so that a silent one causes no long wait. Of several that claim to be the primary
 * it is the one on the proven timeline, where the writer is; if there is none or it is doubted, the one on the
 * highest timeline, which was promoted last.
 * @throws Error when none is the primary
 */
async function findPrimary(config: PrimaryConfig, isDoubted: boolean): Promise<Place> {
  const found: { readonly place: Place; readonly timeline: Timeline }[] = [];
  const failures: Error[] = [];
  const asked = config.hostUrls.map(async (url): Promise<void> => {
    const client = new PrimaryClient({
      ...config,
      hostUrls: [url],
      connectionTimeoutMillis: LOOK_MS,
    });
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
    await Promise.any(asked);
  } catch {
    throw foldFailures(failures);
  }
  await Promise.race([Promise.allSettled(asked), pause(GATHER_MS, undefined, { ref: false })]);
  const proven = provenTimeline();
  const kept = isDoubted ? undefined : found.find(({ timeline }) => timeline === proven);
  const byTimeline = found.sort((a, b) => numberOf(b.timeline) - numberOf(a.timeline));
  return (kept ?? byTimeline[0]!).place;
}

/**
 * A refusal by all hosts, such as of a password, is reported like that of a single one. A refusal by one of
 * several that are standbys or unavailable says nothing about the future primary.
 */
function foldFailures(failures: readonly Error[]): Error {
  if (!failures.some(isUnavailable)) return failures[0]!;
  const reasons = failures.map(({ message }) => message).join('; ');
  return cannotConnect(`no host is the primary: ${reasons}`);
}

function cannotConnect(message: string): Error {
  return Object.assign(new Error(message), { code: CANNOT_CONNECT_NOW });
}
