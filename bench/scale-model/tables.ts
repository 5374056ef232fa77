/**
 * The generated regions of docs/scale.md: what the model says, worked out anew each time, always the same. Pure.
 */

import { table } from '../../scripts/reference/markdown.js';
import type { Regions } from '../../scripts/reference/regions.js';
import { median, round } from '../report.js';
import { ASSUMPTIONS, assumed } from './assumptions.js';
import { createDraws } from './draws.js';
import { causes, unavailability } from './failures.js';
import { cellsOfServer, connectionsOfCell, fleetOf } from './limits.js';
import { largestOf, moves } from './moves.js';
import { cellsOfBuckets, fullest, place, sizesOf } from './placement.js';

/** Of every table: five fleets that have nothing but their laws in common. */
const SEEDS = [1, 2, 3, 4, 5] as const;

/** `equal`: all tenants are of one size. */
const TAILS = ['equal', 2.5, 2, 1.5, 1.2, 1.1] as const;
const BY_HAND = [0, 20, 200, 2_000] as const;
const FLEETS = [1, 3, 10, 30, 100, 300, 1_000] as const;
/** Of the hash alone: beyond, a bucket is as good as a cell. */
const HASHED = [3, 10, 30, 100, 300] as const;
const BOUNDS = [1.1, 1.25, 1.5, 2] as const;
const PER_SERVER = [1, 5, 20, 100] as const;
const HOUR_SECONDS = 3_600;

export function scaleRegions(): Regions {
  // Some hundred thousand hashes: once.
  const chosen = cellsOfBuckets(assumed('cells'));
  return {
    assumptions: assumptions(),
    placement: placement(chosen),
    buckets: buckets(),
    moves: movesTable(chosen),
    causes: causesTable(),
    failures: failures(),
    servers: servers(),
    fleets: fleets(),
  };
}

/** Grouped by threes, with three digits that count. */
function text(value: number): string {
  const rounded = round(value);
  return Math.abs(rounded) >= 1_000 ? rounded.toLocaleString('en') : String(rounded);
}

const percent = (share: number) => `${text(100 * share)} %`;

function assumptions(): string {
  return table(
    ['what', 'value', 'from'],
    Object.values(ASSUMPTIONS).map(({ what, value, unit, from }) => [
      what,
      `${value.toLocaleString('en', { maximumFractionDigits: 3 })} ${unit}`.trim(),
      from,
    ]),
  );
}

function sizesBy(seed: number, tail: (typeof TAILS)[number]): number[] {
  const tenants = assumed('tenants');
  if (tail === 'equal') return Array<number>(tenants).fill(1);
  return sizesOf(createDraws(seed), tenants, tail);
}

function placement(buckets: ReadonlyMap<string, number>): string {
  const cells = assumed('cells');
  const rows = TAILS.map((tail) => {
    const fleets = SEEDS.map((seed) => sizesBy(seed, tail));
    const largest = fleets.map((sizes) => {
      const mean = sizes.reduce((sum, size) => sum + size, 0) / cells;
      return Math.max(...sizes) / mean;
    });
    const full = BY_HAND.map((byHand) =>
      median(fleets.map((sizes) => fullest(place(sizes, buckets, cells, byHand)))),
    );
    return [String(tail), text(median(largest)), ...full.map(text)];
  });
  const heads = BY_HAND.map((byHand) =>
    byHand === 0 ? 'fullest by the hash alone' : `the largest ${text(byHand)} by hand`,
  );
  return table(['exponent', 'largest tenant', ...heads], rows);
}

function buckets(): string {
  const rows = HASHED.map((cells) => {
    const counts = Array<number>(cells).fill(0);
    for (const cell of cellsOfBuckets(cells).values()) counts[cell]!++;
    const mean = counts.reduce((sum, count) => sum + count, 0) / cells;
    const most = Math.max(...counts);
    return [cells, mean, Math.min(...counts), most, most / mean].map(text);
  });
  return table(['cells', 'buckets of each at the mean', 'least', 'most', 'most beside mean'], rows);
}

