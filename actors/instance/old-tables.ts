/**
 * Tasks from before migration 0040 are in two tables: `worker_tasks_before` as created and as ended, and
 * `open_tasks` with the place in the queues and the claim. These rows never change. A task is moved to
 * `worker_tasks` by the unit that changes it first, or in the background (`task-moves.ts`). The next version
 * drops both tables and this file; `actors/limits` and `actors/release`, which cannot import it, name the tables
 * too. Pure.
 */

import { foundBy, mutations, special } from '../../src/db/mutation.js';
import { type ColumnOf, columnsBut, type StoredRow, table } from '../../src/db/table.js';
import { WORKER_TASKS } from './task-tables.js';

type Column = ColumnOf<typeof WORKER_TASKS>;

/** Deleted with the instance by `taskBefore.drop`. */
const OF_INSTANCES = { follows: 'instances' } as const;

const { rank: _, ...CREATED } = WORKER_TASKS.columns;
export const TASKS_BEFORE = table('worker_tasks_before', ['id'], CREATED, OF_INSTANCES);

export const OPEN_TASKS_BEFORE = table(
  'open_tasks',
  ['task_id'],
  {
    task_id: 'uuid',
    instance_id: 'uuid',
    tenant_id: 'text',
    handler_name: 'text',
    queue_name: 'text?',
    rank: 'smallint',
    created_at: 'timestamptz',
    worker_id: 'text?',
    claim_epoch: 'integer?',
    lost_claims: 'integer?',
    claimed_at: 'timestamptz?',
    heartbeat_at: 'timestamptz?',
    checkpoint_seq: 'integer?',
    history: 'json?',
  },
  OF_INSTANCES,
);

/** Columns that both tables have. The open row takes precedence. */
const OF_CLAIM: ReadonlySet<string> = new Set([
  ...['worker_id', 'claim_epoch', 'lost_claims', 'claimed_at', 'heartbeat_at'],
  ...['checkpoint_seq', 'history'],
]);

/**
 * The current value of a column of the row `b`.
 * @param ofOpen SQL of a column of its open row, null if there is none
 */
function current(column: Column, ofOpen: (column: string) => string): string {
  if (column === 'rank') return ofOpen(column);
  if (column === 'state') {
    return `case when ${ofOpen('claimed_at')} is null then b.state else 'claimed' end`;
  }
  return OF_CLAIM.has(column) ? `coalesce(${ofOpen(column)}, b.${column})` : `b.${column}`;
}

const COLUMNS = columnsBut(WORKER_TASKS);
const looked = (column: string) => `(select o.${column} from open_tasks o where o.task_id = b.id)`;
const STANDING = COLUMNS.map((column) => `${current(column, looked)} as ${column}`);

const ALL = `select ${COLUMNS.join(', ')}, false as is_before`;
const ALL_BEFORE = `select ${STANDING.join(', ')}, true`;

/**
 * All tasks with the columns of `worker_tasks`, and whether their rows are in the old tables; for a FROM with
 * an alias. Neither branch has a join or a condition, so that Postgres reads both along their indexes.
 */
export const TASKS =
  `(${ALL} from worker_tasks union all ` + `${ALL_BEFORE} from worker_tasks_before b)`;

/**
 * The same for lists of a tenant, with the alias t and the condition `IN_ITS_BRANCH`: one index has the ended tasks,
 * another one the open ones. Of the condition each branch keeps what selects its index.
 */
export const TASKS_OF_TENANT =
  `(${ALL}, true as has_ended from worker_tasks union all ${ALL}, false from worker_tasks union all ` +
  `${ALL_BEFORE}, null from worker_tasks_before b)`;
export const IN_ITS_BRANCH = '(t.has_ended is null or t.has_ended = (t.rank is null))';

const OF_OPEN = 'instance_id, tenant_id, handler_name, queue_name, rank, created_at, worker_id, ';
const OF_CLAIMED = 'claim_epoch, claimed_at, heartbeat_at';

/** What queues read. Needs `IS_OPEN`, which selects the partial indexes. */
export const OPEN_TASKS =
  `(select id, ${OF_OPEN}${OF_CLAIMED} from worker_tasks union all ` +
  `select task_id, ${OF_OPEN}${OF_CLAIMED} from open_tasks)`;
export const IS_OPEN = 'o.rank is not null';

export const TASK_BEFORE = mutations('taskBefore', {
  /** Locks the rows in the order of their ids, so that two lanes cannot wait for each other. */
  move: special(
    TASKS_BEFORE,
    'insert',
    { id: 'uuid' },
    (rows) => `
with moved as (
  delete from worker_tasks_before t using (select r.id from ${rows} order by r.id offset 0) r
  where ${foundBy('t.id', 'r.id')} returning t.*
), closed as (
  delete from open_tasks o using moved b where ${foundBy('o.task_id', 'b.id')}
)
insert into worker_tasks (${COLUMNS.join(', ')})
select ${COLUMNS.map((column) => current(column, (of) => `o.${of}`)).join(', ')}
from moved b left join open_tasks o on ${foundBy('o.task_id', 'b.id')}`,
  ),
  /** Before the instance is deleted: a move in progress ends first, so that the deletion sees its rows. */
  drop: special(
    OPEN_TASKS_BEFORE,
    'barrier',
    { instance_id: 'uuid' },
    (rows) => `
with doomed as (
  select instance_id from ${rows}
), open_tasks_gone as (
  delete from open_tasks o using worker_tasks_before t, doomed d
  where ${foundBy('t.instance_id', 'd.instance_id')} and ${foundBy('o.task_id', 't.id')}
)
delete from worker_tasks_before t using doomed d where ${foundBy('t.instance_id', 'd.instance_id')}`,
  ),
});

/** `$1` is the id of the last one read. */
export const TASKS_TO_MOVE =
  'select id, tenant_id from worker_tasks_before where id > $1::uuid order by id limit $2::bigint';
export type TaskToMove = StoredRow<typeof TASKS_BEFORE, 'id' | 'tenant_id'>;
