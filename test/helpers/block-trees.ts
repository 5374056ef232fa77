/**
 * Random definitions of all kinds, and what their tries are answered.
 *
 * Times are spread so that two things rarely happen at once. Conditions read `context.data`, which
 * changes only when something arrives, and outputs of blocks that stand before the reader in its own
 * list or in a list around it, so that no two branches write and read the same at one time.
 */

import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import type { Retry } from '../../schema/step-options.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';

/** What whoever is at a try says about it, `after` ms from its dispatch. */
export interface Answer {
  readonly kind: 'success' | 'permanent' | 'retryable' | 'refused' | 'never';
  readonly after: number;
  readonly output: JsonObject;
}

export interface Tree {
  readonly blocks: Block[];
  /** By block: what its tries are answered in turn. */
  readonly answers: Readonly<Record<string, readonly Answer[]>>;
}

/** The kinds that the model knows. */
type Kind = Exclude<Block['type'], 'a_b_split'>;

/** How often a kind occurs, beside the others. */
export type KindWeights = Partial<Record<Kind, number>>;

const BLOCKS_MAX = 40;
const DEPTH_MAX = 4;

/** @param isWhole has limits of time, waits for others, and items side by side too */
export function trees(kinds: KindWeights, isWhole = false): fc.Arbitrary<Tree> {
  return shapes(kinds)
    .map((list): Tree => {
      const builder = new Builder(isWhole);
      return { blocks: builder.list(list), answers: builder.answers };
    })
    .filter(({ blocks }) => countOf(blocks) <= BLOCKS_MAX);
}

// ---------------------------------------------------------------- values

const small = fc.integer({ min: 0, max: 3 });
/** In ms. */
export const time = fc.integer({ min: 1, max: 997 });
const mode = fc.constantFrom('fast', 'slow');
const item = fc.record({ v: small, go: fc.boolean() });
const items = fc.oneof(
  { weight: 1, arbitrary: fc.array(item, { maxLength: 1 }) },
  { weight: 3, arbitrary: fc.array(item, { minLength: 2, maxLength: 3 }) },
);

/** What conditions, templates and collections read. */
const keys = { go: fc.boolean(), mode, n: small, items };
export const contexts = fc.record(keys) as fc.Arbitrary<JsonObject>;

/** What steps give, and callers merge. */
export const values = fc.record(keys, { requiredKeys: [] }) as fc.Arbitrary<JsonObject>;

const answer: fc.Arbitrary<Answer> = fc.record({
  kind: fc.oneof(
    { weight: 14, arbitrary: fc.constant('success') },
    { weight: 3, arbitrary: fc.constant('permanent') },
    { weight: 4, arbitrary: fc.constant('retryable') },
    { weight: 1, arbitrary: fc.constant('refused') },
    { weight: 1, arbitrary: fc.constant('never') },
  ) as fc.Arbitrary<Answer['kind']>,
  after: time,
  output: values,
});

// ---------------------------------------------------------------- building a definition

/** A part of a definition without ids and references, which follow from where it comes to stand. */
type Part<T> = (builder: Builder) => T;
type Shape = Part<Block>;

class Builder {
  readonly answers: Record<string, readonly Answer[]> = {};
  readonly isWhole: boolean;
  #blocks = 0;
  /** Steps that are over whenever the block that is being built runs. */
  #earlier: readonly string[] = [];

  constructor(isWhole: boolean) {
    this.isWhole = isWhole;
  }

  id(): string {
    this.#blocks += 1;
    return `b${this.#blocks}`;
  }

  list(parts: readonly Shape[]): Block[] {
    const around = this.#earlier;
    const blocks = parts.map((part) => {
      const block = part(this);
      this.#earlier = [...this.#earlier, ...readIn(block)];
      return block;
    });
    this.#earlier = around;
    return blocks;
  }

  earlier(pick: number): string | undefined {
    return this.#earlier[pick % this.#earlier.length];
  }
}

/** The steps of a block that is over. Of items side by side the latest one is open within an instant. */
function readIn(block: Block): string[] {
  if (block.type === 'step') return [block.id];
  const isSideBySide = block.type === 'for_each' && (block.concurrency ?? 1) > 1;
  return isSideBySide ? [] : listsOf(block).flat().flatMap(readIn);
}

