/** What test files leave behind in their process, which asks after each of them. */

import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as wait } from 'node:timers/promises';

/** What was closed may end a little later. */
const CLOSED_MS = 10_000;
const POLL_MS = 10;

const children = [];
subscribe('child_process', ({ process }) => children.push(process));

/** How many servers this process has started, in whatever way: they are what costs most. */
export function serversStarted() {
  const isServer =
    /\/(?:server|src)\/(?:main\.js|cli\.js (?:start --unsafe-database|dev --port))\b/;
  // Absent from a child that could not be started.
  return children.filter(({ spawnargs }) => isServer.test(spawnargs?.join(' ') ?? '')).length;
}

/** The kinds of what keeps this process from its end; pipes are its output and come with the first line. */
export function openNow() {
  return process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap');
}

/** @throws Error that names what is open beyond what was open before, and does not end */
export async function untilClosed(before) {
  const giveUpAt = performance.now() + CLOSED_MS;
  for (;;) {
    const left = openNow();
    for (const kind of before) if (left.includes(kind)) left.splice(left.indexOf(kind), 1);
    if (left.length === 0) return;
    if (performance.now() > giveUpAt) throw new Error(`it has left open: ${left.join(', ')}`);
    await wait(POLL_MS);
  }
}
