/**
 * Part `pressure`: one tenant takes what all share, and the others are measured, first idle and then under the attack,
 * on a server and a database of their own for each attack. Names that end with 50 have 49 other tenants, else one.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { isInstalled, startProxy } from '../../test/helpers/proxies.js';
import { readFamily, readOwn, readResidentMib } from '../base/process-cpu.js';
import type { Figures } from '../base/report.js';
import { BenchServer } from '../base/server.js';
import type { Bench, Job } from '../job.js';
import type { AttackOrder } from './attacker.child.js';
import type { Statuses } from './attacker.js';
import { ATTACKS, type Attack } from './attacks.js';
import { FIRST, LAST, setPriority, USUAL } from './priority.js';
import { ERRORS, OPERATIONS, p99Of, Victims } from './victim.js';

/** Tenants that do not attack, and the loops of each operation that all of them share. */
const CROWDS = [
  { suffix: '', others: 1, loops: 1 },
  { suffix: '50', others: 49, loops: 4 },
] as const;

/** Until an attack that has begun is at its height. */
const HEIGHT_MS = 300;
/** Before timers of an attack are due all of them have to be there. */
const LEAD_MS = 15_000;
const LOOK_MS = 50;
const QUICK_SCALE = 0.01;
const ATTACKED = 'attacked';

export const pressureJobs: readonly Job[] = Object.entries(ATTACKS).flatMap(([name, attack]) =>
  CROWDS.map((crowd) => jobOf(name, attack, crowd)),
);

function jobOf(attackName: string, attack: Attack, crowd: (typeof CROWDS)[number]): Job {
  const name = `${attackName}${crowd.suffix}`;
  const p99s = OPERATIONS.map(p99Of);
  return {
    part: 'pressure',
    name,
    asks: `${attack.what}; other tenants: ${crowd.others}`,
    // What an attack leaves behind would be a part of the next idle turn.
    rounds: () => 1,
    isWarmedUp: false,
    targets: [
      ...p99s.map((column) => ({ contender: ATTACKED, column, isRatio: true, atMost: 2 })),
      { contender: ATTACKED, column: ERRORS, atMost: 0 },
    ],
    prepare: async (bench) => {
      const place = await openPlace(bench, name, attack);
      const tenants = Array.from({ length: crowd.others }, (_, at) => `other-${at}`);
      // Bounds of a tenant may not hold for the root key.
      const { attacker, ...keys } = await mintKeys(place.server, ['attacker', ...tenants]);
      const victims = await Victims.start(place.url, keys);
      const measure = (ms: number) =>
        watched(bench, place.server, () => victims.measure(ms, crowd.loops, bench.say));
      setPriority(FIRST);
      // Not counted: connections are made, code is compiled, plans are read.
      await measure(bench.options.seconds * 1_000);
      const attacked = async (ms: number) => {
        const attack = await attackFrom(bench, place.url, attackName, attacker!);
        try {
          const figures = await measure(ms);
          bench.say(`the attacker was answered ${JSON.stringify(await attack.stop())}`);
          return figures;
        } finally {
          attack.kill();
        }
      };
      return {
        contenders: [
          { name: 'idle', turn: measure },
          { name: ATTACKED, turn: attacked },
        ],
        close: async () => {
          // The next server inherits it.
          setPriority(USUAL);
          await victims.stop();
          await place.close();
        },
      };
    },
  };
}

/** The server, or the documented HAProxy in front of it where the attack goes through one that is installed. */
async function openPlace(bench: Bench, name: string, { isProxied }: Attack) {
  const isBehind = isProxied === true && isInstalled('haproxy');
  const env = {
    ENGINE_ALLOW_INTERNAL_URLS: 'true',
    ...(isBehind && { ENGINE_TRUSTED_PROXIES: '127.0.0.1' }),
  };
  const server = await BenchServer.open(bench, `pressure_${name}`, { env });
  const proxy = isBehind ? await startProxy('haproxy', { ports: [server.port] }) : undefined;
  const close = async () => {
    await proxy?.stop();
    await server.stop();
  };
  return { server, url: proxy?.url ?? server.url, close };
}

async function mintKeys(server: BenchServer, tenants: readonly string[]) {
  const keys: Record<string, string> = {};
  for (const tenant_id of tenants) {
    const body = { tenant_id, capabilities: ['operator'] };
    const { secret } = await server.ask<{ secret: string }>(201, 'POST', '/api-keys', body);
    keys[tenant_id] = secret;
  }
  return keys;
}

/** Resolves when the attack is at its height. */
async function attackFrom({ options }: Bench, url: string, name: string, apiKey: string) {
  const scale = options.isDurable ? 1 : QUICK_SCALE;
  const common = { name, url, apiKey, scale, tenant: 'attacker', leadMs: scale * LEAD_MS };
  const order: AttackOrder = { ...common, priority: LAST };
  const child = fork(new URL('./attacker.child.js', import.meta.url));
  child.send(order);
  await once(child, 'message');
  await pause(HEIGHT_MS);
  return {
    async stop(): Promise<Statuses> {
      child.send('stop');
      return ((await once(child, 'message')) as [Statuses])[0];
    },
    kill: () => void child.kill(),
  };
}

/** The most that the server has of memory, and processor time in percent of a core, while something is measured. */
async function watched(
  bench: Bench,
  { pid }: BenchServer,
  measure: () => Promise<Figures>,
): Promise<Figures> {
  const postgres = await bench.postgres();
  let peakMib = 0;
  const looking = setInterval(() => {
    peakMib = Math.max(peakMib, readResidentMib(pid));
  }, LOOK_MS);
  const before = { server: readOwn(pid), postgres: readFamily(postgres.pid) };
  const beganAt = performance.now();
  const figures = await measure().finally(() => clearInterval(looking));
  const ms = performance.now() - beganAt;
  return {
    ...figures,
    'MiB at most': peakMib,
    'server CPU %': (100 * (readOwn(pid) - before.server)) / ms,
    'postgres CPU %': (100 * (readFamily(postgres.pid) - before.postgres)) / ms,
  };
}
