/**
 * The sequences of a run, drawn from its seed: all kinds of blocks, steps in the evaluator, in the
 * process and with workers, deferred, repeated, limited and timed out, and steps that wait for people,
 * events and children. Every one of them ends when its workers, and those outside, answer.
 */

import type { KindName } from '../../schema/blocks.js';
import { WHEN_FULL } from '../../schema/flow-limits.js';
import type { Random } from '../chaos/random.js';
import { TOKEN } from './blocks-observer.js';

export const HANDLERS = ['alpha', 'beta'] as const;
export const QUEUE = 'urgent';

/** Read by conditions and collections of the blocks below. */
export const CONFIG = { yes: true, no: false, limit: 'outbound' } as const;
export const DATA = { items: [3, 1, 2], go: true, lane: 'fast' } as const;

/** Gives the key of the rate limit. */
export const RATE_TEMPLATE = '{{ config.limit }}';

/** What steps wait for: a name, with one of these keys or none. */
export const EVENT = 'settled';
export const EVENT_KEYS = ['a', 'b'] as const;

/** What cancels instances of some sequences: with the key that `DATA.go` gives, or with any. */
export const CANCEL_EVENT = 'withdrawn';
export const CANCEL_KEY = 'true';

/** What people may answer. */
export const CHOICES = ['yes', 'no'] as const;

const KINDS = {
  step: 12,
  parallel: 2,
  race: 1,
  router: 1,
  try_catch: 2,
  loop: 1,
  for_each: 1,
  sub_sequence: 4,
  cancellation_scope: 1,
  saga: 2,
  ab_split: 1,
} as const satisfies Record<KindName, number>;

/** Where it is about failures and retries. */
const RETRIED_KINDS: Readonly<Record<keyof typeof KINDS, number>> = {
  ...KINDS,
  ...{ race: 2, router: 0, try_catch: 5, loop: 2, for_each: 5, saga: 4, ab_split: 0 },
};

const STEPS = {
  noop: 3,
  transform: 2,
  log: 1,
  fail: 1,
  sleep: 2,
  external: 6,
  http_request: 2,
  gate: 2,
  event: 3,
} as const;

const RETRIED_STEPS: Readonly<Record<keyof typeof STEPS, number>> = {
  ...STEPS,
  ...{ noop: 1, transform: 7, log: 0, fail: 3, sleep: 1, external: 9, http_request: 3, event: 1 },
};

const DEPTH_MAX = 2;
const RETRIED_DEPTH_MAX = 3;
const BLOCKS_MAX = 10;

export interface ShapeOptions {
  /** The rate limit that some of the steps are under, if any. */
  readonly rateKey: string | undefined;
  /** Names of sequences that may be started as children. */
  readonly children: readonly string[];
  /** It is about failures, and what retries make of them. */
  readonly isRetried: boolean;
}

export const randomBlocks = (random: Random, options: ShapeOptions): object[] =>
  new Generator(random, options).list(1, 4, 0);

/** What runs after a failure or a cancel, and what cancels, in some sequences. */
export function randomHooks(random: Random): object {
  const hook = (id: string) => {
    const handler = random.weighted({ noop: 2, log: 1, fail: 1, http_request: 3 });
    return { type: 'step', id, handler, ...paramsOf(handler) };
  };
  return {
    ...(random.chance(0.25) ? { on_failure: [hook('failed1'), hook('failed2')] } : {}),
    ...(random.chance(0.25) ? { on_cancel: [hook('cancelled1')] } : {}),
    ...(random.chance(0.4) ? { cancel_on: random.pick(CANCELS) } : {}),
  };
}

/** Limits of a sequence; most keys divide the instances of a client. */
export function randomLimits(random: Random): object {
  const key = random.chance(0.3) ? { key: '{{ data.lane }}' } : {};
  const when_full = random.pick(WHEN_FULL);
  const limit = random.integer(1, 3);
  const throttle = {
    ...key,
    limit,
    per_ms: random.pick([500, 2_000, 5_000]),
    ...(random.chance(0.5) ? { burst: random.integer(1, limit) } : {}),
  };
  return {
    ...(random.chance(0.8)
      ? { concurrency: { ...key, limit: random.chance(0.75) ? 1 : 2, when_full } }
      : {}),
    ...(random.chance(0.5) ? { throttle } : {}),
  };
}
const CANCELS = [
  [{ event: CANCEL_EVENT, key: '{{ data.go | true }}' }],
  [{ event: CANCEL_EVENT }],
  [
    { event: 'never' },
    { event: CANCEL_EVENT, key: '{{ data.go | true }}' },
    { event: CANCEL_EVENT },
  ],
] as const;

/** @param id none of what is called beside the step */
function paramsOf(handler: string, id = ''): object {
  if (handler === 'log') return { params: { message: 'simulated', level: 'debug' } };
  return handler === 'http_request'
    ? { params: { url: `https://simulated.example/{{ instance_id }}/${id}` } }
    : {};
}

