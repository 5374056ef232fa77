/** Statements of event keys. */

import { eventKeyId, eventNameId } from '../../src/base/ids.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { StoredRow } from '../../src/db/table.js';
import { columnOf, isOwn, ofIds, type Queries } from '../runtime/queries.js';
import type { EVENT_CANCELS, EVENT_TAKES, EVENT_WAITS, EVENTS } from './tables.js';

/** Open events of one key in memory; more are read when these are finished. */
export const OPEN_EVENTS_MAX = 50;
/** Maximum waits that get an event; others wait for the next event. */
export const EVENT_WAITS_MAX = 100_000;

/** An open event, either kept or sent to waits that have not answered. */
export type EventRow = StoredRow<
  typeof EVENTS,
  'id' | 'tenant_id' | 'seq' | 'payload' | 'status' | 'matched' | 'targets' | 'expires_at'
>;

export type EventWaitRow = StoredRow<typeof EVENT_WAITS, 'id' | 'instance_id'>;

export type EventTakeRow = StoredRow<typeof EVENT_TAKES, 'event_id' | 'wait_id'> & {
  readonly outcome: 'taken' | 'refused';
};

/** A trigger with its config, or no slug: instances or collected creations await the event to be cancelled. */
export type EventListenerRow = { readonly slug: string | null; readonly config: string | null };
interface EventName {
  readonly tenant: string;
  readonly name: string;
  readonly key: string | undefined;
}

/** An order to cancel. No name: the event was removed. */
export type EventCancelRow = StoredRow<typeof EVENT_CANCELS, 'instance_id' | 'event_id'> & {
  readonly event_name: string | null;
  readonly correlation_key: string | null;
};

export const EVENT_SQL = {
  // One more row than is kept in memory shows that there are more.
  openEvents: ofIds(
    'o.id, o.tenant_id, o.seq, o.payload, o.status, o.matched, o.targets, o.expires_at',
    'select id, tenant_id, seq, payload, status, matched, targets, expires_at from events ' +
      "where key_id = w.id and (status = 'pending' or targets is not null) " +
      `order by seq, id limit ${OPEN_EVENTS_MAX + 1}`,
  ),
  eventWaits: ofIds(
    'o.id, o.instance_id',
    'select id, instance_id from event_waits where key_id = w.id ' +
      `order by id, instance_id limit ${EVENT_WAITS_MAX}`,
  ),
  eventTakes: 'select event_id, wait_id, outcome from event_takes where event_id = any($1::uuid[])',
  storedEvent:
    'select status, matched, (select count(*)::integer from event_cancels c ' +
    'where c.event_id = $1::uuid) + (select count(*)::integer from collected_cancels c ' +
    'where c.event_id = $1::uuid and not exists (select 1 from collected_cancels o ' +
    'where o.pending_id = c.pending_id and o.event_id = c.event_id and o.seq < c.seq offset 0)' +
    ') as cancelled from events where id = $1::uuid',
  // Only event triggers have an event name.
  eventListeners:
    'select w.n, o.slug, o.config from ' +
    'unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[]) with ordinality ' +
    'as w(tenant_id, event_name, key_id, name_id, n) cross join lateral (' +
    '(select slug, config from triggers t where t.tenant_id = w.tenant_id ' +
    'and t.event_name = w.event_name and t.enabled order by slug) union all ' +
    'select null, null where exists (select 1 from cancel_waits c where c.key_id = w.key_id offset 0) ' +
    'or exists (select 1 from cancel_waits c where c.key_id = w.name_id offset 0) ' +
    'or exists (select 1 from collected_waits c where c.key_id = w.key_id offset 0) ' +
    'or exists (select 1 from collected_waits c where c.key_id = w.name_id offset 0)) o',
  pendingCancels:
    'select c.instance_id, c.event_id, ' +
    '(select e.event_name from events e where e.id = c.event_id) as event_name, ' +
    '(select e.correlation_key from events e where e.id = c.event_id) as correlation_key ' +
    'from event_cancels c ' +
    'where c.outcome is null and (c.instance_id, c.event_id) > ($1::uuid, $2::uuid) ' +
    'and exists (select 1 from instances i where i.id = c.instance_id offset 0) ' +
    `and ${isOwn('c.instance_id', '$4', '$5')} order by c.instance_id, c.event_id limit $3`,
  // Keys with unanswered, awaited or expired events.
  dueEventKeys:
    "select distinct e.key_id from events e where (e.status = 'pending' or e.targets is not null) " +
    'and e.key_id > $1::uuid and (e.targets is not null or e.expires_at <= $2::timestamptz ' +
    'or exists (select 1 from event_waits w where w.key_id = e.key_id offset 0)) ' +
    `and ${isOwn('e.key_id', '$4', '$5')} order by e.key_id limit $3`,
  oldestEndedEvent:
    "select ended_at from events where status <> 'pending' and targets is null and fires is null " +
    'and ended_at is not null order by ended_at, id limit 1',
} as const;

export function eventLoads(queries: Queries) {
  const sql = queries.of(EVENT_SQL);
  const eventListeners = sql.batch<EventName, EventListenerRow>('eventListeners', (names) => [
    names.map(({ tenant }) => tenant),
    names.map(({ name }) => name),
    names.map(({ tenant, name, key }) => eventKeyId(tenant, name, key)),
    names.map(({ tenant, name }) => eventNameId(tenant, name)),
  ]);
  const eventWaits = sql.batch<string, EventWaitRow>('eventWaits', columnOf);
  const openEvents = sql.batch<string, EventRow>('openEvents', columnOf);
  return {
    openEvents: (key: string) => openEvents.read(key),
    eventWaits: (key: string) => eventWaits.read(key),
    eventTakes: async (events: readonly string[]) =>
      events.length === 0 ? [] : sql.all<EventTakeRow>('eventTakes', [events]),
    /** For the response to a duplicate event, and to one that cancels instances. */
    storedEvent: (id: string) =>
      sql.one<StoredRow<typeof EVENTS, 'status' | 'matched'> & { readonly cancelled: number }>(
        'storedEvent',
        [id],
      ),
    eventListeners: (name: EventName) => eventListeners.read(name),
    /** Orders to cancel instances of the shard. */
    pendingCancels: (after: { readonly instance: string; readonly event: string }, limit: number) =>
      sql.own<EventCancelRow>('pendingCancels', [after.instance, after.event, limit]),
    /** Keys of the shard with pending work, in order. */
    async dueEventKeys(after: string, now: UnixMs, limit: number): Promise<string[]> {
      const rows = await sql.own<{ key_id: string }>('dueEventKeys', [after, isoTime(now), limit]);
      return rows.map((row) => row.key_id);
    },
    oldestEndedEvent: () => sql.time('oldestEndedEvent', 'ended_at'),
  };
}

export type EventLoads = ReturnType<typeof eventLoads>;
