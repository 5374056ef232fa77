/** What a start behind a SIGKILL costs. */

import { setTimeout as pause } from 'node:timers/promises';
import { readResidentMib } from '../base/process-cpu.js';
import type { BenchServer } from '../base/server.js';

/** Memory of a new process settles within this time: code is compiled, and what was read is collected. */
const SETTLE_MS = 3_000;

export async function restarted(server: BenchServer) {
  await server.kill();
  const readyMs = await server.start();
  await pause(SETTLE_MS);
  return { 'ready ms': readyMs, 'resident MiB': readResidentMib(server.pid) };
}
