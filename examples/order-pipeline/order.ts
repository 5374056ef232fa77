/** The order pipeline of docs/tutorial.md in code: what its handlers take and give, and the sequence. */

import { sequence, t } from '../../client/src/index.js';

export interface Order {
  readonly order: string;
  readonly customer: string;
  readonly item: string;
  readonly amount: number;
}

/** Of the workers: `worker.ts` does what is declared here, and the sequence may only ask for it. */
export type Handlers = {
  'charge-card': { params: { order: string; amount: number }; output: { charge: string } };
  'refund-card': { params: { charge: string; why: string }; output: { refunded: string } };
  'send-mail': { params: { to: string }; output: { mailed: string } };
  'pick-goods': { params: { item: string }; output: { picked: string } };
};

/** Above it a person decides. */
const APPROVAL_FROM = 1_000;
/** From it on a courier brings the parcel. */
const COURIER_FROM = 100;

export const order = sequence<Handlers, Order>('order', { namespace: 'shop' })
  .step('validate', {
    handler: 'assert',
    params: ({ input }) => ({ condition: input.amount.gt(0), message: 'the amount is missing' }),
  })
  .step('approve', {
    handler: 'noop',
    when: ({ input }) => input.amount.ge(APPROVAL_FROM),
    wait_for_input: {
      prompt: ({ input }) => t`Sell ${input.item} to ${input.customer} for ${input.amount}?`,
      choices: [
        { label: 'Sell', value: 'sell' },
        { label: 'Refuse', value: 'refuse' },
      ],
    },
  })
  .step('refused', {
    handler: 'fail',
    when: ({ answers }) => answers.approve.eq('refuse'),
    params: { message: 'the order was refused' },
  })
  .step('charge', {
    handler: 'charge-card',
    params: ({ input }) => ({ order: input.order, amount: input.amount }),
    retry: { max_attempts: 3, initial_backoff: 500 },
    // A cancel waits for the bank: cut off halfway, nobody would know whether the card is charged.
    cancellable: false,
  })
  .tryCatch(
    'fulfil',
    (b) =>
      b
        .parallel('prepare', [
          (mail) =>
            mail.step('mail', {
              handler: 'send-mail',
              params: ({ input }) => ({ to: input.customer }),
            }),
          (goods) =>
            goods.step('pick', {
              handler: 'pick-goods',
              params: ({ input }) => ({ item: input.item }),
            }),
        ])
        .router(
          'parcel',
          [
            {
              condition: ({ input }) => input.amount.ge(COURIER_FROM),
              blocks: (way) =>
                way.transform('courier', ({ input }) => ({ by: 'courier', insured: input.amount })),
            },
          ],
          { default: (way) => way.transform('post', { by: 'post' }) },
        ),
    {
      catch: (b, error) =>
        b.step('refund', {
          handler: 'refund-card',
          params: ({ outputs }) => ({ charge: outputs.charge.charge, why: error.message }),
        }),
    },
  )
  .step('thank', {
    handler: 'log',
    delay: { duration: 1_000 },
    params: ({ input, outputs }) => ({
      message: t`Thank you, ${input.customer}: ${outputs.courier.by.orElse('post')}`,
    }),
  });
