/**
 * A database that was made once and is copied for each server after that: making one takes longer than all the rest of
 * a start. It lies in the user's folder for caches, by the versions of what has made it.
 *
 * 1. It gets its name when it is complete, by renaming: two processes may make it at once, and the first one counts.
 * 2. It is never changed, so that copying needs no lock. One that lost files, or does not start, is removed by whoever
 *    finds out, who then does without.
 * 3. Those that nobody used for a month are removed when another one is made.
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
import { type ThrowAwayDatabase, temporaryFolder } from './database.js';
import { runServer } from './server-process.js';

export interface PreparedDatabase extends ThrowAwayDatabase {
  /** What it was copied from is no good: the next start makes it anew. */
  discard(): void;
}

/** What is made by the first start and is of no use to others: the place of its Postgres, and its keys. */
const OWN_TO_A_START: ReadonlySet<string> = new Set([
  'postgres.json',
  'postgres.log',
  'encryption-key',
]);
const UNUSED_MS_MAX = 30 * 86_400_000;

/**
 * @param program of the server
 * @returns a copy of one's own; undefined where nothing can be kept
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
    // A full disk, a home that cannot be written, a server that does not start: what is wrong shows without it.
  }
  await database.remove();
  return undefined;
}

/** The folder of the server, and what is to be found there. */
const DATA = 'data';
const SIZE = 'size';

/** False when it is not whole, by its size or by a part that is not there. */
function isCopied(prepared: string, folder: string): boolean {
  try {
    const copied = copyFolder(path.join(prepared, DATA), folder);
    return copied === readFileSync(path.join(prepared, SIZE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** At once, for whoever is about to copy it. */
function discard(prepared: string): void {
  const gone = draftOf(prepared);
  try {
    renameSync(prepared, gone);
  } catch {
    // Somebody else did.
  }
  rmSync(gone, { recursive: true, force: true });
}

/** Beside it, and nobody else's. */
const draftOf = (prepared: string) =>
  `${prepared}.${process.pid}.${crypto.randomUUID().slice(0, 8)}`;

/** That of XDG where it is set, else as the system has it. */
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

/** Of all that decides what a new database looks like, and who can read it. */
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

/** The server itself makes it, in a folder that its Postgres can reach, and ends. */
async function prepare(program: string, shelf: string, prepared: string): Promise<void> {
  mkdirSync(shelf, { recursive: true, mode: 0o700 });
  removeUnused(shelf);
  const { env, remove } = temporaryFolder();
  const draft = draftOf(prepared);
  const data = path.join(draft, DATA);
  try {
    const server = await runServer(program, { ...env, ENGINE_API_KEY: crypto.randomUUID() });
    await server.stop();
    mkdirSync(data, { recursive: true, mode: 0o700 });
    const copied = copyFolder(env.ENGINE_DATA_DIR as string, data, OWN_TO_A_START);
    writeFileSync(path.join(draft, SIZE), copied);
    renameSync(draft, prepared);
  } catch (error) {
    // Somebody was quicker.
    if (!existsSync(prepared)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
    await remove();
  }
}

/** Earlier versions, and what processes left that were killed. */
function removeUnused(shelf: string): void {
  for (const name of readdirSync(shelf)) {
    const place = path.join(shelf, name);
    const age = Date.now() - lstatSync(place).mtimeMs;
    if (age > UNUSED_MS_MAX) rmSync(place, { recursive: true, force: true });
  }
}

/**
 * Into a folder that is there. Files share their blocks where the file system can; owners stay, as Postgres asks.
 *
 * @returns how much it was, to be compared
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
