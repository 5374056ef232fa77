/** What Postgres itself says of the statements of a stretch of work: the extension pg_stat_statements. */

import { renderTable, round } from '../report.js';
import type { BenchPostgres } from './postgres.js';

const SHOWN = 15;
const TEXT_LENGTH = 70;

export interface StatementCost {
  readonly text: string;
  readonly calls: number;
  readonly rows: number;
  readonly meanMs: number;
  readonly totalMs: number;
  readonly walBytes: number;
}

export async function resetStatements({ admin }: BenchPostgres): Promise<void> {
  await admin.query('create extension if not exists pg_stat_statements');
  await admin.query('select pg_stat_statements_reset()');
}

/** The ones that took longest, since the last reset. */
export async function readStatements(
  { admin }: BenchPostgres,
  database: string,
): Promise<StatementCost[]> {
  const { rows } = await admin.query<StatementCost>(
    `select query as text, calls::int8, rows::int8, mean_exec_time as "meanMs",
            total_exec_time as "totalMs", wal_bytes::int8 as "walBytes"
       from pg_stat_statements
      where dbid = (select oid from pg_database where datname = $1)
      order by total_exec_time desc limit ${SHOWN}`,
    [database],
  );
  return rows;
}

export function statementTable(statements: readonly StatementCost[], operations: number): string {
  return renderTable(
    ['µs/op', 'WAL B/op', 'calls', 'mean ms', 'rows/call', 'statement'],
    statements.map(({ text, calls, rows, meanMs, totalMs, walBytes }) => [
      round((1_000 * totalMs) / operations),
      round(walBytes / operations),
      calls,
      round(meanMs),
      round(rows / calls),
      text.replaceAll(/\s+/g, ' ').slice(0, TEXT_LENGTH),
    ]),
  );
}
