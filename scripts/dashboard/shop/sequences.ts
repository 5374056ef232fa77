/**
 * What a shop runs: sequences with every kind of block, some of them in several versions. Handlers whose names
 * are not built in are those of `workers.ts`; `render_report` and `check_fraud` are nobody's, so that their tasks
 * wait. Durations are milliseconds.
 */

import type { Block, CreateSequence, StepBlock } from '../../../client/src/index.js';

export const SHOP = 'shop';
export const BILLING = 'billing';

/** Above it a person decides. */
const APPROVAL_FROM = 1_000;

const step = (id: string, handler: string, params: object = {}, more: object = {}): StepBlock => {
  return { type: 'step', id, handler, params, ...more };
};

/** Of version 1. */
function only(namespace: string, name: string, ...blocks: readonly Block[]): CreateSequence {
  return { namespace, name, version: 1, blocks };
}

const log = (id: string, message: string) => step(id, 'log', { message });

/** Waits short enough that a test sees the last try. */
const RETRY = { max_attempts: 3, initial_backoff: 20, max_backoff: 40 };

// ---------------------------------------------------------------- orders

const VALIDATE = step('validate', 'assert', {
  condition: 'data.amount > 0',
  message: 'the amount is missing',
});

const APPROVE = step(
  'approve',
  'noop',
  {},
  {
    when: `data.amount >= ${APPROVAL_FROM}`,
    wait_for_input: {
      prompt: 'Sell {{data.item}} to {{data.customer}} for {{data.amount}} EUR?',
      choices: [
        { label: 'Sell', value: 'sell' },
        { label: 'Refuse', value: 'refuse' },
      ],
      allow_comment: true,
      approvers: ['sales'],
      timeout: 3 * 24 * 3_600_000,
      escalation_handler: 'ask-the-boss',
    },
  },
);

const CHARGE = step(
  'charge',
  'charge_card',
  { order: '{{data.order}}', card: '{{data.card}}', amount: '{{data.amount}}' },
  { retry: RETRY, queue_name: 'payments', timeout: 600_000 },
);

const PREPARE: Block = {
  type: 'parallel',
  id: 'prepare',
  branches: [
    [step('mail', 'send_mail', { to: '{{data.customer}}', template: 'order-confirmation' })],
    [step('pick', 'pick_goods', { item: '{{data.item}}' }, { queue_name: 'warehouse' })],
  ],
};

const PARCEL: Block = {
  type: 'router',
  id: 'parcel',
  routes: [
    {
      condition: 'data.amount >= 100',
      blocks: [step('courier', 'transform', { by: 'courier', insured: '{{data.amount}}' })],
    },
  ],
  default: [step('post', 'transform', { by: 'post' })],
};

const FULFIL: Block = {
  type: 'try_catch',
  id: 'fulfil',
  try_block: [PREPARE, PARCEL],
  catch_block: [step('refund', 'refund_card', { order: '{{data.order}}' })],
  finally_block: [log('closed', 'order {{data.order}} is closed')],
};

export const ORDER = 'order-fulfilment';

const ITEMS = ['lamp', 'desk', 'chair', 'shelf', 'mirror', 'yacht'];

const ORDER_INPUT = {
  type: 'object',
  required: ['order', 'customer'],
  properties: {
    order: { type: 'string', title: 'Order number' },
    customer: { type: 'string', title: 'Customer' },
    item: { type: 'string', title: 'Item', enum: ITEMS },
    amount: { type: 'number', title: 'Amount in EUR', minimum: 0 },
    card: { type: 'string', title: 'Card' },
    express: { type: 'boolean', title: 'Express delivery', default: false },
  },
};

const order = (version: number, blocks: readonly Block[]): CreateSequence => {
  const searchable = ['order'];
  return { namespace: SHOP, name: ORDER, version, blocks, input_schema: ORDER_INPUT, searchable };
};

// ---------------------------------------------------------------- one of every kind

const BY_PHONE = 'Has {{data.customer}} confirmed by phone?';
const CONFIRMED = { name: 'customer.confirmed', key: '{{data.customer}}' };

