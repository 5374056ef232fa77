/** Jobs of part `paths` that compare the same work under two circumstances on one server. */

import { setTimeout as wait } from 'node:timers/promises';
import { startMeter } from '../base/cost.js';
import {
  benchBits,
  createBody,
  NOOP_SEQUENCE,
  STEPS,
  STEPS_HANDLER,
  STEPS_SEQUENCE,
} from '../base/fixtures.js';
import { readResidentMib } from '../base/process-cpu.js';
import { perSecond } from '../client/clock.js';
import { postRequest } from '../client/requests.js';
import { OUTPUT } from '../client/worker-loads.js';
import type { Bench, Job } from '../job.js';
import { openSide, type Side } from './sides.js';

const CONTEXT_WORKERS = 16;
const CONTEXT_INSTANCES = 16;
const CONTEXT_INSTANCES_QUICK = 2;
/** Longer than the steps take: the load ends with the last of them. */
const CONTEXT_MS_MAX = 120_000;
const KIB = 1_024;
/** The largest context that is accepted, less the JSON around the text. */
const LARGE_BYTES = 256 * KIB - 64;
const EMPTY = 'WAL B/step';

export const contextJob: Job = {
  part: 'paths',
  name: 'context',
  asks: 'Is a context that no step changes written again with each step?',
  isWarmedUp: false,
  targets: [{ contender: '256 KiB', column: EMPTY, isRatio: true, atMost: 1.5 }],
  prepare: async (bench) => {
    const side = await openSide(bench, 'check_context', STEPS_SEQUENCE, 'this');
    const contender = (name: string, bytes: number) => ({
      name,
      turn: async () => ({
        [EMPTY]: await walPerStep(bench, side, bytes, {}),
        'WAL B/step, output merged': await walPerStep(bench, side, bytes, OUTPUT),
      }),
    });
    return {
      contenders: [contender('1 KiB', KIB), contender('256 KiB', LARGE_BYTES)],
      close: () => side.server.stop(),
    };
  },
};

/** Instances have a text of so many bytes, which their steps leave as it is. */
async function walPerStep(
  bench: Bench,
  { server, roles, sequenceId }: Side,
  bytes: number,
  output: object,
): Promise<number> {
  const { generator, options } = bench;
  const postgres = await bench.postgres();
  const instances = options.isDurable ? CONTEXT_INSTANCES : CONTEXT_INSTANCES_QUICK;
  const body = { ...createBody(sequenceId), context: { data: { text: randomText(bytes) } } };
  const create = postRequest('/instances', JSON.stringify(body));
  const { port } = server;
  const limit = { replies: instances };
  await generator.run({
    kind: 'loop',
    port,
    connections: 1,
    requests: [create],
    status: 201,
    limit,
  });
  await server.db.query('vacuum (analyze)');
  const stopMeter = await startMeter(postgres, server);
  const { answered } = await generator.run({
    kind: 'drain',
    port,
    workers: CONTEXT_WORKERS,
    handler: STEPS_HANDLER,
    limit: 1,
    tasks: instances * STEPS,
    output,
    ms: CONTEXT_MS_MAX,
  });
  return (await stopMeter(roles, answered))['WAL B/op']!;
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
/** Of the turn: what a server fills at first is filled by then. */
const SETTLED_SHARE = 1 / 3;
const STEADY = 'p99 / p50';
const GROWTH = 'memory in the end / after a third';

export const minuteJob: Job = {
  part: 'paths',
  name: 'minute',
  asks: 'Do latency and memory stay where they are at full load?',
  rounds: () => 1,
  seconds: ({ fullSeconds }) => fullSeconds,
  isWarmedUp: false,
  targets: [
    { contender: 'this', column: STEADY, atMost: 25 },
    { contender: 'this', column: GROWTH, atMost: 1.1 },
  ],
  prepare: async (bench) => {
    const { server, create } = await openSide(bench, 'check_minute', NOOP_SEQUENCE, 'this');
    const turn = async (ms: number) => {
      const settling = wait(ms * SETTLED_SHARE).then(() => readResidentMib(server.pid));
      const result = await bench.generator.run({
        kind: 'loop',
        port: server.port,
        connections: MINUTE_CONNECTIONS,
        requests: [create],
        status: 201,
        limit: { ms },
      });
      const [endMib, settledMib] = [readResidentMib(server.pid), await settling];
      const { p50, p99 } = result.latency.request!;
      return {
        'creations/s': perSecond(result),
        'p50 ms': p50,
        'p99 ms': p99,
        [STEADY]: p99 / p50,
        'MiB after a third': settledMib,
        'MiB in the end': endMib,
        [GROWTH]: endMib / settledMib,
      };
    };
    return { contenders: [{ name: 'this', turn }], close: () => server.stop() };
  },
};
