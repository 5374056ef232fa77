/** Tables of events, waits, and takes. Pure. */

import { clear, insert, mutations, set, update } from '../../src/db/mutation.js';
import { prune } from '../../src/db/statements.js';
import { belonging, table } from '../../src/db/table.js';

export const EVENTS = table('events', ['id'], {
  id: 'uuid',
  key_id: 'uuid',
  seq: 'bigint',
  tenant_id: 'text',
  event_name: 'text',
  producer_event_id: 'text',
  correlation_key: 'text?',
  payload: 'json?',
  status: 'text',
  matched: 'integer',
  targets: 'json?',
  created_at: 'timestamptz',
  expires_at: 'timestamptz',
  ended_at: 'timestamptz?',
  fires: 'json?',
});

const PROCESSED = "status <> 'pending' and targets is null and fires is null";

export const EVENT = mutations('event', {
  insert: { ...insert(EVENTS), gate: {} },
  update: update(EVENTS, ['status', 'matched', 'targets', 'ended_at']),
  fired: update(EVENTS, ['fires']),
  prune: prune(EVENTS, ['ended_at', 'id'], [PROCESSED]),
});

export const EVENT_WAITS = belonging('event_waits', ['instance_id', 'id'], {
  instance_id: 'uuid',
  id: 'uuid',
  key_id: 'uuid',
});

export const EVENT_WAIT = mutations('eventWait', {
  clear: clear(EVENT_WAITS),
  set: set(EVENT_WAITS, ['key_id']),
});

export const EVENT_TAKES = belonging('event_takes', ['instance_id', 'event_id', 'wait_id'], {
  instance_id: 'uuid',
  event_id: 'uuid',
  wait_id: 'uuid',
  block_id: 'text',
  outcome: 'text',
  taken_at: 'timestamptz',
});

export const EVENT_TAKE = mutations('eventTake', {
  // A refusal may be reported twice.
  insert: insert(EVENT_TAKES, {}, 'nothing'),
});

export const EVENT_STORE = [EVENT, EVENT_WAIT, EVENT_TAKE];
