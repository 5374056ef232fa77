/** The generated regions of docs/performance.md, each by the stored results of its parts. Pure. */

import { code, table } from '../../scripts/reference/markdown.js';
import type { Regions } from '../../scripts/reference/regions.js';
import { CHECK_NAMES } from '../load/checks.js';
import { ROLES } from '../load/cost.js';
import { HERD_NAMES } from '../load/herd-names.js';
import { CPU_SUM, type Figures } from '../load/path-report.js';
import { PATH_NAMES, PATHS } from '../load/path-table.js';
import type { StoredCheck, StoredPath } from '../load/paths.js';
import type { ThreadProfile } from '../load/profile-report.js';
import type { Side } from '../load/sides.js';
import type { StoredTimers } from '../load/timers.js';
import type { Engine } from '../peers/driver.child.js';
import type { StoredPeers } from '../peers/run.js';
import { WORK_NAMES } from '../peers/works.js';
import { round } from '../report.js';
import type { PendingRow } from '../scale/pending.js';
import type { StoredGrowth } from '../scale/run.js';
import type { WaitingRow } from '../scale/waiting.js';
import {
  isOfPressure,
  isReached,
  limitOf,
  type Reached,
  TARGET_NAMES,
  TARGETS,
} from '../targets.js';
import { type Costs, carriedBy, limitsOf, PLANNED_SHARE } from './carry.js';
import type { Stored, StoredParts } from './stored.js';

export const NOT_MEASURED = 'Not measured.';
/** The folder of the pictures, from the page. */
export const PICTURES = 'images/performance';
/** The paths whose threads are shown, and the threads. */
export const FLAME_PATHS = ['noop256', 'round64'] as const;
export const FLAME_ROLES = ['front', 'shard', 'writer'] as const;
export const PEERS: readonly Engine[] = ['own', 'pg-boss', 'graphile-worker', 'bullmq'];

/** One of each kind: those with more workers or connections. */
const SIZED = ['noop256', 'external64', 'claim64', 'round64', 'exchange64', 'batch500'] as const;
const CORES = [2, 4, 8, 16] as const;
const LANES = [1, 4] as const;
const TOP = 8;

/** @param pictures those that there are, by their names */
export function regionsOf(parts: StoredParts, pictures: ReadonlySet<string>): Regions {
  const withPicture = (name: string, told: string, text: string) =>
    pictures.has(name) ? `![${told}](${PICTURES}/${name})\n\n${text}` : text;
  return {
    sources: sources(parts),
    aims: aims(parts),
    cost: withPicture(
      'cpu.svg',
      'Processor time of the whole machine per operation, by thread, this version and the one before',
      cost(parts),
    ),
    floor: floor(parts),
    idle: idle(parts),
    growth: withPicture('growth.svg', 'Growth from a thousand to a million', growth(parts)),
    timers: timers(parts),
    peers: withPicture('peers.svg', 'The same work by other engines, in turns', peers(parts)),
    minute: withPicture('minute.svg', 'A minute at full load', check(parts, 'minute')),
    checks: CHECK_NAMES.filter((name) => name !== 'minute')
      .map((name) => check(parts, name))
      .join('\n\n'),
    threads: threads(parts),
    sizing: sizing(parts),
    profiles: profiles(parts, pictures),
  };
}

export function pathOf(parts: StoredParts, name: string) {
  return parts.get<StoredPath>(`paths ${name}`);
}

/** Of one side of a path. */
export function sideOf({ results }: Stored<StoredPath>, wanted: Side): Figures | undefined {
  return results.sides.find(({ side }) => side === wanted)?.medians;
}

export function waitingOf(parts: StoredParts) {
  return parts.get<StoredGrowth<WaitingRow>>('scale waiting');
}

export function pendingOf(parts: StoredParts) {
  return parts.get<StoredGrowth<PendingRow>>('scale pending');
}

export function peersOf(parts: StoredParts): readonly Stored<StoredPeers>[] {
  return WORK_NAMES.flatMap((name) => parts.get<StoredPeers>(`peers ${name}`) ?? []);
}

/** Of the busiest thread of that role, where there are several. */
export function profileOf(parts: StoredParts, path: string, role: string) {
  const stored = parts.get<StoredPath>(`explained ${path}`);
  const threads = stored?.results.sides.find(({ side }) => side === 'this')?.profiles ?? [];
  const [profile] = threads
    .filter((thread) => thread.role === role)
    .sort((a, b) => b.busyMs - a.busyMs);
  return stored === undefined || profile === undefined ? undefined : { stored, profile };
}

