/** What a stretch of work costs the whole machine: processor time by role, log written, flushes. */

import type { BenchPostgres } from './postgres.js';
import { readFamily, readThreads, type ThreadTimes } from './process-cpu.js';
import { CPU, type Figures } from './report.js';
import type { BenchServer } from './server.js';
import { cpuByRole, type ThreadRoles } from './thread-roles.js';

interface Reading {
  readonly walBytes: number;
  readonly flushes: number;
  readonly clientMs: number;
  readonly postgresMs: number;
  readonly threads: ThreadTimes;
}

/**
 * Measures from now on until the returned function is called with the number of operations. What a reading itself
 * costs lies before the first reading of processor time and after the last.
 */
export async function startMeter(postgres: BenchPostgres, server: BenchServer) {
  const before: Reading = {
    ...(await readKept(postgres, server)),
    ...readTimes(postgres, server),
  };
  return async (roles: ThreadRoles, operations: number): Promise<Figures> => {
    const times = readTimes(postgres, server);
    const after: Reading = { ...times, ...(await readKept(postgres, server)) };
    return costOf(roles, before, after, Math.max(1, operations));
  };
}

function costOf(roles: ThreadRoles, before: Reading, after: Reading, operations: number): Figures {
  const ms = {
    ...cpuByRole(roles, before.threads, after.threads),
    postgres: after.postgresMs - before.postgresMs,
    client: after.clientMs - before.clientMs,
  };
  const us = Object.entries(ms).map(([role, one]) => [role, (1_000 * one) / operations] as const);
  return {
    [CPU]: us.reduce((sum, [, one]) => sum + one, 0),
    ...Object.fromEntries(us),
    'WAL B/op': (after.walBytes - before.walBytes) / operations,
    'flushes/op': (after.flushes - before.flushes) / operations,
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
