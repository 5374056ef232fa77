/**
 * Connections to Postgres with the engine's settings. Owns timeouts, keep-alive and how column
 * types become JavaScript values; never touches the global parsers of `pg`, since several pools
 * with other needs may live in one process. What runs over the connections is not its business.
 */

import pg from 'pg';
import Cursor from 'pg-cursor';
import { hostUrlsOf, splitSettings } from './database-url.js';
import { allowCustomPlans } from './distributed.js';
import { leaveOlder, PrimaryClient, type PrimaryConfig } from './primary.js';

/** The part of the logger that the database modules use; a pino logger fits. */
export interface DbLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ConnectionOptions {
  readonly connectionString: string;
  /** Shown in `pg_stat_activity`, at most 63 bytes; a take-over finds the old owner by it. */
  readonly applicationName: string;
  /** After this the server gives the statement up. 0 never; default 30,000. */
  readonly statementTimeoutMs?: number;
  /** After this the client gives the answer up, for a server that went silent. 0 never (default). */
  readonly queryTimeoutMs?: number;
  /** After this the server ends a session that forgot its open transaction. Default 60,000. */
  readonly idleInTransactionTimeoutMs?: number;
  /** How long connecting may take. Default 5,000. */
  readonly connectTimeoutMs?: number;
  /**
   * Each statement is planned once for all values it may get. To plan takes several times as long as to look
   * up a row, and Postgres would do so each time for few ids, because it takes every list for one of ten. What
   * they read has an index.
   */
  readonly isPlannedOnce?: boolean;
}

export interface PoolOptions extends ConnectionOptions {
  /** Connections at most. */
  readonly connectionsMax: number;
  /** What runs over them may be narrowed to one tenant by `forTenant`. */
  readonly isForTenants?: boolean;
  /** Told of errors of idle connections, which nobody else awaits. */
  readonly onError: (error: Error) => void;
}

/** A server-side cursor, read in pieces; an empty piece is the end. */
export interface RowReader<Row> {
  /** @param timeoutMs after which the piece is given up, for a server that went silent */
  read(rowsMax: number, timeoutMs: number): Promise<Row[]>;
}

const STATEMENT_TIMEOUT_MS = 30_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** An idle connection is probed after this, before firewalls forget it. */
const KEEP_ALIVE_DELAY_MS = 10_000;

/** Idle pool connections are closed after this; a burst of lists then leaves nothing behind. */
const POOL_IDLE_TIMEOUT_MS = 30_000;

/** Type numbers from the server's catalogue, which never change. */
const OID = { int8: 20, json: 114, timestamptz: 1184 } as const;

/** Gives no session away that is on an older timeline than the primary. */
class PrimaryPool extends pg.Pool {
  override connect(): Promise<pg.PoolClient>;
  override connect(callback: PoolCallback): void;
  override connect(callback?: PoolCallback): Promise<pg.PoolClient> | undefined {
    leaveOlder();
    if (callback === undefined) return super.connect();
    super.connect(callback);
    return undefined;
  }
}

type PoolCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: unknown) => void,
) => void;

/**
 * A pool whose connections have the engine's settings. Connects on first use.
 * Counts (`int8`) arrive as numbers, `timestamptz` as `2025-01-31T12:00:00.123Z`, `json` as its text.
 */
export function createPool(options: PoolOptions): pg.Pool {
  const pool = new PrimaryPool({
    ...clientConfig(options),
    Client: PrimaryClient as unknown as new () => pg.Client,
    max: options.connectionsMax,
    idleTimeoutMillis: POOL_IDLE_TIMEOUT_MS,
    ...(options.isForTenants ? { onConnect: prepareNarrowing } : {}),
    ...(options.isPlannedOnce ? { onConnect: allowCustomPlans } : {}),
  });
  pool.on('error', options.onError);
  return pool;
}

/** What `pg` says of an answer that did not come in time. */
export const NO_ANSWER_TEXT = 'Query read timeout';

