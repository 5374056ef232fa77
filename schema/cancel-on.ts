/** `cancel_on` of a sequence: the events that cancel its instances (docs/concurrency.md). */

import * as t from './common.js';

/** Each entry is a row of every live instance. */
const CANCEL_ON_MAX = 10;

const CancelOn = t.named('CancelOn', 'An event that cancels the instances of the sequence.', {
  event: t.noted(t.Name, 'Name of the event.'),
  key: t.nullish(
    t.text({ pattern: '\\S', maxLength: t.EXPRESSION_LENGTH_MAX }),
    'Correlation key of the event. A template over the data and config of the instance at its ' +
      'creation. Default: every event with the name.',
  ),
});
export type CancelOn = t.Static<typeof CancelOn>;

export const CancelOnList = t.list(CancelOn, {
  maxItems: CANCEL_ON_MAX,
  description: 'Events, sent after the creation of an instance, that cancel it.',
});

/** What a definition has of it. */
export type CancelOnMember = { readonly cancel_on?: readonly CancelOn[] | null | undefined };