const ONBOARDING: readonly Block[] = [
  log('welcome', 'welcome {{data.customer}}'),
  {
    type: 'parallel',
    id: 'checks',
    branches: [
      [step('address', 'transform', { valid: true })],
      [step('credit', 'transform', { score: 712 })],
    ],
  },
  {
    type: 'ab_split',
    id: 'wording',
    variants: [
      { name: 'short', weight: 50, blocks: [log('short_mail', 'hi {{data.customer}}')] },
      { name: 'long', weight: 50, blocks: [log('long_mail', 'dear {{data.customer}}')] },
    ],
  },
  {
    type: 'saga',
    id: 'accounts',
    steps: [
      {
        id: 'ledger',
        action: step('open_ledger', 'transform', { ledger: 'L-1' }),
        compensation: log('close_ledger', 'closed'),
      },
      { id: 'wallet', action: step('open_wallet', 'transform', { wallet: 'W-1' }) },
    ],
  },
  {
    type: 'for_each',
    id: 'gifts',
    collection: 'gifts',
    item_var: 'gift',
    concurrency: 2,
    body: [log('wrap', 'wrapped {{data.gift}}')],
  },
  {
    type: 'loop',
    id: 'reminders',
    condition: 'data.reminders > 0',
    max_iterations: 3,
    body: [log('remind', 'a reminder')],
  },
  {
    type: 'cancellation_scope',
    id: 'contract',
    blocks: [log('sign', 'signed'), log('archive', 'archived')],
  },
  {
    type: 'try_catch',
    id: 'guarded',
    try_block: [
      step('first_order', 'assert', { condition: 'data.lucky', message: 'no luck this time' }),
    ],
    catch_block: [log('console', 'better luck next time')],
    finally_block: [log('tidy', 'done')],
  },
  { type: 'sub_sequence', id: 'parcel', sequence_name: 'parcel', input: { city: '{{data.city}}' } },
  {
    type: 'router',
    id: 'by_plan',
    routes: [{ condition: 'data.plan == pro', blocks: [log('call', 'somebody calls')] }],
    default: [log('mail', 'a mail is sent')],
  },
  {
    type: 'race',
    id: 'confirmation',
    semantics: 'first_to_succeed',
    branches: [
      [step('confirmed', 'wait_for_event', CONFIRMED)],
      [step('by_phone', 'noop', {}, { wait_for_input: { prompt: BY_PHONE } })],
    ],
  },
];

// ---------------------------------------------------------------- billing

const SETTLED = step('settled', 'wait_for_event', {
  name: 'payment.settled',
  key: '{{data.subscription}}',
});

const subscription = (version: number, blocks: readonly Block[]): CreateSequence => {
  return { namespace: BILLING, name: 'subscription', version, blocks };
};

/** Ends as `data.end` says; the candidate asks the same and writes one line more. */
const checkout = (version: number, more: readonly Block[]): CreateSequence => ({
  namespace: SHOP,
  name: 'checkout',
  version,
  blocks: [
    step('price', 'transform', { total: '{{data.amount}}', currency: 'EUR' }),
    {
      type: 'router',
      id: 'outcome',
      routes: [
        {
          condition: 'data.end == failed',
          blocks: [step('pay', 'fail', { message: 'the payment page timed out' })],
        },
        {
          condition: 'data.end == cancelled',
          blocks: [step('basket', 'sleep', { duration_ms: 86_400_000 })],
        },
      ],
      default: [log('paid', 'paid {{outputs.price.total}} EUR')],
    },
    ...more,
  ],
});

const BOOKING: Block = {
  type: 'saga',
  id: 'trip',
  steps: [
    {
      id: 'flight',
      action: step('book_flight', 'transform', { seat: '12A' }),
      compensation: log('cancel_flight', 'seat {{outputs.book_flight.seat}} goes back'),
    },
    { id: 'hotel', action: step('book_hotel', 'fail', { message: 'no room in {{data.city}}' }) },
  ],
};

