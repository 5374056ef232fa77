/** The server that is fuzzed: a real one, whose threads watch their prototypes. */

import { type Api, startApi } from '../helpers/api.js';

/** To be loaded before anything else. */
export const WATCH = new URL('prototype.child.js', import.meta.url).href;

export const FUZZED_ENV = {
  ENGINE_SHARDS: '2',
  ENGINE_ENCRYPTION_KEY: 'a7'.repeat(32),
  NODE_OPTIONS: `--import=${WATCH}`,
};

/** Which of them serves HTTP; `auto` is what a server takes that is told nothing. */
export const BACKENDS = ['auto', 'uws', 'node'] as const;
export type Backend = (typeof BACKENDS)[number];

export const startFuzzedServer = (backend: Backend = 'auto'): Promise<Api> =>
  startApi({ env: { ...FUZZED_ENV, ENGINE_HTTP_BACKEND: backend } });