/** A path to what an earlier step gave, or else to the data. */
function given(key: string): fc.Arbitrary<Part<string>> {
  return fc.nat(5).map((pick) => (builder) => {
    const id = builder.earlier(pick);
    return id === undefined ? `data.${key}` : `outputs.${id}.${key}`;
  });
}

const always = (text: string) => fc.constant<Part<string>>(() => text);

const conditions: fc.Arbitrary<Part<string>> = fc.oneof(
  { weight: 6, arbitrary: always('true') },
  { weight: 6, arbitrary: always('data.go') },
  { weight: 2, arbitrary: always('go') },
  { weight: 3, arbitrary: always('mode == fast') },
  { weight: 2, arbitrary: always('item.go') },
  { weight: 1, arbitrary: always('data.none') },
  { weight: 1, arbitrary: always('data.go == 1 && (') },
  { weight: 4, arbitrary: given('go') },
);

/** In `times` of `of` cases; shrinks to nothing. */
const sometimes = <T>(one: fc.Arbitrary<T>, times = 1, of = 5) =>
  fc.oneof(
    { withCrossShrink: true },
    { weight: of - times, arbitrary: fc.constant(undefined) },
    { weight: times, arbitrary: one },
  );

// ---------------------------------------------------------------- steps

const retry: fc.Arbitrary<Retry> = fc.record({
  max_attempts: fc.integer({ min: 1, max: 4 }),
  initial_backoff: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 400 })),
  max_backoff: fc.integer({ min: 400, max: 900 }),
  backoff_multiplier: fc.constantFrom(1, 1.5, 2, 3),
});

const gates = {
  when: sometimes(conditions, 1, 7),
  delay: sometimes(time, 1, 9),
  retry: sometimes(retry, 2, 5),
  timeout: sometimes(fc.integer({ min: 1, max: 1_500 }), 1, 5),
  deadline: sometimes(fc.integer({ min: 1, max: 2_500 }), 1, 8),
  isProtected: sometimes(fc.constant(true), 1, 6),
  isLimited: sometimes(fc.constant(true), 1, 7),
  queue_timeout: sometimes(fc.integer({ min: 1, max: 40 }), 1, 8),
  input: sometimes(
    fc.record({
      said: fc.array(answer, { minLength: 1, maxLength: 2 }),
      timeout: sometimes(fc.integer({ min: 1, max: 2_000 }), 1, 3),
      escalation_handler: sometimes(fc.constant('tell'), 1, 2),
      store_as: sometimes(fc.constant('mode'), 2, 3),
    }),
    1,
    9,
  ),
};
type Gates = {
  [K in keyof typeof gates]: (typeof gates)[K] extends fc.Arbitrary<infer T> ? T : never;
};

const template = (path: fc.Arbitrary<Part<string>>): fc.Arbitrary<Part<JsonValue>> =>
  path.map((part) => (builder) => `{{ ${part(builder)} }}`);

const params: fc.Arbitrary<Part<JsonObject>> = fc
  .record({
    go: fc.oneof(
      fc.boolean().map(
        (value): Part<JsonValue> =>
          () =>
            value,
      ),
      template(always('data.go')),
      template(given('go')),
    ),
    n: fc.oneof(template(always('data.n')), template(given('n')), template(always('data.item.v'))),
    // What was caught, by which block.
    by: sometimes(template(always('data._error.block_id'))),
  })
  .map(({ go, n, by }) => (builder) => {
    const caught = by === undefined ? {} : { by: by(builder) };
    return { go: go(builder), n: n(builder), ...caught };
  });

const handlers = {
  noop: fc.constant<Part<JsonObject> | undefined>(undefined),
  transform: params,
  fail: fc.boolean().map(
    (retryable): Part<JsonObject> =>
      () => ({ retryable }),
  ),
  sleep: time.map(
    (duration): Part<JsonObject> =>
      () => ({ duration_ms: duration }),
  ),
  work: sometimes(params, 1, 3),
  http_request: fc.constant<Part<JsonObject> | undefined>(undefined),
  wait_for_event: sometimes(fc.integer({ min: 1, max: 2_000 }), 1, 2).map(
    (limit): Part<JsonObject> =>
      () => ({ name: EVENT, ...(limit === undefined ? {} : { timeout_ms: limit }) }),
  ),
};

