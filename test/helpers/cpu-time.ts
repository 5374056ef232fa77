/** Time that work takes of the processor, which no other load on the machine makes longer. */

import { readFileSync } from 'node:fs';

/** The seconds of processor that this process has used, and the children that it has waited for. */
export function cpuSeconds(): number {
  if (process.platform !== 'linux') return process.cpuUsage().user / 1e6;
  // The name of the command, which may hold spaces, ends at the last parenthesis.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)!.split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
}

/** Milliseconds of the processor that `work` takes, with whatever else this process does meanwhile. */
export function cpuMsOf(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