/** In the order in which they can be stored: a newer version behind the one before. */
export const SEQUENCES: readonly CreateSequence[] = [
  order(1, [CHARGE, PREPARE]),
  order(2, [VALIDATE, APPROVE, CHARGE, FULFIL]),
  order(3, [VALIDATE, APPROVE, CHARGE, FULFIL, log('thank', 'thank you, {{data.customer}}')]),
  checkout(1, []),
  checkout(2, [log('survey', 'how was it?')]),
  checkout(3, [log('survey', 'how was it, {{data.customer}}?')]),
  only(SHOP, 'parcel', step('label', 'transform', { text: 'to {{data.city}}', weight: 2 })),
  only(SHOP, 'onboarding', ...ONBOARDING),
  only(
    SHOP,
    'parcel-tracking',
    {
      type: 'loop',
      id: 'until_delivered',
      condition: 'data.status != delivered',
      max_iterations: 50,
      body: [step('look', 'parcel_status', { parcel: '{{data.parcel}}' })],
    },
    log('tell', 'parcel {{data.parcel}} is {{data.status}}'),
  ),
  only(SHOP, 'trip-booking', BOOKING),
  only(SHOP, 'gift-order', {
    type: 'sub_sequence',
    id: 'order',
    sequence_name: ORDER,
    version: 2,
    input: {
      order: '{{data.order}}',
      customer: '{{data.customer}}',
      item: 'lamp',
      amount: 40,
      card: '{{data.card}}',
    },
  }),
  only(
    BILLING,
    'invoice-run',
    {
      type: 'for_each',
      id: 'invoices',
      collection: 'customers',
      item_var: 'customer',
      index_var: 'number',
      concurrency: 8,
      body: [
        step('render', 'transform', { invoice: 'I-{{data.number}}', to: '{{data.customer}}' }),
        step('send', 'send_mail', { to: '{{data.customer}}', template: 'invoice' }),
      ],
    },
    log('sent', 'all invoices are sent'),
  ),
  subscription(1, [SETTLED, log('renew', 'renewed until {{data.until}}')]),
  subscription(2, [
    SETTLED,
    log('renew', 'renewed until {{data.until}}'),
    step('receipt', 'send_mail', { to: '{{data.customer}}', template: 'receipt' }),
  ]),
  subscription(3, [step('collect', 'charge_card', { card: '{{data.card}}' })]),
  only(
    BILLING,
    'monthly-report',
    step('render', 'render_report', { month: '{{data.month}}' }, { queue_name: 'reports' }),
  ),
  only(
    BILLING,
    'fraud-check',
    step('score', 'check_fraud', { order: '{{data.order}}' }, { queue_timeout: 50 }),
    log('fine', 'no fraud'),
  ),
  only(
    BILLING,
    'bank-transfer',
    step('transfer', 'log', { message: 'transferred' }, { rate_limit_key: 'bank' }),
  ),
  {
    ...only(SHOP, 'customs', step('declare', 'declare_customs', { order: '{{data.order}}' })),
    concurrency: { key: '{{data.warehouse}}', limit: 1 },
    throttle: { limit: 60, per_ms: 60_000, burst: 10 },
    cancel_on: [{ event: 'order.cancelled', key: '{{data.order}}' }],
  },
  only(SHOP, 'courier', step('book', 'book_courier', { parcel: '{{data.parcel}}' })),
  {
    ...only(SHOP, 'search-index', log('index', '{{data.item}} can be found')),
    debounce: { key: '{{data.item}}', wait_ms: 3_600_000, max_wait_ms: 86_400_000 },
  },
  {
    ...only(BILLING, 'supplier-order', log('order', 'ordered')),
    batch: { key: '{{data.supplier}}', size: 20, wait_ms: 21_600_000 },
  },
  only(BILLING, 'stock-count', step('count', 'sleep', { duration_ms: 86_400_000 })),
  only(
    BILLING,
    'tax-export',
    step(
      'export',
      'transform',
      { rows: 'many' },
      { output_schema: { type: 'object', properties: { rows: { type: 'number' } } } },
    ),
  ),
  only(
    BILLING,
    'tax-lookup',
    step('rate', 'transform', { rate: 19 }, { when: 'data.country > > 3' }),
  ),
];
