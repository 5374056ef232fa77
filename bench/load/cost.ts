/** What a stretch of work cost the whole machine: processor time by role, log written, flushes. */

import type { BenchPostgres } from './postgres.js';
import { readFamily, readThreads, type ThreadTimes } from './process-cpu.js';
import type { BenchServer } from './server.js';
import { cpuByRole, type ThreadRoles } from './thread-roles.js';

export const ROLES = ['front', 'shards', 'writer', 'helpers', 'postgres', 'client'] as const;
export type Role = (typeof ROLES)[number];

/** Of one operation. */
export interface Cost {
  /** Microseconds. */
  readonly cpu: Readonly<Record<Role | 'sum', number>>;
  readonly walBytes: number;
  readonly flushes: number;
}

interface Reading {
  readonly walBytes: number;
  readonly flushes: number;
  readonly clientMs: number;
  readonly postgresMs: number;
  readonly threads: ThreadTimes;
}

/**
 * From now on until the returned function is called. What a reading costs itself lies before the first
 * number of processor time and behind the last.
 */
export async function startMeter(postgres: BenchPostgres, server: BenchServer) {
  const kept = await readKept(postgres, server);
  const before: Reading = { ...kept, ...readTimes(postgres, server) };
  return async (roles: ThreadRoles, operations: number): Promise<Cost> => {
    const times = readTimes(postgres, server);
    const after: Reading = { ...times, ...(await readKept(postgres, server)) };
    return costOf(roles, before, after, operations);
  };
}

function costOf(roles: ThreadRoles, before: Reading, after: Reading, operations: number): Cost {
  const each = (total: number) => total / Math.max(1, operations);
  const ms: Record<Role, number> = {
    ...cpuByRole(roles, before.threads, after.threads),
    postgres: after.postgresMs - before.postgresMs,
    client: after.clientMs - before.clientMs,
  };
  const of = (role: Role) => each(1_000 * ms[role]);
  return {
    cpu: {
      sum: ROLES.reduce((sum, role) => sum + of(role), 0),
      front: of('front'),
      shards: of('shards'),
      writer: of('writer'),
      helpers: of('helpers'),
      postgres: of('postgres'),
      client: of('client'),
    },
    walBytes: each(after.walBytes - before.walBytes),
    flushes: each(after.flushes - before.flushes),
  };
}

function readTimes({ pid }: BenchPostgres, server: BenchServer) {
  const { user, system } = process.cpuUsage();
  return {
    threads: readThreads(server.pid),
    postgresMs: readFamily(pid),
    clientMs: (user + system) / 1_000,
  };
}

async function readKept(postgres: BenchPostgres, server: BenchServer) {
  const { rows } = await postgres.admin.query<{ bytes: number }>(
    `select (pg_current_wal_insert_lsn() - '0/0')::int8 as bytes`,
  );
  return { walBytes: rows[0]!.bytes, flushes: await server.flushes() };
}
