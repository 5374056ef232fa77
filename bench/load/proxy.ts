/** What the way through HAProxy costs a request, set up as `cells proxy-config` does for 10,000 tenants of ten cells. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { haproxyFiles } from '../../src/cluster/proxy/haproxy.js';
import { checkedTopology, type Topology } from '../../src/cluster/proxy/topology.js';
import { newFolder } from '../../test/helpers/database.js';
import { freePort } from '../../test/helpers/engine.js';
import { type RunningProxy, runProxy } from '../../test/helpers/proxies.js';
import { NOOP_SEQUENCE, TENANT } from '../base/fixtures.js';
import { readOwn } from '../base/process-cpu.js';
import type { Figures } from '../base/report.js';
import { perSecond } from '../client/clock.js';
import type { LoopLoad } from '../client/loads.js';
import { getRequest } from '../client/requests.js';
import type { Bench, Job } from '../job.js';
import { openSide } from '../paths/sides.js';

const CELLS = 10;
const TENANTS = 10_000;
const CONNECTIONS = 64;

type Ask = Pick<LoopLoad, 'requests' | 'status'>;

export const proxyJob: Job = {
  part: 'load',
  name: 'proxy',
  asks: 'What does the way through HAProxy cost a request?',
  prepare: async (bench) => {
    const { server, create } = await openSide(bench, 'proxy', NOOP_SEQUENCE, 'directly');
    const { rows } = await server.db.query<{ id: string }>('select id from instances limit 1');
    const asks: Readonly<Record<string, Ask>> = {
      GET: { requests: [getRequest(`/instances/${rows[0]!.id}`)], status: 200 },
      POST: { requests: [create], status: 201 },
    };
    const proxy = await startHaproxy(server.port);
    return {
      contenders: [
        { name: 'directly', turn: (ms) => figures(bench, asks, server.port, ms) },
        { name: 'HAProxy', turn: (ms) => figures(bench, asks, proxy.port, ms, proxy.pid) },
      ],
      close: async () => {
        await proxy.stop();
        await server.stop();
      },
    };
  },
};

/** Reads and creations, each one at a time and on many connections, for a quarter of the time. */
async function figures(
  { generator }: Bench,
  asks: Readonly<Record<string, Ask>>,
  port: number,
  ms: number,
  proxy?: number,
): Promise<Figures> {
  const found: Record<string, number> = {};
  for (const [name, asked] of Object.entries(asks)) {
    const run = (connections: number) =>
      generator.run({ kind: 'loop', port, connections, ...asked, limit: { ms: ms / 4 } });
    found[`${name} p50 ms`] = (await run(1)).latency.request!.p50;
    const before = proxy === undefined ? 0 : readOwn(proxy);
    const result = await run(CONNECTIONS);
    const cpuMs = proxy === undefined ? Number.NaN : readOwn(proxy) - before;
    found[`${name}/s`] = perSecond(result);
    found[`proxy CPU µs/${name}`] = (1_000 * cpuMs) / result.answered;
  }
  return found;
}

/** The bench's tenant is one of many, in the cell of the server that is there. */
async function startHaproxy(server: number): Promise<RunningProxy> {
  const cells: Topology['cells'] = Array.from({ length: CELLS }, (_, at) => ({
    name: `cell${at}`,
    engines: [`127.0.0.1:${at === 0 ? server : 9}`],
    state: 'open',
  }));
  const tenants = Array.from(
    { length: TENANTS },
    (_, at) => [`t-${at}`, `cell${at % CELLS}`] as const,
  );
  const placements = new Map([...tenants, [TENANT, 'cell0'] as const]);
  const folder = newFolder('haproxy');
  const port = await freePort();
  const settings = { listen: `127.0.0.1:${port}`, folder };
  for (const { name, text } of haproxyFiles(
    checkedTopology({ cells, placements }, settings),
    settings,
  )) {
    writeFileSync(path.join(folder, name), text);
  }
  return runProxy('haproxy', port, ['-db', '-f', path.join(folder, 'haproxy.cfg')], folder);
}
