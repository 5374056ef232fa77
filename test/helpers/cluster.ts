/** Cells of one database with a directory that lies in it, too: engines that know of one another. */

import { after, before } from 'node:test';
import { Directory, makeDirectory } from '../../src/cluster/directory.js';
import { bucketOf, cellOfBucket } from '../../src/cluster/routing.js';
import { type Api, startApi } from './api.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import type { EngineOptions } from './engine.js';
import { FaultProxy } from './proxy.js';
import { standIn } from './stand-in.js';

export interface Cluster {
  readonly database: TestDatabase;
  readonly directory: Directory;
  /** Between engines and the directory, to take it from them; the tests' own way is another one. */
  readonly way: FaultProxy;
  /** What an engine of the cell is started with. */
  envOf(cell: string): Record<string, string>;
  /** Writes the cell into the directory, if it is not there yet, and starts an owner. */
  start(cell: string, options?: EngineOptions): Promise<Api>;
  /** Ends all engines, which must be whole, and drops the database. */
  stop(): Promise<void>;
}

export async function startCluster(): Promise<Cluster> {
  const database = await createTestDatabase({ isMigrated: false });
  await makeDirectory(database.connectionString);
  const directory = new Directory(database.connectionString, 'cluster test');
  const { proxy: way, url: clusterUrl } = await FaultProxy.before(database.connectionString);
  const apis: Api[] = [];
  const envOf = (cell: string) => ({ ENGINE_DB_SCHEMA: cell, ENGINE_CLUSTER_URL: clusterUrl });
  return {
    database,
    directory,
    way,
    envOf,
    start: async (cell, options = {}) => {
      const { connectionString: database_url } = database;
      await directory.createCell({ name: cell, database_url, engines: [], state: 'open' });
      const api = await startApi({ ...options, database, env: { ...envOf(cell), ...options.env } });
      apis.push(api);
      return api;
    },
    stop: async () => {
      for (const api of apis) {
        if (api.engine.isRunning()) await api.stop();
        else await Promise.all([api.root.close(), api.sql.end()]);
      }
      await directory.close();
      await way.stop();
      await database.drop();
    },
  };
}

/** A database for a directory, and one that looks into it, which the hooks of a test file make, prepare and end. */
export function useDirectory(prepare?: () => Promise<void>) {
  const made: { database?: TestDatabase; directory?: Directory } = {};
  before(async () => {
    made.database = await createTestDatabase({ isMigrated: false });
    made.directory = new Directory(made.database.connectionString, 'test');
    await prepare?.();
  });
  after(async () => {
    await made.directory?.close();
    await made.database?.drop();
  });
  return { database: standIn(() => made.database), directory: standIn(() => made.directory) };
}

/** A name whose bucket leads to the cell among these. */
export function tenantLedTo(cell: string, cells: readonly string[], name: string): string {
  for (let at = 0; ; at++) {
    if (cellOfBucket(bucketOf(`${name}-${at}`), cells) === cell) return `${name}-${at}`;
  }
}