/** Of one version of a sequence: it ends soon, and not as the others do. */
export function versionBlocks(random: Random, version: number): object[] {
  const kinds = { noop: 4, fail: version === 1 ? 0 : 4, sleep: 1, external: 2 };
  return Array.from({ length: random.integer(1, 2) }, (_, i) => {
    const kind = random.weighted(kinds);
    const handler = kind === 'external' ? random.pick(HANDLERS) : kind;
    const params = kind === 'sleep' ? { params: { duration_ms: 700 } } : {};
    return { type: 'step', id: `step${i}`, handler, ...params };
  });
}

class Generator {
  readonly #random: Random;
  readonly #options: ShapeOptions;
  /** Of all steps with workers, also of those that come later. */
  readonly #tokens: Record<string, string> = {};
  #count = 0;

  constructor(random: Random, options: ShapeOptions) {
    this.#random = random;
    this.#options = options;
  }

  list(min: number, max: number, depth: number): object[] {
    const length = this.#random.integer(min, max);
    return Array.from({ length }, () => this.#block(depth));
  }

  #block(depth: number): object {
    const random = this.#random;
    this.#count += 1;
    const { isRetried } = this.#options;
    const deepest = isRetried ? RETRIED_DEPTH_MAX : DEPTH_MAX;
    const isLeaf = depth >= deepest || this.#count >= BLOCKS_MAX;
    const drawn = isLeaf ? 'step' : random.weighted(isRetried ? RETRIED_KINDS : KINDS);
    const isAlone = drawn === 'sub_sequence' && this.#options.children.length === 0;
    const type = isAlone ? 'step' : drawn;
    const number = this.#count;
    if (type === 'step') return { type, ...this.#step(number), ...this.#when() };
    if (type === 'sub_sequence') return this.#child(number);
    return {
      type,
      id: `${type === 'for_each' ? 'each' : type}${number}`,
      ...this.#inside(type, number, depth),
      ...this.#when(),
      ...(random.chance(0.12) ? { timeout: random.integer(500, 8_000) } : {}),
    };
  }

  #inside(type: Exclude<KindName, 'step' | 'sub_sequence'>, number: number, depth: number): object {
    const random = this.#random;
    const inside = (min = 1, max = 2) => this.list(min, max, depth + 1);
    switch (type) {
      case 'parallel':
        return { branches: [inside(), inside(), ...(random.chance(0.3) ? [inside()] : [])] };
      case 'race': {
        const semantics = random.pick(['first_to_resolve', 'first_to_succeed']);
        return { semantics, branches: [inside(), inside()] };
      }
      case 'router': {
        const condition = random.pick(['config.yes', 'config.no']);
        return { routes: [{ condition, blocks: inside() }], default: inside(0, 1) };
      }
      case 'try_catch': {
        const finallyBlock = random.chance(0.5) ? { finally_block: inside() } : {};
        return { try_block: inside(), catch_block: inside(0, 1), ...finallyBlock };
      }
      case 'loop': {
        const max_iterations = random.integer(1, 3);
        return { condition: 'config.yes', max_iterations, body: inside() };
      }
      case 'for_each': {
        const concurrency = random.chance(0.5) ? { concurrency: random.integer(2, 3) } : {};
        return { collection: 'items', index_var: 'at', body: inside(), ...concurrency };
      }
      case 'cancellation_scope':
        return { blocks: inside() };
      case 'ab_split': {
        const variants = [
          { name: 'left', weight: random.integer(1, 3), blocks: inside() },
          { name: 'right', weight: random.integer(0, 2), blocks: inside(0, 1) },
        ];
        return { variants };
      }
      case 'saga':
        return { steps: this.#sagaSteps(number, inside) };
    }
  }

  /** The blocks `do…` end the actions, the blocks `undo…` are what takes them back. */
  #sagaSteps(saga: number, inside: (min: number, max: number) => object[]): object[] {
    const random = this.#random;
    return Array.from({ length: random.integer(2, 4) }, (_, i) => {
      const name = `${saga}_${i}`;
      const handler = random.weighted({ transform: 3, alpha: 1, fail: i === 0 ? 0 : 1 });
      const params = handler === 'transform' ? this.#telling({ did: i }) : {};
      const action = { type: 'step', id: `do${name}`, handler, ...params };
      const undo = random.weighted({ transform: 3, beta: 1, fail: 1 });
      const taken = undo === 'transform' ? this.#telling({ undid: i }) : {};
      const compensation = { type: 'step', id: `undo${name}`, handler: undo, ...taken };
      this.#count += 1;
      return {
        id: `saga${name}`,
        action: random.chance(0.3) ? [...inside(1, 1), action] : action,
        ...(random.chance(0.85) ? { compensation } : {}),
      };
    });
  }

