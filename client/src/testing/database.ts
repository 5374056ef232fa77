/** Temporary databases of test servers. */

import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface ThrowAwayDatabase {
  /** The environment variables that configure it. */
  readonly env: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

/** The part of the package `pg` that is used; the server includes it. */
interface Postgres {
  Client: new (options: {
    connectionString: string;
  }) => {
    connect(): Promise<void>;
    query(text: string): Promise<unknown>;
    end(): Promise<void>;
  };
}

/** @param program entry point of the server, whose Postgres client is used */
export async function databaseIn(url: string, program: string): Promise<ThrowAwayDatabase> {
  const name = `engine_test_${process.pid}_${crypto.randomUUID().slice(0, 8)}`;
  await ask(url, program, [`create database ${name}`]);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return {
    env: { DATABASE_URL: own.href },
    remove: () => ask(url, program, [`drop database if exists ${name} with (force)`]),
  };
}

async function ask(url: string, program: string, statements: readonly string[]): Promise<void> {
  const pg = createRequire(program)('pg') as Postgres;
  const session = new pg.Client({ connectionString: url });
  await session.connect();
  try {
    for (const statement of statements) await session.query(statement);
  } finally {
    await session.end();
  }
}

/**
 * Drops the databases that Postgres keeps as templates for others: half of the files of a small server, which are
 * copied and removed for each test.
 *
 * @param folder of a server that runs on its own Postgres
 */
export async function dropTemplates(folder: string, program: string): Promise<void> {
  const textOf = (name: string) => readFileSync(path.join(folder, name), 'utf8').trim();
  const { port } = JSON.parse(textOf('postgres.json')) as { port: number };
  await ask(
    `postgresql://postgres:${textOf('postgres.password')}@127.0.0.1:${port}/postgres`,
    program,
    ['template1', 'template0'].flatMap((name) => [
      `alter database ${name} is_template false`,
      `drop database ${name}`,
    ]),
  );
}

/** A new folder for the Postgres included in the server. */
export function temporaryFolder(): ThrowAwayDatabase {
  const folder = mkdtempSync(path.join(tmpdir(), 'engine-test-'));
  // Run as root, Postgres runs as another user, who must be able to enter.
  chmodSync(folder, 0o755);
  return {
    env: { ENGINE_DATA_DIR: folder },
    remove: async () => {
      // If that user cannot enter the folder, the server places the database elsewhere and records the location here.
      const marker = path.join(folder, 'postgres.location');
      const elsewhere = existsSync(marker) ? readFileSync(marker, 'utf8').trim() : undefined;
      for (const one of [elsewhere, folder]) {
        if (one !== undefined) rmSync(one, { recursive: true, force: true });
      }
    },
  };
}
