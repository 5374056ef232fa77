/**
 * Turns commit units into the statements of one flush, and the results into acknowledgements.
 * `db/statements.ts` has the SQL, `actors/writer/writer.ts` the connections. Pure.
 */

import type { UnitGate } from '../core/unit.js';
import type { UnitCounts } from '../metrics/ledger.js';
import { isLine, laidOver, type RowOfKind } from './lines.js';
import type { Forms, Statement } from './statements.js';
import type { Kind, Kinds } from './store.js';
import type { Ack, UnitEnvelope } from './units.js';

export interface RowsCommand {
  readonly statement: Statement;
  /** JSON objects, or lines; joined when they are encoded. */
  readonly rows: readonly string[];
  readonly areLines: boolean;
}

export interface BatchLimits {
  readonly rowsMax: number;
  /** In UTF-16 units: bytes, except for non-Latin scripts. */
  readonly bytesMax: number;
}

/** A unit with what batching needs, as `readUnit` derives it. */
export interface BatchUnit<Source = unknown> extends UnitEnvelope {
  readonly source: Source;
  readonly counts: UnitCounts;
  readonly rows: number;
  readonly bytes: number;
  readonly isBarrier: boolean;
  /** Ids of the rows whose inserts are gates. */
  readonly gateKeys: readonly string[];
}

export type InsertedIds = ReadonlySet<string>;

/** Keys in a batch creation begin with the UUID of the instance. */
const UUID_LENGTH = 36;
const NOTHING_INSERTED: InsertedIds = new Set();
const NO_KEYS: readonly string[] = [];
const NO_COUNTS: UnitCounts = [];

/** @throws Error on an envelope that no actor may send: an unknown kind, or a gate without an insert */
export function readUnit<Source>(
  kinds: Kinds,
  envelope: UnitEnvelope,
  source: Source,
): BatchUnit<Source> {
  const { seq, actor, incarnation, gate, mutations, counts = NO_COUNTS } = envelope;
  let bytes = 0;
  let isBarrier = false;
  for (let i = 0; i < mutations.length; i += 3) {
    isBarrier ||= kindAt(kinds, mutations, i).merge === 'barrier';
    bytes += (mutations[i + 2] as string).length;
  }
  const gateKeys = gate === 'none' ? NO_KEYS : gateKeysOf(kinds, gate, mutations);
  const rows = mutations.length / 3;
  // Not a spread: this runs for every unit.
  return {
    seq,
    actor,
    incarnation,
    gate,
    mutations,
    counts,
    source,
    rows,
    bytes,
    isBarrier,
    gateKeys,
  };
}

export class Batch<Unit extends BatchUnit> {
  readonly units: Unit[] = [];
  readonly #limits: BatchLimits;
  readonly #gateKeys: Set<string>;
  #rows = 0;
  #bytes = 0;

  /** @param gateKeys of all batches that are not settled; this one adds its own */
  constructor(limits: BatchLimits, gateKeys: Set<string>) {
    this.#limits = limits;
    this.#gateKeys = gateKeys;
  }

