/**
 * Part `peers`: other engines that run on Postgres, and BullMQ on Redis, on the same work as this server, on the same
 * machine. Every turn of theirs has a new database, or a new Redis; this server stays, and its tables grow.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { createBody, EXTERNAL_SEQUENCE, NOOP_SEQUENCE } from '../base/fixtures.js';
import { BenchServer } from '../base/server.js';
import type { Bench, Contender, Job } from '../job.js';
import type { Engine, Turn, TurnAnswer } from './driver.child.js';
import { installPeers, PEERS_FOLDER } from './packages.js';
import type { Outcome, WorkName } from './peer.js';
import { redisVersion, startRedis } from './redis.js';

/** The work of every engine, with so many connections or workers. */
const WORKS: readonly (readonly [name: WorkName, at: number, asks: string])[] = [
  ['created', 64, 'created one by one and completed, 64 connections'],
  ['created', 256, 'created one by one and completed, 256 connections'],
  ['bulk', 4, 'created in batches of 500, 4 connections'],
  ['rounds', 16, 'created, claimed, completed one by one, 16 workers'],
  ['rounds', 64, 'created, claimed, completed one by one, 64 workers'],
  ['batches', 16, 'rounds in batches of 50 (exchange), 16 workers'],
  ['idle', 1, 'created to completed on an idle server'],
];

/** For what an engine does before and after its work; a driver that is not done by then hangs. */
const PATIENCE_MS = 60_000;

const DRIVER = fileURLToPath(new URL('./driver.child.js', import.meta.url));

let databases = 0;

export const peerJobs: readonly Job[] = WORKS.map(([work, at, asks]) => ({
  part: 'peers',
  name: work === 'idle' ? 'idle1' : `${work}${at}`,
  asks,
  // Drivers of the others are new in each turn, and warm up there.
  isWarmedUp: false,
  prepare: async (bench) => {
    const folder = bench.options.peersFolder ?? PEERS_FOLDER;
    installPeers(folder);
    const server = await BenchServer.open(bench, `peers_own_${work}${at}`);
    const sequence = work === 'rounds' || work === 'batches' ? EXTERNAL_SEQUENCE : NOOP_SEQUENCE;
    const body = JSON.stringify(createBody(await server.store(sequence)));
    const turnOf = (engine: Engine, port: number, databaseUrl: string, ms: number): Turn => {
      const where = { folder, databaseUrl, port };
      return { engine, where, work: { name: work, at, seconds: ms / 1_000 }, body };
    };
    const own = (ms: number) => drive(turnOf('own', server.port, '', ms));
    await own(bench.options.seconds * 500);
    return {
      contenders: [
        { name: 'this server', turn: own },
        ...onPostgres(bench, (engine, url, ms) => drive(turnOf(engine, 0, url, ms))),
        ...onRedis(bench, (port, ms) => drive(turnOf('bullmq', port, '', ms))),
      ],
      close: () => server.stop(),
    };
  },
}));

function onPostgres(
  bench: Bench,
  turn: (engine: Engine, databaseUrl: string, ms: number) => Promise<Outcome>,
): Contender[] {
  return (['pg-boss', 'graphile-worker'] as const).map((engine) => ({
    name: engine,
    turn: async (ms) => {
      databases += 1;
      const name = `peer_${databases}`;
      const postgres = await bench.postgres();
      return turn(engine, await postgres.createDatabase(name), ms).finally(() =>
        postgres.admin.query(`drop database ${name} with (force)`),
      );
    },
  }));
}

function onRedis(
  { options, say }: Bench,
  turn: (port: number, ms: number) => Promise<Outcome>,
): Contender[] {
  if (redisVersion() === undefined) {
    say('No redis-server on this system: BullMQ is missing.');
    return [];
  }
  const contender = async (ms: number) => {
    const redis = await startRedis(options.dataParent ?? tmpdir());
    return turn(redis.port, ms).finally(() => redis.stop());
  };
  return [{ name: 'BullMQ', turn: contender }];
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
