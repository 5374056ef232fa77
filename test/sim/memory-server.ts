/**
 * The simulated database server: its backends carry out what their connections send, one exchange
 * after the other, and outlive a connection that is cut, so that a commit can happen which nobody is
 * told of. What goes wrong, and when, is decided by the faults of the run.
 */

import type { JsonObject } from '../../src/core/json.js';
import { BEGIN, COMMIT, FENCE, FENCE_FAILED } from '../../src/db/statements.js';
import type { Faults } from './faults.js';
import { RUNS } from './memory-statements.js';
import {
  Blocked,
  type Change,
  type MemoryTables,
  type Row,
  SqlError,
  Transaction,
} from './memory-tables.js';
import type { World } from './world.js';

/** What the fence asks of its lane's row, read from its text. */
const FENCE_TERMS = fenceTerms(FENCE.text);

export interface Bound {
  readonly statement: string;
  readonly values: readonly string[];
}

export interface Result {
  readonly rows: readonly (readonly (string | null)[])[];
  readonly tag: string;
}

/** The answers of the commands that were carried out; the error of the one that was not. */
export interface Reply {
  readonly results: readonly Result[];
  readonly error: SqlError | undefined;
}

export interface MemoryServerDeps {
  readonly world: World;
  readonly tables: MemoryTables;
  readonly faults: Faults;
  /** A row that a constraint forbids: nothing that the engine may ever write. */
  readonly onBroken: (text: string) => void;
  /** Told of every commit, at the moment at which it happens. */
  readonly onCommit: (changes: readonly Change[], applicationName: string) => void;
}

/** A text with this in it is refused, as Postgres refuses what it cannot store. */
export const POISON = 'simulated poison';

/** How long a backend that was left in a transaction waits for its client. */
const IDLE_IN_TRANSACTION_MS = 10_000;

export class MemoryServer {
  readonly deps: MemoryServerDeps;
  readonly tables: MemoryTables;
  readonly backends = new Map<number, Backend>();
  #pid = 1_000;
  /** The database cannot be reached until then. */
  #awayUntil = 0;

  constructor(deps: MemoryServerDeps) {
    this.deps = deps;
    this.tables = deps.tables;
  }

  get isAway(): boolean {
    return this.deps.world.now < this.#awayUntil;
  }

  /** Ends every session, and takes none for a while. */
  goAway(ms: number): void {
    this.#awayUntil = this.deps.world.now + ms;
    for (const backend of [...this.backends.values()]) backend.end();
  }

