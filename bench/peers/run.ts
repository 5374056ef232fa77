/**
 * Part `peers`: other engines that run on Postgres, and BullMQ on Redis, on the same work as our server, on
 * the same machine, in turns. Every turn of theirs has a new database, or a new Redis; our server stays.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { createBody, EXTERNAL_SEQUENCE, NOOP_SEQUENCE } from '../fixtures.js';
import type { LoadContext } from '../load/run.js';
import type { BenchOptions } from '../options.js';
import { median, type PartResult, renderTable, round } from '../report.js';
import { RestartedServer } from '../scale/restarted.js';
import type { Engine, Turn, TurnAnswer } from './driver.child.js';
import { EXCHANGE } from './own.js';
import { installPeers, PACKAGES, PEERS_FOLDER } from './packages.js';
import type { Outcome, Work, WorkName } from './peer.js';
import { redisVersion, startRedis } from './redis.js';

/** For what an engine does before and after its work; a driver that is not done by then hangs. */
const PATIENCE_MS = 60_000;

const DRIVER = fileURLToPath(new URL('./driver.child.js', import.meta.url));

/** What is asked, in the order of the turns: `at` connections or workers. */
const WORKS: readonly { readonly name: WorkName; readonly at: number; readonly title: string }[] = [
  { name: 'created', at: 64, title: 'created one by one and completed, 64 connections' },
  { name: 'created', at: 256, title: 'created one by one and completed, 256 connections' },
  { name: 'bulk', at: 4, title: 'created in batches of 500, 4 connections' },
  { name: 'rounds', at: 16, title: 'created, claimed, completed one by one, 16 workers' },
  { name: 'rounds', at: 64, title: 'created, claimed, completed one by one, 64 workers' },
  { name: 'batches', at: 16, title: 'rounds in batches of 50 (exchange), 16 workers' },
  { name: 'idle', at: 1, title: 'idle: created to completed, p50 ms' },
];

const TARGETS: readonly {
  readonly work: WorkName;
  readonly at: number;
  readonly peer: Engine;
  readonly times: number;
}[] = [
  { work: 'created', at: 256, peer: 'pg-boss', times: 7 },
  { work: 'batches', at: 16, peer: 'bullmq', times: 1.3 },
];

interface PeerRow {
  readonly work: string;
  readonly at: number;
  readonly title: string;
  /** Jobs per second, of `idle` milliseconds at the median; absent: the engine cannot do it here. */
  readonly of: Readonly<Partial<Record<Engine, number>>>;
  /** Ours beside theirs, the median of the rounds; of `idle` theirs beside ours: more is better for us. */
  readonly ratio: Readonly<Partial<Record<Engine, number>>>;
}

export async function runPeers(
  { postgres }: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const folder = options.peersFolder ?? PEERS_FOLDER;
  installPeers(folder);
  const redis = redisVersion();
  const engines: readonly Engine[] = [
    'own',
    'pg-boss',
    'graphile-worker',
    ...(redis === undefined ? [] : (['bullmq'] as const)),
  ];
  const doubts = redis === undefined ? ['No redis-server on this system: BullMQ is missing.'] : [];
  const server = await RestartedServer.open(postgres, 'peers_own', options.shards);
  try {
    const bodies = await storeSequences(server);
    const hasExchange = await server.has(EXCHANGE);
    if (!hasExchange) doubts.push(`This server has no ${EXCHANGE}: its batches are missing.`);
    let databases = 0;
    const turn = async (engine: Engine, work: Work): Promise<Outcome | undefined> => {
      if (engine === 'own') {
        if (work.name === 'batches' && !hasExchange) return undefined;
        const isExternal = work.name === 'rounds' || work.name === 'batches';
        const where = { folder, databaseUrl: '', port: server.port };
        return drive({ engine, where, work, body: isExternal ? bodies.external : bodies.noop });
      }
      if (engine === 'bullmq') {
        const own = await startRedis(options.dataParent ?? tmpdir());
        const where = { folder, databaseUrl: '', port: own.port };
        return drive({ engine, where, work, body: '' }).finally(() => own.stop());
      }
      databases += 1;
      const name = `peer_${databases}`;
      const where = { folder, databaseUrl: await postgres.createDatabase(name), port: 0 };
      return drive({ engine, where, work, body: '' }).finally(() =>
        postgres.admin.query(`drop database ${name} with (force)`),
      );
    };
    // Not counted: drivers are new in each turn and warm up there, our server does it once.
    for (const { name, at } of WORKS) {
      await turn('own', { name, at, seconds: options.seconds / 2 });
    }
    const rounds: Partial<Record<Engine, number>>[][] = WORKS.map(() => []);
    for (let at = 0; at < options.rounds; at += 1) {
      for (const [index, { name, at: connections }] of WORKS.entries()) {
        const figures: Partial<Record<Engine, number>> = {};
        // In both directions, so that none is always first.
        for (const engine of at % 2 === 0 ? engines : engines.toReversed()) {
          await postgres.checkpoint();
          const work = { name, at: connections, seconds: options.seconds };
          const outcome = await turn(engine, work);
          if (outcome === undefined) continue;
          figures[engine] = name === 'idle' ? outcome.p50Ms : outcome.perSecond;
        }
        rounds[index]!.push(figures);
      }
    }
    const rows = WORKS.map((work, index) => rowOf(work, engines, rounds[index]!));
    const remarks = [...verdicts(rows), ...doubts];
    const part: PartResult = {
      question: 'How does the server do beside other engines, on the same work and machine?',
      settings: {
        seconds: options.seconds,
        rounds: options.rounds,
        packages: PACKAGES,
        redis: redis === undefined ? 'none' : `${redis}, appendfsync always`,
      },
      results: { rows, rounds },
      remarks,
    };
    return { part, table: [tableOf(rows, engines), ...remarks].join('\n') };
  } finally {
    await server.stop();
  }
}

