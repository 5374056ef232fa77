/**
 * The sequences of the chaos runs, and for each of them where its instances come to rest when
 * nobody interferes. Between them they cover what a kill can interrupt: eager starts, worker tasks,
 * retries with back-off, timers, outbound requests, dead letters, concurrency keys, rate limits, and
 * instances that only wait.
 */

import type { InstanceState } from '../../schema/states.js';

export type ShapeName = keyof ReturnType<typeof shapes>;

export interface Shape {
  /** Blocks as they are sent. */
  readonly blocks: readonly object[];
  /** Blocks that have an output row once the instance is completed. */
  readonly outputs: readonly string[];
  /** Where an instance ends without signals, PATCHes and permanent failures of workers. */
  readonly rest: InstanceState;
  /** Tasks of it are served by the workers of the run. */
  readonly isServed: boolean;
}

/** The handler that the workers of the run serve, and one that nobody serves. */
export const WORK_HANDLER = 'chaos_work';
const UNSERVED_HANDLER = 'chaos_nobody';

/** Instances of the shape `slotted` that may run or wait at once under one of its few keys. */
export const SLOTS = 3;
export const SLOT_KEYS = 4;

/** The rate limit of the shape `limited`, and the block whose tries it counts. */
export const RATE_LIMIT = { key: 'chaos', max_count: 25, window_seconds: 1 } as const;
export const LIMITED_BLOCK = 'limited';

/** Tries of a flaky step. The workers fail it at most twice, so it never runs out. */
const FLAKY_TRIES = 8;

type Step = { readonly id: string; readonly handler: string };

const step = (id: string, handler: string, more: object = {}): Step => {
  return Object.assign({ type: 'step', id, handler }, more);
};

const shape = (blocks: readonly Step[], rest: InstanceState = 'completed'): Shape => ({
  blocks,
  outputs: blocks.map(({ id }) => id),
  rest,
  isServed: blocks.some(({ handler }) => handler === WORK_HANDLER),
});

/** @param sinkUrl where the http_request steps go */
export function shapes(sinkUrl: string) {
  const first = step('first', 'noop');
  const last = step('last', 'transform', { params: { seen: '{{data.mark}}' } });
  const around = (one: Step, rest?: InstanceState) => shape([first, one, last], rest);
  const retry = { max_attempts: FLAKY_TRIES, initial_backoff: 20, max_backoff: 100 };
  const url = `${sinkUrl}/{{context.config.token}}`;
  const nap = step('first', 'sleep', { params: { duration_ms: 150 } });
  return {
    pure: around(step('said', 'log', { params: { message: 'chaos', level: 'debug' } })),
    external: around(step('work', WORK_HANDLER)),
    flaky: around(step('work', WORK_HANDLER, { retry })),
    timed: shape([nap, step('work', WORK_HANDLER, { delay: { duration: 50 } }), last]),
    web: around(step('call', 'http_request', { params: { url, method: 'POST' }, retry })),
    doomed: around(step('doom', 'fail', { params: { message: 'as planned' } }), 'failed'),
    parked: around(step('wait', UNSERVED_HANDLER), 'waiting'),
    // The driver creates these under a few concurrency keys.
    slotted: around(step('work', WORK_HANDLER)),
    limited: around(step(LIMITED_BLOCK, 'noop', { rate_limit_key: RATE_LIMIT.key })),
    // The driver creates these with a start in the far future.
    later: shape([first, last], 'scheduled'),
  } satisfies Readonly<Record<string, Shape>>;
}
