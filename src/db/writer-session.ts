/**
 * One connection of the writer: its prepared statements, flushes sent in one exchange, and the queries that
 * determine the outcome of a flush whose answer was lost.
 *
 * A flush is one exchange of the extended protocol: all its commands, then a single Sync. Without a `begin`
 * the exchange is one transaction, which the Sync commits; when a command fails, all of it is rolled back
 * and the server skips to the Sync. The `pipeline` mode of `pg` sends a Sync after every query, so that
 * commands after a failed fence would commit one by one.
 */

import pg from 'pg';
import type { RowsCommand } from './batch.js';
import { allowCustomPlans } from './distributed.js';
import { cellsOf } from './lines.js';
import { doubtPrimary, provePrimary } from './primary.js';
import { type Statement, WRITER_SETTINGS } from './statements.js';

export type Command =
  | { readonly statement: Statement; readonly values: readonly string[] }
  | RowsCommand;

export type Answer =
  | {
      readonly kind: 'done';
      readonly rows: readonly (readonly (string | null)[])[];
      readonly tag: string;
    }
  /** The server refused command `at`; later ones did not run. */
  | {
      readonly kind: 'failed';
      readonly at: number;
      readonly sqlState: string;
      readonly message: string;
    }
  /** The connection broke; the outcome is unknown. */
  | { readonly kind: 'lost'; readonly message: string };

/** Identifies a server process: process ids are reused, start times are not. */
export type BackendId = { readonly pid: number; readonly startedAt: string };

export type LaneRow = { readonly epoch: number; readonly batch: number };

/** Wait for a terminated backend; the caller's timeout must be longer. */
const TERMINATE_WAIT_MS = 2_000;
const WARNING = /^01/;

export class WriterSession {
  readonly backend: BackendId;
  readonly #client: pg.Client;
  /** A warning of the server during the last exchange. */
  #warning: string | undefined;

  private constructor(client: pg.Client, backend: BackendId) {
    this.#client = client;
    this.backend = backend;
    client.on('notice', ({ code = '', message }) => {
      if (WARNING.test(code)) this.#warning = message;
    });
  }

  /**
   * @param statements to prepare
   * @param onLost called when the connection breaks, also while idle
   * @throws Error when it fails; the client is closed then
   */
  static async open(
    client: pg.Client,
    statements: readonly Statement[],
    onLost: (error: Error) => void,
  ): Promise<WriterSession> {
    client.on('error', onLost);
    try {
      await client.connect();
      await client.query(WRITER_SETTINGS);
      await allowCustomPlans(client);
      const session = new WriterSession(client, await ownBackend(client));
      const prepared = await session.#send(parsing(statements));
      if (prepared.kind !== 'done') throw errorOf(prepared);
      return session;
    } catch (error) {
      destroyClient(client);
      throw error;
    }
  }

  /**
   * Sends the commands and one Sync. Never rejects. One exchange at a time.
   *
   * When an operator cancels a commit's wait for a replica, the server sends a warning and the usual
   * answer. The commit is not on the replica, so it must not count as done.
   */
  async exchange(commands: readonly Command[]): Promise<Answer> {
    this.#warning = undefined;
    const answer = await this.#send((connection) => {
      for (const command of commands) {
        if ('rows' in command) sendRows(connection as CopyingConnection, command);
        else sendValues(connection, command.statement.name, command.values);
      }
    });
    if (answer.kind !== 'done' || this.#warning === undefined) return answer;
    return { kind: 'lost', message: this.#warning };
  }

  /** Ends a failed explicit transaction. @throws Error when the connection is lost */
  async rollback(): Promise<void> {
    await this.#client.query('rollback');
  }

  /** The current row; undefined if there is no such lane. */
  async readLane(lane: number, lock = ''): Promise<LaneRow | undefined> {
    const { rows } = await this.#client.query<{ epoch: string; batch: string }>(
      `select epoch::text as epoch, coalesce(
         (select max(f.batch) from lane_flushes f where f.lane = l.lane), 0)::text as batch
       from lanes l where lane = $1::int ${lock}`,
      [lane],
    );
    const row = rows[0];
    return row && { epoch: Number(row.epoch), batch: Number(row.batch) };
  }
  /**
   * The row once no other session works on it, and its content is on the replicas too. A commit whose
   * session ended during its wait for them is visible, and may still be lost with the server. The lock
   * makes this a later transaction, which has to wait for them as well.
   * @throws Error also when that wait was cancelled
   */
  async settledLane(lane: number): Promise<LaneRow | undefined> {
    this.#warning = undefined;
    const row = await this.readLane(lane, 'for no key update');
    if (this.#warning !== undefined) throw new Error(this.#warning);
    if (row !== undefined) provePrimary(this.#client);
    return row;
  }

  /** Once it has ended it can commit nothing. @returns false if it still exists; retry */
  terminate({ pid, startedAt }: BackendId): Promise<boolean> {
    const isIt = 'pid = $1::int and extract(epoch from backend_start)::text = $2::text';
    return this.#terminate(isIt, [pid, startedAt]);
  }

  terminateAll(applicationName: string): Promise<boolean> {
    const isOne =
      'application_name = $1::text and datname = current_database() and pid <> pg_backend_pid()';
    return this.#terminate(isOne, [applicationName]);
  }

  async #terminate(condition: string, values: readonly unknown[]): Promise<boolean> {
    const { rows } = await this.#client.query(
      `select pg_terminate_backend(pid, ${TERMINATE_WAIT_MS})
       from pg_stat_activity where ${condition}`,
      [...values],
    );
    return rows.length === 0;
  }

  doubt(): void {
    doubtPrimary(this.#client);
  }

  /** Closes the socket; an exchange in flight is answered `lost`. */
  destroy(): void {
    destroyClient(this.#client);
  }

  #send(messages: Messages): Promise<Answer> {
    return new Promise((resolve) => {
      this.#client.query(new Exchange(messages, resolve));
    });
  }
}