export function flameName(path: string, role: string): string {
  return `flame-${path}-${role}.svg`;
}

/** Grouped by threes, as people read them. */
export function text(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '–';
  const rounded = round(value);
  return Math.abs(rounded) >= 1_000 ? rounded.toLocaleString('en') : String(rounded);
}

export function measuredTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  return rows.length === 0 ? NOT_MEASURED : table(heads, rows);
}

/** The parts of the page, in its order. */
const MEASURED = [
  ...[...PATH_NAMES, ...CHECK_NAMES].map((name) => `paths ${name}`),
  'latency',
  'scale waiting',
  'scale pending',
  ...HERD_NAMES.map((name) => `timers ${name}`),
  ...WORK_NAMES.map((name) => `peers ${name}`),
];
/** They tell where time goes, and reach nothing: a profile costs time itself. */
const EXPLAINING = FLAME_PATHS.map((name) => `explained ${name}`);

export function foundIn(parts: StoredParts, names: readonly string[]): readonly Stored[] {
  return names.flatMap((name) => parts.get<{ readonly reached: Reached }>(name) ?? []);
}

function sources(parts: StoredParts): string {
  return sourcesOf(foundIn(parts, [...MEASURED, ...EXPLAINING]));
}

/** Where and when each part was measured. */
export function sourcesOf(found: readonly Stored[]): string {
  return measuredTable(
    ['part', 'measured', 'version', 'beside', 'seconds × rounds', 'machine'],
    found.map(({ name, at, commit, settings, machine }) => [
      code(name),
      `${at.slice(0, 10)} ${at.slice(11, 16)}`,
      String(settings.this ?? commit ?? '–'),
      String(settings.against ?? '–'),
      `${settings.seconds ?? '–'} × ${settings.rounds ?? '–'}`,
      `${machine.processor}, ${machine.cores} cores, ${machine.memoryGb} GB, Node ${machine.node}, ` +
        `Postgres ${settings.postgres}`,
    ]),
  );
}

function aims(parts: StoredParts): string {
  // Each target is measured by one part.
  const reached: Reached = Object.assign(
    {},
    ...foundIn(parts, MEASURED).map(({ results }) => results.reached),
  );
  const rows = TARGET_NAMES.filter((name) => !isOfPressure(name)).map((name) => {
    const value = reached[name];
    const { what, unit } = TARGETS[name];
    return value === undefined
      ? [what, limitOf(name), 'not measured', '']
      : [
          what,
          limitOf(name),
          `${text(value)}${unit}`,
          isReached(name, value) ? 'reached' : '**missed**',
        ];
  });
  return table(['what', 'aim', 'measured', ''], rows);
}

function cost(parts: StoredParts): string {
  const rows = PATHS.flatMap(({ name, operation }) => {
    const stored = pathOf(parts, name);
    const own = stored && sideOf(stored, 'this');
    if (stored === undefined || own === undefined) return [];
    const ratios = stored.results.ratios?.ratios;
    const between = ratios && `${text(ratios['CPU from'])} to ${text(ratios.to)}`;
    return [
      [
        code(name),
        operation,
        text(own['ops/s']),
        text(own['p50 ms']),
        text(own['p99 ms']),
        text(own[CPU_SUM]),
        text(sideOf(stored, 'against')?.[CPU_SUM]),
        ratios === undefined ? '–' : `${text(ratios[CPU_SUM])} (${between})`,
        text(own['WAL B/op']),
        text(own['flushes/op']),
      ],
    ];
  });
  const heads = ['path', 'one operation', 'per second', 'p50 ms', 'p99 ms', 'CPU µs', 'before'];
  const main = measuredTable([...heads, 'ratio', 'log bytes', 'flushes'], rows);
  const savings = PATHS.flatMap(({ name }) => {
    const saving = pathOf(parts, name)?.results.saving;
    if (saving == null) return [];
    const server = saving.of.side === 'against' ? 'the version before' : 'this version';
    return [`- ${code(name)}: ${text(saving.share)} of ${code(saving.of.path)} of ${server}`];
  });
  if (savings.length === 0) return main;
  const said = 'The same work with fewer requests, in processor time of one run:';
  return [main, said, savings.join('\n')].join('\n\n');
}

