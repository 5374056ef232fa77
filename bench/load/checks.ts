/**
 * Checks: ratios within one run of one server, each with what it must reach. They are told apart from paths
 * because what is compared is not one operation's cost but the same work under two circumstances.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { benchBits, createBody, STEPS, STEPS_HANDLER } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { median, round } from '../report.js';
import { startMeter } from './cost.js';
import { pathNamed } from './path-table.js';
import { connect } from './postgres.js';
import { readResidentMib } from './process-cpu.js';
import { postRequest } from './requests.js';
import type { LoadContext } from './run.js';
import type { Variant } from './server.js';
import type { Candidate } from './sides.js';
import { OUTPUT } from './worker-jobs.js';

/** One number of a check. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly target?: { readonly atMost: number } | { readonly atLeast: number };
}

export interface Check {
  readonly name: string;
  readonly asks: string;
  readonly sequence: Variant;
  readonly measure: (
    context: LoadContext,
    options: BenchOptions,
    candidate: Candidate,
  ) => Promise<readonly Figure[]>;
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
  { title: 'empty output', output: {}, target: { target: { atMost: 1.5 } } },
  { title: 'output merged', output: OUTPUT, target: {} },
] as const;
/** The largest context that is accepted, less the JSON around the text. */
const LARGE_BYTES = 256 * KIB - 64;

/** With outputs that have no members, and with those of part `paths`, which are merged into the context. */
async function measureContext(
  context: LoadContext,
  options: BenchOptions,
  candidate: Candidate,
): Promise<readonly Figure[]> {
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
  return figures;
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

const SNAPSHOT_PATH = pathNamed('round16');

/** Without, with, without: what the machine does meanwhile is divided out, as far as it is steady. */
async function measureSnapshot(
  { postgres, generator }: LoadContext,
  { snapshotSeconds, backlog }: BenchOptions,
  { server, roles }: Candidate,
): Promise<readonly Figure[]> {
  const run = async (ms: number) => {
    const stopMeter = await startMeter(postgres, server);
    const result = await generator.run(SNAPSHOT_PATH.job({ server, ms, backlog }));
    const { cpu } = await stopMeter(roles, result.answered);
    return { perSecond: (result.replies * 1_000) / result.ms, cpuUs: cpu.sum };
  };
  const ms = snapshotSeconds * 1_000;
  // Not counted: the code of every kind of request has run.
  await run(ms / 4);
  const before = await run(ms / 2);
  const session = await connect(server.databaseUrl);
  await session.query('begin isolation level repeatable read');
  await session.query('select count(*) from instances');
  const beside = await run(ms);
  await session.query('commit');
  await session.end();
  const after = await run(ms / 2);
  const speed = (before.perSecond + after.perSecond) / 2;
  const cpuUs = (before.cpuUs + after.cpuUs) / 2;
  return [
    { name: 'rounds/s without a snapshot', value: speed },
    { name: 'rounds/s beside one', value: beside.perSecond },
    {
      name: 'throughput beside one by without',
      value: beside.perSecond / speed,
      target: { atLeast: 0.9 },
    },
    { name: 'CPU of a round beside one by without', value: beside.cpuUs / cpuUs },
  ];
}

const MINUTE_PATH = pathNamed('noop256');
/** Of the run: what a server fills at first is filled by then. */
const SETTLED_SHARE = 1 / 3;

async function measureMinute(
  { generator }: LoadContext,
  { fullSeconds, backlog }: BenchOptions,
  { server }: Candidate,
): Promise<readonly Figure[]> {
  const ms = fullSeconds * 1_000;
  const running = generator.run(MINUTE_PATH.job({ server, ms, backlog }));
  await Promise.race([wait(ms * SETTLED_SHARE), running]);
  const settledMib = readResidentMib(server.pid);
  const result = await running;
  const endMib = readResidentMib(server.pid);
  const { p50, p99 } = result.latency.request!;
  return [
    { name: 'creations/s', value: (result.replies * 1_000) / result.ms },
    { name: 'p50 ms', value: p50 },
    { name: 'p99 ms', value: p99 },
    { name: 'p99 by p50', value: p99 / p50, target: { atMost: 25 } },
    { name: `memory after ${round(fullSeconds * SETTLED_SHARE)} s, MiB`, value: settledMib },
    { name: 'memory in the end, MiB', value: endMib },
    { name: 'memory in the end by then', value: endMib / settledMib, target: { atMost: 1.1 } },
  ];
}