/** Of the event that all steps wait for. */
export const EVENT = 'came';

/** Those whose tries are answered. */
const ANSWERED: ReadonlySet<string> = new Set(['work', 'http_request', 'wait_for_event']);

function step(handler: keyof typeof handlers, mayWait: Partial<typeof gates>): fc.Arbitrary<Shape> {
  const tries = ANSWERED.has(handler) ? 3 : 0;
  return fc
    .record({
      params: handlers[handler] as fc.Arbitrary<Part<JsonObject> | undefined>,
      answers: fc.array(answer, { minLength: tries === 0 ? 0 : 1, maxLength: tries }),
      gates: fc.record(mayWait) as fc.Arbitrary<Partial<Gates>>,
    })
    .map(
      ({ params: own, answers, gates: set }): Shape =>
        (builder) => {
          const id = builder.id();
          const { isWhole } = builder;
          if (!isWhole && handler === 'wait_for_event')
            return { type: 'step', id, handler: 'noop' };
          if (tries > 0) builder.answers[id] = answers;
          if (set.input !== undefined) builder.answers[`${id}?`] = set.input.said;
          return {
            type: 'step',
            id,
            handler,
            ...present({ params: own?.(builder), when: set.when?.(builder) }),
            ...present({ retry: set.retry, timeout: set.timeout }),
            ...(set.delay === undefined ? {} : { delay: { duration: set.delay } }),
            ...(isWhole ? present({ deadline: set.deadline }) : {}),
            ...(isWhole && handler === 'work' ? present({ queue_timeout: set.queue_timeout }) : {}),
            ...(set.input === undefined || !isWhole ? {} : { wait_for_input: gateOf(set.input) }),
            ...(set.isProtected === true ? { cancellable: false } : {}),
            ...(set.isLimited === true ? { rate_limit_key: 'limited' } : {}),
          };
        },
    );
}

function gateOf({ said: _, ...gate }: NonNullable<Gates['input']>) {
  const choices = ['fast', 'slow'].map((value) => ({ label: value, value }));
  return { choices, ...present(gate) };
}

/** The fields that are there. */
function present<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

const { when: _, ...unguarded } = gates;

const leaf: fc.Arbitrary<Shape> = fc.oneof(
  { withCrossShrink: true },
  { weight: 3, arbitrary: step('noop', gates) },
  { weight: 2, arbitrary: step('transform', gates) },
  { weight: 1, arbitrary: step('fail', gates) },
  { weight: 2, arbitrary: step('sleep', gates) },
  { weight: 6, arbitrary: step('work', gates) },
  { weight: 4, arbitrary: step('http_request', gates) },
  { weight: 2, arbitrary: step('wait_for_event', gates) },
);

/** What a branch of a race begins with: something that takes time, so that races are no draws. */
const starter = fc.oneof(
  { weight: 1, arbitrary: step('sleep', unguarded) },
  { weight: 3, arbitrary: step('work', unguarded) },
  { weight: 2, arbitrary: step('http_request', unguarded) },
);

/** What a finally list begins with: the trace that it has run. */
const trace = fc.oneof(step('noop', {}), step('work', { retry: gates.retry }));

// ---------------------------------------------------------------- composite blocks

const USUAL_KINDS = {
  step: 9,
  parallel: 2,
  race: 2,
  router: 2,
  try_catch: 3,
  loop: 2,
  for_each: 2,
  cancellation_scope: 1,
  saga: 2,
  ab_split: 1,
  sub_sequence: 2,
};

