/**
 * The sequences of the chaos runs, and for each of them where its instances come to rest when
 * nobody interferes. Between them they cover what a kill can interrupt: eager starts, worker tasks,
 * retries with back-off, timers, outbound requests, dead letters, concurrency keys, rate limits, and
 * instances that only wait.
 */

import type { InstanceState } from '../../src/core/states.js';

export const SHAPE_NAMES = [
  'pure',
  'external',
  'flaky',
  'timed',
  'web',
  'doomed',
  'parked',
  'later',
  'slotted',
  'limited',
] as const;
export type ShapeName = (typeof SHAPE_NAMES)[number];

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

const step = (id: string, handler: string, more: object = {}) => ({
  type: 'step',
  id,
  handler,
  ...more,
});

/** @param sinkUrl where the http_request steps go */
export function shapes(sinkUrl: string): Readonly<Record<ShapeName, Shape>> {
  const served = { outputs: ['first', 'work', 'last'], rest: 'completed', isServed: true } as const;
  const first = step('first', 'noop');
  const last = step('last', 'transform', { params: { seen: '{{data.mark}}' } });
  const retry = { max_attempts: FLAKY_TRIES, initial_backoff: 20, max_backoff: 100 };
  const url = `${sinkUrl}/{{context.config.token}}`;
  return {
    pure: {
      blocks: [first, step('said', 'log', { params: { message: 'chaos', level: 'debug' } }), last],
      outputs: ['first', 'said', 'last'],
      rest: 'completed',
      isServed: false,
    },
    external: { blocks: [first, step('work', WORK_HANDLER), last], ...served },
    flaky: { blocks: [first, step('work', WORK_HANDLER, { retry }), last], ...served },
    timed: {
      blocks: [
        step('first', 'sleep', { params: { duration_ms: 150 } }),
        step('work', WORK_HANDLER, { delay: { duration: 50 } }),
        last,
      ],
      ...served,
    },
    web: {
      blocks: [
        first,
        step('call', 'http_request', { params: { url, method: 'POST' }, retry }),
        last,
      ],
      outputs: ['first', 'call', 'last'],
      rest: 'completed',
      isServed: false,
    },
    doomed: {
      blocks: [first, step('doom', 'fail', { params: { message: 'as planned' } }), last],
      outputs: ['first', 'doom', 'last'],
      rest: 'failed',
      isServed: false,
    },
    parked: {
      blocks: [first, step('wait', UNSERVED_HANDLER), last],
      outputs: ['first', 'wait', 'last'],
      rest: 'waiting',
      isServed: false,
    },
    // The driver creates these under a few concurrency keys.
    slotted: { blocks: [first, step('work', WORK_HANDLER), last], ...served },
    limited: {
      blocks: [first, step(LIMITED_BLOCK, 'noop', { rate_limit_key: RATE_LIMIT.key }), last],
      outputs: ['first', LIMITED_BLOCK, 'last'],
      rest: 'completed',
      isServed: false,
    },
    // The driver creates these with a start in the far future.
    later: {
      blocks: [first, last],
      outputs: ['first', 'last'],
      rest: 'scheduled',
      isServed: false,
    },
  };
}
