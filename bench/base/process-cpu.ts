/** Processor time and memory of threads and processes from /proc of Linux; elsewhere everything is zero. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second on every architecture that Node runs on. */
const MS_PER_TICK = 10;

/** Fields of a `stat` line behind the name, which may hold blanks and brackets itself. */
const FIELD = { parent: 1, user: 11, system: 12, childrenUser: 13, childrenSystem: 14 } as const;

/** Milliseconds by thread id. */
export type ThreadTimes = ReadonlyMap<number, number>;

export function readThreads(pid: number): ThreadTimes {
  const folder = `/proc/${pid}/task`;
  const times = new Map<number, number>();
  if (!existsSync(folder)) return times;
  for (const name of readdirSync(folder)) {
    const ms = readRun(`${folder}/${name}`);
    if (ms !== undefined) times.set(Number(name), ms);
  }
  return times;
}

/** Whether an idle thread runs an event loop. True where the kernel does not report it. */
export function waitsForEvents(pid: number, tid: number): boolean {
  try {
    const where = readFileSync(`/proc/${pid}/task/${tid}/wchan`, 'utf8');
    return !where.startsWith('futex');
  } catch {
    return true;
  }
}

/** What a process holds in memory; not a number where the system does not report it. */
export function readResidentMib(pid: number): number {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return Number.NaN;
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(file, 'utf8'))?.[1]) / 1024;
}

/** Of all threads of a process that are alive. */
export function readOwn(pid: number): number {
  return [...readThreads(pid).values()].reduce((sum, ms) => sum + ms, 0);
}

/** A process with its children, also those that have ended: the whole of a Postgres server. */
export function readFamily(pid: number): number {
  const own = readStat(`/proc/${pid}/stat`);
  if (own === undefined) return 0;
  let ms = (readRun(`/proc/${pid}`) ?? 0) + endedChildrenMs(own);
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const fields = readStat(`/proc/${name}/stat`);
    if (fields !== undefined && Number(fields[FIELD.parent]) === pid) {
      ms += readRun(`/proc/${name}`) ?? 0;
    }
  }
  return ms;
}

/** In nanoseconds where the kernel counts them, else in ticks. */
function readRun(folder: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(`${folder}/schedstat`, 'utf8'), 10) / 1e6;
  } catch {
    // It has ended since it was listed, or this kernel does not count nanoseconds.
    const fields = readStat(`${folder}/stat`);
    return fields === undefined ? undefined : ownMs(fields);
  }
}

function readStat(file: string): readonly string[] | undefined {
  try {
    const line = readFileSync(file, 'utf8');
    return line.slice(line.lastIndexOf(')') + 2).split(' ');
  } catch {
    // It has ended since it was listed, or this system has no /proc.
    return undefined;
  }
}

function ownMs(fields: readonly string[]): number {
  return (Number(fields[FIELD.user]) + Number(fields[FIELD.system])) * MS_PER_TICK;
}

function endedChildrenMs(fields: readonly string[]): number {
  return (Number(fields[FIELD.childrenUser]) + Number(fields[FIELD.childrenSystem])) * MS_PER_TICK;
}