/** `gone` includes finished and waiting for its client: the answer was lost. */
export type BackendState = 'working' | 'waits for a replica' | 'gone';

/** @param client an unconnected client, which is closed in any case */
export async function backendState(client: pg.Client, backend: BackendId): Promise<BackendState> {
  // A connection error also fails the query below.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ waits: boolean }>(
      `select coalesce(wait_event, '') = 'SyncRep' as waits from pg_stat_activity
       where pid = $1::int and extract(epoch from backend_start)::text = $2::text
         and state = 'active' and wait_event_type is distinct from 'Client'`,
      [backend.pid, backend.startedAt],
    );
    if (rows[0] === undefined) return 'gone';
    return rows[0].waits ? 'waits for a replica' : 'working';
  } finally {
    destroyClient(client);
  }
}

function errorOf(answer: Exclude<Answer, { kind: 'done' }>): Error {
  const code = answer.kind === 'failed' ? answer.sqlState : undefined;
  return Object.assign(new Error(answer.message), { code });
}

export function destroyClient(client: pg.Client): void {
  client.connection.stream.destroy();
}

async function ownBackend(client: pg.Client): Promise<BackendId> {
  const { rows } = await client.query<BackendId>(
    `select pid, extract(epoch from backend_start)::text as "startedAt"
     from pg_stat_activity where pid = pg_backend_pid()`,
  );
  return rows[0]!;
}

/** The size kept between flushes; few need more. */
const KEPT_BYTES = 1024 * 1024;
const BYTES_PER_UNIT_MAX = 3;

const [OPEN, COMMA, CLOSE, LINE_FEED] = [0x5b, 0x2c, 0x5d, 0x0a] as const;

/** One reused buffer: joined texts would be copied once more, and doubled by one non-Latin character. */
export class RowsBuffer {
  #bytes = Buffer.allocUnsafeSlow(KEPT_BYTES);
  #length = 0;

  /** The rows as their statement takes them. Valid until the next call. */
  bytesOf({ rows, areLines }: Pick<RowsCommand, 'rows' | 'areLines'>): Buffer {
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(KEPT_BYTES);
    this.#length = 0;
    if (!areLines) this.#put(OPEN);
    for (let i = 0; i < rows.length; i++) {
      if (i > 0) this.#put(areLines ? LINE_FEED : COMMA);
      this.#write(rows[i]!);
    }
    if (!areLines) this.#put(CLOSE);
    return this.#bytes.subarray(0, this.#length);
  }

  #write(text: string): void {
    this.#reserve(text.length * BYTES_PER_UNIT_MAX);
    this.#length += this.#bytes.write(text, this.#length);
  }

  #put(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#length] = byte;
    this.#length += 1;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

interface CopyingConnection extends pg.Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

const NO_VALUES: readonly Buffer[] = [];
const ROWS = new RowsBuffer();

/**
 * Up to this number lines are inserted one by one: the server answers the start of a copy, which wakes the
 * writer and costs more than the copy saves (docs/decisions/0001-group-commit.md).
 */
const FEW_LINES = 2;

/** If an earlier command failed and the copy did not start, the server skips its data. */
function sendRows(connection: CopyingConnection, command: RowsCommand): void {
  const { name, isCopy, ofCells } = command.statement;
  if (ofCells !== undefined && command.rows.length <= FEW_LINES) {
    for (const line of command.rows) sendValues(connection, ofCells.name, cellsOf(line));
    return;
  }
  const rows = ROWS.bytesOf(command);
  sendValues(connection, name, isCopy ? NO_VALUES : [rows]);
  if (!isCopy) return;
  connection.sendCopyFromChunk(rows);
  connection.endCopyFrom();
}

function sendValues(
  connection: pg.Connection,
  statement: string,
  values: readonly (string | Buffer | null)[],
): void {
  connection.bind({ statement, values: values as string[] }, true);
  connection.execute(null, true);
}

/** Writes messages, which one Sync follows. */
type Messages = (connection: pg.Connection) => void;

function parsing(statements: readonly Statement[]): Messages {
  return (connection) => {
    for (const { name, text } of statements) connection.parse({ name, text, types: [] }, true);
  };
}

class Exchange implements pg.Submittable {
  readonly #messages: Messages;
  readonly #done: (answer: Answer) => void;
  readonly #rows: (string | null)[][] = [];
  #at = 0;
  #tag = '';

  constructor(messages: Messages, done: (answer: Answer) => void) {
    this.#messages = messages;
    this.#done = done;
  }

  submit(connection: pg.Connection): void {
    // One write for the whole exchange.
    connection.stream.cork();
    this.#messages(connection);
    connection.sync();
    connection.stream.uncork();
  }

  handleRowDescription(): void {}

  /** The data has been sent already. */
  handleCopyInResponse(): void {}

  handleDataRow(message: { readonly fields: (string | null)[] }): void {
    this.#rows.push(message.fields);
  }

  handleCommandComplete(message: { readonly text: string }): void {
    this.#at += 1;
    this.#tag = message.text;
  }

  handleError(error: Error): void {
    const sqlState = error instanceof pg.DatabaseError ? error.code : undefined;
    this.#done(
      sqlState === undefined
        ? { kind: 'lost', message: error.message }
        : { kind: 'failed', at: this.#at, sqlState, message: error.message },
    );
  }

  handleReadyForQuery(): void {
    this.#done({ kind: 'done', rows: this.#rows, tag: this.#tag });
  }
}