async function storeSequences(server: RestartedServer) {
  const store = async (sequence: object) => {
    const { id } = await server.ask<{ id: string }>(201, 'POST', '/sequences', sequence);
    return JSON.stringify(createBody(id));
  };
  return { noop: await store(NOOP_SEQUENCE), external: await store(EXTERNAL_SEQUENCE) };
}

/** @throws Error when the turn failed: the message says how */
async function drive(turn: Turn): Promise<Outcome> {
  const child = fork(DRIVER, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const patience = setTimeout(kill, 2_000 * turn.work.seconds + PATIENCE_MS);
  try {
    child.send(turn);
    const [answer] = (await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => [{ ok: false, message: `the driver ended: ${stderr}` }]),
    ])) as [TurnAnswer];
    if (!answer.ok) throw new Error(`${turn.engine}, ${turn.work.name}: ${answer.message}`);
    return answer.outcome;
  } finally {
    clearTimeout(patience);
    process.removeListener('exit', kill);
  }
}

/** Exported for the tests. */
export function rowOf(
  { name, at, title }: (typeof WORKS)[number],
  engines: readonly Engine[],
  rounds: readonly Readonly<Partial<Record<Engine, number>>>[],
): PeerRow {
  const of: Partial<Record<Engine, number>> = {};
  const ratio: Partial<Record<Engine, number>> = {};
  for (const engine of engines) {
    const values = rounds.flatMap((figures) => figures[engine] ?? []);
    if (values.length > 0) of[engine] = round(median(values));
    const ratios = rounds.flatMap(({ own, [engine]: other }) => {
      if (own === undefined || other === undefined) return [];
      return [name === 'idle' ? other / own : own / other];
    });
    if (engine !== 'own' && ratios.length > 0) ratio[engine] = round(median(ratios));
  }
  return { work: name, at, title, of, ratio };
}

function verdicts(rows: readonly PeerRow[]): readonly string[] {
  return TARGETS.flatMap(({ work, at, peer, times }) => {
    const row = rows.find((candidate) => candidate.work === work && candidate.at === at);
    const ratio = row?.ratio[peer];
    if (row === undefined || ratio === undefined) return [];
    const reached = ratio >= times ? 'reached' : 'missed';
    return [`${row.title}: ${ratio} times ${peer}, target ${times}: ${reached}`];
  });
}

function tableOf(rows: readonly PeerRow[], engines: readonly Engine[]): string {
  const others = engines.filter((engine) => engine !== 'own');
  return renderTable(
    ['per second', ...engines, ...others.map((engine) => `beside ${engine}`)],
    rows.map(({ title, of, ratio }) => [
      title,
      ...engines.map((engine) => of[engine] ?? 'none'),
      ...others.map((engine) => ratio[engine] ?? 'none'),
    ]),
  );
}
