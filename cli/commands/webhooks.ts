/** Commands for webhook subscriptions. Secrets are never arguments, which every process list would show. */

import type {
  CreateSubscription,
  DeliverySummary,
  WebhookSubscription,
} from '../../client/src/index.js';
import {
  type Argument,
  acting,
  type Command,
  type Given,
  listing,
  type Option,
  showing,
} from '../command.js';
import { secretIn } from '../json-input.js';
import { ago, memberText } from '../table.js';

type EventType = WebhookSubscription['events'][number];

const ID: Argument = { name: 'id', about: 'The id of a subscription.' };
/** The type makes the list complete. */
const EVENTS = Object.keys({
  'instance.completed': true,
  'instance.failed': true,
} satisfies Record<EventType, true>);

const SETTINGS: readonly Option[] = [
  { flags: '--event <names>', about: 'Only these events.', choices: EVENTS, isMany: true },
  {
    flags: '--secret-file <file>',
    about: 'A file with the key of the signatures, or - for standard input.',
    completes: 'files',
  },
];

function settingsOf(given: Given): Pick<CreateSubscription, 'events'> & { secret?: string } {
  const events = given.texts('event') as readonly EventType[];
  const file = given.text('secret-file');
  return {
    ...(events.length > 0 && { events }),
    ...(file !== undefined && { secret: secretIn(file, '--secret-file') }),
  };
}

export const WEBHOOK_COMMANDS: readonly Command[] = [
  acting({
    name: 'webhooks create',
    summary: 'Send webhooks to an address when instances end; prints the id of the subscription.',
    args: [
      { name: 'url', about: 'http or https; a public address unless the server allows others.' },
    ],
    options: SETTINGS,
    ask: ({ client }, given) =>
      client.webhooks.subscribe({ url: given.arg(), ...settingsOf(given) }),
    said: ({ id }) => id,
    noted: ({ secret }) => `The key of its signatures, shown only now: ${secret}`,
  }),
  listing<WebhookSubscription>({
    name: 'webhooks list',
    summary: 'List webhook subscriptions, oldest first.',
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'URL', text: ({ url }) => url },
      { head: 'EVENTS', text: ({ events }) => events.join(', ') },
      { head: 'UPDATED', text: ({ updated_at }, now) => ago(updated_at, now) },
    ],
    ask: ({ client }, _given, limit) => client.webhooks.subscriptions({ limit }),
  }),
  showing({
    name: 'webhooks get',
    summary: 'Show a webhook subscription.',
    args: [ID],
    ask: ({ client }, given) => client.webhooks.subscription(given.arg()),
  }),
  acting({
    name: 'webhooks update',
    summary: 'Change a webhook subscription; values that are not given do not change.',
    args: [ID],
    options: [{ flags: '--url <url>', about: 'The new address.' }, ...SETTINGS],
    ask: ({ client }, given) =>
      client.webhooks.update(given.arg(), { url: given.text('url'), ...settingsOf(given) }),
    said: ({ id }) => `${id} was changed.`,
  }),
  acting({
    name: 'webhooks delete',
    summary: 'Delete a webhook subscription; undelivered webhooks are dropped.',
    args: [ID],
    ask: ({ client }, given) => client.webhooks.unsubscribe(given.arg()),
    said: (_, given) => `${memberText(given.arg())} was deleted.`,
  }),
  listing<DeliverySummary>({
    name: 'webhooks deliveries',
    summary: 'List the deliveries of a webhook subscription, newest first.',
    args: [ID],
    columns: [
      { head: 'DELIVERY', text: ({ delivery_id }) => delivery_id, isWhole: true },
      { head: 'EVENT', text: ({ event_type }) => event_type },
      { head: 'INSTANCE', text: ({ instance_id }) => instance_id ?? '-', isWhole: true },
      {
        head: 'STATE',
        text: ({ delivered, error_class }) => (delivered ? 'delivered' : (error_class ?? 'failed')),
        tone: ({ delivered }) => (delivered ? 'good' : 'bad'),
      },
      { head: 'ATTEMPTS', text: ({ attempts }) => String(attempts) },
      { head: 'LAST', text: ({ last_attempted_at }, now) => ago(last_attempted_at, now) },
    ],
    ask: ({ client }, given, limit) =>
      client.webhooks.subscriptionDeliveries(given.arg(), { limit }),
  }),
];
