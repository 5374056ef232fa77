/**
 * Connections to Postgres with the engine's settings: timeouts, keep-alive, and the conversion of column
 * types. Never changes the global parsers of `pg`: other pools may live in the same process.
 */

import pg from 'pg';
import Cursor from 'pg-cursor';
import { hostUrlsOf, splitSettings } from './database-url.js';
import { allowCustomPlans } from './distributed.js';
import { leaveOlder, PrimaryClient, type PrimaryConfig } from './primary.js';

/** The part of a pino logger that the database modules use. */
export interface DbLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ConnectionOptions {
  readonly connectionString: string;
  /** Shown in `pg_stat_activity`, at most 63 bytes; a take-over finds the old owner by it. */
  readonly applicationName: string;
  /** The server cancels statements after this. 0: never; default 30,000. */
  readonly statementTimeoutMs?: number;
  /** The client's timeout, for a silent server. 0: none (default). */
  readonly queryTimeoutMs?: number;
  /** The server ends sessions with an idle open transaction after this. Default 60,000. */
  readonly idleInTransactionTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
  /**
   * One generic plan per statement. Planning takes several times as long as a row lookup, and Postgres
   * would replan for small lists, since it expects ten elements in every list.
   */
  readonly isPlannedOnce?: boolean;
}

export interface PoolOptions extends ConnectionOptions {
  readonly connectionsMax: number;
  /** Whether `forTenant` may restrict its queries. */
  readonly isForTenants?: boolean;
  readonly onError: (error: Error) => void;
}

/** A server-side cursor. An empty piece is the end. */
export interface RowReader<Row> {
  /** @param timeoutMs the client's timeout for the piece, for a silent server */
  read(rowsMax: number, timeoutMs: number): Promise<Row[]>;
}

const STATEMENT_TIMEOUT_MS = 30_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** Idle connections are probed after this, before firewalls drop them. */
const KEEP_ALIVE_DELAY_MS = 10_000;
/** Idle connections are closed after this, so that a burst of lists keeps none. */
const POOL_IDLE_TIMEOUT_MS = 30_000;
/** OIDs of types, which never change. */
const OID = { int8: 20, json: 114, timestamptz: 1184 } as const;

/** Never provides a session on an older timeline than the primary. */
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

/** `int8` arrives as a number, `timestamptz` as `2025-01-31T12:00:00.123Z`, `json` as its text. */
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

/** The message of `pg` for a query timeout. */
export const NO_ANSWER_TEXT = 'Query read timeout';

/** Runs `work` on a new connection. If it breaks between two queries, the next one fails. */
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

/** With `pipeline` it accepts queries while busy, and no cursors. The caller listens for `error`. */
export function createClient(options: ConnectionOptions, pipeline = false): pg.Client {
  return new PrimaryClient({ ...clientConfig(options), pipeline });
}

/** The role that sees the rows of one tenant (`row-security.ts`). */
export const READER_ROLE = 'engine_reader';
/** Prepared once per connection; precedes a statement, and is never sent alone. */
const NARROWING = 'engine_narrowing';

/** Both settings are local to the transaction, so that no connection keeps them. */
async function prepareNarrowing(client: pg.ClientBase): Promise<void> {
  await client.query(
    `prepare ${NARROWING} (text) as select set_config('role', '${READER_ROLE}', true), ` +
      "set_config('engine.tenant', $1, true)",
  );
}

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
 * Restricts a query or cursor to the rows of one tenant if row level security is on. The prepared statement is sent
 * before it in the same message and transaction, without another round trip; its result is hidden. Requires a pool with
 * `isForTenants` and a query in the extended protocol: the simple one would leave the transaction open.
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
 * Runs `use` with a cursor on a connection of the pool. Always closes the cursor and releases the
 * connection; a failed connection is not reused.
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
  // The pool listens only to idle clients. Without a listener, a connection that breaks between two reads
  // would end the process, and closing its cursor would never end.
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
    // These override the URL, role and database: the form of timestamps depends on TimeZone and DateStyle; compiling a
    // plan takes longer than our statements; only a warning reports a cancelled wait for a replica; sessions may idle
    // for hours; lists may contain nulls. `pg` would not send a limit of 0, so that of the role would apply.
    options:
      `${settings} -c TimeZone=UTC -c DateStyle=ISO -c jit=off -c client_min_messages=warning ` +
      '-c idle_session_timeout=0 -c array_nulls=on ' +
      `-c statement_timeout=${options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS}` +
      (options.isPlannedOnce ? PLANNED_ONCE : ''),
    types: columnTypes,
    ...(queryTimeoutMs > 0 ? { query_timeout: queryTimeoutMs } : {}),
  };
}

/** Forces an index: a plan made while a table was small, or had few live rows, would be kept. */
const PLANNED_ONCE = ' -c plan_cache_mode=force_generic_plan -c enable_seqscan=off';

const textParsers = new Map<number, (text: string) => unknown>([
  [OID.int8, Number],
  [OID.timestamptz, timestampText],
  [OID.json, String],
]);

const columnTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' ? textParsers.get(oid) : undefined) ??
    pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/** `2025-01-31 12:00:00.123456+00` becomes `2025-01-31T12:00:00.123Z`; `infinity` stays. */
function timestampText(text: string): string {
  // The format of the engine's sessions: four-digit year, UTC.
  if (text.length >= 22 && text.charCodeAt(10) === 32 && text.endsWith('+00')) {
    const fraction = text.charCodeAt(19) === 46 ? text.slice(20, -3) : '';
    return `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction.padEnd(3, '0').slice(0, 3)}Z`;
  }
  return text;
}
