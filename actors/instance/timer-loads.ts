/** What is due or open on a shard, by the rows of instances. */

import { isoTime, type UnixMs } from '../../src/base/time.js';
import { boundOf, isOwn, type Queries } from '../runtime/queries.js';
import type { DueTimer } from '../runtime/timer.js';

/** Overdue timers that are read at once. */
export const OVERDUE_ROWS_MAX = 1_000;

/**
 * Whose timer it is, a sub-select and no join: timers are read by their index alone and in its order, of
 * however many the statistics speak.
 */
const OF_TIMER =
  't.instance_id as instance, t.rank, ' +
  "coalesce((select i.tenant_id from instances i where i.id = t.instance_id), '') as tenant " +
  'from timers t';

interface ClaimRow {
  readonly task_id: string;
  readonly instance_id: string;
  readonly tenant_id: string;
  readonly heartbeat_at: string | null;
}

export const TIMER_SQL = {
  dueTimers:
    `select t.fire_at, ${OF_TIMER} where t.fire_at > $1::timestamptz and ` +
    `t.fire_at <= $2::timestamptz and ${isOwn('t.instance_id', '$3', '$4')} ` +
    'order by t.fire_at, t.instance_id',
  overdueTimers:
    `select ${OF_TIMER} where t.fire_at > $1::timestamptz and ` +
    `t.fire_at <= $2::timestamptz and ${isOwn('t.instance_id', '$3', '$4')} ` +
    `order by t.fire_at, t.instance_id limit ${OVERDUE_ROWS_MAX}`,
  recover:
    `select ${OF_TIMER} where t.recover and ${isOwn('t.instance_id', '$1', '$2')} ` +
    'order by t.instance_id',
  claimedTasks:
    'select task_id, instance_id, tenant_id, heartbeat_at from open_tasks ' +
    `where claimed_at is not null and ${isOwn('instance_id', '$1', '$2')}`,
} as const;

export function timerLoads(queries: Queries) {
  const sql = queries.of(TIMER_SQL);

  return {
    /** Streams timers that are due after `from` and until `to`. */
    dueTimers(
      from: UnixMs,
      to: UnixMs,
      each: (fireAt: UnixMs, timer: DueTimer) => void,
    ): Promise<void> {
      return sql.each<DueTimer & { readonly fire_at: string }>(
        'dueTimers',
        [boundOf(from), isoTime(to)],
        ({ fire_at, instance, rank, tenant }) =>
          each(Date.parse(fire_at), { instance, rank, tenant }),
      );
    },

    /** The first instances whose timers were due in that time and have not been served. */
    overdueTimers(from: UnixMs, to: UnixMs): Promise<DueTimer[]> {
      return sql.own('overdueTimers', [boundOf(from), isoTime(to)]);
    },

    /** Instances that were in the middle of work inside a process that is gone. */
    recoverable(each: (timer: DueTimer) => void): Promise<void> {
      return sql.each<DueTimer>('recover', [], each);
    },

    claimedTasks(
      each: (task: string, instance: string, heartbeatAt: UnixMs, tenant: string) => void,
    ): Promise<void> {
      return sql.each<ClaimRow>('claimedTasks', [], (row) => {
        const { task_id, instance_id, tenant_id, heartbeat_at } = row;
        each(task_id, instance_id, heartbeat_at === null ? 0 : Date.parse(heartbeat_at), tenant_id);
      });
    },
  };
}

export type TimerLoads = ReturnType<typeof timerLoads>;