  /**
   * Adds the unit unless it has to wait: because of the limits (a larger unit is a batch of its own),
   * because either is a barrier, or because a gate of this batch or of another one in flight has the same
   * key. Results of two gates in one batch could not be told apart, and transactions at the same time do
   * not see each other's rows, which matters where the gates insert into different tables (`Gate.unless`).
   */
  tryAdd(unit: Unit): boolean {
    if (this.units.length > 0) {
      if (unit.isBarrier || this.units[0]!.isBarrier) return false;
      if (this.#rows + unit.rows > this.#limits.rowsMax) return false;
      if (this.#bytes + unit.bytes > this.#limits.bytesMax) return false;
    }
    if (unit.gateKeys.some((key) => this.#gateKeys.has(key))) return false;
    this.units.push(unit);
    this.#rows += unit.rows;
    this.#bytes += unit.bytes;
    for (const key of unit.gateKeys) this.#gateKeys.add(key);
    return true;
  }

  /** To be called when each unit is committed or refused. */
  settled(): void {
    for (const { gateKeys } of this.units) for (const key of gateKeys) this.#gateKeys.delete(key);
  }
}

/** The gated inserts of a batch, which run first; the next two functions need their results. */
export function gateCommands(kinds: Kinds, units: readonly BatchUnit[]): RowsCommand[] {
  const rows: RowsOfKinds = { objects: [], lines: [] };
  for (const unit of units) {
    if (unit.gate === 'none') continue;
    for (let i = 0; i < unit.mutations.length; i += 3) {
      if (!isGate(kinds, unit, i)) continue;
      append(rows, unit.mutations[i] as number, unit.mutations[i + 2] as string);
    }
  }
  return commandsOf(rows, (kind) => kinds[kind]!.gate!);
}

/**
 * The other mutations in the order of the kinds, except those of units whose gate found its row. Of a batch
 * creation only those of inserted instances.
 */
export function bodyCommands(
  kinds: Kinds,
  units: readonly BatchUnit[],
  inserted = NOTHING_INSERTED,
): RowsCommand[] {
  const all: RowsOfKinds = { objects: [], lines: [] };
  const latest = new Map<string, Map<string, RowOfKind>>();
  for (const unit of units) {
    if (unit.gate === 'exists' && !inserted.has(unit.gateKeys[0]!)) continue;
    const { mutations } = unit;
    for (let i = 0; i < mutations.length; i += 3) {
      const row = mutations[i + 2] as string;
      if (unit.gate !== 'none') {
        if (isGate(kinds, unit, i)) continue;
        if (unit.gate === 'batch' && !inserted.has(instanceOf(mutations, i))) continue;
      }
      const { mutation, merge, group } = kindAt(kinds, mutations, i);
      if (merge === 'latest') {
        const rows = latest.get(group) ?? new Map<string, RowOfKind>();
        if (rows.size === 0) latest.set(group, rows);
        const key = mutations[i + 1] as string;
        const { narrows } = mutation;
        const earlier = narrows && rows.get(key);
        const isNarrower = earlier !== undefined && narrows?.includes(earlier.mutation);
        rows.set(key, isNarrower ? laidOver(earlier, { mutation, row }) : { mutation, row });
      } else {
        append(all, mutations[i] as number, row);
      }
    }
  }
  for (const rows of latest.values()) {
    for (const { mutation, row } of rows.values()) append(all, mutation.place, row);
  }
  return commandsOf(all, (kind) => kinds[kind]!.forms);
}

export function committedAck(unit: BatchUnit, inserted = NOTHING_INSERTED): Ack {
  if (unit.gate === 'batch') {
    const ids = unit.gateKeys.filter((key) => inserted.has(key));
    return { seq: unit.seq, outcome: 'inserted', ids };
  }
  const isThere = unit.gate === 'exists' && !inserted.has(unit.gateKeys[0]!);
  return { seq: unit.seq, outcome: isThere ? 'exists' : 'committed' };
}

type RowsOfKinds = { readonly objects: string[][]; readonly lines: string[][] };

function append({ objects, lines }: RowsOfKinds, kind: number, row: string): void {
  const rows = isLine(row) ? lines : objects;
  const sofar = rows[kind];
  if (sofar === undefined) rows[kind] = [row];
  else sofar.push(row);
}

function commandsOf(
  { objects, lines }: RowsOfKinds,
  formsOf: (kind: number) => Forms,
): RowsCommand[] {
  const commands: RowsCommand[] = [];
  const kinds = Math.max(objects.length, lines.length);
  for (let kind = 0; kind < kinds; kind++) {
    const [ofObjects, ofLines] = [objects[kind], lines[kind]];
    if (ofObjects !== undefined) {
      commands.push({ statement: formsOf(kind).objects, rows: ofObjects, areLines: false });
    }
    if (ofLines === undefined) continue;
    const { lines: statement, objects: other } = formsOf(kind);
    if (statement === undefined) throw new Error(`${other.name} has no form for lines`);
    commands.push({ statement, rows: ofLines, areLines: true });
  }
  return commands;
}

function kindAt(kinds: Kinds, mutations: readonly (string | number)[], i: number): Kind {
  const kind = kinds[mutations[i] as number];
  if (kind === undefined) throw new Error(`mutation of unknown kind ${mutations[i]}`);
  return kind;
}

function instanceOf(mutations: readonly (string | number)[], i: number): string {
  return (mutations[i + 1] as string).slice(0, UUID_LENGTH);
}

/** `exists`: the first insert that can be a gate. `batch`: each insert of an instance. */
function gateKeysOf(
  kinds: Kinds,
  gate: UnitGate,
  mutations: readonly (string | number)[],
): string[] {
  const keys: string[] = [];
  for (let i = 0; i < mutations.length; i += 3) {
    const found = kindAt(kinds, mutations, i).gate;
    if (found === undefined || (gate === 'batch' && !found.isOfBatches)) continue;
    keys.push(mutations[i + 1] as string);
    if (gate === 'exists') return keys;
  }
  if (gate === 'exists') throw new Error('a gated unit without an insert to be its gate');
  return keys;
}

function isGate(kinds: Kinds, unit: BatchUnit, i: number): boolean {
  const { gate } = kindAt(kinds, unit.mutations, i);
  if (unit.gate === 'batch') return gate?.isOfBatches === true;
  return gate !== undefined && unit.mutations[i + 1] === unit.gateKeys[0];
}
