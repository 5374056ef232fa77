/** The pictures of docs/performance.md, drawn by the stored results; what was not measured has none. Pure. */

import { type BarGroup, renderBars } from '../chart/bars.js';
import { type Panel, renderPanels } from '../chart/lines.js';
import { ROLES } from '../load/cost.js';
import { flameGraph, flameOf } from '../load/flame-graph.js';
import { CPU_SUM, type Figures } from '../load/path-report.js';
import { PATHS } from '../load/path-table.js';
import type { StoredCheck } from '../load/paths.js';
import { round } from '../report.js';
import type { PendingRow } from '../scale/pending.js';
import type { WaitingRow } from '../scale/waiting.js';
import { TARGETS } from '../targets.js';
import {
  FLAME_PATHS,
  FLAME_ROLES,
  flameName,
  PEERS,
  pathOf,
  peersOf,
  pendingOf,
  profileOf,
  sideOf,
  waitingOf,
} from './regions.js';
import type { StoredParts } from './stored.js';

/** By the names of their files. */
export function picturesOf(parts: StoredParts): Readonly<Record<string, string>> {
  return {
    ...cpuPicture(parts),
    ...growthPicture(parts),
    ...peersPicture(parts),
    ...minutePicture(parts),
    ...flames(parts),
  };
}

function cpuPicture(parts: StoredParts) {
  const groups = PATHS.flatMap(({ name, operation }): BarGroup[] => {
    const stored = pathOf(parts, name);
    if (stored === undefined) return [];
    const bar = (label: string, figures: Figures | undefined) =>
      figures === undefined
        ? []
        : [
            {
              label,
              parts: ROLES.map((role) => figures[role]!),
              text: `${round(figures[CPU_SUM]!)} µs`,
            },
          ];
    const bars = [
      ...bar('before', sideOf(stored, 'against')),
      ...bar('now', sideOf(stored, 'this')),
    ];
    return [{ title: `${name}: ${operation}`, bars }];
  });
  if (groups.length === 0) return {};
  const title = 'Processor time of the whole machine per operation, µs';
  const look = { legend: ROLES, isScaledByGroup: false };
  return { 'cpu.svg': renderBars(title, groups, look) };
}

function growthPicture(parts: StoredParts) {
  const panels = growthPanels(
    waitingOf(parts)?.results.rows ?? [],
    pendingOf(parts)?.results.rows ?? [],
  );
  if (panels.length === 0) return {};
  const title = 'Growth: what many waiting instances and pending tasks cost';
  return { 'growth.svg': renderPanels(title, panels, 'logarithmic', 'instances or tasks') };
}

/** Exported for the tests. */
export function growthPanels(
  waiting: readonly WaitingRow[],
  pending: readonly PendingRow[],
): readonly Panel[] {
  const ofWaiting = (name: string, read: (row: WaitingRow) => number) => ({
    name,
    points: waiting.map((row) => [row.waiting, read(row)] as const),
  });
  const ofPending = (name: string, read: (row: PendingRow) => number) => ({
    name,
    points: pending.map((row) => [row.pending, read(row)] as const),
  });
  const panels: Panel[] = [
    {
      title: 'resident memory of the server, MiB',
      series: [
        ofWaiting('waiting', (row) => row.residentMib),
        ofPending('pending', (row) => row.residentMib),
      ],
    },
    {
      title: 'from SIGKILL and exec to ready, ms',
      series: [
        ofWaiting('waiting', (row) => row.readyMs),
        ofPending('pending', (row) => row.readyMs),
      ],
      target: TARGETS['scale ready'].limit.atMost,
    },
    {
      title: 'a new instance, created to completed, ms',
      series: [
        ofWaiting('p99', (row) => row.p99Ms),
        ofWaiting('p99, empty server', (row) => row.emptyP99Ms),
        ofWaiting('p50', (row) => row.p50Ms),
        ofWaiting('p50, empty server', (row) => row.emptyP50Ms),
      ],
    },
    {
      title: 'lateness of timers due within one second, ms',
      series: [
        ofWaiting('p99', (row) => row.latenessP99Ms),
        ofWaiting('p50', (row) => row.latenessP50Ms),
      ],
      target: TARGETS['scale lateness'].limit.atMost,
    },
    {
      title: 'a poll of 50, p50 ms',
      series: [
        ofPending('so many pending', (row) => row.pollP50Ms),
        ofPending('100 pending', (row) => row.fewP50Ms),
      ],
    },
  ];
  return panels.filter(({ series }) => series.some(({ points }) => points.length > 0));
}

const PEER_TITLE =
  'The same work by other engines: jobs per second (idle: ms); strokes are single rounds';

function peersPicture(parts: StoredParts) {
  const groups = peersOf(parts).map(({ results: { row, rounds } }): BarGroup => {
    const bars = PEERS.map((engine) => {
      const value = row.of[engine];
      const marks = rounds.flatMap((figures) => figures[engine] ?? []);
      const label = engine === 'own' ? 'this server' : engine;
      // An engine that cannot do it keeps its place, and so its colour.
      return value === undefined
        ? { label, parts: [0], text: 'none' }
        : { label, parts: [value], marks };
    });
    return { title: row.title, bars };
  });
  if (groups.length === 0) return {};
  return { 'peers.svg': renderBars(PEER_TITLE, groups, { legend: [], isScaledByGroup: true }) };
}

function minutePicture(parts: StoredParts) {
  const sides = parts.get<StoredCheck>('paths minute')?.results.sides;
  const slices = sides?.find(({ side }) => side === 'this')?.slices ?? [];
  if (slices.length === 0) return {};
  type Slice = (typeof slices)[number];
  const series = (name: string, read: (slice: Slice) => number) => ({
    name,
    points: slices.map((slice, at) => [at + 1, read(slice)] as const),
  });
  const panels: Panel[] = [
    { title: 'creations per second', series: [series('per second', (one) => one.perSecond)] },
    {
      title: 'time of an answer, ms',
      series: [series('p99', (one) => one.p99Ms), series('p50', (one) => one.p50Ms)],
    },
    { title: 'memory of the server, MiB', series: [series('resident', (one) => one.residentMib)] },
  ];
  const title = 'At full load, second by second';
  return { 'minute.svg': renderPanels(title, panels, 'linear', 'seconds') };
}

function flames(parts: StoredParts): Readonly<Record<string, string>> {
  const drawn = FLAME_PATHS.flatMap((path) =>
    FLAME_ROLES.flatMap((role) => {
      const one = profileOf(parts, path, role);
      if (one === undefined) return [];
      const { stored, profile } = one;
      const version = stored.settings.this ?? stored.commit;
      const title = `${role} under ${path}, version ${version}: busy ${round(profile.busyMs)} ms`;
      return [[flameName(path, role), flameGraph(flameOf(profile.flame), title)]];
    }),
  );
  return Object.fromEntries(drawn);
}