function movesTable(buckets: ReadonlyMap<string, number>): string {
  const cells = assumed('cells');
  const rows = BOUNDS.map((bound) => {
    const runs = SEEDS.slice(0, 3).map((seed) => {
      const draws = createDraws(seed, 1);
      const drawn = sizesOf(createDraws(seed), assumed('tenants'), assumed('tailExponent'));
      const most = largestOf({ sizes: drawn, loads: Array<number>(cells) });
      const sizes = drawn.map((size) => Math.min(most, size));
      return moves(place(sizes, buckets, cells, 0), buckets, draws, bound);
    });
    const of = (pick: (run: (typeof runs)[number]) => number) => median(runs.map(pick));
    const perDay = of((run) => run.perDay);
    const pauses = (perDay * 365 * assumed('movePauseSeconds')) / assumed('tenants');
    return [
      `${bound} ×`,
      text(of((run) => run.atFirst)),
      text(perDay),
      text(of((run) => run.dayMax)),
      percent(of((run) => run.loadPerDay)),
      text(of((run) => run.daysAbove)),
      text(pauses),
    ];
  });
  return table(
    [
      'fullest cell at most',
      'moves at first',
      'moves a day then',
      'on the worst day',
      'load moved a day',
      'days on which it cannot be kept',
      'pause of a tenant in a year, seconds at the mean',
    ],
    rows,
  );
}

function causesTable(): string {
  return table(
    ['what', 'takes away', 'in a year', 'seconds each', 'seconds in a year'],
    causes().map(({ what, of, perYear, seconds }) => [
      what,
      of === 'cell' ? 'one cell' : 'all cells of that Postgres',
      text(perYear),
      text(seconds),
      text(perYear * seconds),
    ]),
  );
}

function failures(): string {
  const cells = assumed('cells');
  const rows = PER_SERVER.map((perServer) => {
    const away = unavailability(createDraws(SEEDS[0], 2), cells, perServer);
    return [
      text(perServer),
      text(away.servers),
      text(away.expected),
      text(away.median),
      text(away.p99),
      `${(100 * away.availability).toFixed(4)} %`,
      text(away.serverEventsPerYear),
      percent(away.shareOfOne),
      text(away.someAway / HOUR_SECONDS),
    ];
  });
  return table(
    [
      'cells of one Postgres',
      'Postgres',
      'seconds away in a year, mean',
      'in a median year',
      'in one year of a hundred',
      'served',
      'Postgres lost in a year, in all',
      'tenants away at once then',
      'hours of a year in which some cell is away',
    ],
    rows,
  );
}

function servers(): string {
  const { byConnections, byWal, byWalAtMost } = cellsOfServer();
  return table(
    ['cells that one Postgres can have', ''],
    [
      [`by connections: ${connectionsOfCell()} of each cell`, text(byConnections)],
      ['by its log, at the mean load', text(byWal)],
      ['by its log, when all do what is planned', text(byWalAtMost)],
    ],
  );
}

function fleets(): string {
  const rows = FLEETS.map((cells) => {
    const fleet = fleetOf(cells);
    return [
      fleet.cells,
      fleet.roundsPerSecond,
      fleet.servers,
      fleet.directoryConnections,
      fleet.probesPerSecond,
      fleet.proxyCores,
      fleet.bucketsPerCell,
    ].map(text);
  });
  const entries = [4_096, assumed('tenants'), 100_000, 1_000_000];
  const map = entries.map((count) => [text(count), text((count * assumed('mapEntryBytes')) / 1e6)]);
  return [
    table(
      [
        'cells',
        'rounds a second',
        'Postgres',
        'connections to the directory',
        'checks a second of one proxy',
        'cores of all proxies',
        'buckets of a cell',
      ],
      rows,
    ),
    table(['tenants in the map of a proxy', 'MB'], map),
  ].join('\n\n');
}
