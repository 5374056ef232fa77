/**
 * What a real `pg.Client` talks to in the simulation, in place of a socket: messages of the protocol
 * go in and come out, with latencies. So the writer's sessions, their statements and what `pg` makes
 * of errors and lost connections are the real ones. Of SQL it knows what the writer asks besides its
 * prepared statements; anything else is an error.
 */

import { EventEmitter } from 'node:events';
import pg from 'pg';
import { STORE } from '../../actors/shard/store.js';
import { KNOWS_SCHEMAS } from '../../src/db/distributed.js';
import { WRITER_SETTINGS } from '../../src/db/statements.js';
import type { Backend, Bound } from './memory-backend.js';
import type { MemoryServer } from './memory-server.js';
import { SqlError } from './memory-tables.js';
import type { Thread, World } from './world.js';

interface Bind {
  readonly statement?: string | undefined;
  /** `pg` leaves them out where there are none. */
  readonly values?: readonly unknown[];
}

interface Answer {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
}

const NAMES: ReadonlySet<string> = new Set(STORE.statements.map(({ name }) => name));

const DONE: Answer = { columns: [], rows: [] };

/** An unconnected client of the simulated server; its events belong to the thread. */
export function memoryClient(
  server: MemoryServer,
  thread: Thread,
  applicationName: string,
): pg.Client {
  const connection = new MemoryConnection(server, thread, applicationName);
  const config = { host: 'simulated', user: 'engine', database: 'engine', connection };
  return new pg.Client(config as pg.ClientConfig);
}

