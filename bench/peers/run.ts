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
import { median, type RowsResult, renderTable, round } from '../report.js';
import { RestartedServer } from '../scale/restarted.js';
import { type Reached, reachedOf, verdictsOf } from '../targets.js';
import type { Engine, Turn, TurnAnswer } from './driver.child.js';
import { EXCHANGE } from './own.js';
import { installPeers, PACKAGES, PEERS_FOLDER } from './packages.js';
import type { Outcome, Work } from './peer.js';
import { redisVersion, startRedis } from './redis.js';
import { nameOfWork, WORKS, type WorkRow } from './works.js';

/** For what an engine does before and after its work; a driver that is not done by then hangs. */
const PATIENCE_MS = 60_000;

const DRIVER = fileURLToPath(new URL('./driver.child.js', import.meta.url));

/** Of one round. */
export type PeerFigures = Readonly<Partial<Record<Engine, number>>>;

export interface PeerRow extends WorkRow {
  /** Jobs per second, of `idle` milliseconds at the median; absent: the engine cannot do it here. */
  readonly of: PeerFigures;
  /** Ours beside theirs, the median of the rounds; of `idle` theirs beside ours: more is better for us. */
  readonly ratio: PeerFigures;
}

export interface StoredPeers {
  readonly row: PeerRow;
  readonly rounds: readonly PeerFigures[];
  readonly reached: Reached;
}

export async function runPeers(
  { postgres }: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: RowsResult; readonly table: string }> {
  const folder = options.peersFolder ?? PEERS_FOLDER;
  const works = WORKS.filter((work) => options.peers.includes(nameOfWork(work)));
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
    for (const { name, at } of works) {
      await turn('own', { name, at, seconds: options.seconds / 2 });
    }
    const rounds: PeerFigures[][] = works.map(() => []);
    for (let at = 0; at < options.rounds; at += 1) {
      for (const [index, { name, at: connections }] of works.entries()) {
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
    const rows = works.map((work, index) => rowOf(work, engines, rounds[index]!));
    const stored = rows.map((row, index) => [
      nameOfWork(row),
      { row, rounds: rounds[index]!, reached: reachedBy(row) } satisfies StoredPeers,
    ]);
    const reached: Reached = Object.assign({}, ...rows.map(reachedBy));
    const remarks = [...verdictsOf(reached), ...doubts];
    const part: RowsResult = {
      question: 'How does the server do beside other engines, on the same work and machine?',
      settings: {
        seconds: options.seconds,
        rounds: options.rounds,
        packages: PACKAGES,
        redis: redis === undefined ? 'none' : `${redis}, appendfsync always`,
      },
      rows: Object.fromEntries(stored),
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
  { name, at, title }: WorkRow,
  engines: readonly Engine[],
  rounds: readonly PeerFigures[],
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
  return { name, at, title, of, ratio };
}

/** Of the one peer that a work has a target for. */
function reachedBy({ name, at, ratio }: PeerRow): Reached {
  const peer = name === 'batches' ? 'bullmq' : 'pg-boss';
  return reachedOf(`peers ${nameOfWork({ name, at })}`, ratio[peer]);
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
