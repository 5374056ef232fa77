/**
 * One lane of the writer: one transaction is in flight; units that arrive meanwhile form the next batch.
 * Keeps the order of its units, and halves a batch that the database refuses. Never loses a unit: each is
 * committed, refused for its data, dropped by the writer, or still queued when the lane is closed.
 */

import { Fifo } from '../../src/base/fifo.js';
import { Batch, bodyCommands, gateCommands, type InsertedIds } from '../../src/db/batch.js';
import { BEGIN, COMMIT, FENCE, FLUSHES_KEPT, FORGET_FLUSHES } from '../../src/db/statements.js';
import {
  type DatabaseTrouble,
  databaseTrouble,
  isFaultOfData,
  troubleOf,
} from '../../src/db/trouble.js';
import type { Answer, Command, WriterSession } from '../../src/db/writer-session.js';
import type { UnitCounts } from '../../src/metrics/ledger.js';
import { ignoreClosed, LaneLink } from './link.js';
import type { Writer, WriterUnit } from './writer.js';

type FlushResult =
  | { readonly kind: 'committed' }
  | { readonly kind: 'refused'; readonly sqlState: string; readonly message: string }
  /** Rolled back for a temporary reason, such as a deadlock. */
  | { readonly kind: 'again' }
  /** Either the outcome is unknown, or the failure needs a new connection or an operator. */
  | { readonly kind: 'unknown'; readonly trouble: DatabaseTrouble };

const COMMITTED: FlushResult = { kind: 'committed' };
const NO_COMMANDS: readonly Command[] = [];
const BEGIN_COMMAND: Command = { statement: BEGIN, values: [] };
const COMMIT_COMMAND: Command = { statement: COMMIT, values: [] };
/** The SQLSTATE class of serialization failures and deadlocks. */
const CLASS_AGAIN = '40';

export class Lane {
  readonly #index: number;
  readonly #writer: Writer;
  readonly #link: LaneLink;
  readonly #queue = new Fifo<WriterUnit>();
  /** Halves of refused batches, the next one last; they precede the queue. */
  readonly #halves: (readonly WriterUnit[])[] = [];
  /** The last one from the queue, until its halves are settled, too. */
  #batch: Batch<WriterUnit> | undefined;
  #inFlight: readonly WriterUnit[] = [];
  /** Set when the results of the gates of the flush in flight have arrived. */
  #inserted: InsertedIds | undefined;
  #settlers: (() => void)[] = [];
  #working: Promise<void> | undefined;
  #isClosed = false;

  constructor(index: number, writer: Writer) {
    this.#index = index;
    this.#writer = writer;
    this.#link = new LaneLink(index, writer);
  }

