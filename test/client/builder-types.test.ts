/**
 * What does not compile: each mistake stands behind `@ts-expect-error`, which is itself an error where there is
 * none. So the build is the test; what is run here only shows that the right ones are what the server takes.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Static, Type } from '@sinclair/typebox';
import type { StepOptions } from '../../client/src/builder/options.js';
import type { Sequence } from '../../client/src/index.js';
import { filter, fn, sequence, t, type WorkerHandlers } from '../../client/src/index.js';
import type { StepBlock } from '../../schema/blocks.js';

type Handlers = {
  charge: {
    params: { order: string; amount: number; hint?: string };
    output: { id: string; ok: boolean; note?: string };
  };
  mail: { params: { to: string }; output: { mailed: string } };
  tidy: { output: { removed: number } };
};

interface Order {
  readonly order: string;
  readonly amount: number;
  readonly note?: string;
  readonly tags: readonly string[];
  readonly lines: readonly { readonly sku: string; readonly count: number }[];
}

const start = sequence<Handlers, Order>('order').step('charge', {
  handler: 'charge',
  params: ({ input }) => ({ order: input.order, amount: input.amount }),
});

const MAIL = { handler: 'mail', params: { to: 'x' } } as const;

/** Fails to compile unless both are the same. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <_ extends true>() => undefined;

type OutputsOf<S> = S extends Sequence<infer _H, infer _I, infer O, infer _A> ? O : never;

/** Never called: the compiler looks at them. */
const mistakes: readonly (() => void)[] = [
  // ---------------------------------------------------------------- names
  // @ts-expect-error a misspelt input
  () => void start.step('a', { handler: 'noop', when: ({ input }) => input.amout.gt(0) }),
  // @ts-expect-error a step that does not exist
  () => void start.step('a', { handler: 'noop', when: ({ outputs }) => outputs.chrge.ok }),
  // @ts-expect-error a misspelt output
  () => void start.step('a', { handler: 'noop', when: ({ outputs }) => outputs.charge.okk }),
  // @ts-expect-error a handler that nobody has
  () => void start.step('a', { handler: 'chrge', params: {} }),
  // @ts-expect-error an id that a block before has
  () => void start.step('charge', { handler: 'noop' }),
  // @ts-expect-error nobody was asked
  () => void start.step('a', { handler: 'noop', when: ({ answers }) => answers.a.eq('yes') }),
  // @ts-expect-error an option that steps do not have
  () => void start.step('a', { handler: 'noop', rety: { max_attempts: 1 } }),
  () =>
    // @ts-expect-error an option that retry does not have
    void start.step('a', { handler: 'noop', retry: { max_attempts: 1, initialBackoff: 3 } }),

  // ---------------------------------------------------------------- parameters
  () =>
    void start.step('a', {
      handler: 'charge',
      // @ts-expect-error a number is no text
      params: ({ input }) => ({ order: input.amount, amount: input.amount }),
    }),
  () =>
    void start.step('a', {
      handler: 'charge',
      // @ts-expect-error one is missing
      params: ({ input }) => ({ order: input.order }),
    }),
  () =>
    void start.step('a', {
      handler: 'charge',
      // @ts-expect-error one that the handler does not know
      params: ({ input }) => ({ order: input.order, amount: 1, hnt: 'x' }),
    }),
  // @ts-expect-error what may be null is no text
  () => void start.step('a', { handler: 'mail', params: ({ input }) => ({ to: input.note }) }),
  () =>
    void start.step('a', {
      handler: 'mail',
      // @ts-expect-error null would be the word null
      params: ({ input }) => ({ to: t`to ${input.note}` }),
    }),
  () =>
    void start.step('a', {
      handler: 'mail',
      // @ts-expect-error parameters have no operators
      params: ({ input }) => ({ to: input.order.plus('x') }),
    }),
  // @ts-expect-error of a handler of the engine
  () => void start.step('a', { handler: 'sleep', params: { duration_ms: 'x' } }),
  // @ts-expect-error a word that the engine does not have
  () => void start.step('a', { handler: 'http_request', params: { url: 'x', method: 'GETT' } }),
  // @ts-expect-error only workers and http_request are given secrets
  () => void start.step('a', { handler: 'log', params: ({ secrets }) => ({ message: secrets.x }) }),

  // ---------------------------------------------------------------- conditions
  // @ts-expect-error a number is never equal to a text
  () => void start.step('a', { handler: 'noop', when: ({ input }) => input.amount.eq('5') }),
  // @ts-expect-error filters belong to parameters
  () => void start.step('a', { handler: 'noop', when: ({ input }) => filter.upper(input.order) }),
  () =>
    void start.step('a', {
      handler: 'noop',
      // @ts-expect-error a number is no time
      when: ({ input }) => fn.day_of_week(input.amount),
    }),

  // ---------------------------------------------------------------- what has run
  () =>
    void start
      .step('a', { handler: 'mail', when: ({ input }) => input.note, params: { to: 'x' } })
      // @ts-expect-error it may have been skipped
      .step('b', { handler: 'mail', params: ({ outputs }) => ({ to: outputs.a.mailed }) }),
  () =>
    void start
      .router('r', [
        { condition: ({ input }) => input.amount.gt(1), blocks: (b) => b.step('m', MAIL) },
      ])
      // @ts-expect-error it is on one of the routes
      .step('b', { handler: 'mail', params: ({ outputs }) => ({ to: outputs.m.mailed }) }),
  () =>
    void start.parallel('p', [
      (b) => b.step('m', MAIL),
      // @ts-expect-error branches do not see one another
      (b) => b.step('n', { handler: 'mail', params: ({ outputs }) => ({ to: outputs.m.mailed }) }),
    ]),
  () =>
    void start.tryCatch('g', (b) => b.step('m', MAIL), {
      catch: (b) =>
        // @ts-expect-error it may be what failed
        b.step('n', { handler: 'mail', params: ({ outputs }) => ({ to: outputs.m.mailed }) }),
    }),
  () =>
    void start
      .race('w', [(b) => b.step('m', MAIL)])
      // @ts-expect-error the branch may have lost
      .step('n', { handler: 'mail', params: ({ outputs }) => ({ to: outputs.m.mailed }) }),
  () =>
    void start.loop('l', (b) => b.step('m', MAIL), {
      // @ts-expect-error a misspelt output of the body
      condition: ({ outputs }) => outputs.m.maild,
    }),
  () =>
    void start.forEach(
      'e',
      // @ts-expect-error a number is no collection
      ({ input }) => input.amount,
      (b) => b,
    ),
  () =>
    void start.forEach(
      'e',
      ({ input }) => input.lines,
      // @ts-expect-error items have no such member
      (b, line) => b.step('k', { handler: 'log', params: { message: line.skuu } }),
    ),
  () =>
    void start
      .abSplit('s', [
        { name: 'x', weight: 1, blocks: (b) => b },
        { name: 'y', weight: 1, blocks: (b) => b },
      ])
      // @ts-expect-error there is no such variant
      .step('z', { handler: 'noop', when: ({ outputs }) => outputs.s.variant.eq('xx') }),
  () =>
    void start
      .step('g', { handler: 'noop', wait_for_input: { choices: [{ label: 'Pay', value: 'pay' }] } })
      // @ts-expect-error nobody can choose that
      .step('h', { handler: 'noop', when: ({ answers }) => answers.g.eq('payy') }),
  () =>
    void start
      .step('a', {
        handler: 'mail',
        params: { to: 'x' },
        wait_for_input: { choices: [{ label: 'Yes', value: 'yes' }], escalation_handler: 'boss' },
      })
      // @ts-expect-error when nobody answered there is another output
      .step('b', { handler: 'mail', params: ({ outputs }) => ({ to: outputs.a.mailed }) }),

  () =>
    void start.saga('s', (s) =>
      s.step(
        'one',
        (a) => a.step('m', MAIL),
        // @ts-expect-error of a saga that was cut off no step has failed
        (c, error) => c.step('u', { handler: 'mail', params: { to: error.failed_step } }),
      ),
    ),

  // ---------------------------------------------------------------- workers
  () =>
    void ({
      charge: async ({ params }) => ({ id: params.order, ok: true }),
      mail: async ({ params }) => ({ mailed: params.to }),
      // @ts-expect-error nobody tidies
    } satisfies WorkerHandlers<Handlers>),
  () =>
    void ({
      // @ts-expect-error the output is another one
      charge: async ({ params }) => ({ id: params.amount, ok: true }),
      // @ts-expect-error the parameters have no such member
      mail: async ({ params }) => ({ mailed: params.too }),
      tidy: async () => ({ removed: 1 }),
    } satisfies WorkerHandlers<Handlers>),

  // ---------------------------------------------------------------- other sequences, hooks
  // @ts-expect-error the child is started with more than that
  () => void sequence('p').subSequence('c', start, { input: { order: 'x' } }),
  // @ts-expect-error hooks have no workers
  () => void start.onFailure((h) => h.step('a', MAIL)),
  // @ts-expect-error a handler is an object with params and output
  () => void sequence<{ charge: string }>('x'),
];

