/**
 * Part `timers`: how late instances go on that all fall due within one second, and what that costs another tenant
 * and the memory of the server. Once as many as the server still has in memory from their creation; and once, of two
 * sizes, behind a start, as those of long ago are: in the database only.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { type Client, createClient, expectStatus } from '../../test/helpers/client.js';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { createBody, NOOP_SEQUENCE, TENANT } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { median, type RowsResult, renderTable, round } from '../report.js';
import { RestartedServer } from '../scale/restarted.js';
import { type Reached, verdictsOf } from '../targets.js';
import { type Herd, herdBatches, latenessOf, moveHerd } from './herd.js';
import { HERD_NAMES, type HerdName } from './herd-names.js';
import { readFamily, readResidentMib, readThreads } from './process-cpu.js';
import type { LoadContext } from './run.js';
import { type Latency, Samples } from './samples.js';

/** Targets are about these sizes: others say nothing of them. */
const HERD = 10_000;
const LARGE = 10;
/** Of creation, at some 2,000 a second on two busy cores, and until all is calm again. */
const LEAD_MS_EACH = 1;
const LEAD_MS_MIN = 8_000;
/** Of moving one in the database, and of reading it when the server starts. */
const MOVE_MS_EACH = 0.12;
const FAR_MS = 90 * 24 * 60 * 60 * 1_000;
/** Before the first is due, nothing is counted. */
const CALM_MS = 100;
const NEIGHBOUR = 'bench-neighbour';
/** Of the other tenant: how many create at once, and how long each pauses. */
const LOOPS = 4;
const PAUSE_MS = 10;
const LOOK_MS = 20;

/** Whether the instances were in memory from their creation, and how many there are beside `--herd`. */
const HERDS: Readonly<Record<HerdName, { readonly inMemory: boolean; readonly times: number }>> = {
  created: { inMemory: true, times: 1 },
  restarted: { inMemory: false, times: 1 },
  large: { inMemory: false, times: LARGE },
};

export interface TimersRow {
  readonly name: HerdName;
  readonly herd: number;
  readonly lateness: Latency;
  /** Creations of another tenant, without the herd and with it. */
  readonly idle: Latency;
  readonly meanwhile: Latency;
  readonly idleMib: number;
  readonly peakMib: number;
  /** Processor time in microseconds for each instance, with those creations. */
  readonly serverUs: number;
  readonly postgresUs: number;
}

export interface StoredTimers {
  readonly rows: readonly TimersRow[];
  readonly reached: Reached;
}

export async function runTimers(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: RowsResult; readonly table: string }> {
  const { rounds, shards } = options;
  const rows: Record<string, StoredTimers> = {};
  const all: TimersRow[] = [];
  for (const name of HERD_NAMES) {
    const taken: TimersRow[] = [];
    for (let turn = 1; turn <= rounds; turn += 1) {
      const row = await measure(context, options, name, turn);
      taken.push(row);
      context.progress(`${name} ${row.herd}: p99 ${round(row.lateness.p99)} ms late`);
    }
    rows[name] = { rows: taken, reached: reachedBy(taken) };
    all.push(...taken);
  }
  const remarks = Object.values(rows).flatMap(({ reached }) => verdictsOf(reached));
  const part: RowsResult = {
    question: 'How late are instances that fall due within one second, and whom do they hold up?',
    settings: { rounds, shards: shards ?? 'default' },
    rows,
    remarks,
  };
  return { part, table: [tableOf(all), remarks.join('\n')].join('\n\n') };
}

async function measure(
  { postgres, generator }: LoadContext,
  options: BenchOptions,
  name: HerdName,
  turn: number,
): Promise<TimersRow> {
  const { inMemory, times } = HERDS[name];
  const size = times * options.herd;
  const server = await RestartedServer.open(postgres, `timers_${name}_${turn}`, options.shards);
  try {
    const sequence = await store(server, TENANT);
    const leadMs = LEAD_MS_MIN + size * LEAD_MS_EACH;
    let herd = { sequence, size, dueAt: Date.now() + (inMemory ? leadMs : FAR_MS) };
    const requests = herdBatches(herd);
    const { port } = server;
    const limit = { replies: requests.length };
    await generator.run({ kind: 'loop', port, connections: 4, requests, status: 201, limit });
    if (!inMemory) {
      await server.kill();
      herd = await moveHerd(server.db, herd, Date.now() + LEAD_MS_MIN + size * MOVE_MS_EACH);
      await server.db.query('vacuum analyze');
      await postgres.checkpoint();
      await server.start();
    }
    const row = await watch(server, postgres.pid, herd);
    return { name, herd: size, ...row };
  } finally {
    await server.stop();
  }
}

