/** The priorities of clients and server on the cores that they share, beside that of the bench. */

import { readdirSync } from 'node:fs';
import { getPriority, setPriority as setThread } from 'node:os';

/** As the bench itself, and the server that it starts. */
export const USUAL = getPriority();
/** Runs when nothing else does. */
export const LAST = Math.min(19, USUAL + 19);
/** Runs before the others. Only the root user may set it. */
export const FIRST = Math.max(-20, USUAL - 10);

/** Of all threads of this process, and of those that they start. */
export function setPriority(priority: number): void {
  try {
    for (const thread of threads()) setThread(thread, priority);
  } catch {
    // Without the right to do so, the priorities stay equal.
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
