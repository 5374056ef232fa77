/** The steps of a start for the database: its address, the first connection, ownership, and the pool for reads. */

import type pg from 'pg';
import { STORE } from '../../actors/shard/store.js';
import { writerName } from '../../actors/shard/supervisor.js';
import { BATCH_LANES, LANES_MAX } from '../../actors/writer/lane-count.js';
import { realClock } from '../base/real-clock.js';
import { checkConnection } from '../db/connection-check.js';
import { inSchema } from '../db/database-url.js';
import { acquireLease, type Lease } from '../db/lease.js';
import { createPool } from '../db/pool.js';
import { READ_POOL_OPTIONS, type Reads } from '../db/reads.js';
import { prepareRowSecurity } from '../db/row-security.js';
import { troubleOf } from '../db/trouble.js';
import { startEmbedded } from './embedded.js';
import type { RoleUrls } from './embedded-roles.js';
import type { Startup } from './startup.js';

/** Starts the embedded database, unless DATABASE_URL is set. @returns its folder, and the URLs of the roles */
export async function findDatabase(startup: Startup) {
  const { config, schema, log, signal, parts } = startup;
  const { databaseUrl, migrationUrl, dataDir, unsafeDatabase } = config;
  const urlsOf = ({ engine, owner }: RoleUrls) => {
    return { engine: inSchema(engine, schema), owner: inSchema(owner, schema) };
  };
  if (databaseUrl !== undefined) {
    const urls = urlsOf({ engine: databaseUrl, owner: migrationUrl ?? databaseUrl });
    return { urls, folder: undefined };
  }
  // Not raced with the stop: an abort ends it after it has cleaned up.
  const isDurable = !unsafeDatabase;
  const embedded = await startEmbedded({ dataDir, schema, log, isDurable, signal });
  parts.push({ name: 'embedded database', stop: () => embedded.stop() });
  signal.throwIfAborted();
  const { location, port, roles } = embedded;
  log.info({ location, port }, 'embedded database runs');
  return { urls: urlsOf(roles), folder: location };
}

export function openReadPool({ owner, log, parts }: Startup, { engine }: RoleUrls): pg.Pool {
  const pool = createPool({
    connectionString: engine,
    applicationName: `${owner} reads`,
    ...READ_POOL_OPTIONS,
    onError: (error) => log.debug({ err: error }, 'idle connection lost'),
  });
  parts.push({ name: 'reads', stop: () => pool.end() });
  return pool;
}

export async function checkDatabase(startup: Startup, { engine, owner }: RoleUrls): Promise<void> {
  const { config, schema: name, gate, log, signal } = startup;
  const check = checkConnection({
    connectionString: engine,
    ownerUrl: owner,
    schema: { name, isChosen: config.dbSchema !== undefined, mayCreate: config.runMigrations },
    signal,
    isUnsafeAccepted: config.unsafeDatabase,
    synchronous: config.dbSynchronous,
    log,
    onUnavailable: (error, attempts) => {
      const isFirst = attempts === 1;
      if (isFirst) log.warn({ err: error }, 'the database cannot be reached; trying again');
      gate.set('database-unavailable', troubleOf(error));
    },
  });
  await startup.unlessStopped(check);
  gate.set('starting');
}

/** Waits until no other engine owns the database. @param onLost called when this engine loses it */
export async function own(
  { config, owner, gate, log, signal, parts }: Startup,
  { engine }: RoleUrls,
  onLost: (reason: string) => void,
): Promise<Lease> {
  let isStandby = false;
  const lease = await acquireLease({
    connectionString: engine,
    owner,
    applicationName: writerName(owner),
    laneCount: Math.max(config.writerLanes, LANES_MAX) + BATCH_LANES,
    clock: realClock,
    log,
    onStandby: ({ owner, epoch }) => {
      isStandby = true;
      gate.set('standby');
      log.info({ owner, epoch }, 'another engine owns the database: standing by');
    },
    signal,
  });
  if (isStandby) log.info({ epoch: lease.epoch }, 'took the database over');
  lease.onLost(onLost);
  parts.push({ name: 'lease', stop: () => lease.release() });
  signal.throwIfAborted();
  gate.times = lease;
  gate.set('starting');
  return lease;
}

/** Turns on row level security for reads, where possible. */
export async function isolateTenants(
  { config, log }: Startup,
  { engine, owner }: RoleUrls,
  reads: Reads,
): Promise<void> {
  const { rowSecurity: mode, runMigrations } = config;
  const without = await prepareRowSecurity({
    store: STORE,
    mode,
    connectionString: engine,
    ownerUrl: runMigrations ? owner : undefined,
  });
  if (without === undefined) reads.wallTenants();
  else log.info({ without }, 'row level security of reads is off');
}
