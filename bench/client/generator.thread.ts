/** The entry of the load generator's thread: one load at a time, and its result or its error back. */

import { parentPort } from 'node:worker_threads';
import type { LoadResult } from './clock.js';
import { type Load, runLoad } from './loads.js';

export type GeneratorAnswer =
  | { readonly ok: true; readonly result: LoadResult }
  | { readonly ok: false; readonly message: string };

parentPort?.on('message', (load: Load) => {
  runLoad(load).then(
    (result) => answer({ ok: true, result }),
    (error: unknown) =>
      answer({ ok: false, message: error instanceof Error ? error.message : String(error) }),
  );
});

function answer(message: GeneratorAnswer): void {
  parentPort?.postMessage(message);
}