async function watch(server: RestartedServer, postgresPid: number, herd: Herd) {
  const { pid } = server;
  const neighbour = await Neighbour.start(server);
  try {
    const idleMs = herd.dueAt - CALM_MS - Date.now();
    if (idleMs < 0) throw new Error(`${herd.size} timers take too long to create`);
    await pause(idleMs / 2);
    neighbour.take();
    await pause(idleMs / 2);
    const idle = neighbour.take();
    const idleMib = readResidentMib(pid);
    let peakMib = idleMib;
    const looking = setInterval(() => {
      peakMib = Math.max(peakMib, readResidentMib(pid));
    }, LOOK_MS);
    const before = { server: cpuOf(pid), postgres: readFamily(postgresPid) };
    try {
      const lateness = await latenessOf(server.db, herd);
      return {
        lateness,
        idle,
        meanwhile: neighbour.take(),
        idleMib,
        peakMib,
        serverUs: ((cpuOf(pid) - before.server) / herd.size) * 1_000,
        postgresUs: ((readFamily(postgresPid) - before.postgres) / herd.size) * 1_000,
      };
    } finally {
      clearInterval(looking);
    }
  } finally {
    await neighbour.stop();
  }
}

function cpuOf(pid: number): number {
  return [...readThreads(pid).values()].reduce((sum, ms) => sum + ms, 0);
}

/** Another tenant, which creates instances with pauses, so that it is no load itself. */
class Neighbour {
  readonly #client: Client;
  readonly #sequence: string;
  #samples = new Samples();
  #isOver = false;
  #loops: readonly Promise<void>[] = [];

  private constructor(client: Client, sequence: string) {
    this.#client = client;
    this.#sequence = sequence;
  }

  static async start(server: RestartedServer): Promise<Neighbour> {
    const sequence = await store(server, NEIGHBOUR);
    const url = `http://127.0.0.1:${server.port}`;
    const options = { url, apiKey: DEFAULT_API_KEY, tenant: NEIGHBOUR, isChecked: false };
    const self = new Neighbour(createClient({ ...options, connections: LOOPS }), sequence);
    self.#loops = Array.from({ length: LOOPS }, () => self.#loop());
    return self;
  }

  /** What was measured since it was asked for last. */
  take(): Latency {
    const samples = this.#samples;
    this.#samples = new Samples();
    return samples.summary();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
    await this.#client.close();
  }

  async #loop(): Promise<void> {
    const body = { ...createBody(this.#sequence), tenant_id: NEIGHBOUR };
    while (!this.#isOver) {
      const startedAt = performance.now();
      expectStatus(await this.#client.post('/instances', body), 201);
      this.#samples.add(performance.now() - startedAt);
      await pause(PAUSE_MS);
    }
  }
}

async function store(server: RestartedServer, tenant: string): Promise<string> {
  const body = { ...NOOP_SEQUENCE, tenant_id: tenant };
  return (await server.ask<{ id: string }>(201, 'POST', '/sequences', body, tenant)).id;
}

function reachedBy(rows: readonly TimersRow[]): Reached {
  const [{ name, herd }] = rows as readonly [TimersRow];
  const of = (figure: (row: TimersRow) => number) => median(rows.map(figure));
  if (name === 'created' || herd !== HERDS[name].times * HERD) return {};
  if (name === 'restarted') return { 'timers lateness': of(({ lateness }) => lateness.p99) };
  return {
    'timers neighbour': of(({ meanwhile }) => meanwhile.p99),
    'timers memory': Math.max(...rows.map(({ peakMib }) => peakMib)),
  };
}

function tableOf(rows: readonly TimersRow[]): string {
  return renderTable(
    [
      'instances',
      'due',
      'late p50 ms',
      'p99 ms',
      'max ms',
      'others idle p99 ms',
      'meanwhile',
      'idle MiB',
      'peak',
      'server µs each',
      'Postgres',
    ],
    rows.map((row) => [
      row.name,
      row.herd,
      ...[row.lateness.p50, row.lateness.p99, row.lateness.max].map(round),
      ...[row.idle.p99, row.meanwhile.p99, row.idleMib, row.peakMib].map(round),
      ...[row.serverUs, row.postgresUs].map(round),
    ]),
  );
}
