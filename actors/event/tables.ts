/** Tables of events, waits, and takes. Pure. */

import {
  clear,
  drop,
  foundBy,
  insert,
  mutations,
  set,
  special,
  update,
} from '../../src/db/mutation.js';
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

export const CANCEL_WAITS = belonging('cancel_waits', ['instance_id', 'key_id'], {
  instance_id: 'uuid',
  key_id: 'uuid',
});

export const CANCEL_WAIT = mutations('cancelWait', {
  clear: clear(CANCEL_WAITS),
  set: set(CANCEL_WAITS, ['key_id']),
});

export const EVENT_CANCELS = belonging('event_cancels', ['instance_id', 'event_id'], {
  instance_id: 'uuid',
  event_id: 'uuid',
  outcome: 'text?',
  taken_at: 'timestamptz?',
});

export const EVENT_CANCEL = mutations('eventCancel', {
  /** How an order to take out collected creations was carried out. */
  insert: insert(EVENT_CANCELS, {}, 'nothing'),
  /** An order to cancel for every instance that awaits the event at this time. */
  order: special(
    EVENT_CANCELS,
    'latest',
    { event_id: 'uuid', key_id: 'uuid' },
    (rows) => `
insert into event_cancels (instance_id, event_id)
select w.instance_id, r.event_id
from ${rows} join cancel_waits w on ${foundBy('w.key_id', 'r.key_id')}
on conflict (instance_id, event_id) do nothing`,
  ),
  /** The first outcome stays. */
  settle: special(
    EVENT_CANCELS,
    'latest',
    { instance_id: 'uuid', event_id: 'uuid', outcome: 'text', taken_at: 'timestamptz' },
    (rows) => `
update event_cancels t set outcome = r.outcome, taken_at = r.taken_at
from ${rows}
where ${foundBy('t.instance_id', 'r.instance_id')} and t.event_id = r.event_id
  and t.outcome is null`,
  ),
  /** An order whose creation had started: it cancels the instance if that awaits the event. */
  handOver: special(
    EVENT_CANCELS,
    'latest',
    {
      instance_id: 'uuid',
      event_id: 'uuid',
      key_id: 'uuid',
      name_id: 'uuid',
      taken_at: 'timestamptz',
    },
    (rows) => `
insert into event_cancels (instance_id, event_id, outcome, taken_at)
select r.instance_id, r.event_id, case when not w.is_awaited then 'ended' end,
  case when not w.is_awaited then r.taken_at end
from ${rows} cross join lateral (
  select exists (select 1 from cancel_waits c
    where ${foundBy('c.instance_id', 'r.instance_id')} and c.key_id in (r.key_id, r.name_id) offset 0
  ) as is_awaited) w
where exists (select 1 from instances i where ${foundBy('i.id', 'r.instance_id')} offset 0)
on conflict (instance_id, event_id) do nothing`,
  ),
  /** Of a start that is dropped. */
  drop: drop(EVENT_CANCELS, 'instance_id', {}),
});

export const COLLECTED_WAITS = table(
  'collected_waits',
  ['pending_id', 'seq', 'key_id'],
  {
    pending_id: 'uuid',
    seq: 'integer',
    key_id: 'uuid',
    tenant_id: 'text',
  },
  {
    follows: 'pending_starts',
    ofTenant: 'pending_id in (select id from pending_starts where tenant_id = $T)',
  },
);

export const COLLECTED_WAIT = mutations('collectedWait', {
  insert: insert(COLLECTED_WAITS),
  /** Those of some creations, none of which is inserted later. */
  clear: special(
    COLLECTED_WAITS,
    'latest',
    { pending_id: 'uuid', from_seq: 'integer', to_seq: 'integer' },
    (rows) => `
delete from collected_waits t using ${rows}
where ${foundBy('t.pending_id', 'r.pending_id')} and t.seq between r.from_seq and r.to_seq`,
  ),
});

export const COLLECTED_CANCELS = table(
  'collected_cancels',
  ['pending_id', 'event_id', 'seq'],
  {
    pending_id: 'uuid',
    event_id: 'uuid',
    seq: 'integer',
    tenant_id: 'text',
  },
  { follows: 'events' },
);

export const COLLECTED_CANCEL = mutations('collectedCancel', {
  /** An order for every creation that is collected at this time and names the event. */
  order: special(
    COLLECTED_CANCELS,
    'latest',
    { event_id: 'uuid', key_id: 'uuid' },
    (rows) => `
insert into collected_cancels (pending_id, event_id, seq, tenant_id)
select w.pending_id, r.event_id, w.seq, w.tenant_id
from ${rows} join collected_waits w on ${foundBy('w.key_id', 'r.key_id')}
on conflict (pending_id, event_id, seq) do nothing`,
  ),
  clear: clear(COLLECTED_CANCELS),
});

export const EVENT_STORE = [
  EVENT,
  EVENT_WAIT,
  EVENT_TAKE,
  CANCEL_WAIT,
  EVENT_CANCEL,
  COLLECTED_WAIT,
  COLLECTED_CANCEL,
];
