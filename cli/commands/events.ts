/** Commands for events. */

import { randomUUID } from 'node:crypto';
import type { StoredEvent } from '../../client/src/index.js';
import { acting, type Command, listing, showing } from '../command.js';
import { jsonOf } from '../json-input.js';
import { ago } from '../table.js';

type Status = StoredEvent['status'];

const STATUSES = Object.keys({
  pending: true,
  consumed: true,
  expired: true,
} satisfies Record<Status, true>);

export const EVENT_COMMANDS: readonly Command[] = [
  acting({
    name: 'events send',
    summary: 'Send an event to the steps, triggers and sequences that it concerns.',
    args: [{ name: 'name', about: 'The name of the event.' }],
    options: [
      { flags: '--key <text>', about: 'Its correlation key.' },
      { flags: '--payload <json>', about: 'Its payload: JSON, @file, or - for standard input.' },
      {
        flags: '--producer-event-id <id>',
        about: 'A repeated id is the same event; generated unless given.',
      },
      { flags: '--ttl <seconds>', about: 'How long a later wait can take it; default a day.' },
    ],
    ask: ({ client }, given) => {
      const payload = given.text('payload');
      return client.events.send({
        event_name: given.arg(),
        correlation_key: given.text('key'),
        producer_event_id: given.text('producer-event-id') ?? randomUUID(),
        ...(payload !== undefined && { payload: jsonOf(payload, '--payload') }),
        ttl_seconds: given.count('ttl'),
      });
    },
    said: ({ event_id }) => event_id,
    noted: ({ duplicate, matched, triggers = 0, cancelled = 0 }) =>
      `${duplicate ? 'Sent before' : 'Sent'}: ends ${matched} waits, fires ${triggers} triggers, ` +
      `cancels ${cancelled} instances.`,
  }),
  listing<StoredEvent>({
    name: 'events list',
    summary: 'List events, newest first.',
    options: [
      { flags: '--name <name>', about: 'Only events with this name.' },
      { flags: '--key <text>', about: 'Only events with this correlation key.' },
      { flags: '--status <word>', about: 'Only events in this status.', choices: STATUSES },
    ],
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'NAME', text: ({ event_name }) => event_name },
      { head: 'KEY', text: ({ correlation_key }) => correlation_key ?? '' },
      { head: 'STATUS', text: ({ status }) => status },
      { head: 'WAITS', text: ({ matched }) => String(matched) },
      { head: 'SENT', text: ({ created_at }, now) => ago(created_at, now) },
    ],
    ask: ({ client }, given, limit) =>
      client.events.list({
        event_name: given.text('name'),
        correlation_key: given.text('key'),
        status: given.text('status') as Status | undefined,
        limit,
      }),
  }),
  showing({
    name: 'events get',
    summary: 'Show an event, what has taken it, and what it cancels.',
    args: [{ name: 'id', about: 'The id of the event.' }],
    ask: ({ client }, given) => client.events.get(given.arg()),
  }),
];
