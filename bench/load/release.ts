/**
 * Part `release`: what an active canary costs creations. Two sequences of one server, one of them with
 * a canary, take turns in short blocks, first the one and then the other, so that a machine that gets
 * slower or faster does so for both. Compared is the processor time of the whole server per creation.
 */

import { type Client, createClient, expectStatus } from '../../test/helpers/client.js';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { createBody, EXTERNAL_SEQUENCE, NOOP_SEQUENCE, TENANT } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { type PartResult, ratioOf, renderTable, round } from '../report.js';
import { readFamily } from './process-cpu.js';
import { postRequest } from './requests.js';
import type { LoadContext } from './run.js';
import { type BenchServer, startServer } from './server.js';

const PERCENT = 20;
const CONNECTIONS = 64;
const PAIRS_PER_ROUND = 24;
/** A block is this part of a measured run. */
const BLOCKS_PER_RUN = 10;
/** The target: a creation with a canary takes this much of one without, at most. */
const TARGET = 1.05;

const SEQUENCES = { noop: NOOP_SEQUENCE, external: EXTERNAL_SEQUENCE } as const;
type Variant = keyof typeof SEQUENCES;
const VARIANTS: readonly Variant[] = ['external', 'noop'];

interface Block {
  readonly cpuUs: number;
  readonly perSecond: number;
}

export async function runRelease(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const rows = [];
  let shards = 0;
  for (const variant of VARIANTS) {
    const server = await startServer(
      context.postgres,
      `release_${variant}`,
      variant,
      options.shards,
    );
    shards = server.shards;
    try {
      rows.push({ sequence: variant, ...(await measure(context, options, server, variant)) });
    } finally {
      await server.stop();
    }
  }
  const part: PartResult = {
    question: `How much processor time does a creation take while a canary of ${PERCENT} % is active?`,
    settings: { seconds: options.seconds / BLOCKS_PER_RUN, connections: CONNECTIONS, shards },
    results: { rows },
    remarks: rows.map(
      ({ sequence, ratio, low, high }) =>
        `${sequence}: ${ratio.toFixed(3)} of one without, 95 % interval ${low.toFixed(3)} to ` +
        `${high.toFixed(3)}, target ${TARGET}: ${ratio <= TARGET ? 'reached' : 'missed'}`,
    ),
  };
  const table = renderTable(
    ['sequence', 'pairs', 'CPU µs without', 'with', 'creations/s without', 'with'],
    rows.map(({ sequence, pairs, without, routed }) => [
      sequence,
      pairs,
      round(without.cpuUs),
      round(routed.cpuUs),
      round(without.perSecond),
      round(routed.perSecond),
    ]),
  );
  return { part, table: `${table}\n\n${part.remarks.join('\n')}` };
}

async function measure(
  context: LoadContext,
  options: BenchOptions,
  server: BenchServer,
  variant: Variant,
) {
  const { without, routed } = await sequences(server, variant);
  const block = (request: string) => runBlock(context, options, server, request);
  // Compiles what both need.
  for (const request of [without, routed]) await block(request);
  const pairs: (readonly [without: Block, routed: Block])[] = [];
  for (let at = 0; at < options.rounds * PAIRS_PER_ROUND; at += 1) {
    if (at % 2 === 0) pairs.push([await block(without), await block(routed)]);
    else {
      const later = await block(routed);
      pairs.push([await block(without), later]);
    }
  }
  return {
    pairs: pairs.length,
    without: meanOf(pairs.map(([block]) => block)),
    routed: meanOf(pairs.map(([, block]) => block)),
    ...ratioOf(pairs.map(([before, after]) => after.cpuUs / before.cpuUs)),
  };
}

async function runBlock(
  { generator }: LoadContext,
  { seconds }: BenchOptions,
  server: BenchServer,
  request: string,
): Promise<Block> {
  const before = readFamily(server.pid);
  const { answered, replies, ms } = await generator.run({
    kind: 'loop',
    port: server.port,
    connections: CONNECTIONS,
    requests: [request],
    status: 201,
    limit: { ms: (seconds * 1_000) / BLOCKS_PER_RUN },
  });
  const cpuMs = readFamily(server.pid) - before;
  return { cpuUs: (1_000 * cpuMs) / answered, perSecond: (1_000 * replies) / ms };
}

function meanOf(blocks: readonly Block[]): Block {
  const mean = (read: (block: Block) => number) =>
    blocks.reduce((sum, block) => sum + read(block), 0) / blocks.length;
  return { cpuUs: mean(({ cpuUs }) => cpuUs), perSecond: mean(({ perSecond }) => perSecond) };
}

/** `POST /instances` of a sequence without a release, and of the baseline of a canary. */
async function sequences(server: BenchServer, variant: Variant) {
  const url = `http://127.0.0.1:${server.port}`;
  const client = createClient({ url, apiKey: DEFAULT_API_KEY, tenant: TENANT });
  try {
    const [baseline, candidate] = [
      await store(client, variant, 1),
      await store(client, variant, 2),
    ];
    const body = { baseline_sequence_id: baseline, candidate_sequence_id: candidate };
    const { id } = expectStatus(await client.post<{ id: string }>('/releases', body), 201);
    expectStatus(await client.post(`/releases/${id}/validate`, { skip: true }), 200);
    expectStatus(await client.post(`/releases/${id}/canary`, { percent: PERCENT }), 200);
    const request = (sequence: string) =>
      postRequest('/instances', JSON.stringify(createBody(sequence)));
    return { without: server.createRequest, routed: request(baseline) };
  } finally {
    await client.close();
  }
}

async function store(client: Client, variant: Variant, version: number): Promise<string> {
  const body = { ...SEQUENCES[variant], name: 'bench-released', version };
  return expectStatus(await client.post<{ id: string }>('/sequences', body), 201).id;
}