/** Runs `work` over a connection of its own. One that breaks between two queries fails the next. */
export async function withClient<Result>(
  options: ConnectionOptions,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = createClient(options);
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * One unconnected client with the same settings and types as a pool's. With `pipeline` it accepts
 * queries while busy, and no cursors. The caller listens for `error`.
 */
export function createClient(options: ConnectionOptions, pipeline = false): pg.Client {
  return new PrimaryClient({ ...clientConfig(options), pipeline });
}

/** The role that sees rows of one tenant (`row-security.ts`). */
export const READER_ROLE = 'engine_reader';

/** What narrows, prepared once on a connection: it is sent with every statement, and never alone. */
const NARROWING = 'engine_narrowing';

/** Both settings end with the transaction, so that no connection stays narrowed, or stays open to all. */
async function prepareNarrowing(client: pg.ClientBase): Promise<void> {
  await client.query(
    `prepare ${NARROWING} (text) as select set_config('role', '${READER_ROLE}', true), ` +
      "set_config('engine.tenant', $1, true)",
  );
}

/** Of the connections of `pg`, what a query or cursor is submitted to. */
interface Wire {
  readonly stream: { cork?(): void; uncork?(): void };
  bind(message: { readonly statement: string; readonly values: readonly string[] }): void;
  execute(message: object): void;
}

interface Submitted {
  submit(wire: Wire): unknown;
  handleDataRow(message: unknown): void;
  handleCommandComplete(message: unknown, wire: Wire): void;
}

/**
 * Has a query or cursor see rows of one tenant only, as far as row level security is on. What narrows goes
 * before it in the same message and the same transaction, so that it costs no round trip; what it answers is
 * kept from the query. The pool is one with `isForTenants`, and the query is none of simple text: that would
 * leave the transaction open.
 */
export function forTenant<Q extends object>(query: Q, tenant: string): Q {
  const inner = query as unknown as Submitted;
  const { submit, handleDataRow, handleCommandComplete } = inner;
  let isNarrowed = false;
  inner.submit = (wire) => {
    wire.stream.cork?.();
    try {
      wire.bind({ statement: NARROWING, values: [tenant] });
      wire.execute({});
      return submit.call(inner, wire);
    } finally {
      wire.stream.uncork?.();
    }
  };
  inner.handleDataRow = (message) => {
    if (isNarrowed) handleDataRow.call(inner, message);
  };
  inner.handleCommandComplete = (message, wire) => {
    if (isNarrowed) handleCommandComplete.call(inner, message, wire);
    isNarrowed = true;
  };
  return query;
}

/**
 * Runs `use` with a cursor over the rows of `sql` on a connection of its own. The cursor is closed
 * and the connection given back whatever happens; a connection that failed is not used again.
 *
 * @param tenant see `forTenant`
 */
export async function withCursor<Row, Result>(
  pool: pg.Pool,
  sql: string,
  values: readonly unknown[],
  use: (reader: RowReader<Row>) => Promise<Result>,
  tenant?: string,
): Promise<Result> {
  const client = await pool.connect();
  let failure: Error | undefined;
  // The pool listens only to idle clients: a connection that breaks between two reads would end the
  // process, and closing its cursor would wait for an answer that cannot come.
  let onError: (error: Error) => void = () => undefined;
  const broken = new Promise<never>((_, reject) => {
    onError = (error) => {
      failure = error;
      reject(error);
    };
  });
  broken.catch(() => undefined);
  client.on('error', onError);
  try {
    const plain = new Cursor<Row>(sql, [...values], { types: columnTypes });
    const cursor = client.query(tenant === undefined ? plain : forTenant(plain, tenant));
    const read = async (rowsMax: number, timeoutMs: number) => {
      const giveUp = () => onError(new Error(NO_ANSWER_TEXT));
      const timer = setTimeout(giveUp, timeoutMs).unref();
      try {
        return await cursor.read(rowsMax);
      } finally {
        clearTimeout(timer);
      }
    };
    try {
      return await Promise.race([use({ read }), broken]);
    } finally {
      await Promise.race([cursor.close(), broken]);
    }
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    throw error;
  } finally {
    client.removeListener('error', onError);
    client.release(failure);
  }
}

function clientConfig(options: ConnectionOptions): PrimaryConfig {
  const queryTimeoutMs = options.queryTimeoutMs ?? 0;
  const { url, settings } = splitSettings(options.connectionString);
  return {
    hostUrls: hostUrlsOf(url),
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    idle_in_transaction_session_timeout:
      options.idleInTransactionTimeoutMs ?? IDLE_IN_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    // The form of timestamps below depends on it, whatever the URL, role or database has set. Compiling
    // a plan takes longer than any of our statements runs. `pg` would not send a limit of 0, and leave
    // that of the role. Sessions idle at night, and lists may hold nulls. That a commit's wait for a replica was cancelled is told by a warning alone.
    options:
      `${settings} -c TimeZone=UTC -c DateStyle=ISO -c jit=off -c client_min_messages=warning ` +
      '-c idle_session_timeout=0 -c array_nulls=on ' +
      `-c statement_timeout=${options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS}` +
      (options.isPlannedOnce ? PLANNED_ONCE : ''),
    types: columnTypes,
    ...(queryTimeoutMs > 0 ? { query_timeout: queryTimeoutMs } : {}),
  };
}

/** A plan that was made while a table was small, or while only few of its rows are alive, would be kept: by an index. */
const PLANNED_ONCE = ' -c plan_cache_mode=force_generic_plan -c enable_seqscan=off';

const textParsers: ReadonlyMap<number, (text: string) => unknown> = new Map<
  number,
  (text: string) => unknown
>([
  [OID.int8, Number],
  [OID.timestamptz, timestampText],
  [OID.json, String],
]);

/** The per-connection types: ours first, else what `pg` does by itself. */
const columnTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' ? textParsers.get(oid) : undefined) ??
    pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/** `2025-01-31 12:00:00.123456+00` becomes `2025-01-31T12:00:00.123Z`; `infinity` stays. */
function timestampText(text: string): string {
  // The shape that every session of ours gets: four-digit year, UTC.
  if (text.length >= 22 && text.charCodeAt(10) === 32 && text.endsWith('+00')) {
    const fraction = text.charCodeAt(19) === 46 ? text.slice(20, -3) : '';
    return `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction.padEnd(3, '0').slice(0, 3)}Z`;
  }
  return text;
}
