/**
 * A prepared database that is copied for each server, since creating one takes longer than the rest of a start. It is
 * stored in the user's cache folder, named by the versions that created it.
 *
 * 1. It is renamed into place when complete: two processes may create it at once, and the first one wins.
 * 2. It is never changed, so copying needs no lock. A damaged one is removed by whoever notices, who then continues
 *    without it.
 * 3. Those unused for a month are removed when another one is created.
 */

import { createHash } from 'node:crypto';
import {
  chownSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { dropTemplates, type ThrowAwayDatabase, temporaryFolder } from './database.js';
import { runServer } from './server-process.js';

export interface PreparedDatabase extends ThrowAwayDatabase {
  /** The source of the copy is damaged: the next start creates a new one. */
  discard(): void;
}

/** Files of a single start: the location of its Postgres, and its keys. */
const OWN_TO_A_START: ReadonlySet<string> = new Set([
  'postgres.json',
  'postgres.log',
  'encryption-key',
]);
const UNUSED_MS_MAX = 30 * 86_400_000;

/**
 * @param program entry point of the server
 * @returns a private copy; undefined if nothing can be cached
 */
export async function preparedFolder(program: string): Promise<PreparedDatabase | undefined> {
  const database = temporaryFolder();
  const folder = database.env.ENGINE_DATA_DIR as string;
  try {
    const shelf = cacheFolder();
    const prepared = path.join(shelf, fingerprintOf(program));
    if (!existsSync(prepared)) await prepare(program, shelf, prepared);
    utimesSync(prepared, new Date(), new Date());
    if (isCopied(prepared, folder)) return { ...database, discard: () => discard(prepared) };
    discard(prepared);
  } catch {
    // A full disk, a read-only home, a server that does not start: starting without a copy reports the cause.
  }
  await database.remove();
  return undefined;
}

/** The server's data folder, and the expected size. */
const DATA = 'data';
const SIZE = 'size';

/** False if it is incomplete: of another size, or with missing parts. */
function isCopied(prepared: string, folder: string): boolean {
  try {
    const copied = copyFolder(path.join(prepared, DATA), folder);
    return copied === readFileSync(path.join(prepared, SIZE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** Renamed first, so that no other process copies it. */
function discard(prepared: string): void {
  const gone = draftOf(prepared);
  try {
    renameSync(prepared, gone);
  } catch {
    // Another process has removed it.
  }
  rmSync(gone, { recursive: true, force: true });
}

/** A unique name beside it. */
const draftOf = (prepared: string) =>
  `${prepared}.${process.pid}.${crypto.randomUUID().slice(0, 8)}`;

/** The XDG cache folder if set, else that of the platform. */
function cacheFolder(): string {
  const { XDG_CACHE_HOME, LOCALAPPDATA } = process.env;
  const own = OWN_CACHES[process.platform] ?? '.cache';
  const place = XDG_CACHE_HOME || LOCALAPPDATA || path.join(homedir(), own);
  return path.join(place, 'durable-workflow-engine');
}

const OWN_CACHES: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  darwin: 'Library/Caches',
  win32: 'AppData/Local',
};

/** A hash of everything that determines the contents of a new database and who can read it. */
function fingerprintOf(program: string): string {
  const root = manifestFolder(program);
  const migrations = path.join(root, 'src/db/migrations');
  const hash = createHash('sha256')
    .update(readFileSync(path.join(root, 'package.json')))
    .update(`\0${process.platform} ${process.arch} ${process.getuid?.()}`);
  for (const name of readdirSync(migrations).sort()) {
    hash.update(`\0${name}\0`).update(readFileSync(path.join(migrations, name)));
  }
  return `test-database-${hash.digest('hex').slice(0, 16)}`;
}

function manifestFolder(program: string): string {
  let folder = path.dirname(program);
  while (!existsSync(path.join(folder, 'package.json'))) folder = path.dirname(folder);
  return folder;
}

/** Lets the server create it in a folder that its Postgres can access, and stops the server. */
async function prepare(program: string, shelf: string, prepared: string): Promise<void> {
  mkdirSync(shelf, { recursive: true, mode: 0o700 });
  removeUnused(shelf);
  const { env, remove } = temporaryFolder();
  const draft = draftOf(prepared);
  const data = path.join(draft, DATA);
  try {
    const server = await runServer(program, { ...env, ENGINE_API_KEY: crypto.randomUUID() });
    const folder = env.ENGINE_DATA_DIR as string;
    await dropTemplates(folder, program).finally(() => server.stop());
    mkdirSync(data, { recursive: true, mode: 0o700 });
    const copied = copyFolder(folder, data, OWN_TO_A_START);
    writeFileSync(path.join(draft, SIZE), copied);
    renameSync(draft, prepared);
  } catch (error) {
    // Another process was first.
    if (!existsSync(prepared)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
    await remove();
  }
}

/** Earlier versions, and drafts of processes that were killed. */
function removeUnused(shelf: string): void {
  for (const name of readdirSync(shelf)) {
    const place = path.join(shelf, name);
    const age = Date.now() - lstatSync(place).mtimeMs;
    if (age > UNUSED_MS_MAX) rmSync(place, { recursive: true, force: true });
  }
}

/**
 * Copies into an existing folder. Files share blocks where the file system supports it; owners are kept, as Postgres
 * requires.
 *
 * @returns the number of bytes, for comparison
 */
function copyFolder(from: string, to: string, without: ReadonlySet<string> = new Set()): string {
  let files = 0;
  let bytes = 0;
  for (const entry of readdirSync(from, { withFileTypes: true, recursive: true })) {
    if (without.has(entry.name)) continue;
    const source = path.join(entry.parentPath ?? entry.path, entry.name);
    const copy = path.join(to, path.relative(from, source));
    const { mode, uid, gid, size } = lstatSync(source);
    if (entry.isDirectory()) {
      mkdirSync(copy, { mode: mode & 0o777 });
    } else {
      copyFileSync(source, copy, constants.COPYFILE_FICLONE);
      files += 1;
      bytes += size;
    }
    if (process.getuid?.() === 0) chownSync(copy, uid, gid);
  }
  return `${files} files, ${bytes} bytes`;
}
