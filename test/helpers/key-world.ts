/**
 * One concurrency key by itself: its actor over tables in memory, which are written as a writer
 * would, a unit at a time and acknowledged afterwards, and instances that do what they are told.
 */

import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { Keys } from '../../actors/limits/keys.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { Rows } from '../../actors/runtime/loader.js';
import type { Ack, UnitEnvelope } from '../../actors/runtime/protocol.js';
import type { PermitHolderRow, PermitWaiterRow } from '../../actors/runtime/rows.js';
import { realClock } from '../../src/clock.js';
import { isoTime } from '../../src/core/time.js';
import { MUTATION_KINDS } from '../../src/db/mutations.js';
import { createLogger } from '../../src/log.js';

const KEY = '00000000-0000-8000-8000-000000000000';

interface Asked {
  readonly number: number;
  readonly max: number;
  readonly createdAt: number;
}

/** Something that is said to the actor; a word that is never said is lost. */
export type Word = () => void;

export class KeyWorld {
  /** The table `permit_requests`, by instance. */
  readonly wishes = new Map<string, Asked>();
  /** The table `permits`, by instance: the number of the wish. */
  readonly slots = new Map<string, number>();
  /** Instances that run, by their rows. */
  readonly running = new Set<string>();
  /** Every slot that an instance was told of, as `instance#number`. */
  readonly told: string[] = [];
  /** The kinds of the mutations of each unit. */
  readonly units: string[][] = [];
  reads = 0;
  /** The next unit is refused. */
  refuses = false;
  readonly #numbers = new Map<string, number>();
  #commits = new CommitLog();
  #keys: Keys;
  #work: Word[] = [];

  constructor() {
    this.#keys = this.#born();
  }

  /** The instance writes down that it wants a slot. */
  want(instance: string, { createdAt = 0, max = 1 } = {}): Word {
    const number = (this.#numbers.get(instance) ?? 0) + 1;
    this.#numbers.set(instance, number);
    this.wishes.set(instance, { number, max, createdAt });
    const tenant = 'acme';
    return () => this.#keys.wanted(KEY, { instance, tenant, number, max, createdAt });
  }

  /** The instance writes down that it needs none any more. */
  leave(instance: string): Word {
    this.running.delete(instance);
    this.wishes.delete(instance);
    const number = this.#numbers.get(instance) ?? 0;
    return () => this.#keys.left(KEY, instance, number);
  }

  /** The actor hears these words in one turn; resolves when all that follows has happened. */
  async turn(...words: Word[]): Promise<void> {
    for (const word of words) word();
    this.#keys.endTurn();
    await this.#quiet();
  }

  async rescan(): Promise<void> {
    await this.turn(() => this.#keys.shardDied());
  }

  /** Only the tables are left. */
  async restart(): Promise<void> {
    this.#commits = new CommitLog();
    this.#work = [];
    this.#keys = this.#born();
    await this.rescan();
  }

  get isPassive(): boolean {
    return this.#keys.isPassive(KEY);
  }

  #born(): Keys {
    const rows: Pick<Rows, 'permitHolders' | 'permitKeys' | 'permitWaiters'> = {
      permitKeys: async () => [KEY],
      permitHolders: async () => {
        this.reads += 1;
        return [...this.slots].map(([instance, number]) => this.#holder(instance, number));
      },
      permitWaiters: async (_key, limit) => this.#waiters().slice(0, limit),
    };
    return new Keys({
      commits: this.#commits,
      loader: rows as Rows,
      log: createLogger('silent', 'test'),
      clock: { ...realClock, setTimeout: () => undefined },
      shards: 1,
      schedule: (work) => this.#work.push(work),
      scheduleSpare: (work) => this.#work.push(work),
      whenWriterKnown: (then) => then(),
      release: (effects) => {
        for (const effect of effects) {
          if (effect.kind !== 'peer' || effect.message.kind !== 'permit.granted') continue;
          this.#hear(effect.message.instance, effect.message.number);
        }
      },
    });
  }

  #hear(instance: string, number: number): void {
    this.told.push(`${instance}#${number}`);
    assert.equal(this.slots.get(instance), number, 'told before it was committed');
    if (this.wishes.get(instance)?.number === number) this.running.add(instance);
  }

  #holder(instance_id: string, number: number): PermitHolderRow {
    const wanted = this.wishes.get(instance_id)?.number ?? null;
    const state = this.running.has(instance_id) ? 'running' : 'scheduled';
    return { instance_id, number, wanted, state, tenant_id: 'acme' };
  }

  #waiters(): PermitWaiterRow[] {
    return [...this.wishes]
      .filter(([instance]) => !this.slots.has(instance))
      .sort(([a, x], [b, y]) => x.createdAt - y.createdAt || (a < b ? -1 : 1))
      .map(([instance_id, { number, max, createdAt }]) => {
        const row = { instance_id, number, max_concurrency: max, created_at: isoTime(createdAt) };
        return { ...row, tenant_id: 'acme' };
      });
  }

  async #quiet(): Promise<void> {
    for (;;) {
      // Every read has its answer by then.
      await setImmediate();
      const work = this.#work.splice(0);
      for (const each of work) each();
      const units = this.#commits.take();
      if (units.length > 0) this.#commits.settle(units.map((unit) => this.#commit(unit)));
      this.#keys.endTurn();
      if (work.length === 0 && units.length === 0) return;
    }
  }

  #commit({ seq, mutations }: UnitEnvelope): Ack {
    if (this.refuses) {
      this.refuses = false;
      return { seq, outcome: 'refused', sqlState: '23514', reason: 'no' };
    }
    const kinds: string[] = [];
    for (let i = 0; i < mutations.length; i += 3) {
      const kind = MUTATION_KINDS[mutations[i] as number] ?? '';
      const row = JSON.parse(mutations[i + 2] as string) as PermitHolderRow;
      if (kind === 'permit.set') this.slots.set(row.instance_id, row.number);
      else this.slots.delete(row.instance_id);
      kinds.push(kind);
    }
    this.units.push(kinds);
    return { seq, outcome: 'committed' };
  }
}
