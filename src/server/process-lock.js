/**
 * Lock files that name the process holding them, and facts about processes. Process ids are reused, in containers at
 * once, so a holder is identified by its id and start time. The lock of a dead process is taken over, that of a live
 * one never. Plain JavaScript, because installation and build use such a lock before anything is compiled.
 */

import { execFileSync } from 'node:child_process';
import { linkSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/**
 * `start` says when the process started, as text that is only compared for equality.
 * @typedef {{ readonly pid: number, readonly start: string }} ProcessIdentity
 */

/**
 * `release` gives the lock back; harmless when another process holds it by now.
 * @typedef {{ release(): void }} ProcessLock
 */

/** More stale files in a row mean that something is wrong with the folder. */
const ATTEMPTS_MAX = 5;
let lockCount = 0;

/**
 * Takes the lock file, or returns the live process that has it. The folder must exist.
 * @param {string} file
 * @returns {ProcessLock | { readonly heldBy: ProcessIdentity }}
 * @throws what the file system answers when the folder cannot be written.
 */
export function tryProcessLock(file) {
  const own = { pid: process.pid, start: processStart(process.pid) ?? '' };
  const text = JSON.stringify(own);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    if (linkNew(file, text)) return { release: () => release(file, text) };
    const judged = readText(file);
    if (judged === undefined) continue;
    const holder = parseIdentity(judged);
    if (holder !== undefined && isSameProcess(holder)) return { heldBy: holder };
    removeStale(file, judged);
  }
  throw new Error(`cannot take the lock file ${file}: it keeps coming back`);
}

/**
 * True while this very process runs.
 * @param {ProcessIdentity} identity
 */
export function isSameProcess({ pid, start }) {
  return processStart(pid) === start;
}

/**
 * False also for a zombie.
 * @param {number} pid
 */
export function isAlive(pid) {
  return processStart(pid) !== undefined;
}

/**
 * The command line of a process, or undefined when there is none of that id.
 * @param {number} pid
 * @returns {string | undefined}
 */
export function processCommand(pid) {
  if (process.platform !== 'linux') return ps(pid, 'command=');
  return readText(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ');
}

/**
 * The working folder of a process; undefined when it ended or the system does not report it.
 * @param {number} pid
 * @returns {string | undefined}
 */
export function processFolder(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // No such process, no permission, or no /proc.
    return undefined;
  }
}

/**
 * The start time of a process; undefined when it ended or is a zombie.
 * @param {number} pid
 * @returns {string | undefined}
 */
export function processStart(pid) {
  if (process.platform !== 'linux') return ps(pid, 'lstart=');
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The command name may contain spaces and ends at the last parenthesis: state is field 3, the start in ticks since
  // boot is field 22. The boot id makes it unique across restarts of the machine.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
  return `${fields[19]}@${readText('/proc/sys/kernel/random/boot_id')?.trim() ?? ''}`;
}

/**
 * A linked file appears with its content: no lock is ever seen half written.
 * @param {string} file
 * @param {string} text
 */
function linkNew(file, text) {
  lockCount += 1;
  const draft = `${file}.${process.pid}.${lockCount}`;
  writeFileSync(draft, text, { mode: 0o644 });
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Moves the file aside, which only one process can do. If it is not the judged one, another process has taken over,
 * and its lock is put back.
 * @param {string} file
 * @param {string} judged
 */
function removeStale(file, judged) {
  const aside = `${file}.${process.pid}.stale`;
  try {
    renameSync(file, aside);
    if (readText(aside) !== judged) linkSync(aside, file);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

/**
 * @param {string} file
 * @param {string} text
 */
function release(file, text) {
  if (readText(file) === text) rmSync(file, { force: true });
}

/**
 * @param {string} text
 * @returns {ProcessIdentity | undefined}
 */
function parseIdentity(text) {
  try {
    const { pid, start } = JSON.parse(text);
    return typeof pid === 'number' && typeof start === 'string' ? { pid, start } : undefined;
  } catch {
    // Foreign or damaged: nobody holds the lock.
    return undefined;
  }
}

/**
 * @param {string} file
 * @returns {string | undefined}
 */
function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    // /proc returns ESRCH for a process that ends during the read.
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ESRCH') return undefined;
    throw error;
  }
}

/**
 * @param {number} pid
 * @param {string} column
 * @returns {string | undefined}
 */
function ps(pid, column) {
  try {
    return execFileSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }).trim();
  } catch {
    // The exit code of `ps` means that there is no such process.
    return undefined;
  }
}

/** @param {any} error */
const errorCode = (error) => error.code;
