/** The tables of part `paths`. Pure. */

import { type Cell, median, ratioOf, renderTable, round } from '../report.js';
import { verdictOf } from '../targets.js';
import type { Figure, Slice } from './checks.js';
import { type Cost, ROLES } from './cost.js';
import type { ThreadProfile } from './profile-report.js';
import type { Side } from './sides.js';

export interface Turn extends Cost {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface PathRow {
  readonly path: string;
  readonly operation: string;
  readonly insteadOf: string | undefined;
  readonly side: Side;
  readonly shards: number;
  /** Connections of the writer. */
  readonly lanes: number;
  readonly turns: readonly Turn[];
  /** Of the threads of its server, where they were asked for. */
  readonly profiles: readonly ThreadProfile[];
}

type Column = readonly [name: string, read: (turn: Turn) => number];

/** The column that is compared before all others. */
export const CPU_SUM = 'CPU µs/op';
const CPU: Column = [CPU_SUM, ({ cpu }) => cpu.sum];

const COLUMNS: readonly Column[] = [
  ['ops/s', (turn) => turn.perSecond],
  ['p50 ms', (turn) => turn.p50Ms],
  ['p99 ms', (turn) => turn.p99Ms],
  CPU,
  ...ROLES.map((role): Column => [role, ({ cpu }) => cpu[role]]),
  ['WAL B/op', (turn) => turn.walBytes],
  ['flushes/op', (turn) => turn.flushes],
];

const NAMES = COLUMNS.map(([name]) => name);

/** By the names of the columns. */
export type Figures = Readonly<Record<string, number>>;

/** Of each column the median over the turns. */
export function mediansOf({ turns }: PathRow): Figures {
  return Object.fromEntries(COLUMNS.map(([name, read]) => [name, median(turns.map(read))]));
}

export interface Ratios {
  readonly path: string;
  readonly ratios: Figures;
}

/**
 * This server by the other one: of each column the median over the pairs of turns, and between which
 * factors that of the processor time lies, as far as so few pairs can tell.
 */
export function ratiosOf(rows: readonly PathRow[]): readonly Ratios[] {
  return rows.flatMap((mine) => {
    const theirs = rows.find(({ path, side }) => path === mine.path && side === 'against');
    if (mine.side === 'against' || theirs === undefined) return [];
    const pairs = ([, read]: Column) =>
      mine.turns.map((turn, at) => read(turn) / read(theirs.turns[at]!));
    const medians = COLUMNS.map((column) => [column[0], median(pairs(column))] as const);
    const { low, high } = ratioOf(pairs(CPU));
    const ratios = { ...Object.fromEntries(medians), 'CPU from': low, to: high };
    return [{ path: mine.path, ratios }];
  });
}

export function costTable(rows: readonly PathRow[]): string {
  return renderTable(
    ['path', 'server', ...NAMES, 'lanes'],
    rows.map((row): Cell[] => [
      row.path,
      row.side,
      ...Object.values(mediansOf(row)).map(round),
      row.lanes,
    ]),
  );
}

export function ratioTable(all: readonly Ratios[]): string {
  return renderTable(
    ['this / against', ...Object.keys(all[0]?.ratios ?? {})],
    all.map(({ path, ratios }): Cell[] => [path, ...Object.values(ratios).map(round)]),
  );
}

/** What a path costs that does with fewer requests what another one does. */
export interface Saving {
  readonly path: string;
  readonly side: Side;
  readonly of: { readonly path: string; readonly side: Side };
  readonly share: number;
}

/** Beside the other server where there is one. */
export function savingsOf(rows: readonly PathRow[]): readonly Saving[] {
  const cpuOf = ({ turns }: PathRow) => median(turns.map(CPU[1]));
  return rows.flatMap((row) => {
    const same = rows.filter(({ path }) => path === row.insteadOf);
    const other = same.find(({ side }) => side === 'against') ?? same[0];
    if (other === undefined) return [];
    const { path, side } = row;
    const of = { path: other.path, side: other.side };
    return [{ path, side, of, share: cpuOf(row) / cpuOf(other) }];
  });
}

export function savingText({ path, side, of, share }: Saving): string {
  return `${path} (${side}): ${round(share)} of the CPU of ${of.path} (${of.side})`;
}

export interface CheckRow {
  readonly check: string;
  readonly asks: string;
  readonly side: Side;
  readonly figures: readonly Figure[];
  readonly slices?: readonly Slice[];
}

export function checkTable(rows: readonly CheckRow[]): string {
  return renderTable(
    ['check', 'server', 'figure', 'value', 'target'],
    rows.flatMap(({ check, side, figures }) =>
      figures.map(({ name, value, target }): Cell[] => [
        check,
        side,
        name,
        round(value),
        target === undefined ? '' : verdictOf(target, value),
      ]),
    ),
  );
}
