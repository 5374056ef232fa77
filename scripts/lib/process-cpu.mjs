/**
 * The processor time of processes and of all that they started, as Linux keeps it under /proc. Elsewhere
 * nothing is known but of the own process.
 */

import { readdirSync, readFileSync } from 'node:fs';

/** The clock ticks of a second in /proc, the same on every Linux that Node runs on. */
const TICKS_PER_S = 100;

/** Seconds used so far by this process and the children that it has waited for. */
export function ownCpu() {
  const stat = readStat('self');
  if (stat !== undefined) return stat.cpuS;
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Every process that runs, by its id, with its parent and its seconds. Empty where there is no /proc. */
export function processTable() {
  const table = new Map();
  for (const pid of pids()) {
    const stat = readStat(pid);
    if (stat !== undefined) table.set(pid, stat);
  }
  return table;
}

/** The process and its descendants. */
export function treeOf(table, root) {
  const tree = table.has(root) ? [root] : [];
  for (const parent of tree) {
    for (const [pid, { ppid }] of table) if (ppid === parent) tree.push(pid);
  }
  return tree;
}

function pids() {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

function readStat(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name, which may hold spaces, ends at the last parenthesis; the state follows.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const ticks = fields[11] + fields[12] + fields[13] + fields[14];
    return { ppid: fields[1], cpuS: ticks / TICKS_PER_S };
  } catch {
    // It has ended meanwhile, or there is no /proc.
    return undefined;
  }
}
