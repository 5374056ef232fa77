/**
 * The sequences of the chaos runs, and for each of them where its instances come to rest when
 * nobody interferes. Between them they cover what a kill can interrupt: eager starts, worker tasks,
 * retries with back-off, timers, outbound requests, dead letters, limits of keys, rates and starts, creations
 * that are collected, events and signals from outside, tasks that are delivered, and instances that only wait.
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
  /** Members of the sequence beside its blocks. */
  readonly members?: object;
  /** Tasks of it are served by the workers of the run, or delivered to its worker endpoint. */
  readonly isServed: boolean;
}

/** The handlers that the workers and the worker endpoint of the run serve, and one that nobody serves. */
export const WORK_HANDLER = 'chaos_work';
export const PUSHED_HANDLER = 'chaos_pushed';
export const SERVED_HANDLERS = [WORK_HANDLER, PUSHED_HANDLER] as const;
const UNSERVED_HANDLER = 'chaos_nobody';

/** Instances that may run or wait at once under one of the few keys that creations have in their `config`. */
export const SLOTS = 2;
export const LIMIT_KEYS = 4;

const key = '{{ config.key }}';
const UNDER_KEY = { key, limit: SLOTS } as const;
const THROTTLE = { key, limit: 10, per_ms: 1_000, burst: 3 } as const;
const BATCH = { key, size: 4, wait_ms: 300 } as const;
const DEBOUNCE = { key, wait_ms: 100, max_wait_ms: 400 } as const;

/** What those outside send to one instance, by the `order` in its `config`. */
export const WITHDRAWAL = 'chaos.withdrawn';
/** Of the trigger whose deliveries become payments. */
export const PUBLISH = { event: 'chaos.{{ body.type }}', key: '{{ body.order }}' } as const;
export const PAYMENT = 'paid';
const ORDER = '{{ config.order }}';
const AWAITED = { name: `chaos.${PAYMENT}`, key: ORDER } as const;
/** What an instance of the shape `paid` waits for, one after the other. */
export const PAID_BLOCKS = ['paid', 'paid_again'] as const;
/** The step of the shape `asking`, and the name of the signal that it waits for. */
export const ASKING = 'ask';

/** The rate limit of the shape `limited`, and the block whose tries it counts. */
export const RATE_LIMIT = { key: 'chaos', max_count: 25, window_seconds: 1 } as const;
export const LIMITED_BLOCK = 'limited';

/** Tries of a flaky step. The workers fail it at most twice, so it never runs out. */
const FLAKY_TRIES = 8;

type Step = { readonly id: string; readonly handler: string };

const step = (id: string, handler: string, more: object = {}): Step => {
  return Object.assign({ type: 'step', id, handler }, more);
};

const isServed = (handler: string) => (SERVED_HANDLERS as readonly string[]).includes(handler);

const shape = (blocks: readonly Step[], rest: InstanceState = 'completed'): Shape => ({
  blocks,
  outputs: blocks.map(({ id }) => id),
  rest,
  isServed: blocks.some(({ handler }) => isServed(handler)),
});

/** @param sinkUrl where the http_request steps go */
export function shapes(sinkUrl: string) {
  const first = step('first', 'noop');
  const said = step('said', 'log', { params: { message: 'chaos', level: 'debug' } });
  const last = step('last', 'transform', { params: { seen: '{{data.mark}}' } });
  const around = (one: Step, rest?: InstanceState) => shape([first, one, last], rest);
  const retry = { max_attempts: FLAKY_TRIES, initial_backoff: 20, max_backoff: 100 };
  const url = `${sinkUrl}/{{context.config.token}}`;
  const nap = step('first', 'sleep', { params: { duration_ms: 150 } });
  return {
    pure: around(said),
    external: around(step('work', WORK_HANDLER)),
    flaky: around(step('work', WORK_HANDLER, { retry })),
    timed: shape([nap, step('work', WORK_HANDLER, { delay: { duration: 50 } }), last]),
    web: around(step('call', 'http_request', { params: { url, method: 'POST' }, retry })),
    doomed: around(step('doom', 'fail', { params: { message: 'as planned' } }), 'failed'),
    parked: around(step('wait', UNSERVED_HANDLER), 'waiting'),
    // The driver creates these under a few concurrency keys.
    slotted: around(step('work', WORK_HANDLER)),
    keyed: { ...around(step('work', WORK_HANDLER)), members: { concurrency: UNDER_KEY } },
    skipping: {
      ...around(step('work', WORK_HANDLER)),
      members: { concurrency: { ...UNDER_KEY, when_full: 'skip' } },
    },
    throttled: { ...shape([first, last]), members: { throttle: THROTTLE } },
    paced: {
      ...around(step('work', WORK_HANDLER)),
      members: { concurrency: UNDER_KEY, throttle: THROTTLE },
    },
    batched: { ...shape([first, said]), members: { batch: BATCH } },
    debounced: { ...shape([first, said]), members: { debounce: DEBOUNCE } },
    withdrawn: {
      ...around(step('wait', UNSERVED_HANDLER), 'waiting'),
      members: { cancel_on: [{ event: WITHDRAWAL, key: ORDER }] },
    },
    // Two deliveries for its order let it go on.
    paid: shape(
      [first, ...PAID_BLOCKS.map((id) => step(id, 'wait_for_event', { params: AWAITED })), last],
      'waiting',
    ),
    asking: around(
      step(ASKING, 'wait_for_event', {
        params: { name: ASKING },
        reply: { heard: `{{ outputs.${ASKING}.number }}` },
      }),
      'waiting',
    ),
    pushed: shape([
      first,
      step('push', PUSHED_HANDLER, { retry }),
      step('push_again', PUSHED_HANDLER, { retry }),
      last,
    ]),
    limited: around(step(LIMITED_BLOCK, 'noop', { rate_limit_key: RATE_LIMIT.key })),
    // The driver creates these with a start in the far future.
    later: shape([first, last], 'scheduled'),
  } satisfies Readonly<Record<string, Shape>>;
}
