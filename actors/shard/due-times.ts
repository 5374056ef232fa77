/**
 * Where rows say when something is due, for tests that move the time (`src/server/manual-time.ts`). Each feature whose
 * deadlines have rows of their own has a line here.
 */

import { ENDPOINT_WORKER_PREFIX } from '../../schema/worker.js';
import { IS_OPEN, OPEN_TASKS } from '../instance/old-tables.js';
import { BEATS } from '../push/served.js';

interface DueRows {
  readonly what: string;
  /** The deadlines; null without one. $2: milliseconds after which a silent worker has lost its task. */
  readonly at: string;
  readonly from: string;
  /** Work that goes on now, whatever its deadline. */
  readonly isGoingOn?: string;
  /** Nothing happens at the deadline by itself: it only counts when something else does. */
  readonly isQuiet?: true;
}

const CLAIMS = `${OPEN_TASKS} o where ${IS_OPEN} and claimed_at is not null`;

/** Claims of worker endpoints, whose requests have a time limit, and which the engine keeps alive meanwhile. */
const PUSHED =
  '(select c.claimed_at, c.heartbeat_at, e.timeout_ms from ' +
  `(select o.tenant_id, o.worker_id, o.claimed_at, o.heartbeat_at from ${CLAIMS}) c ` +
  `join worker_endpoints e on e.tenant_id = c.tenant_id and c.worker_id = '${ENDPOINT_WORKER_PREFIX}' || e.name) p`;

const ROWS: readonly DueRows[] = [
  { what: 'a timer', at: 'fire_at', from: 'timers', isGoingOn: 'recover' },
  { what: 'a schedule', at: 'next_fire_at', from: 'cron_schedules where enabled' },
  { what: 'a webhook', at: 'next_attempt_at', from: "webhook_outbox where status <> 'parked'" },
  {
    what: 'a throttled start',
    at: "granted_at + per_ms * interval '1 millisecond'",
    from: 'start_requests join start_grants using (key_id)',
    isQuiet: true,
  },
  { what: 'an event', at: 'expires_at', from: "events where status = 'pending'", isQuiet: true },
  {
    what: 'a claim',
    at: "heartbeat_at + $2::int * interval '1 millisecond'",
    from: `(select heartbeat_at from ${CLAIMS}) c`,
  },
  {
    what: 'a request to a worker endpoint',
    at: "claimed_at + timeout_ms * interval '1 millisecond'",
    from: PUSHED,
    isQuiet: true,
  },
  {
    what: 'a heartbeat of a worker endpoint',
    at: `heartbeat_at + $2::int * interval '1 millisecond' / ${BEATS}`,
    from: PUSHED,
    isQuiet: true,
  },
];

/** $1: the time. */
const DUE = ROWS.map(
  ({ what, at, from, isGoingOn = 'false', isQuiet }) =>
    `select '${what}' as what, ` +
    `${isQuiet ? 'null::timestamptz' : `min(case when ${isGoingOn} or ${at} <= $1::timestamptz then coalesce(${at}, $1::timestamptz) end)`} as first, ` +
    `min(${at}) filter (where ${at} > $1::timestamptz) as next from ${from}`,
).join(' union all ');

const TASKS =
  `select o.id, o.handler_name, o.claim_epoch, o.claimed_at is not null as is_claimed from ${OPEN_TASKS} o ` +
  `where ${IS_OPEN}`;

/** What is due, and the open tasks, in one round trip. */
export const OPEN_WORK =
  `select (select json_agg(d) from (${DUE}) d) as due, ` +
  `coalesce((select json_agg(t) from (${TASKS}) t), '[]') as tasks`;

const RETRIES =
  "select concat('the step ', runtime ->> 'current_step', ' of the instance ', id) as what, " +
  "(runtime ->> 'attempt')::int + 1 as times from instances " +
  "where state in ('scheduled', 'running', 'waiting') and (runtime ->> 'attempt')::int > 0";

/** A claim that is returned or lost is no attempt of the step. */
const CLAIMS_AGAIN =
  "select concat('the task ', o.id, ' of the handler ', o.handler_name, " +
  "(select concat(' (worker endpoint ', min(e.name), ')') from worker_endpoints e " +
  'where e.tenant_id = o.tenant_id and e.handlers::jsonb ? o.handler_name having count(*) > 0)) as what, ' +
  `o.claim_epoch as times from ${OPEN_TASKS} o where ${IS_OPEN} and o.claim_epoch > 1`;

/** The steps of live instances, and the open tasks, that have been tried most often. */
export const TRIES = `${RETRIES} union all ${CLAIMS_AGAIN} order by times desc limit 1000`;
