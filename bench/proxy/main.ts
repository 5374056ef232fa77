/**
 * `npm run bench:proxy`: what the way through HAProxy costs a request, set up as `cells proxy-config` writes it for ten
 * thousand tenants of ten cells. One server is asked in turns: directly, through HAProxy, and through HAProxy with a connection
 * for each request; so that a machine that gets slower does so for all. What is told is the ratio within a round.
 */

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { haproxyFiles } from '../../src/cluster/proxy/haproxy.js';
import { checkedTopology, type Topology } from '../../src/cluster/proxy/topology.js';
import { newFolder } from '../../test/helpers/database.js';
import { freePort } from '../../test/helpers/engine.js';
import { type RunningProxy, runProxy } from '../../test/helpers/proxies.js';
import { TENANT } from '../fixtures.js';
import { Generator } from '../load/generator.js';
import { startPostgres } from '../load/postgres.js';
import { readThreads } from '../load/process-cpu.js';
import { getRequest } from '../load/requests.js';
import { startServer } from '../load/server.js';
import { inTurn } from '../load/sides.js';
import { median, renderTable, round } from '../report.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1.5' },
  },
});
const rounds = Number(values.rounds);
const ms = Number(values.seconds) * 1_000;

const CELLS = 10;
const TENANTS = 10_000;
const WAYS = ['directly', 'HAProxy', 'HAProxy, http-server-close'] as const;
type Way = (typeof WAYS)[number];

interface Turn {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the proxy, for each request. */
  readonly proxyCpuUs: number;
}

/** The bench's tenant among many, in the cell of the server that is there. */
function topologyBefore(port: number): Topology {
  const cells = Array.from({ length: CELLS }, (_, at) => ({
    name: `cell${at}`,
    engines: [`127.0.0.1:${at === 0 ? port : 9}`],
    state: 'open' as const,
  }));
  const tenants = Array.from(
    { length: TENANTS },
    (_, at) => [`t-${at}`, `cell${at % CELLS}`] as const,
  );
  return { cells, placements: new Map([...tenants, [TENANT, 'cell0']]) };
}

async function startHaproxy(server: number, more: string): Promise<RunningProxy> {
  const folder = newFolder('haproxy');
  const port = await freePort();
  const settings = { listen: `127.0.0.1:${port}`, folder };
  for (const { name, text } of haproxyFiles(
    checkedTopology(topologyBefore(server), settings),
    settings,
  )) {
    writeFileSync(path.join(folder, name), text.replace('  mode http\n', `  mode http\n${more}`));
  }
  return runProxy('haproxy', port, ['-db', '-f', path.join(folder, 'haproxy.cfg')], folder);
}

const cpuMsOf = (pid: number) => [...readThreads(pid).values()].reduce((sum, one) => sum + one, 0);

const postgres = await startPostgres({
  dataParent: undefined,
  walSegments: 8,
  isDurable: true,
  statements: false,
});
const generator = new Generator();
const server = await startServer(postgres, 'proxy', 'noop');
const proxies: Partial<Record<Way, RunningProxy>> = {
  HAProxy: await startHaproxy(server.port, ''),
  'HAProxy, http-server-close': await startHaproxy(server.port, '  option http-server-close\n'),
};
try {
  const created = await generator.run({
    kind: 'loop',
    port: server.port,
    connections: 1,
    requests: [server.createRequest],
    status: 201,
    limit: { replies: 1 },
    keepBodies: 1,
  });
  const { id } = JSON.parse(created.bodies[0] as string) as { id: string };
  const read = [getRequest(`/instances/${id}`), 200] as const;
  const create = [server.createRequest, 201] as const;
  const loads = [
    ['GET /instances/{id}, one at a time', read, 1],
    ['POST /instances, one at a time', create, 1],
    ['GET /instances/{id}, 64 connections', read, 64],
    ['POST /instances, 64 connections', create, 64],
  ] as const;
  const rows: (string | number)[][] = [];
  for (const [name, [text, status], connections] of loads) {
    const turns: Record<Way, Turn[]> = {
      directly: [],
      HAProxy: [],
      'HAProxy, http-server-close': [],
    };
    const take = async (way: Way, limitMs: number): Promise<Turn> => {
      const proxy = proxies[way];
      const before = proxy === undefined ? 0 : cpuMsOf(proxy.pid);
      const ran = await generator.run({
        kind: 'loop',
        port: proxy?.port ?? server.port,
        connections,
        requests: [text],
        status,
        limit: { ms: limitMs },
      });
      const cpuMs = proxy === undefined ? 0 : cpuMsOf(proxy.pid) - before;
      const { p50 = 0, p99 = 0 } = ran.latency.request ?? {};
      const perSecond = (ran.replies * 1_000) / ran.ms;
      return { perSecond, p50Ms: p50, p99Ms: p99, proxyCpuUs: (cpuMs * 1_000) / ran.answered };
    };
    // Not counted: code is compiled, and connections are made.
    for (const way of WAYS) await take(way, ms / 2);
    for (let at = 0; at < rounds; at += 1) {
      for (const way of inTurn(WAYS, at)) turns[way].push(await take(way, ms));
    }
    for (const way of WAYS) {
      const of = (number: (turn: Turn) => number) => median(turns[way].map(number));
      const ratio = (number: (turn: Turn) => number) =>
        median(turns[way].map((turn, at) => number(turn) / number(turns.directly[at] as Turn)));
      rows.push([
        name,
        way,
        Math.round(of(({ perSecond }) => perSecond)),
        round(of(({ p50Ms }) => p50Ms)),
        round(of(({ p99Ms }) => p99Ms)),
        round(ratio(({ perSecond }) => perSecond)),
        round(ratio(({ p50Ms }) => p50Ms)),
        round(of(({ proxyCpuUs }) => proxyCpuUs)),
      ]);
    }
  }
  const head = ['load', 'way', 'per s', 'p50 ms', 'p99 ms', '× per s', '× p50', 'proxy CPU µs'];
  process.stdout.write(`${renderTable(head, rows)}\n`);
} finally {
  for (const proxy of Object.values(proxies)) await proxy.stop();
  await generator.close();
  await server.stop();
  await postgres.stop();
}