test('a misspelt output, input, step, handler or option does not compile', () => {
  assert.ok(mistakes.length > 30);
});

test('what stands before is seen with its type: certain, or with null', () => {
  const made = start
    .parallel('both', [(b) => b.step('mail', MAIL), (b) => b.step('tidy', { handler: 'tidy' })])
    .router('way', [
      {
        condition: ({ input }) => input.amount.gt(1),
        blocks: (b) => b.transform('far', { km: 5 }),
      },
    ])
    .forEach(
      'each',
      ({ input }) => input.lines,
      (b, line) => b.transform('packed', { sku: line.sku }),
    )
    .loop('again', (b) => b.step('once', { handler: 'tidy' }), {
      condition: ({ outputs }) => outputs.once.removed.gt(0),
    });
  type Made = OutputsOf<typeof made>;
  holds<Same<Made['charge'], { id: string; ok: boolean; note?: string }>>();
  holds<Same<Made['mail'], { mailed: string }>>();
  holds<Same<Made['far'], { readonly km: 5 } | null>>();
  holds<Same<Made['packed'], { readonly sku: string } | null>>();
  holds<Same<Made['again'], { readonly _iterations: number } | null>>();
  holds<Same<Made['once'], { removed: number } | null>>();
  assert.equal(made.blocks.length, 5);
});

