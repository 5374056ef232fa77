/** Whose turn it is on the cores that clients and server share. */

import { readdirSync } from 'node:fs';
import { constants, setPriority as setThread } from 'node:os';

const { PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH } = constants.priority;

/** Runs when nobody else wants to. */
export const LAST = PRIORITY_LOW;
export const USUAL = PRIORITY_NORMAL;
/** Runs when it wants to. Only the root user may. */
export const FIRST = PRIORITY_HIGH;

/** Of all threads of this process, and of those that they start. @returns whether that is allowed */
export function setPriority(priority: number): boolean {
  try {
    for (const thread of threads()) setThread(thread, priority);
    return true;
  } catch {
    return false;
  }
}

/** Linux has a priority for each thread; elsewhere the process has one. */
function threads(): number[] {
  try {
    return readdirSync('/proc/self/task').map(Number);
  } catch {
    return [process.pid];
  }
}