interface StoredIdle {
  readonly rows: readonly { name: string; side: Side; p50Ms: number; p99Ms: number }[];
}

function idle(parts: StoredParts): string {
  const rows = parts.get<StoredIdle>('latency')?.results.rows ?? [];
  return measuredTable(
    ['one at a time', 'server', 'p50 ms', 'p99 ms'],
    rows.map(({ name, side, p50Ms, p99Ms }) => [
      name,
      side === 'this' ? 'this version' : 'before',
      text(p50Ms),
      text(p99Ms),
    ]),
  );
}

function growth(parts: StoredParts): string {
  const waiting = waitingOf(parts)?.results.rows ?? [];
  const pending = pendingOf(parts)?.results.rows ?? [];
  const waitingTable = measuredTable(
    [
      'waiting instances',
      'ready ms',
      'resident MiB',
      'bytes each',
      'new one p99 ms',
      'on an empty server',
      'ratio',
      'lateness p50 ms',
      'p99 ms',
    ],
    waiting.map((row) => [
      text(row.waiting),
      text(row.readyMs),
      text(row.residentMib),
      text(row.bytesEach),
      text(row.p99Ms),
      text(row.emptyP99Ms),
      text(row.p99Ratio),
      text(row.latenessP50Ms),
      text(row.latenessP99Ms),
    ]),
  );
  const pendingTable = measuredTable(
    [
      'pending tasks',
      'ready ms',
      'resident MiB',
      'poll of 50 p50 ms',
      'p99 ms',
      'with 100 pending p50 ms',
      'p99 ms',
      'ratio of p50',
    ],
    pending.map((row) => [
      text(row.pending),
      text(row.readyMs),
      text(row.residentMib),
      text(row.pollP50Ms),
      text(row.pollP99Ms),
      text(row.fewP50Ms),
      text(row.fewP99Ms),
      text(row.p50Ratio),
    ]),
  );
  return `Waiting instances:\n\n${waitingTable}\n\nPending tasks:\n\n${pendingTable}`;
}

function timers(parts: StoredParts): string {
  const rows = HERD_NAMES.flatMap(
    (name) => parts.get<StoredTimers>(`timers ${name}`)?.results.rows ?? [],
  );
  return measuredTable(
    [
      'due in one second',
      'before',
      'lateness p50 ms',
      'p99 ms',
      'max ms',
      'creation of another tenant, idle p99 ms',
      'meanwhile',
      'resident MiB before',
      'at most',
      'server µs each',
      'Postgres µs each',
    ],
    rows.map((row) => [
      text(row.herd),
      row.name === 'created' ? 'in memory' : 'in the database only',
      ...[row.lateness.p50, row.lateness.p99, row.lateness.max].map(text),
      ...[row.idle.p99, row.meanwhile.p99, row.idleMib, row.peakMib].map(text),
      ...[row.serverUs, row.postgresUs].map(text),
    ]),
  );
}

function peers(parts: StoredParts): string {
  const others = PEERS.filter((engine) => engine !== 'own');
  return measuredTable(
    ['per second', 'this server', ...others, ...others.map((name) => `beside ${name}`)],
    peersOf(parts).map(({ results: { row } }) => [
      row.title,
      ...PEERS.map((engine) => text(row.of[engine])),
      ...others.map((engine) =>
        row.ratio[engine] === undefined ? '–' : `${text(row.ratio[engine])} ×`,
      ),
    ]),
  );
}

function check(parts: StoredParts, name: string): string {
  const stored = parts.get<StoredCheck>(`paths ${name}`);
  const own = stored?.results.sides.find(({ side }) => side === 'this');
  if (own === undefined) return `${code(name)}: not measured.`;
  return table(
    [`${name}: ${own.asks}`, ''],
    own.figures.map((figure) => [figure.name, text(figure.value)]),
  );
}

/** @returns undefined: not measured */
/** What would be left of each path if nothing of the server but its front cost anything. */
function floor(parts: StoredParts): string {
  const rows = PATHS.flatMap(({ name }) => {
    const costs = costsOf(parts, name);
    const stored = pathOf(parts, name);
    const before = stored && sideOf(stored, 'against')?.[CPU_SUM];
    if (costs === undefined || before === undefined) return [];
    const outside = costs.postgres + costs.client;
    const least = [outside, outside + costs.front];
    const ratio = stored?.results.ratios?.ratios[CPU_SUM];
    return [[code(name), ...least.map((µs) => text(µs / before)), text(ratio)]];
  });
  const heads = ['path', 'Postgres and clients alone', 'with the front', 'all of it'];
  return measuredTable(heads, rows);
}

