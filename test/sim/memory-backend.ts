/**
 * One session of the simulated server: carries out what its connection sends, one exchange after the
 * other, and outlives a connection that is cut, so that a commit can happen which nobody is told of.
 */

import { BEGIN, COMMIT, FENCE, FORGET_FLUSHES } from '../../src/db/statements.js';
import type { ExchangeFault } from './faults.js';
import type { MemoryServer } from './memory-server.js';
import { RUNS, rowsIn, textIn } from './memory-statements.js';
import { Blocked, type Row, SqlError, Transaction } from './memory-tables.js';

export interface Bound {
  readonly statement: string;
  readonly values: readonly (string | null)[];
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

/** Commands under way. */
interface Exchange {
  readonly commands: readonly Bound[];
  /** It is a transaction of its own, which ends with it. */
  readonly isImplicit: boolean;
  readonly fault: ExchangeFault | undefined;
  readonly results: Result[];
  readonly answer: (reply: Reply) => void;
}

/** A text with this in it is refused, as Postgres refuses what it cannot store. */
export const POISON = 'simulated poison';

/** How long a backend that was left in a transaction waits for its client. */
const IDLE_IN_TRANSACTION_MS = 10_000;

/** What the Sync behind an exchange without `begin` does. */
const COMMIT_BY_SYNC: Bound = { statement: COMMIT.name, values: [] };

/** What the fence asks of its lane's row, read from its text. */
const FENCE_TERMS = fenceTerms(FENCE.text);

/** Expected of an engine that was replaced, unlike any other violation of a constraint. */
const NOT_OWNED = new SqlError('23502', 'null value in column "lane" of "lane_flushes"');

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
    if (this.isGone) return;
    const isImplicit = this.#tx === undefined && commands[0]?.statement !== BEGIN.name;
    const hasCommit = isImplicit || commands.some(({ statement }) => statement === COMMIT.name);
    const fault = this.#server.deps.faults.ofExchange(hasCommit);
    if (fault === 'unheard') return;
    this.isWorking = true;
    if (isImplicit) this.#tx = new Transaction();
    this.#step({ commands, isImplicit, fault, answer, results: [] });
  }

  #step(exchange: Exchange): void {
    const { commands, isImplicit, fault, results } = exchange;
    const at = results.length;
    const steps = commands.length + (isImplicit ? 1 : 0);
    const command = commands[at] ?? COMMIT_BY_SYNC;
    if (this.isGone) return;
    const isHit = at === (commands[1]?.statement === FENCE.name ? 2 : 1);
    const failure = isHit ? this.#server.deps.faults.sqlStateOf(fault) : undefined;
    if (at === steps) this.#finish(exchange, undefined);
    else if (fault === 'lost before' && at === steps - 1) this.end();
    else if (failure !== undefined) {
      this.#finish(exchange, new SqlError(failure, 'simulated failure'));
    } else if (command.statement === COMMIT.name) this.#commitLater(exchange);
    else this.#carryOut(exchange, command);
  }

  #carryOut(exchange: Exchange, command: Bound): void {
    try {
      exchange.results.push(this.#run(command));
    } catch (error) {
      if (error instanceof Blocked) this.#await(error.by, () => this.#step(exchange));
      else if (error instanceof SqlError) this.#finish(exchange, error);
      else throw error;
      return;
    }
    this.#step(exchange);
  }

  #commitLater(exchange: Exchange): void {
    const { world } = this.#server.deps;
    const ms = exchange.fault === 'slow' ? world.latency(50, 4_000) : world.latency(0.05, 3);
    world.at(world.now + ms, () => {
      if (this.isGone) return;
      exchange.results.push({ rows: [], tag: this.#commit() });
      this.#step(exchange);
    });
  }

  #finish(
    { commands, isImplicit, fault, results, answer }: Exchange,
    error: SqlError | undefined,
  ): void {
    const { world, onBroken } = this.#server.deps;
    this.isWorking = false;
    if (error !== undefined) {
      world.note(`${this.applicationName} is refused: ${error.code} ${error.message}`);
      if (error.code.startsWith('23') && error !== NOT_OWNED) onBroken(error.message);
      this.#abort();
      this.#isAborted = !isImplicit;
    }
    if (this.#isCut || fault === 'lost after') this.end();
    else if (fault === 'silent') this.#giveUpLater();
    // A Sync is answered by no result of its own.
    else answer({ results: results.slice(0, commands.length), error });
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
    if (statement === FORGET_FLUSHES.name) return this.#forget(tx, values.map(Number));
    const run = RUNS.get(statement);
    if (run === undefined) throw new SqlError('26000', `statement ${statement} does not exist`);
    const text = textIn(statement, values);
    if (text.includes('\\u0000') || text.includes(POISON)) {
      throw new SqlError('22P05', 'unsupported Unicode escape sequence');
    }
    if (text.includes('\0')) throw new SqlError('22021', 'invalid byte sequence');
    const ids = run(this.#server.tables, tx, rowsIn(statement, text));
    return { rows: ids.map((id) => [id]), tag: 'INSERT' };
  }

  #fence(tx: Transaction, values: readonly number[]): Result {
    const { tables } = this.#server;
    const lane = String(values[0]);
    tables.lock(tx, `lanes:${lane}`);
    const row = tables.seen(tx, 'lanes', lane);
    const isPassed = row !== undefined && FENCE_TERMS.every((holds) => holds(row, values));
    if (!isPassed) throw NOT_OWNED;
    const batch = values[2]!;
    const key = `${lane}/${batch}`;
    if (tables.seen(tx, 'lane_flushes', key) !== undefined) {
      throw new SqlError('23505', 'duplicate key value violates unique constraint');
    }
    tables.put(tx, 'lane_flushes', key, { lane: Number(lane), batch });
    return { rows: [], tag: 'INSERT 0 1' };
  }

  #forget(tx: Transaction, [lane, from, to]: readonly number[]): Result {
    const { tables } = this.#server;
    const isPast = ({ lane: own, batch }: Row) =>
      own === lane && Number(batch) >= from! && Number(batch) < to!;
    for (const [key] of tables.matching(tx, 'lane_flushes', isPast)) {
      tables.put(tx, 'lane_flushes', key, undefined);
    }
    return { rows: [], tag: 'DELETE' };
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

function fenceTerms(sql: string) {
  const form =
    /^\s*with owned as materialized \(\s*select lane from lanes where (.*) for no key update\s*\)\s*insert into lane_flushes \(lane, batch\) select \(select lane from owned\), \$3::bigint$/;
  const where = form.exec(sql)?.[1];
  if (where === undefined) throw new Error(`a fence of unknown form: ${sql}`);
  return where.split(' and ').map((term) => {
    const match = /^(\w+) = \$(\d)::\w+$/.exec(term.trim());
    if (match === null) throw new Error(`a fence of unknown form: ${term}`);
    const [, column, number] = match;
    return (row: Row, values: readonly number[]) => row[column!] === values[Number(number) - 1]!;
  });
}
