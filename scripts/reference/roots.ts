/** The words with which a path may begin, and what newcomers trip over in paths and values. */

import { ROOT_NAMES } from '../../src/core/expression/scope.js';
import type { Example, Told } from './evaluated.js';
import { exampleCells, over, toldTable } from './evaluated.js';
import { table } from './markdown.js';
import type { Regions } from './regions.js';
import { rowsFor } from './rows.js';

const PAID = { outputs: { pay: { receipt: 'r-17' } } };

const ROOTS: Readonly<Record<string, Told>> = {
  context: {
    forms: ['context.data', 'context.config'],
    does: 'The two sections of the context that an instance is created with.',
    examples: [
      { text: '{{ context.data.name }}', data: { name: 'Ada' } },
      { text: '{{ context.config.region }}', config: { region: 'eu' } },
    ],
  },
  data: {
    forms: ['data'],
    does: 'Short for `context.data`. Outputs of workers are merged into it.',
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
    does: 'The latest output of each block, by the id of the block. Inside of a for_each or a saga: of the same item or run, else null. Inside of a loop: of the latest iteration, until the block begins in this one; null if it failed, was skipped or was passed by there.',
    examples: [{ text: '{{ outputs.pay.receipt }}', ...PAID }],
  },
  steps: {
    forms: ['steps'],
    does: 'Another name for `outputs`.',
    examples: [{ text: '{{ steps.pay.receipt }}', ...PAID }],
  },
  input: {
    forms: ['input'],
    does: 'Short for `context.data.input`.',
    examples: over({ input: { order: 7 } }, '{{ input.order }}'),
  },
  runtime: {
    forms: ['runtime'],
    does: 'What the engine keeps of the run: `instance_id`, `started_at`, `current_step`, `current_step_started_at`, `attempt`, `total_steps_executed`.',
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
  surprise('A word behind `==` is a text, whatever keys there are.', 'plan == pro', {
    plan: 'pro',
    pro: 'gold',
  }),
  surprise('Behind `==` a path begins with its root.', 'plan == data.wanted', {
    plan: 'pro',
    wanted: 'pro',
  }),
  surprise('Everything behind `path ==` is one text.', 'total == price * 2', {
    total: 6,
    price: 3,
  }),
  surprise('Parentheses have it computed.', 'total == (price * 2)', { total: 6, price: 3 }),
  surprise('A name with a hyphen works alone and beside `==`.', 'order-id == 7', { 'order-id': 7 }),
  surprise('In other conditions a hyphen is a minus: `order - id`, both missing.', 'order-id > 3', {
    'order-id': 7,
  }),
  surprise('In a template a hyphen is part of the name.', 'no. {{ data.order-id }}', {
    'order-id': 7,
  }),
  surprise('A text that is not empty is true, whatever it says.', 'paid ? "yes" : "no"', {
    paid: 'false',
  }),
  surprise('A missing path in a condition is null, which is false.', 'address.city ? 1 : 2'),
  surprise('A string that is one template keeps the type.', '{{ data.items }}', { items: [1, 2] }),
  surprise('Inside other text the value becomes text.', 'items: {{ data.items }}', {
    items: [1, 2],
  }),
  surprise('So does null.', 'Dear {{ data.name }}'),
  surprise(
    'Fallbacks are tried from left to right; quotes mark a text.',
    "Dear {{ data.nick | data.name | 'friend' }}",
    { name: 'Ada' },
  ),
  surprise('A path in a template needs its root.', '{{ name }}', { name: 'Ada' }),
  surprise(
    'There are no operators in a template: this is a key that nobody has.',
    '{{ data.n + 1 }}',
    {
      n: 1,
    },
  ),
  surprise(
    'A filter that does not exist, without parentheses, is a fallback. Storing it gives a warning.',
    '{{ data.name | uper }}',
    {
      name: 'Ada',
    },
  ),
  surprise('With parentheses it fails the step.', '{{ data.name | uper() }}', { name: 'Ada' }),
  surprise('Two comparisons in a row are not allowed: write `&&`.', '1 < total < 9', { total: 5 }),
];

export function rootRegions(): Regions {
  return {
    roots: toldTable('root', rowsFor('root', ROOT_NAMES, ROOTS)),
    surprises: table(
      ['expression', 'with', 'value', 'why'],
      SURPRISES.map(({ because, ...example }) => [...exampleCells(example), because]),
    ),
  };
}
