/** The server of a run, as a child process on a database of its own, with the sequences it needs. */

import { availableParallelism } from 'node:os';
import type pg from 'pg';
import { type Client, createClient, expectStatus } from '../../test/helpers/client.js';
import { type Engine, type EngineOptions, startEngine } from '../../test/helpers/engine.js';
import {
  createBody,
  EXTERNAL_SEQUENCE,
  NOOP_SEQUENCE,
  STEPS_SEQUENCE,
  TENANT,
} from '../fixtures.js';
import type { LoopJob } from './jobs.js';
import { type BenchPostgres, connect } from './postgres.js';
import { postRequest } from './requests.js';

const SEQUENCES = {
  noop: NOOP_SEQUENCE,
  external: EXTERNAL_SEQUENCE,
  steps: STEPS_SEQUENCE,
} as const;

export type Variant = keyof typeof SEQUENCES;

export interface BenchServer {
  readonly pid: number;
  readonly port: number;
  readonly shards: number;
  readonly databaseUrl: string;
  readonly sequenceId: string;
  /** `POST /instances` of a typical client. */
  readonly createRequest: string;
  /** On the server's database. */
  readonly db: pg.Client;
  /** Transactions of the writer so far: every flush counts one up on its lane's row. */
  flushes(): Promise<number>;
  /** Connections of the writer: the lanes that were used, so to be asked after some load. */
  lanes(): Promise<number>;
  /** @returns the id of one more sequence of the tenant */
  store(variant: Variant): Promise<string>;
  stop(): Promise<void>;
}

/** Creations of a typical client, one after the other on each connection. */
export function creationsOf(server: BenchServer, connections: number, ms: number): LoopJob {
  return {
    kind: 'loop',
    port: server.port,
    connections,
    requests: [server.createRequest],
    status: 201,
    limit: { ms },
  };
}

/**
 * @param shards undefined: the server's own default
 * @param launch whose server it is, and more of its environment and flags
 */
export async function startServer(
  postgres: BenchPostgres,
  name: string,
  variant: Variant,
  shards = Math.max(1, availableParallelism() - 1),
  launch: Pick<EngineOptions, 'checkout' | 'env' | 'nodeArgs'> = {},
): Promise<BenchServer> {
  const databaseUrl = await postgres.createDatabase(name);
  const engine = await startEngine({
    databaseUrl,
    ...launch,
    env: { ENGINE_SHARDS: String(shards), ...launch.env },
  });
  const db = await connect(databaseUrl);
  const sequenceId = await createSequence(engine, variant);
  return {
    pid: engine.pid,
    port: engine.port,
    shards,
    databaseUrl,
    sequenceId,
    createRequest: postRequest('/instances', JSON.stringify(createBody(sequenceId))),
    db,
    async flushes() {
      const { rows } = await db.query<{ batches: number }>(
        'select sum(last)::int8 as batches ' +
          'from (select max(batch) as last from lane_flushes group by lane) lanes',
      );
      return rows[0]!.batches;
    },
    async lanes() {
      const { rows } = await db.query<{ used: number }>(
        'select count(distinct lane) as used from lane_flushes',
      );
      return rows[0]!.used;
    },
    store: (more) => createSequence(engine, more),
    async stop() {
      await db.end();
      await engine.stop();
    },
  };
}

async function createSequence(engine: Engine, variant: Variant): Promise<string> {
  const client: Client = createClient({ url: engine.url, apiKey: engine.apiKey, tenant: TENANT });
  try {
    const reply = await client.post<{ id: string }>('/sequences', SEQUENCES[variant]);
    return expectStatus(reply, 201).id;
  } finally {
    await client.close();
  }
}