  /** @throws SqlError 57P03 while the server is away */
  connect(applicationName: string, onEnd: (error: SqlError | undefined) => void): Backend {
    if (this.isAway) throw new SqlError('57P03', 'the database system is starting up');
    this.#pid += 1;
    const backend = new Backend(this, this.#pid, applicationName, onEnd);
    this.backends.set(this.#pid, backend);
    return backend;
  }

  /** The new epoch of every lane; undefined while a flush is in progress on one of them. */
  tryRaiseEpoch(lanes: number): number | undefined {
    const { tables } = this;
    const tx = new Transaction();
    const rows = Array.from({ length: lanes }, (_, lane) => tables.row('lanes', String(lane)));
    const epoch = 1 + Math.max(0, ...rows.map((row) => Number(row?.epoch ?? 0)));
    try {
      rows.forEach((row, lane) => {
        const next = { lane, epoch, batch: row?.batch ?? 0 };
        tables.put(tx, tables.table('lanes'), String(lane), next);
      });
    } catch (error) {
      tables.end(tx);
      if (error instanceof Blocked) return undefined;
      throw error;
    }
    this.commit(tx, '');
    return epoch;
  }

  commit(tx: Transaction, applicationName: string): void {
    const changes = this.tables.commit(tx);
    const { world, onCommit } = this.deps;
    world.note(`commit ${changes.map(textOf).join(', ')}`);
    onCommit(changes, applicationName);
  }
}

export class Backend {
  readonly pid: number;
  readonly applicationName: string;
  readonly startedAt: string;
  readonly #server: MemoryServer;
  readonly #onEnd: (error: SqlError | undefined) => void;
  #tx: Transaction | undefined;
  #isAborted = false;
  isGone = false;
  /** It carries something out, as opposed to waiting for its client. */
  isWorking = false;
  #isCut = false;

  constructor(
    server: MemoryServer,
    pid: number,
    applicationName: string,
    onEnd: (error: SqlError | undefined) => void,
  ) {
    this.#server = server;
    this.pid = pid;
    this.applicationName = applicationName;
    this.startedAt = (server.deps.world.now / 1_000).toFixed(6);
    this.#onEnd = onEnd;
  }

  /** The client is gone: what is being carried out goes on, then the backend ends. */
  cut(): void {
    this.#isCut = true;
    if (!this.isWorking) this.end();
  }

  /** Ends the session; a transaction that was not committed never will be. */
  end(error?: SqlError): void {
    if (this.isGone) return;
    this.isGone = true;
    this.#server.backends.delete(this.pid);
    this.#abort();
    this.#onEnd(error);
  }

  terminate(): void {
    this.end(new SqlError('57P01', 'terminating connection due to administrator command'));
  }

  rollback(): void {
    this.#abort();
    this.#isAborted = false;
  }

  /** Carries the commands out up to the first that fails, then answers. */
  exchange(commands: readonly Bound[], answer: (reply: Reply) => void): void {
    const { world, faults } = this.#server.deps;
    if (this.isGone) return;
    const fault = faults.ofExchange(commands.some(({ statement }) => statement === COMMIT.name));
    if (fault === 'unheard') return;
    const results: Result[] = [];
    this.isWorking = true;
    const finish = (error?: SqlError) => {
      this.isWorking = false;
      if (this.isGone) return;
      if (error !== undefined) {
        world.note(`${this.applicationName} is refused: ${error.code} ${error.message}`);
        if (error.code.startsWith('23')) this.#server.deps.onBroken(error.message);
        this.#abort();
        this.#isAborted = true;
      }
      if (this.#isCut) this.end();
      else if (fault === 'lost after') this.end();
      else if (fault === 'silent') this.#giveUpLater();
      else answer({ results, error });
    };
    const step = (at: number): void => {
      if (this.isGone) return;
      const command = commands[at];
      if (command === undefined) {
        finish();
        return;
      }
      if (fault === 'lost before' && at === commands.length - 1) {
        this.end();
        return;
      }
      const failure = at === 1 ? faults.sqlStateOf(fault) : undefined;
      if (failure !== undefined) {
        finish(new SqlError(failure, 'simulated failure'));
        return;
      }
      if (command.statement === COMMIT.name) {
        const ms = fault === 'slow' ? world.latency(50, 4_000) : world.latency(0.05, 3);
        world.at(world.now + ms, () => {
          if (this.isGone) return;
          results.push({ rows: [], tag: this.#commit() });
          step(at + 1);
        });
        return;
      }
      try {
        results.push(this.#run(command));
      } catch (error) {
        if (error instanceof Blocked) this.#await(error.by, () => step(at));
        else if (error instanceof SqlError) finish(error);
        else throw error;
        return;
      }
      step(at + 1);
    };
    step(0);
  }

  #await(holder: Transaction, then: () => void): void {
    const { world } = this.#server.deps;
    const tx = this.#tx;
    if (tx !== undefined) tx.waitsFor = holder;
    holder.waiters.push(() => {
      if (tx !== undefined) tx.waitsFor = undefined;
      world.soon(then);
    });
  }

  #run({ statement, values }: Bound): Result {
    if (statement === BEGIN.name) {
      this.#tx = new Transaction();
      return { rows: [], tag: 'BEGIN' };
    }
    const tx = this.#tx;
    if (tx === undefined) throw new Error(`${statement} outside of a transaction`);
    if (this.#isAborted) throw new SqlError('25P02', 'current transaction is aborted');
    if (statement === FENCE.name) return this.#fence(tx, values.map(Number));
    const run = RUNS.get(statement);
    if (run === undefined) throw new SqlError('26000', `statement ${statement} does not exist`);
    const text = values[0]!;
    if (text.includes('\\u0000') || text.includes(POISON)) {
      throw new SqlError('22P05', 'unsupported Unicode escape sequence');
    }
    const ids = run(this.#server.tables, tx, JSON.parse(text) as JsonObject[]);
    return { rows: ids.map((id) => [id]), tag: 'INSERT' };
  }

  #fence(tx: Transaction, values: readonly number[]): Result {
    const { tables } = this.#server;
    const lane = String(values[0]);
    tables.lock(tx, `lanes:${lane}`);
    const row = tables.seen(tx, 'lanes', lane);
    const isPassed = row !== undefined && FENCE_TERMS.every((holds) => holds(row, values));
    if (!isPassed) throw new SqlError(FENCE_FAILED, 'division by zero');
    tables.put(tx, tables.table('lanes'), lane, { ...row, batch: values[2]! });
    return { rows: [['1']], tag: 'SELECT 1' };
  }

  #commit(): string {
    const tx = this.#tx;
    this.#tx = undefined;
    if (tx === undefined || this.#isAborted) return 'ROLLBACK';
    this.#server.commit(tx, this.applicationName);
    return 'COMMIT';
  }

  #abort(): void {
    if (this.#tx !== undefined) this.#server.tables.end(this.#tx);
    this.#tx = undefined;
  }

  #giveUpLater(): void {
    const { world } = this.#server.deps;
    world.at(world.now + IDLE_IN_TRANSACTION_MS, () => this.end());
  }
}

function textOf({ table, key, before, after }: Change): string {
  const sign = before === undefined ? '+' : after === undefined ? '-' : '~';
  const state = after?.state === undefined ? '' : `=${after.state}`;
  return `${sign}${table} ${key}${state}`;
}

function fenceTerms(sql: string) {
  const form =
    /^\s*with passed as \(\s*update lanes set batch = \$3::bigint\s*where (.*)\s*returning lane\s*\)/;
  const where = form.exec(sql)?.[1];
  if (where === undefined) throw new Error(`a fence of unknown form: ${sql}`);
  return where.split(' and ').map((term) => {
    const match = /^(\w+) = \$(\d)::\w+( - 1)?$/.exec(term.trim());
    if (match === null) throw new Error(`a fence of unknown form: ${term}`);
    const [, column, number, less] = match;
    return (row: Row, values: readonly number[]) =>
      row[column!] === values[Number(number) - 1]! - (less === undefined ? 0 : 1);
  });
}
