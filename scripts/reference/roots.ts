/** The roots of paths, and surprising expressions. */

import { ROOT_NAMES } from '../../src/core/expression/scope.js';
import type { Described, Example } from './evaluated.js';
import { exampleCells, exampleTable, over } from './evaluated.js';
import { table } from './markdown.js';
import type { Regions } from './regions.js';
import { rowsFor } from './rows.js';

const PAID = { outputs: { pay: { receipt: 'r-17' } } };

const ROOTS: Readonly<Record<string, Described>> = {
  context: {
    forms: ['context.data', 'context.config'],
    does: 'The sections of the context that an instance is created with.',
    examples: [
      { text: '{{ context.data.name }}', data: { name: 'Ada' } },
      { text: '{{ context.config.region }}', config: { region: 'eu' } },
    ],
  },
  data: {
    forms: ['data'],
    does: 'Short for `context.data`, into which outputs of workers are merged.',
    examples: [
      ...over({ name: 'Ada' }, '{{ data.name }}'),
      ...over({ items: [{ sku: 'tea' }] }, '{{ data.items.0.sku }}'),
      ...over({}, '{{ data.name }}'),
    ],
  },
  config: {
    forms: ['config'],
    does: 'Short for `context.config`.',
    examples: [{ text: '{{ config.region }}', config: { region: 'eu' } }],
  },
  outputs: {
    forms: ['outputs'],
    does: 'The latest output of each block by its id. In a for_each or saga: only of the same item or run. In a loop: of the previous iteration until the block starts in the current one; null if it failed, was skipped or not reached there.',
    examples: [{ text: '{{ outputs.pay.receipt }}', ...PAID }],
  },
  steps: {
    forms: ['steps'],
    does: 'Alias of `outputs`.',
    examples: [{ text: '{{ steps.pay.receipt }}', ...PAID }],
  },
  input: {
    forms: ['input'],
    does: 'Short for `context.data.input`.',
    examples: over({ input: { order: 7 } }, '{{ input.order }}'),
  },
  runtime: {
    forms: ['runtime'],
    does: 'State of the run: `instance_id`, `started_at`, `current_step`, `current_step_started_at`, `attempt`, `total_steps_executed`.',
    examples: [{ text: 'try {{ runtime.attempt }}', runtime: { current_step: 'pay', attempt: 1 } }],
  },
  instance_id: {
    forms: ['instance_id'],
    does: 'The id of the instance.',
    examples: over({}, '{{ instance_id }}'),
  },
};

interface Surprise extends Example {
  readonly because: string;
}

const surprise = (because: string, text: string, data: Example['data'] = {}): Surprise => ({
  text,
  data,
  because,
});

const SURPRISES: readonly Surprise[] = [
  surprise('A word after `==` is a string, whatever keys exist.', 'plan == pro', {
    plan: 'pro',
    pro: 'gold',
  }),
  surprise('After `==` a path needs its root.', 'plan == data.wanted', {
    plan: 'pro',
    wanted: 'pro',
  }),
  surprise('Everything after `path ==` is one string.', 'total == price * 2', {
    total: 6,
    price: 3,
  }),
  surprise('Parentheses make it an expression.', 'total == (price * 2)', { total: 6, price: 3 }),
  surprise('A name with a hyphen works alone and next to `==`.', 'order-id == 7', {
    'order-id': 7,
  }),
  surprise('Elsewhere in conditions it is a minus: `order - id`, both missing.', 'order-id > 3', {
    'order-id': 7,
  }),
  surprise('In a template a hyphen is part of the name.', 'no. {{ data.order-id }}', {
    'order-id': 7,
  }),
  surprise('Every non-empty string is true.', 'paid ? "yes" : "no"', {
    paid: 'false',
  }),
  surprise('A missing path in a condition is null, which is false.', 'address.city ? 1 : 2'),
  surprise('A string that is one template keeps the type.', '{{ data.items }}', { items: [1, 2] }),
  surprise('Within other text the value becomes a string.', 'items: {{ data.items }}', {
    items: [1, 2],
  }),
  surprise('So does null.', 'Dear {{ data.name }}'),
  surprise(
    'Fallbacks are evaluated from left to right; quotes mark a string.',
    "Dear {{ data.nick | data.name | 'friend' }}",
    { name: 'Ada' },
  ),
  surprise('A path in a template needs its root.', '{{ name }}', { name: 'Ada' }),
  surprise('Templates have no operators: this is a missing key.', '{{ data.n + 1 }}', {
    n: 1,
  }),
  surprise(
    'An unknown filter without parentheses is a fallback; storing it returns a warning.',
    '{{ data.name | uper }}',
    {
      name: 'Ada',
    },
  ),
  surprise('With parentheses it fails the step.', '{{ data.name | uper() }}', { name: 'Ada' }),
  surprise('Comparisons cannot be chained: write `&&`.', '1 < total < 9', { total: 5 }),
];

export function rootRegions(): Regions {
  return {
    roots: exampleTable('root', rowsFor('root', ROOT_NAMES, ROOTS)),
    surprises: table(
      ['expression', 'with', 'value', 'why'],
      SURPRISES.map(({ because, ...example }) => [...exampleCells(example), because]),
    ),
  };
}