  #child(number: number): object {
    const random = this.#random;
    const { children } = this.#options;
    return {
      type: 'sub_sequence',
      id: `child${number}`,
      sequence_name: random.pick(children),
      input: { items: [1, 2], go: '{{ data.go | true }}' },
      ...this.#when(),
      ...(random.chance(0.15) ? { timeout: random.integer(500, 8_000) } : {}),
    };
  }

  #step(number: number): object {
    const random = this.#random;
    const kind = random.weighted(this.#options.isRetried ? RETRIED_STEPS : STEPS);
    const id = `step${number}`;
    switch (kind) {
      case 'noop':
        return { id, handler: kind, ...this.#delay() };
      case 'transform':
        return { id, handler: kind, ...this.#telling({}), ...this.#delay() };
      case 'log':
        return { id, handler: kind, ...paramsOf(kind) };
      case 'fail': {
        const retry = { max_attempts: 2, initial_backoff: 100 };
        return { id, handler: kind, params: { retryable: random.chance(0.5) }, retry };
      }
      case 'sleep':
        return { id, handler: kind, params: { duration_ms: random.integer(0, 2_500) } };
      case 'http_request':
        return { id, handler: kind, ...paramsOf(kind, id), ...this.#outside() };
      case 'external': {
        this.#tokens[id] = `{{ outputs.${id}.${TOKEN}${id} }}`;
        const secret = random.chance(0.08) ? { params: { key: '{{ secrets.gone }}' } } : {};
        return { id, handler: random.pick(HANDLERS), ...secret, ...this.#outside() };
      }
      case 'gate': {
        const handler = random.pick(['noop', 'noop', ...HANDLERS]);
        return { id: `gate${number}`, handler, wait_for_input: this.#gate(), ...this.#limits() };
      }
      case 'event':
        return { id: `event${number}`, handler: 'wait_for_event', ...this.#event() };
    }
  }

  /** Gives what it sees (`blocks-observer.ts`). */
  #telling(more: object): object {
    return { params: { ...more, data: '{{ data }}', tokens: this.#tokens } };
  }

  #gate(): object {
    const random = this.#random;
    const escalation = random.chance(0.5) ? { escalation_handler: 'log' } : {};
    return {
      prompt: 'Go on with {{ data.go | true }}?',
      choices: CHOICES.map((value) => ({ label: value, value })),
      allow_comment: random.chance(0.5),
      ...(random.chance(0.4) ? { timeout: random.integer(500, 6_000), ...escalation } : {}),
    };
  }

  #event(): object {
    const random = this.#random;
    const schema = { type: 'object', required: ['token'] };
    return {
      params: {
        name: EVENT,
        ...(random.chance(0.7) ? { key: random.pick(EVENT_KEYS) } : {}),
        ...(random.chance(0.3) ? { timeout_ms: random.integer(500, 6_000) } : {}),
        ...(random.chance(0.3) ? { schema } : {}),
      },
      ...(random.chance(0.3) ? { retry: { max_attempts: 2, initial_backoff: 300 } } : {}),
      ...this.#limits(),
    };
  }

  #when(): object {
    const random = this.#random;
    return random.chance(0.08) ? { when: random.pick(['data.go', 'config.no', 'config.yes']) } : {};
  }

  #delay(): object {
    const random = this.#random;
    if (!random.chance(0.3)) return {};
    const jitter = random.chance(0.3) ? { jitter: 300 } : {};
    return { delay: { duration: random.integer(1, 2_000), ...jitter } };
  }

  /** Of what the step waits for and tries, all together. */
  #limits(): object {
    const random = this.#random;
    if (!random.chance(0.12)) return {};
    const deadline = random.integer(300, 8_000);
    const handler = random.pick(['log', 'http_request', 'http_request']);
    const breach = random.chance(0.6)
      ? { on_deadline_breach: { handler, ...paramsOf(handler) } }
      : {};
    return { deadline, ...breach };
  }

  #outside(): object {
    const random = this.#random;
    const { rateKey } = this.#options;
    return {
      ...this.#delay(),
      ...(random.chance(0.5)
        ? { retry: { max_attempts: random.integer(1, 3), initial_backoff: random.integer(0, 800) } }
        : {}),
      ...(random.chance(0.2) ? { timeout: random.integer(500, 6_000) } : {}),
      ...(random.chance(0.1) ? { queue_timeout: random.integer(200, 4_000) } : {}),
      ...(random.chance(0.1) ? { cancellable: false } : {}),
      ...(random.chance(0.15) ? { queue_name: QUEUE } : {}),
      ...(rateKey !== undefined && random.chance(0.4)
        ? { rate_limit_key: random.pick([rateKey, RATE_TEMPLATE]) }
        : {}),
      ...this.#limits(),
    };
  }
}
