/**
 * Part pressure: one tenant attacks what all share, and others are measured, first idle and then under the attack, on
 * a server and a database of their own for each attack; once with one other tenant, once with 49.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient, expectStatus } from '../../test/helpers/client.js';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { isInstalled, startProxy } from '../../test/helpers/proxies.js';
import { readFamily, readThreads } from '../load/process-cpu.js';
import type { LoadContext } from '../load/run.js';
import { type BenchServer, startServer } from '../load/server.js';
import type { BenchOptions } from '../options.js';
import { type RowsResult, renderTable, round } from '../report.js';
import { type Reached, verdictsOf } from '../targets.js';
import type { AttackName } from './attack-names.js';
import type { AttackOrder } from './attacker.child.js';
import { ATTACKS, type Statuses } from './attacks.js';
import { FIRST, LAST, setPriority, USUAL } from './priority.js';
import { type Measured, OPERATIONS, Victims } from './victim.js';

/** Tenants that do not attack, and the loops of each operation that all of them share. */
export const CROWDS = { two: { others: 1, loops: 1 }, fifty: { others: 49, loops: 4 } } as const;
export type CrowdName = keyof typeof CROWDS;

export interface PressureRow {
  readonly attack: AttackName;
  readonly crowd: CrowdName;
  readonly what: string;
  readonly idle: Measured;
  readonly attacked: Measured;
  /** Of the 99th percentiles, by operation. */
  readonly ratios: Readonly<Record<string, number>>;
  readonly errors: number;
  /** What the attacker was answered. */
  readonly attackers: Statuses;
  readonly peakMib: number;
  /** Of a core, while it was attacked; of results before it was measured there is none. */
  readonly cpuPercent?: CpuPercent;
}

/** Who took the cores. */
export interface CpuPercent {
  readonly attacker: number;
  readonly others: number;
  readonly server: number;
  readonly database: number;
}

export interface StoredPressure {
  readonly rows: readonly PressureRow[];
  readonly reached: Reached;
}

/** After its begin an attack has come to its height. */
const HEIGHT_MS = 300;
/** Before timers of an attack are due all of them have to be there. */
const LEAD_MS = 15_000;
const LOOK_MS = 50;
const QUICK_SCALE = 0.01;

export async function runPressure(
  { postgres, progress }: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: RowsResult; readonly table: string }> {
  const rows: Record<string, StoredPressure> = {};
  const remarks: string[] = [];
  const all: PressureRow[] = [];
  for (const attack of options.attacks) {
    const taken: PressureRow[] = [];
    for (const crowd of Object.keys(CROWDS) as CrowdName[]) {
      const name = `pressure_${attack}_${crowd}`;
      const isProxied = ATTACKS[attack].isProxied === true && isInstalled('haproxy');
      const server = await startServer(postgres, name, 'noop', options.shards, {
        env: {
          ENGINE_ALLOW_INTERNAL_URLS: 'true',
          ...(isProxied && { ENGINE_TRUSTED_PROXIES: '127.0.0.1' }),
        },
      });
      const proxy = isProxied ? await startProxy('haproxy', { ports: [server.port] }) : undefined;
      try {
        const { port } = proxy ?? server;
        const attacked = { url: `http://127.0.0.1:${port}`, server, database: postgres.pid };
        taken.push(await measure(attacked, attack, crowd, options));
      } finally {
        await proxy?.stop();
        await server.stop();
      }
      progress(lineOf(taken.at(-1)!));
    }
    const reached = reachedBy(taken);
    remarks.push(...verdictsOf(reached).map((verdict) => `${attack}: ${verdict}`));
    rows[attack] = { rows: taken, reached };
    all.push(...taken);
  }
  const part: RowsResult = {
    question: 'What does it cost the others when one tenant takes what it can of what all share?',
    settings: { seconds: options.seconds, shards: options.shards ?? 'default' },
    rows,
    remarks,
  };
  return { part, table: [tableOf(all), remarks.join('\n')].join('\n\n') };
}

interface Attacked {
  /** Of the server, or of the proxy in front of it. */
  readonly url: string;
  readonly server: BenchServer;
  /** Its process. */
  readonly database: number;
}