test('without types of handlers and input everything is allowed, as in JSON', () => {
  const loose = sequence('loose')
    .step('pay', { handler: 'charge_card', params: ({ input }) => ({ amount: input.amount }) })
    .step('thank', {
      handler: 'log',
      when: ({ input }) => input.amount.gt(0),
      params: ({ outputs }) => ({ message: t`paid, receipt ${outputs.pay.receipt}` }),
    });
  assert.match(JSON.stringify(loose.blocks), /paid, receipt \{\{ outputs\.pay\.receipt \}\}/);
});

test('every member of a step that the server takes can be said', () => {
  type Refused = 'context_access' | 'fallback_handler' | 'cache_key' | 'compensation';
  type Said = keyof StepOptions<unknown> | 'type' | 'id' | 'handler' | 'params';
  holds<Same<Exclude<keyof StepBlock, Said | Refused>, never>>();
  assert.equal(start.blocks.length, 1);
});

test('the type of the input is that of its schema', () => {
  const Input = Type.Object({ city: Type.String(), weight: Type.Optional(Type.Number()) });
  const made = sequence<Handlers>('parcel')
    .input(Input)
    .step('mail', { handler: 'mail', params: ({ input }) => ({ to: input.city }) });
  holds<Same<NonNullable<(typeof made)['inputs']>, Static<typeof Input>>>();
  assert.deepEqual(made.definition.input_schema, Input);
});
