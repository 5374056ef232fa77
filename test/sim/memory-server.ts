/** The simulated database server: its tables, its sessions, and when it cannot be reached. */

import { Backend } from './memory-backend.js';
import { Blocked, type Change, type MemoryTables, SqlError, Transaction } from './memory-tables.js';
import type { Parts } from './parts.js';

interface MemoryServerDeps extends Pick<Parts, 'world' | 'tables' | 'faults'> {
  /** A row that a constraint forbids: nothing that the engine may ever write. */
  readonly onBroken: (text: string) => void;
  /** Told of every commit, at the moment at which it happens. */
  readonly onCommit: (changes: readonly Change[], applicationName: string) => void;
}

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
      rows.forEach((_, lane) => {
        tables.put(tx, 'lanes', String(lane), { lane, epoch });
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

function textOf({ table, key, before, after }: Change): string {
  const sign = before === undefined ? '+' : after === undefined ? '-' : '~';
  const state = after?.state === undefined ? '' : `=${after.state}`;
  return `${sign}${table} ${key}${state}`;
}
