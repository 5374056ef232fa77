/** What waiting for the end costs a creation that completes at once: processor time of the whole server. */

import { NOOP_SEQUENCE } from '../base/fixtures.js';
import { readOwn } from '../base/process-cpu.js';
import { BenchServer } from '../base/server.js';
import { perSecond } from '../client/clock.js';
import type { Job } from '../job.js';

const CONNECTIONS = 64;
const TURNS_PER_ROUND = 24;
const CPU = 'server CPU µs/op';
const WAITING = 'with wait_ms';

export const waitJob: Job = {
  part: 'load',
  name: 'wait',
  asks: 'How much more does a creation with wait_ms cost whose instance completes at once?',
  rounds: ({ rounds, isDurable }) => (isDurable ? rounds * TURNS_PER_ROUND : rounds),
  seconds: ({ seconds }) => seconds / 10,
  targets: [{ contender: WAITING, column: CPU, isRatio: true, atMost: 1.1 }],
  prepare: async ({ generator, ...bench }) => {
    const server = await BenchServer.open({ generator, ...bench }, 'wait');
    const plain = await server.createRequest(NOOP_SEQUENCE);
    const waiting = plain.replace('/instances ', '/instances?wait_ms=10000 ');
    const contender = (name: string, request: string, status: number) => ({
      name,
      turn: async (ms: number) => {
        const before = readOwn(server.pid);
        const loop = { kind: 'loop', port: server.port, connections: CONNECTIONS } as const;
        const result = await generator.run({ ...loop, requests: [request], status, limit: { ms } });
        return {
          'creations/s': perSecond(result),
          [CPU]: (1_000 * (readOwn(server.pid) - before)) / result.answered,
        };
      },
    });
    return {
      contenders: [contender('without', plain, 201), contender(WAITING, waiting, 200)],
      close: () => server.stop(),
    };
  },
};
