/** What an active canary costs a creation: processor time of the whole server, in turns of a tenth of the usual length. */

import { createBody, EXTERNAL_SEQUENCE } from '../base/fixtures.js';
import { readOwn } from '../base/process-cpu.js';
import { BenchServer } from '../base/server.js';
import { perSecond } from '../client/clock.js';
import { postRequest } from '../client/requests.js';
import type { Bench, Job } from '../job.js';

const PERCENT = 20;
const CONNECTIONS = 64;
const TURNS_PER_ROUND = 24;
const CPU = 'server CPU µs/op';
const CANARY = 'with a canary';

export const releaseJob: Job = {
  part: 'load',
  name: 'release',
  asks: `How much processor time does a creation take while a canary of ${PERCENT} % is active?`,
  rounds: ({ rounds, isDurable }) => (isDurable ? rounds * TURNS_PER_ROUND : rounds),
  seconds: ({ seconds }) => seconds / 10,
  targets: [{ contender: CANARY, column: CPU, isRatio: true, atMost: 1.05 }],
  prepare: async (bench) => {
    const server = await BenchServer.open(bench, 'release');
    const plain = await server.createRequest(EXTERNAL_SEQUENCE);
    const routed = postRequest('/instances', JSON.stringify(createBody(await canary(server))));
    const contender = (name: string, request: string) => ({
      name,
      turn: (ms: number) => creations(bench, server, request, ms),
    });
    return {
      contenders: [contender('without', plain), contender(CANARY, routed)],
      close: () => server.stop(),
    };
  },
};

async function creations(
  { generator }: Bench,
  { pid, port }: BenchServer,
  request: string,
  ms: number,
) {
  const before = readOwn(pid);
  const requests = [request];
  const loop = { kind: 'loop', port, connections: CONNECTIONS, requests, status: 201 } as const;
  const result = await generator.run({ ...loop, limit: { ms } });
  return {
    'creations/s': perSecond(result),
    [CPU]: (1_000 * (readOwn(pid) - before)) / result.answered,
  };
}

/** @returns the id of the sequence that is the baseline of an active canary */
async function canary(server: BenchServer): Promise<string> {
  const released = { ...EXTERNAL_SEQUENCE, name: 'bench-released' };
  const baseline = await server.store({ ...released, version: 1 });
  const candidate = await server.store({ ...released, version: 2 });
  const body = { baseline_sequence_id: baseline, candidate_sequence_id: candidate };
  const { id } = await server.ask<{ id: string }>(201, 'POST', '/releases', body);
  await server.ask(200, 'POST', `/releases/${id}/validate`, { skip: true });
  await server.ask(200, 'POST', `/releases/${id}/canary`, { percent: PERCENT });
  return baseline;
}
