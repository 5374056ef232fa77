/**
 * A lock between processes of one machine, as a file that names its holder. A holder that died
 * leaves a stale file, which the next one removes. Plain Node: it runs before anything is installed.
 */

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const POLL_MS = 100;

/**
 * Runs `work` while holding the lock file, waiting as long as another live process holds it.
 * `onWait(pid)` is called once when there is somebody to wait for.
 */
export async function withLock(file, work, onWait) {
  mkdirSync(path.dirname(file), { recursive: true });
  let told = false;
  while (!tryLock(file)) {
    const holder = readHolder(file);
    if (!isAlive(holder)) {
      removeStale(file, holder);
      continue;
    }
    if (!told) onWait(holder.split(' ')[0]);
    told = true;
    await wait(POLL_MS);
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

/** A linked file appears with its content, so no reader ever sees a lock without a holder. */
function tryLock(file) {
  const own = `${file}.${process.pid}`;
  writeFileSync(own, `${process.pid} ${startOf(process.pid)}`);
  try {
    linkSync(own, file);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(own, { force: true });
  }
}

/**
 * 1. What is judged stale is moved aside, which only one process can do.
 * 2. If another waiter was quicker and a fresh lock was moved by mistake, it is put back.
 */
function removeStale(file, judged) {
  const aside = `${file}.${process.pid}.stale`;
  try {
    renameSync(file, aside);
    if (readFileSync(aside, 'utf8') !== judged) linkSync(aside, file);
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

function readHolder(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return '';
    throw error;
  }
}

function isAlive(holder) {
  const [pid, start] = holder.split(' ');
  if (pid === '') return false;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if (error.code === 'ESRCH') return false;
  }
  return startOf(pid) === start;
}

/** Tells a process from a later one with the same id. Empty where there is no /proc. */
function startOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name, which may hold spaces, ends at the last parenthesis; start time is field 22.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    // No such process, or no /proc on this system: the bare process id has to do.
    return '';
  }
}
