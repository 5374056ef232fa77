/**
 * Random stories about instances of random definitions: what callers ask for and when, where the
 * process dies, and what workers and handlers say, which belongs to the definition.
 */

import fc from 'fast-check';
import type { HookStep, Hooks } from '../../schema/blocks.js';
import type { JsonObject } from '../../src/base/json.js';
import type { Answer, KindWeights, Tree } from './block-trees.js';
import { contexts, time, trees, values } from './block-trees.js';

/** What a caller asks for. Times are in ms after the event before. */
export type Request =
  | { readonly kind: 'pause' | 'resume' | 'cancel' | 'park' | 'retry' }
  | { readonly kind: 'reschedule'; readonly after: number }
  | { readonly kind: 'stop'; readonly state: 'completed' | 'failed' | 'cancelled' }
  | { readonly kind: 'update_context'; readonly values: JsonObject };

export interface Story extends Tree {
  readonly data: JsonObject;
  readonly requests: readonly { readonly after: number; readonly request: Request }[];
  /** The process dies after the first commit of these events, counted from 0. */
  readonly deaths: readonly number[];
  /** How often an instance that ends as failed is retried. */
  readonly retries: number;
  /** Before it is retried, what it owes is given up, by a hard stop. */
  readonly givesUp: boolean;
  readonly startsAfter: number;
  /** Payloads of signals that are there before it begins. */
  readonly kept: readonly JsonObject[];
  readonly hooks: Hooks;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly stepBudget: number;
}

/** What a set of stories is mostly about. */
export interface Profile {
  readonly kinds?: KindWeights;
  readonly requests?: Partial<Record<Request['kind'], number>>;
  readonly deathsMax?: number;
}

/** Tries from this number on succeed, so that every story comes to an end. */
const TRIES_MAX = 5;

export function answerTo(
  story: Story,
  {
    block,
    iteration,
    number,
    life,
  }: { block: string; iteration: string; number: number; life: number },
): Answer {
  const answers = story.answers[block]!;
  const turn = iteration.split('.').reduce((sum, counter) => sum + Number(counter), number + life);
  const answer = answers[turn % answers.length]!;
  return number < TRIES_MAX ? answer : { ...answer, kind: 'success' };
}

export function stories(profile: Profile): fc.Arbitrary<Story> {
  return fc
    .record({
      tree: trees(profile.kinds ?? {}, true),
      data: contexts,
      requests: fc.array(fc.record({ after: time, request: requests(profile.requests ?? {}) }), {
        maxLength: 5,
      }),
      deaths: fc.array(fc.nat(25), { maxLength: profile.deathsMax ?? 2 }),
      retries: fc.nat(2),
      givesUp: fc.boolean(),
      hooks: fc.record({ on_failure: hooksOf('f'), on_cancel: hooksOf('c') }, { requiredKeys: [] }),
      kept: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(values, { maxLength: 2 })),
      startsAfter: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, time),
      unpoliciedRetry: fc.constantFrom('redispatch', 'redispatch', 'fail'),
      stepBudget: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constant(500)),
    })
    .map(({ tree, ...rest }) => {
      // Through JSON, as all of it comes: records of fast-check may have no prototype.
      return JSON.parse(JSON.stringify({ ...rest, ...tree })) as Story;
    });
}

/** They run in place, and one that fails does not hold up the others. */
function hooksOf(prefix: string): fc.Arbitrary<HookStep[]> {
  const params = { go: '{{ data.go }}', mode: '{{ data.mode }}' };
  return fc
    .array(fc.constantFrom('noop', 'transform', 'fail'), { minLength: 1, maxLength: 2 })
    .map((handlers) =>
      handlers.map((handler, i) => ({ type: 'step', id: `${prefix}${i}`, handler, params })),
    );
}

function requests(weights: NonNullable<Profile['requests']>): fc.Arbitrary<Request> {
  const plain = (kind: 'pause' | 'resume' | 'cancel' | 'park' | 'retry') => fc.constant({ kind });
  const of: Record<Request['kind'], fc.Arbitrary<Request>> = {
    pause: plain('pause'),
    resume: plain('resume'),
    cancel: plain('cancel'),
    park: plain('park'),
    retry: plain('retry'),
    reschedule: fc.record({
      kind: fc.constant('reschedule'),
      after: fc.oneof(fc.constant(0), time),
    }),
    stop: fc.record({
      kind: fc.constant('stop'),
      // The one that can be followed by a retry.
      state: fc.constantFrom('failed', 'failed', 'completed', 'cancelled'),
    }),
    update_context: fc.record({ kind: fc.constant('update_context'), values }),
  };
  const usual = { pause: 4, resume: 4, cancel: 1, park: 1, retry: 1, reschedule: 2, stop: 1 };
  const all = { ...usual, update_context: 2, ...weights };
  return fc.oneof(
    ...Object.entries(all).map(([kind, weight]) => ({
      weight,
      arbitrary: of[kind as Request['kind']],
    })),
  );
}