function shapes(kinds: KindWeights): fc.Arbitrary<Shape[]> {
  const weights: Record<Kind, number> = { ...USUAL_KINDS, ...kinds };
  const { some } = fc.letrec<{ block: Shape; list: Shape[]; some: Shape[] }>((tie) => {
    const [list, body] = [tie('list'), tie('some')];
    const of: Record<Kind, fc.Arbitrary<Shape>> = {
      step: leaf,
      parallel: fc.array(list, { minLength: 1, maxLength: 3 }).map(parallel),
      race: races(list),
      router: routers(list),
      try_catch: tryCatches(body, list),
      loop: fc
        .record({ body, condition: conditions, max_iterations: fc.integer({ min: 1, max: 3 }) })
        .map(loop),
      for_each: forEaches(body),
      cancellation_scope: body.map(
        (shapes): Shape =>
          (builder) => ({
            type: 'cancellation_scope',
            id: builder.id(),
            blocks: builder.list(shapes),
          }),
      ),
      saga: sagas(body, list),
      ab_split: fc.array(fc.tuple(fc.nat(3), list), { minLength: 2, maxLength: 3 }).map(split),
      sub_sequence: fc
        .record({ input: params, ends: fc.array(answer, { minLength: 1, maxLength: 2 }) })
        .map(child),
    };
    return {
      block: fc.oneof(
        { maxDepth: DEPTH_MAX, depthIdentifier: 'tree', depthSize: 'small', withCrossShrink: true },
        ...Object.entries(of).map(([kind, arbitrary]) => ({
          weight: weights[kind as Kind],
          arbitrary: kind === 'step' ? arbitrary : guarded(arbitrary),
        })),
      ),
      list: fc.array(tie('block'), { maxLength: 3, depthIdentifier: 'tree' }),
      some: fc.array(tie('block'), { minLength: 1, maxLength: 3, depthIdentifier: 'tree' }),
    };
  });
  return some;
}

/** With what every kind may have. */
function guarded(block: fc.Arbitrary<Shape>): fc.Arbitrary<Shape> {
  const limit = sometimes(fc.integer({ min: 1, max: 3_000 }), 1, 8);
  return fc.tuple(block, sometimes(conditions, 1, 8), limit).map(
    ([shape, when, timeout]): Shape =>
      (builder) => ({
        ...shape(builder),
        ...present({ when: when?.(builder), timeout: builder.isWhole ? timeout : undefined }),
      }),
  );
}

const child =
  (of: { input: Part<JsonObject>; ends: Answer[] }): Shape =>
  (builder) => {
    const id = builder.id();
    if (!builder.isWhole) return { type: 'step', id, handler: 'noop' };
    builder.answers[id] = of.ends;
    return { type: 'sub_sequence', id, sequence_name: 'other', input: of.input(builder) };
  };

function sagas(body: fc.Arbitrary<Shape[]>, list: fc.Arbitrary<Shape[]>): fc.Arbitrary<Shape> {
  return fc.array(fc.tuple(body, sometimes(list, 3, 4)), { maxLength: 3 }).map(
    (steps): Shape =>
      (builder) => {
        const id = builder.id();
        const built = steps.map(([action, compensation], i) => ({
          id: `${id}s${i}`,
          action: builder.list(action),
          ...(compensation === undefined ? {} : { compensation: builder.list(compensation) }),
        }));
        return { type: 'saga', id, steps: built };
      },
  );
}

const split =
  (variants: [number, Shape[]][]): Shape =>
  (builder) => ({
    type: 'ab_split',
    id: builder.id(),
    // One of them has to be possible.
    variants: variants.map(([weight, blocks], i) => ({
      name: `v${i}`,
      weight: i === 0 ? weight + 1 : weight,
      blocks: builder.list(blocks),
    })),
  });

const parallel =
  (branches: Shape[][]): Shape =>
  (builder) => ({
    type: 'parallel',
    id: builder.id(),
    branches: branches.map((branch) => builder.list(branch)),
  });

function races(list: fc.Arbitrary<Shape[]>): fc.Arbitrary<Shape> {
  const branch = fc.oneof(
    { weight: 18, arbitrary: fc.tuple(starter, list).map(([first, rest]) => [first, ...rest]) },
    { weight: 1, arbitrary: list },
  );
  return fc
    .record({
      branches: fc.array(branch, { minLength: 1, maxLength: 3 }),
      semantics: sometimes(fc.constantFrom('first_to_resolve', 'first_to_succeed'), 2, 3),
    })
    .map(
      ({ branches, semantics }): Shape =>
        (builder) => ({
          type: 'race',
          id: builder.id(),
          branches: branches.map((shapes) => builder.list(shapes)),
          ...(semantics === undefined ? {} : { semantics }),
        }),
    );
}

