/** What a free slot of a concurrency key costs a creation: processor time of server and Postgres, in short turns. */

import type { JsonObject } from '../../src/base/json.js';
import { createBody, EXTERNAL_SEQUENCE, keyed, NOOP_SEQUENCE, ORDER } from '../base/fixtures.js';
import { readFamily, readOwn } from '../base/process-cpu.js';
import { BenchServer } from '../base/server.js';
import { perSecond } from '../client/clock.js';
import { postRequest } from '../client/requests.js';
import type { Bench, Job } from '../job.js';

const KEYS = 1_000;
const CONNECTIONS = 64;
const TURNS_PER_ROUND = 24;
const CPU = 'server and Postgres CPU µs/op';
const KEYED = 'under keys';

const jobOf = (name: string, what: string, sequence: JsonObject): Job => ({
  part: 'load',
  name,
  asks: `How much processor time does a creation under one of ${KEYS} keys take that ${what}?`,
  rounds: ({ rounds, isDurable }) => (isDurable ? rounds * TURNS_PER_ROUND : rounds),
  seconds: ({ seconds }) => seconds / 10,
  targets: [{ contender: KEYED, column: CPU, isRatio: true, atMost: 1.15 }],
  prepare: async (bench) => {
    const server = await BenchServer.open(bench, name);
    const contender = async (side: string, body: object) => {
      const id = await server.store(body);
      return { name: side, turn: (ms: number) => creations(bench, server, requestsOf(id), ms) };
    };
    return {
      contenders: [await contender('without', sequence), await contender(KEYED, keyed(sequence))],
      close: () => server.stop(),
    };
  },
});

export const keyedJobs: readonly Job[] = [
  jobOf('keyed', 'completes at once', NOOP_SEQUENCE),
  jobOf('keyedtask', 'waits for a worker', EXTERNAL_SEQUENCE),
];

/** Each has the number of a key in its data. */
function requestsOf(sequence: string): string[] {
  return Array.from({ length: KEYS }, (_, n) => {
    const context = { data: { ...ORDER, n } };
    return postRequest('/instances', JSON.stringify({ ...createBody(sequence), context }));
  });
}

async function creations(
  bench: Bench,
  { pid, port }: BenchServer,
  requests: readonly string[],
  ms: number,
) {
  const postgres = await bench.postgres();
  const read = () => readOwn(pid) + readFamily(postgres.pid);
  const before = read();
  const loop = { kind: 'loop', port, connections: CONNECTIONS, requests, status: 201 } as const;
  const result = await bench.generator.run({ ...loop, limit: { ms } });
  return {
    'creations/s': perSecond(result),
    [CPU]: (1_000 * (read() - before)) / result.answered,
  };
}