  /** Connects, however long it takes. Resolves also if the lane is closed meanwhile. */
  async start(): Promise<void> {
    await Promise.resolve(this.#link.session()).catch(ignoreClosed);
    this.kick();
  }

  push(unit: WriterUnit): void {
    this.#queue.push(unit);
  }

  /** Processes the queue, unless that is in progress or the lane was not started. */
  kick(): void {
    if (this.#working !== undefined || this.#link.committed === undefined || this.#isClosed) return;
    this.#working = this.#work()
      .catch(ignoreClosed)
      .finally(() => {
        this.#working = undefined;
        // A unit may have arrived since the last check of the queue.
        if (this.#queue.size > 0 && !this.#writer.waiting.has(this)) this.kick();
      });
  }

  async settled(matches: (unit: WriterUnit) => boolean): Promise<void> {
    while (this.#inFlight.some(matches)) {
      await new Promise<void>((resolve) => this.#settlers.push(resolve));
    }
  }

  prune(): void {
    for (let unchecked = this.#queue.size; unchecked > 0; unchecked -= 1) {
      const unit = this.#queue.shift()!;
      if (!this.#writer.drops(unit)) this.#queue.push(unit);
    }
    this.#writer.settle();
  }

  /** Starts no more flushes. Resolves when the one in flight is answered. */
  async finish(): Promise<void> {
    this.#isClosed = true;
    this.#link.refuse();
    await this.#working;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#link.close();
    await this.#working;
  }

  async #work(): Promise<void> {
    for (let units = this.#take(); units.length > 0; units = this.#take()) {
      this.#inFlight = units;
      try {
        await this.#flush(units);
      } finally {
        this.#inFlight = [];
        for (const resolve of this.#settlers.splice(0)) resolve();
      }
    }
  }

  /** The next batch: half of a refused one first, then from the queue. */
  #take(): readonly WriterUnit[] {
    if (this.#isClosed) return [];
    for (let half = this.#halves.pop(); half !== undefined; half = this.#halves.pop()) {
      const rest = half.filter((unit) => !this.#writer.drops(unit));
      if (rest.length < half.length) this.#writer.settle();
      if (rest.length > 0) return rest;
    }
    this.#endBatch();
    const { gateKeys, options, waiting } = this.#writer;
    const batch = new Batch<WriterUnit>(options.limits, gateKeys);
    let hasDropped = false;
    for (let unit = this.#queue.first; unit !== undefined; unit = this.#queue.first) {
      if (this.#writer.drops(unit)) hasDropped = true;
      else if (!batch.tryAdd(unit)) break;
      this.#queue.shift();
    }
    if (hasDropped) this.#writer.settle();
    if (batch.units.length > 0) this.#batch = batch;
    if (batch.units.length === 0 && this.#queue.size > 0) waiting.add(this);
    else waiting.delete(this);
    return batch.units;
  }

  /** Lanes that wait for its keys can take them before this lane could again. */
  #endBatch(): void {
    if (this.#batch === undefined) return;
    this.#batch.settled();
    this.#batch = undefined;
    const { waiting } = this.#writer;
    if (waiting.size === 0) return;
    const lanes = [...waiting];
    waiting.clear();
    for (const lane of lanes) lane.kick();
  }

  /** Resolves when every unit is committed, refused, or in a half. */
  async #flush(units: readonly WriterUnit[]): Promise<void> {
    const { clock } = this.#writer.options;
    const link = this.#link;
    const startedAt = clock.monotonic();
    const number = link.committed! + 1;
    this.#inserted = undefined;
    for (;;) {
      const current = link.session();
      // Avoids a microtask when there is a session.
      const session = current instanceof Promise ? await current : current;
      // The lane's row may show that the flush whose answer was lost was committed. The results of its
      // gates were not lost: they had arrived before `commit` was sent.
      const result: FlushResult =
        link.committed === number ? COMMITTED : await this.#attempt(session, number, units);
      switch (result.kind) {
        case 'committed':
          link.adopt(number);
          link.proven();
          this.#observe(units.length, clock.monotonic() - startedAt);
          this.#writer.committed(units, this.#inserted);
          return;
        case 'refused':
          link.rolledBack();
          link.proven();
          this.#halve(units, result.sqlState, result.message);
          return;
        case 'again':
          link.rolledBack();
          await link.pause();
          break;
        case 'unknown':
          await link.retreat(session, result.trouble);
      }
    }
  }

  async #attempt(
    session: WriterSession,
    number: number,
    units: readonly WriterUnit[],
  ): Promise<FlushResult> {
    const gates = gateCommands(this.#writer.options.store.kinds, units);
    this.#link.sent = number;
    if (gates.length > 0) return this.#attemptGated(session, number, units, gates);
    this.#stage(number, units, undefined);
    const body = bodyCommands(this.#writer.options.store.kinds, units);
    // One exchange is one transaction: its Sync commits, a failure rolls all of it back.
    const answer = await this.#link.send(session, [
      this.#fence(number),
      ...body,
      ...this.#forgetting(number),
    ]);
    return answer.kind === 'done' ? COMMITTED : judge(answer, 1);
  }

  /**
   * Two exchanges, since the mutations depend on the results of the gates. The transaction must be
   * explicit: only then does Postgres end it if this engine is paused in between.
   */
  async #attemptGated(
    session: WriterSession,
    number: number,
    units: readonly WriterUnit[],
    gates: readonly Command[],
  ): Promise<FlushResult> {
    const link = this.#link;
    const gated = await link.send(session, [BEGIN_COMMAND, this.#fence(number), ...gates]);
    if (gated.kind !== 'done') return leave(session, judge(gated, 2));
    const inserted = new Set(gated.rows.map(([id]) => id!));
    this.#inserted = inserted;
    this.#stage(number, units, inserted);
    const body = bodyCommands(this.#writer.options.store.kinds, units, inserted);
    const answer = await link.send(session, [...body, ...this.#forgetting(number), COMMIT_COMMAND]);
    if (answer.kind !== 'done') return leave(session, judge(answer, 0));
    if (answer.tag === 'COMMIT') return COMMITTED;
    const trouble = databaseTrouble(undefined, `commit was answered ${answer.tag}`);
    return { kind: 'unknown', trouble };
  }

  #fence(number: number): Command {
    const values = [`${this.#index}`, `${this.#writer.options.epoch}`, `${number}`];
    return { statement: FENCE, values };
  }

  #forgetting(number: number): readonly Command[] {
    if (number % FLUSHES_KEPT > 0) return NO_COMMANDS;
    const [from, to] = [number - 2 * FLUSHES_KEPT, number - FLUSHES_KEPT];
    return [{ statement: FORGET_FLUSHES, values: [`${this.#index}`, `${from}`, `${to}`] }];
  }

  /** Called before the commit is sent, so that whoever sees the commit finds the counts. */
  #stage(number: number, units: readonly WriterUnit[], inserted: InsertedIds | undefined): void {
    const counts: UnitCounts[] = [];
    for (const unit of units) {
      if (unit.counts.length === 0) continue;
      const isVoid = unit.gate === 'exists' && inserted?.has(unit.gateKeys[0]!) !== true;
      if (!isVoid) counts.push(unit.counts);
    }
    this.#writer.options.ledger.stage(this.#index, number, counts);
  }

  #halve(units: readonly WriterUnit[], sqlState: string, message: string): void {
    const middle = units.length >> 1;
    if (middle === 0) this.#writer.refused(units[0]!, sqlState, message);
    else this.#halves.push(units.slice(middle), units.slice(0, middle));
  }

  #observe(units: number, flushMs: number): void {
    this.#writer.options.meter.observe('engine_writer_flush_seconds', flushMs / 1_000);
    this.#writer.options.meter.observe('engine_writer_flush_units', units);
  }
}

/** @param opening the number of commands before those of the units */
function judge(answer: Exclude<Answer, { kind: 'done' }>, opening: number): FlushResult {
  const { message } = answer;
  if (answer.kind === 'lost') {
    return { kind: 'unknown', trouble: databaseTrouble(undefined, message) };
  }
  const { sqlState, at } = answer;
  const isOfUnits = at >= opening;
  if (isOfUnits && sqlState.startsWith(CLASS_AGAIN)) return { kind: 'again' };
  if (isOfUnits && isFaultOfData(sqlState, message)) return { kind: 'refused', sqlState, message };
  // A new connection reads the owner of the lane again, and may have the missing right.
  return { kind: 'unknown', trouble: databaseTrouble(sqlState, message) };
}

/** Rolls back the failed transaction of an attempt whose connection is reused. */
async function leave(session: WriterSession, result: FlushResult): Promise<FlushResult> {
  if (result.kind === 'unknown') return result;
  try {
    await session.rollback();
    return result;
  } catch (error) {
    return { kind: 'unknown', trouble: troubleOf(error) };
  }
}
