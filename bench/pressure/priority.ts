/** Whose turn it is on the cores that clients and server share: beside the priority that the bench was given. */

import { readdirSync } from 'node:fs';
import { getPriority, setPriority as setThread } from 'node:os';

/** As the bench itself, and the server that it starts. */
export const USUAL = getPriority();
/** Runs when none of the others wants to. */
export const LAST = Math.min(19, USUAL + 19);
/** Runs when it wants to. Only the root user may. */
export const FIRST = Math.max(-20, USUAL - 10);

/** Of all threads of this process, and of those that they start. */
export function setPriority(priority: number): void {
  try {
    for (const thread of threads()) setThread(thread, priority);
  } catch {
    // Who may not is measured as it is.
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
