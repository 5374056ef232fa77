/**
 * What stops a start and can be mended by whoever starts the program, as one line that says how. What
 * has no line here is a defect, and is shown with its stack.
 */

import pg from 'pg';
import { ConfigError } from '../base/config-error.js';
import { databaseRefusal } from '../db/database-refusal.js';
import { SchemaError } from '../db/migrate.js';
import type { Config } from './config.js';
import { EmbeddedPostgresError } from './embedded-files.js';

/** @returns undefined for a defect */
export function startRefusal(error: unknown, config: Config | undefined): string | undefined {
  const text = mendable(error, config);
  return text?.trim().replace(/\s*\n\s*/g, '; ');
}

function mendable(error: unknown, config: Config | undefined): string | undefined {
  // A migration names itself; a right that is missing is mended in the same way wherever it is missed.
  if (error instanceof SchemaError && isMissingRight(error.cause)) {
    return databaseRefusal(config?.databaseUrl ?? '', error.cause).message;
  }
  if (
    error instanceof ConfigError ||
    error instanceof SchemaError ||
    error instanceof EmbeddedPostgresError
  ) {
    return error.message;
  }
  if (!(error instanceof Error) || config === undefined) return undefined;
  const { code = '', path } = error as NodeJS.ErrnoException;
  if (path?.startsWith(config.dataDir)) return fileRefusal(code, path, config.dataDir);
  if (error instanceof pg.DatabaseError || CONNECTION_LOST.test(code)) {
    return databaseRefusal(config.databaseUrl ?? '', error).message;
  }
  return undefined;
}

const isMissingRight = (cause: unknown): cause is pg.DatabaseError =>
  cause instanceof pg.DatabaseError && cause.code === '42501';

/** While the schema is brought up to date; before that the database is waited for. */
const CONNECTION_LOST = /^(?:ECONN[A-Z]+|EPIPE|ETIMEDOUT|EHOSTUNREACH)$/;

const NO_RIGHT = 'this user may not write there';
const IN_THE_WAY = 'a file is in the way of a folder, or a folder in the way of a file';

/** What is said of each code of the file system. */
const FILE_REASONS: Readonly<Record<string, string>> = {
  EACCES: NO_RIGHT,
  EPERM: NO_RIGHT,
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EEXIST: IN_THE_WAY,
  ENOTDIR: IN_THE_WAY,
  EISDIR: IN_THE_WAY,
  ENOENT: 'no folder can be made there',
};

function fileRefusal(code: string, path: string, dataDir: string): string {
  const why = FILE_REASONS[code] ?? code;
  const place = path === dataDir ? dataDir : `${path} in the data folder ${dataDir}`;
  return `cannot use ${place}: ${why} (${code}); mend that, or set ENGINE_DATA_DIR to another folder`;
}