function costsOf(parts: StoredParts, name: string): Costs | undefined {
  const stored = pathOf(parts, name);
  const own = stored && sideOf(stored, 'this');
  if (own === undefined) return undefined;
  return Object.fromEntries(ROLES.map((role) => [role, own[role]!])) as Costs;
}

function threads(parts: StoredParts): string {
  const rows = PATHS.flatMap(({ name }) => {
    const costs = costsOf(parts, name);
    if (costs === undefined) return [];
    const alone = limitsOf(costs, { shards: 1, lanes: 1 });
    const of = (who: string) => alone.find(({ by }) => by === who)!.perSecond;
    const single = alone.filter(({ by }) => by === 'front' || by === 'writer');
    return [
      [
        code(name),
        ...ROLES.map((role) => text(costs[role])),
        ...['front', 'shard', 'writer', 'Postgres'].map((who) => text(of(who))),
        alone[0]!.by,
        single[0]!.by,
      ],
    ];
  });
  const heads = ROLES.map((role) => `${role} µs`);
  return measuredTable(
    [
      'path',
      ...heads,
      'front: per second',
      'one shard',
      'writer',
      'one connection to Postgres',
      'first',
      'first of those that are one',
    ],
    rows,
  );
}

function sizing(parts: StoredParts): string {
  const tables = LANES.map((lanes) => {
    const rows = SIZED.flatMap((name) => {
      const costs = costsOf(parts, name);
      if (costs === undefined) return [];
      const cells = CORES.map((cores) => {
        const { perSecond, by } = carriedBy(costs, {
          cores,
          shards: Math.max(1, cores - 1),
          lanes,
        });
        return `${text(perSecond)} (${by})`;
      });
      return [[code(name), ...cells]];
    });
    const heads = ['operations per second', ...CORES.map((cores) => `${cores} cores`)];
    const said =
      lanes === 1 ? 'One connection of the writer' : `${lanes} connections of the writer`;
    return `${said}:\n\n${measuredTable(heads, rows)}`;
  });
  const share = `Planned for ${100 * PLANNED_SHARE} % of what is full first, which stands in brackets.`;
  return [share, ...tables].join('\n\n');
}

const ORIGINS = [
  ['own', 'own code'],
  ['package', 'packages'],
  ['node', 'Node'],
  ['engine', 'V8'],
] as const;

function profiles(parts: StoredParts, pictures: ReadonlySet<string>): string {
  const shown = FLAME_PATHS.flatMap((path) =>
    FLAME_ROLES.flatMap((role) => {
      const one = profileOf(parts, path, role);
      return one === undefined ? [] : [{ path, role, profile: one.profile }];
    }),
  );
  if (shown.length === 0) return NOT_MEASURED;
  const shares = table(
    ['path', 'thread', ...ORIGINS.map(([, said]) => said), 'most time in'],
    shown.map(({ path, role, profile }) => [
      code(path),
      role,
      ...ORIGINS.map(([origin]) => percent(profile.byOrigin[origin], profile)),
      profile.top
        .slice(0, TOP)
        .map(({ name, ms }) => `${code(shortName(name))} ${percent(ms, profile)}`)
        .join(', '),
    ]),
  );
  const graphs = shown
    .filter(({ path, role }) => pictures.has(flameName(path, role)))
    .map(({ path, role }) => {
      const told = `Flame graph of the ${role} under ${path}`;
      return `${code(path)}, ${role}:\n\n[![${told}](${PICTURES}/${flameName(path, role)})](${PICTURES}/${flameName(path, role)})`;
    });
  return [shares, ...graphs].join('\n\n');
}

function percent(ms: number, { busyMs }: ThreadProfile): string {
  return `${text((100 * ms) / busyMs)} %`;
}

/** Without the folders of its file: the flame graph has them. */
function shortName(name: string): string {
  const [called = '', where] = name.split(' ');
  return where === undefined ? called : `${called} ${where.split('/').at(-1)}`;
}