function routers(list: fc.Arbitrary<Shape[]>): fc.Arbitrary<Shape> {
  return fc
    .record({
      routes: fc.array(fc.tuple(conditions, list), { minLength: 1, maxLength: 2 }),
      rest: sometimes(list, 2, 3),
    })
    .map(
      ({ routes, rest }): Shape =>
        (builder) => ({
          type: 'router',
          id: builder.id(),
          routes: routes.map(([condition, blocks]) => ({
            condition: condition(builder),
            blocks: builder.list(blocks),
          })),
          ...(rest === undefined ? {} : { default: builder.list(rest) }),
        }),
    );
}

function tryCatches(body: fc.Arbitrary<Shape[]>, list: fc.Arbitrary<Shape[]>): fc.Arbitrary<Shape> {
  const last = fc.tuple(trace, list).map(([first, rest]) => [first, ...rest]);
  const rescue = fc.tuple(list, sometimes(throwers(list), 1, 3)).map(([first, thrower]) => {
    return thrower === undefined ? first : [...first, thrower];
  });
  return fc.record({ body, rescue, last: sometimes(last, 2, 3) }).map(tryCatch);
}

const tryCatch =
  (lists: { body: Shape[]; rescue: Shape[]; last?: Shape[] | undefined }): Shape =>
  (builder) => ({
    type: 'try_catch',
    id: builder.id(),
    try_block: builder.list(lists.body),
    catch_block: builder.list(lists.rescue),
    ...(lists.last === undefined ? {} : { finally_block: builder.list(lists.last) }),
  });

/** What fails on purpose, at some depth and beside other blocks. */
function throwers(list: fc.Arbitrary<Shape[]>): fc.Arbitrary<Shape> {
  const fail = step('fail', gates);
  const thrown = fc.tuple(list, fail).map(([first, last]) => [...first, last]);
  return fc.oneof(
    fail,
    routers(thrown),
    races(thrown),
    fc.tuple(thrown, list).map(parallel),
    fc.record({ body: thrown, rescue: thrown }).map(tryCatch),
  );
}

const loop =
  (of: { body: Shape[]; condition: Part<string>; max_iterations: number }): Shape =>
  (builder) => ({
    type: 'loop',
    id: builder.id(),
    condition: of.condition(builder),
    max_iterations: of.max_iterations,
    body: builder.list(of.body),
  });

function forEaches(body: fc.Arbitrary<Shape[]>): fc.Arbitrary<Shape> {
  return fc
    .record({
      body,
      collection: fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom('items', '{{ data.items }}') },
        { weight: 1, arbitrary: fc.constantFrom('none', 'mode') },
      ),
      item_var: sometimes(fc.constantFrom('item', 'row'), 1, 3),
      max_iterations: sometimes(fc.integer({ min: 1, max: 3 }), 1, 8),
      index_var: sometimes(fc.constantFrom('n', 'at'), 1, 4),
      concurrency: sometimes(fc.integer({ min: 1, max: 3 }), 1, 2),
    })
    .map(
      ({ body: shapes, collection, item_var, max_iterations, ...whole }): Shape =>
        (builder) => ({
          type: 'for_each',
          id: builder.id(),
          collection,
          ...present({ item_var, max_iterations }),
          ...(builder.isWhole ? present(whole) : {}),
          body: builder.list(shapes),
        }),
    );
}

// ---------------------------------------------------------------- walking definitions

/** The lists of a block, in the order in which they are written. */
export function listsOf(block: Block): Block[][] {
  switch (block.type) {
    case 'parallel':
    case 'race':
      return block.branches;
    case 'router':
      return [...(block.routes ?? []).map(({ blocks }) => blocks), block.default ?? []];
    case 'try_catch':
      return [block.try_block, block.catch_block, block.finally_block ?? []];
    case 'loop':
    case 'for_each':
      return [block.body];
    case 'cancellation_scope':
      return [block.blocks];
    case 'saga':
      return block.steps.flatMap(({ action, compensation }) => [
        [action].flat(),
        [compensation ?? []].flat(),
      ]);
    case 'ab_split':
      return block.variants.map(({ blocks }) => blocks);
    default:
      return [];
  }
}

export const countOf = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, block) => sum + 1 + countOf(listsOf(block).flat()), 0);