async function measure(
  { url, server, database }: Attacked,
  attack: AttackName,
  crowd: CrowdName,
  { seconds, isDurable }: BenchOptions,
): Promise<PressureRow> {
  const { others, loops } = CROWDS[crowd];
  const tenants = Array.from({ length: others }, (_, at) => `other-${at}`);
  // Keys of the tenants: what is bounded by tenant may not be bounded for the root key.
  const { attacker: apiKey, ...keys } = await mintKeys(url, ['attacker', ...tenants]);
  const victims = await Victims.start(url, keys);
  const ms = seconds * 1_000;
  const scale = isDurable ? 1 : QUICK_SCALE;
  let child: ChildProcess | undefined;
  setPriority(FIRST);
  try {
    // Not counted: connections are made, code is compiled, plans are read.
    await victims.measure(ms, loops);
    const idle = await victims.measure(ms, loops);
    const order: AttackOrder = {
      name: attack,
      priority: LAST,
      url,
      apiKey: apiKey!,
      tenant: 'attacker',
      scale,
      leadMs: scale * LEAD_MS,
    };
    child = fork(new URL('./attacker.child.js', import.meta.url));
    child.send(order);
    await once(child, 'message');
    await pause(HEIGHT_MS);
    const memory = watchMemory(server.pid);
    const processes = { attacker: child.pid!, others: process.pid, server: server.pid, database };
    const cpu = watchCpu(processes);
    const attacked = await victims.measure(ms, loops);
    const cpuPercent = cpu.stop();
    const peakMib = await memory.stop();
    child.send('stop');
    const [attackers] = (await once(child, 'message')) as [Statuses];
    const ratios = OPERATIONS.map((name) => {
      const before = idle.latency[name].p99;
      // Without one that came to an end it is 0, and all of them are among the errors.
      return [name, before === 0 ? 0 : attacked.latency[name].p99 / before] as const;
    });
    return {
      attack,
      crowd,
      what: ATTACKS[attack].what,
      idle,
      attacked,
      ratios: Object.fromEntries(ratios),
      errors: Object.values(attacked.errors).reduce((sum, count) => sum + count, 0),
      attackers,
      peakMib,
      cpuPercent,
    };
  } finally {
    child?.kill();
    // The next server inherits it.
    setPriority(USUAL);
    await victims.stop();
  }
}

async function mintKeys(url: string, tenants: readonly string[]): Promise<Record<string, string>> {
  const root = createClient({ url, apiKey: DEFAULT_API_KEY });
  try {
    const keys: Record<string, string> = {};
    for (const tenant_id of tenants) {
      const body = { tenant_id, capabilities: ['operator'] };
      keys[tenant_id] = expectStatus(
        await root.post<{ secret: string }>('/api-keys', body),
        201,
      ).secret;
    }
    return keys;
  } finally {
    await root.close();
  }
}

function watchMemory(pid: number): { stop(): Promise<number> } {
  let isOver = false;
  const watching = (async () => {
    let peak = 0;
    while (!isOver) {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      peak = Math.max(peak, Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024);
      await pause(LOOK_MS);
    }
    return peak;
  })();
  return {
    stop() {
      isOver = true;
      return watching;
    },
  };
}

/** @param processes of each party; one with its children, but for those of another one */
function watchCpu(processes: Readonly<Record<keyof CpuPercent, number>>): { stop(): CpuPercent } {
  const parties = Object.entries(processes);
  const read = () =>
    parties.map(([, pid]) => (pid === processes.database ? readFamily(pid) : ownCpuMs(pid)));
  const before = read();
  const beganAt = performance.now();
  return {
    stop() {
      const ms = performance.now() - beganAt;
      const spent = read().map((after, at) => Math.round((100 * (after - before[at]!)) / ms));
      return Object.fromEntries(
        parties.map(([name], at) => [name, spent[at]!]),
      ) as unknown as CpuPercent;
    },
  };
}

function ownCpuMs(pid: number): number {
  return [...readThreads(pid).values()].reduce((sum, ms) => sum + ms, 0);
}

function reachedBy(rows: readonly PressureRow[]): Reached {
  return {
    'pressure ratio': Math.max(...rows.flatMap(({ ratios }) => Object.values(ratios))),
    'pressure errors': rows.reduce((sum, { errors }) => sum + errors, 0),
  };
}

function lineOf(row: PressureRow): string {
  const { attack, crowd, ratios, errors, attacked, attackers, cpuPercent } = row;
  const times = OPERATIONS.map((name) => `${name} ${ratioText(ratios[name]!)}`).join(', ');
  const failed = Object.entries(attacked.errors).map(([what, count]) => `\n  ${count}: ${what}`);
  return `${attack}, ${crowd}: ${times}; ${errors} errors; attacker ${JSON.stringify(attackers)}; % of a core ${JSON.stringify(cpuPercent)}${failed.join('')}`;
}

/** Of an operation that never came to an end there is no time. */
function ratioText(ratio: number): string {
  return ratio === 0 ? 'none' : `${round(ratio)}×`;
}

function tableOf(rows: readonly PressureRow[]): string {
  return renderTable(
    [
      'attack',
      'tenants',
      ...OPERATIONS.flatMap((name) => [`${name} idle`, 'p99', '×']),
      'errors',
      'MiB',
    ],
    rows.map(({ attack, crowd, idle, attacked, ratios, errors, peakMib }) => [
      attack,
      crowd,
      ...OPERATIONS.flatMap((name) => [
        round(idle.latency[name].p99),
        round(attacked.latency[name].p99),
        ratioText(ratios[name]!),
      ]),
      errors,
      round(peakMib),
    ]),
  );
}