class MemoryConnection extends EventEmitter {
  readonly stream = { cork() {}, uncork() {}, writable: true, destroy: () => this.#destroy() };
  /** `pg` looks here which statements were prepared by name. */
  readonly parsedStatements = {};
  readonly submittedNamedStatements = {};
  readonly #server: MemoryServer;
  readonly #world: World;
  readonly #thread: Thread;
  readonly #applicationName: string;
  #backend: Backend | undefined;
  #isOpen = true;
  #text = '';
  #binds: Bind[] = [];
  /** Answers and requests keep their order, whatever their latencies are. */
  #lastArrival = 0;

  constructor(server: MemoryServer, thread: Thread, applicationName: string) {
    super();
    this.#server = server;
    this.#world = server.deps.world;
    this.#thread = thread;
    this.#applicationName = applicationName;
    thread.whenDead(() => this.#close());
  }

  // -------------------------------------------------------------- what the client sends

  connect(): void {
    const isRefused = this.#server.deps.faults.hits('connect.refused');
    this.#send(() => {
      if (!this.#isOpen) return;
      try {
        if (isRefused) throw new SqlError('08006', 'simulated refusal');
        this.#backend = this.#server.connect(this.#applicationName, (error) => this.#ended(error));
        this.#receive(() => this.emit('connect'));
      } catch (error) {
        this.#receive(() => this.#fail(error as Error));
      }
    });
  }

  startup(): void {
    this.#receive(() => this.emit('readyForQuery', { status: 'I' }));
  }

  query(text: string): void {
    this.#ask(text, []);
  }

  parse({ name, text }: { readonly name?: string; readonly text: string }): void {
    if (!name) this.#text = text;
    else if (!NAMES.has(name)) throw new Error(`statement ${name} is not one of the writer's`);
  }

  bind({ statement, values }: Bind): void {
    // Bytes are those of a buffer that is used again.
    this.#binds.push({
      statement,
      values: values?.map((it) => (isBytes(it) ? `${it}` : it)) ?? [],
    });
  }

  sendCopyFromChunk(rows: Buffer): void {
    this.#binds.push({ ...this.#binds.pop(), values: [rows.toString()] });
  }

  endCopyFrom(): void {}

  describe(): void {}

  execute(): void {}

  flush(): void {}

  sync(): void {
    const binds = this.#binds;
    this.#binds = [];
    const [first] = binds;
    if (first === undefined) this.#receive(() => this.#ready());
    else if (!first.statement) this.#ask(this.#text, first.values ?? []);
    else this.#exchange(binds as Bound[]);
  }

  end(): void {
    this.#destroy();
  }

  // -------------------------------------------------------------- what the server does

  #exchange(commands: readonly Bound[]): void {
    this.#send(() => {
      this.#backend?.exchange(commands, ({ results, error }) =>
        this.#receive(() => {
          for (const { rows, tag } of results) {
            for (const fields of rows) this.emit('dataRow', { fields });
            this.emit('commandComplete', { text: tag });
          }
          if (error !== undefined) this.emit('errorMessage', databaseError(error));
          this.#ready();
        }),
      );
    });
  }

  #ask(text: string, values: readonly unknown[]): void {
    this.#send(() => {
      const answer = ({ columns, rows }: Answer) =>
        this.#receive(() => {
          const fields = columns.map((name) => ({ name, dataTypeID: 25, format: 'text' }));
          if (fields.length > 0) this.emit('rowDescription', { fields });
          for (const row of rows) this.emit('dataRow', { fields: row });
          this.emit('commandComplete', { text: 'SELECT' });
          this.#ready();
        });
      if (this.#backend?.isGone === false) this.#answer(this.#backend, text, values, answer);
    });
  }

  #answer(
    backend: Backend,
    text: string,
    values: readonly unknown[],
    answer: (answer: Answer) => void,
  ): void {
    const { backends, tables } = this.#server;
    const others = [...backends.values()].filter(({ pid }) => pid !== backend.pid);
    const named = ({ pid, startedAt }: Backend) =>
      pid === Number(values[0]) && startedAt === values[1];
    if (text === WRITER_SETTINGS || text === KNOWS_SCHEMAS) answer(DONE);
    else if (text === 'rollback') {
      backend.rollback();
      answer(DONE);
    } else if (text.includes('from lanes l where lane')) {
      const row = tables.row('lanes', String(values[0]));
      const flushes = [...tables.rows('lane_flushes').values()].filter(
        ({ lane }) => String(lane) === String(values[0]),
      );
      const batch = Math.max(0, ...flushes.map((flush) => Number(flush.batch)));
      const rows = row === undefined ? [] : [[String(row.epoch), String(batch)]];
      answer({ columns: ['epoch', 'batch'], rows });
    } else if (text.includes('where pid = pg_backend_pid()')) {
      const rows = [[String(backend.pid), backend.startedAt]];
      answer({ columns: ['pid', 'startedAt'], rows });
    } else if (text.includes('pg_terminate_backend')) {
      const isDoomed = text.includes('application_name = $1')
        ? ({ applicationName }: Backend) => applicationName === values[0]
        : named;
      this.#terminate(others.filter(isDoomed), answer);
    } else if (text.includes("state = 'active'")) {
      const isWorking = others.some((other) => named(other) && other.isWorking);
      answer({ columns: ['?column?'], rows: isWorking ? [['1']] : [] });
    } else throw new Error(`SQL that the simulation does not know: ${text}`);
  }

  /** A backend ends a moment after it was told to; what it commits in that moment is committed. */
  #terminate(doomed: readonly Backend[], answer: (answer: Answer) => void): void {
    const world = this.#world;
    world.at(world.now + world.latency(0.1, 5), () => {
      for (const backend of doomed) backend.terminate();
      answer({ columns: ['gone'], rows: doomed.map(() => ['t']) });
    });
  }

  // -------------------------------------------------------------- the wire

  /** What was sent arrives, also when the socket is closed meanwhile. */
  #send(arrive: () => void): void {
    this.#world.at(this.#arrival(), arrive);
  }

  #receive(arrive: () => void): void {
    this.#world.at(
      this.#arrival(),
      () => {
        if (this.#isOpen) arrive();
      },
      this.#thread,
    );
  }

  #arrival(): number {
    const at = this.#world.now + this.#world.latency(0.02, 0.5);
    this.#lastArrival = Math.max(at, this.#lastArrival);
    return this.#lastArrival;
  }

  #ready(): void {
    this.emit('readyForQuery', { status: 'I' });
  }

  #ended(error: SqlError | undefined): void {
    this.#receive(() => {
      if (error !== undefined) this.emit('errorMessage', databaseError(error));
      this.#isOpen = false;
      this.emit('end');
    });
  }

  #fail(error: Error): void {
    this.#isOpen = false;
    this.emit('error', error);
    this.emit('end');
  }

  /** The client closes the socket; it is told so later, as by a real one. */
  #destroy(): void {
    if (!this.#isOpen) return;
    this.#close();
    this.#world.soon(() => this.emit('end'), this.#thread);
  }

  /** The server notices a little later that nobody is there any more. */
  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const backend = this.#backend;
    const world = this.#world;
    if (backend !== undefined) world.at(world.now + world.latency(0.1, 500), () => backend.cut());
  }
}

function isBytes(value: unknown): value is Buffer {
  return Buffer.isBuffer(value);
}

function databaseError({ code, message }: SqlError): pg.DatabaseError {
  const error = new pg.DatabaseError(message, message.length, 'error');
  error.code = code;
  return error;
}
