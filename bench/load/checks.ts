/**
 * Checks: ratios within one run of one server, each with what it must reach. They are told apart from paths
 * because what is compared is not one operation's cost but the same work under two circumstances.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { benchBits, createBody, STEPS, STEPS_HANDLER } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { measureSnapshot } from '../pressure/snapshot.js';
import { median, round } from '../report.js';
import type { TargetName } from '../targets.js';
import { startMeter } from './cost.js';
import { readResidentMib } from './process-cpu.js';
import { postRequest } from './requests.js';
import type { LoadContext } from './run.js';
import { creationsOf, type Variant } from './server.js';
import type { Candidate } from './sides.js';
import { OUTPUT } from './worker-jobs.js';

/** One number of a check. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly target?: TargetName;
}

/** One second of a check. */
export interface Slice {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly residentMib: number;
}

export interface Found {
  readonly figures: readonly Figure[];
  /** How it went on, second by second. */
  readonly slices?: readonly Slice[];
}

export interface Check {
  readonly name: string;
  readonly asks: string;
  readonly sequence: Variant;
  readonly measure: (
    context: LoadContext,
    options: BenchOptions,
    candidate: Candidate,
  ) => Promise<Found>;
}

export const CHECKS: readonly Check[] = [
  {
    name: 'context',
    asks: 'Is the size of a context that no step changes written again with each step?',
    sequence: 'steps',
    measure: measureContext,
  },
  {
    name: 'snapshot',
    asks: 'What do whole rounds lose while another session holds an old snapshot?',
    sequence: 'external',
    measure: measureSnapshot,
  },
  {
    name: 'minute',
    asks: 'Do latency and memory stay where they are at full load?',
    sequence: 'noop',
    measure: measureMinute,
  },
];

export const CHECK_NAMES: readonly string[] = CHECKS.map(({ name }) => name);

const CONTEXT_WORKERS = 16;
/** Longer than the steps take: the run ends with the last of them. */
const CONTEXT_MS_MAX = 120_000;
const KIB = 1_024;
const SMALL_BYTES = KIB;
const OUTPUTS = [
  { title: 'empty output', output: {}, target: { target: 'check context' } },
  { title: 'output merged', output: OUTPUT, target: {} },
] as const;
/** The largest context that is accepted, less the JSON around the text. */
const LARGE_BYTES = 256 * KIB - 64;

/** With outputs that have no members, and with those of part `paths`, which are merged into the context. */
async function measureContext(
  context: LoadContext,
  options: BenchOptions,
  candidate: Candidate,
): Promise<Found> {
  const figures: Figure[] = [];
  for (const { title, output, target } of OUTPUTS) {
    const walBytes = { small: [] as number[], large: [] as number[] };
    for (let at = 0; at < options.rounds; at += 1) {
      walBytes.small.push(await walPerStep(context, options, candidate, SMALL_BYTES, output));
      walBytes.large.push(await walPerStep(context, options, candidate, LARGE_BYTES, output));
    }
    const small = median(walBytes.small);
    const large = median(walBytes.large);
    figures.push(
      { name: `log per step, ${title}, context of 1 KiB, bytes`, value: small },
      { name: `the same, context of 256 KiB, bytes`, value: large },
      { name: 'the same, 256 KiB by 1 KiB', value: large / small, ...target },
    );
  }
  return { figures };
}

/** Instances have a text of so many bytes, which their steps leave as it is. */
async function walPerStep(
  { postgres, generator }: LoadContext,
  { contextInstances }: BenchOptions,
  { server, roles }: Candidate,
  bytes: number,
  output: object,
): Promise<number> {
  const body = { ...createBody(server.sequenceId), context: { data: { text: randomText(bytes) } } };
  await postgres.checkpoint();
  await generator.run({
    kind: 'loop',
    port: server.port,
    connections: 1,
    requests: [postRequest('/instances', JSON.stringify(body))],
    status: 201,
    limit: { replies: contextInstances },
  });
  await server.db.query('vacuum (analyze)');
  const stopMeter = await startMeter(postgres, server);
  const { answered } = await generator.run({
    kind: 'drain',
    port: server.port,
    workers: CONTEXT_WORKERS,
    handler: STEPS_HANDLER,
    limit: 1,
    tasks: contextInstances * STEPS,
    output,
    ms: CONTEXT_MS_MAX,
  });
  return (await stopMeter(roles, answered)).walBytes;
}

/** Letters that Postgres cannot compress away. */
function randomText(bytes: number): string {
  const next = benchBits();
  const text = Array.from({ length: Math.ceil(bytes / 6) }, () =>
    next().toString(36).padStart(6, '0'),
  );
  return text.join('').slice(0, bytes);
}

const MINUTE_CONNECTIONS = 256;
const SLICE_MS = 1_000;
/** Of the run: what a server fills at first is filled by then. */
const SETTLED_SHARE = 1 / 3;

async function measureMinute(
  { generator }: LoadContext,
  { fullSeconds }: BenchOptions,
  { server }: Candidate,
): Promise<Found> {
  const ms = fullSeconds * 1_000;
  const job = { ...creationsOf(server, MINUTE_CONNECTIONS, ms), sliceMs: SLICE_MS };
  const running = generator.run(job);
  const residents: number[] = [];
  // In the middle of a slice.
  await Promise.race([wait(SLICE_MS / 2), running]);
  residents.push(readResidentMib(server.pid));
  const reading = setInterval(() => residents.push(readResidentMib(server.pid)), SLICE_MS);
  const settling = wait(ms * SETTLED_SHARE).then(() => readResidentMib(server.pid));
  const result = await running.finally(() => clearInterval(reading));
  const endMib = readResidentMib(server.pid);
  const settledMib = await settling;
  const { p50, p99 } = result.latency.request!;
  const figures: Figure[] = [
    { name: 'creations/s', value: (result.replies * 1_000) / result.ms },
    { name: 'p50 ms', value: p50 },
    { name: 'p99 ms', value: p99 },
    { name: 'p99 by p50', value: p99 / p50, target: 'check latency' },
    { name: `memory after ${round(fullSeconds * SETTLED_SHARE)} s, MiB`, value: settledMib },
    { name: 'memory in the end, MiB', value: endMib },
    { name: 'memory in the end by then', value: endMib / settledMib, target: 'check memory' },
  ];
  const slices = result.slices!.map((slice, at) => ({
    perSecond: (slice.count * 1_000) / Math.min(SLICE_MS, result.ms - at * SLICE_MS),
    p50Ms: slice.p50,
    p99Ms: slice.p99,
    residentMib: residents[at] ?? endMib,
  }));
  return { figures, slices };
}
