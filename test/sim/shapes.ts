/**
 * The sequences of a run, drawn from its seed: all seven kinds of blocks, steps in the evaluator, in
 * the process and with workers, deferred, repeated, limited and timed out. Every one of them ends
 * when its workers answer.
 */

import type { Random } from '../chaos/random.js';

export const HANDLERS = ['alpha', 'beta'] as const;
export const QUEUE = 'urgent';

/** Read by conditions and collections of the blocks below. */
export const CONFIG = { yes: true, no: false } as const;
export const DATA = { items: [3, 1, 2], go: true } as const;

const KINDS = {
  step: 12,
  parallel: 2,
  race: 1,
  router: 1,
  try_catch: 2,
  loop: 1,
  for_each: 1,
} as const;

const STEPS = {
  noop: 3,
  transform: 2,
  log: 1,
  fail: 1,
  sleep: 2,
  external: 6,
  http_request: 2,
} as const;

const DEPTH_MAX = 2;
const BLOCKS_MAX = 10;

/** @param rateKey the rate limit that some of the steps are under, if any */
export function randomBlocks(random: Random, rateKey: string | undefined): object[] {
  return new Generator(random, rateKey).list(1, 4, 0);
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
  readonly #rateKey: string | undefined;
  #count = 0;

  constructor(random: Random, rateKey: string | undefined) {
    this.#random = random;
    this.#rateKey = rateKey;
  }

  list(min: number, max: number, depth: number): object[] {
    const length = this.#random.integer(min, max);
    return Array.from({ length }, () => this.#block(depth));
  }

  #block(depth: number): object {
    const random = this.#random;
    this.#count += 1;
    const isLeaf = depth >= DEPTH_MAX || this.#count >= BLOCKS_MAX;
    const type = isLeaf ? 'step' : random.weighted(KINDS);
    const id = `${type === 'for_each' ? 'each' : type}${this.#count}`;
    const inside = (min = 1, max = 2) => this.list(min, max, depth + 1);
    switch (type) {
      case 'step':
        return { type, id, ...this.#step() };
      case 'parallel':
        return {
          type,
          id,
          branches: [inside(), inside(), ...(random.chance(0.3) ? [inside()] : [])],
        };
      case 'race': {
        const semantics = random.pick(['first_to_resolve', 'first_to_succeed']);
        return { type, id, semantics, branches: [inside(), inside()] };
      }
      case 'router': {
        const condition = random.pick(['config.yes', 'config.no']);
        return { type, id, routes: [{ condition, blocks: inside() }], default: inside(0, 1) };
      }
      case 'try_catch': {
        const finallyBlock = random.chance(0.5) ? { finally_block: inside() } : {};
        return { type, id, try_block: inside(), catch_block: inside(0, 1), ...finallyBlock };
      }
      case 'loop': {
        const max_iterations = random.integer(1, 3);
        return { type, id, condition: 'config.yes', max_iterations, body: inside() };
      }
      case 'for_each':
        return { type, id, collection: 'items', body: inside() };
    }
  }

  #step(): object {
    const random = this.#random;
    const kind = random.weighted(STEPS);
    switch (kind) {
      case 'noop':
        return { handler: kind, ...this.#delay() };
      case 'transform':
        return { handler: kind, params: { seen: '{{ data.go }}' }, ...this.#delay() };
      case 'log':
        return { handler: kind, params: { message: 'simulated', level: 'debug' } };
      case 'fail': {
        const retry = { max_attempts: 2, initial_backoff: 100 };
        return { handler: kind, params: { retryable: random.chance(0.5) }, retry };
      }
      case 'sleep':
        return { handler: kind, params: { duration_ms: random.integer(0, 2_500) } };
      case 'http_request':
        return { handler: kind, params: { url: 'https://simulated.example/' }, ...this.#outside() };
      case 'external':
        return { handler: random.pick(HANDLERS), ...this.#outside() };
    }
  }

  #delay(): object {
    const random = this.#random;
    if (!random.chance(0.3)) return {};
    const jitter = random.chance(0.3) ? { jitter: 300 } : {};
    return { delay: { duration: random.integer(1, 2_000), ...jitter } };
  }

  #outside(): object {
    const random = this.#random;
    return {
      ...this.#delay(),
      ...(random.chance(0.5)
        ? { retry: { max_attempts: random.integer(1, 3), initial_backoff: random.integer(0, 800) } }
        : {}),
      ...(random.chance(0.2) ? { timeout: random.integer(500, 6_000) } : {}),
      ...(random.chance(0.1) ? { when: random.pick(['data.go', 'config.no']) } : {}),
      ...(random.chance(0.1) ? { cancellable: false } : {}),
      ...(random.chance(0.15) ? { queue_name: QUEUE } : {}),
      ...(this.#rateKey !== undefined && random.chance(0.4)
        ? { rate_limit_key: this.#rateKey }
        : {}),
    };
  }
}
