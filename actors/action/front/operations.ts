/** The list of actions. */

import { type Action, actionSummary } from '../../../schema/action.js';
import { ROUTES, type RouteId } from '../../../schema/routes.js';
import { filtersOf, timeFilters } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import type { FrontRoom } from '../../../src/http/front-room.js';
import { listBy } from '../../../src/http/operation.js';
import { ACTIONS } from '../tables.js';

type ActionRow = StoredRow<typeof ACTIONS> & Pick<Action, 'name' | 'instance_id'>;

const { after: since, before: until } = timeFilters(ACTIONS, 'at', 'a');

/** Looked up by keys for each listed row, one after the other: a join would be sorted. */
const ownColumn = (column: string, table: string) =>
  `(select t.${column} from ${table} t where t.id = a.target::uuid)`;
const sequenceOf = (table: string) =>
  `(select s.name from sequences s where s.id = ${ownColumn('sequence_id', table)})`;
const NAME =
  "case a.kind when 'sequence' then " +
  "(select s.name || ' v' || s.version from sequences s where s.id = a.target::uuid) " +
  `when 'instance' then ${sequenceOf('instances')} ` +
  `when 'release' then ${ownColumn('sequence_name', 'releases')} ` +
  `when 'cron_schedule' then coalesce(${ownColumn('sequence', 'cron_schedules')}, ${sequenceOf('cron_schedules')}) ` +
  `when 'approval' then ${ownColumn('block_id', 'approvals')} end`;
const INSTANCE =
  "case a.kind when 'instance' then a.target::uuid " +
  `when 'approval' then ${ownColumn('instance_id', 'approvals')} end`;

const FILTERS = {
  ...filtersOf(ACTIONS, ['tenant_id', 'target', 'by', 'kind', 'operation'], 'a'),
  since,
  until,
};

/** @param along filters with an index, within the tenant if there is one */
const listAlong = (along: readonly (keyof typeof FILTERS)[]) =>
  list({
    columns: `${selected(columnsBut(ACTIONS), 'a')}, ${NAME} as name, ${INSTANCE} as instance_id`,
    from: 'actions a',
    by: FILTERS,
    walk: {
      table: 'actions a',
      alias: 'a',
      along,
      isOfAll: true,
      within: ['tenant_id', 'since', 'until'],
    },
    order: orderBy(ACTIONS, ['at', 'id'], 'descending', 'a'),
    toText: (row: ActionRow) => JSON.stringify(actionOf(row)),
  });

const ofTenant = listAlong(['target', 'by', 'kind', 'tenant_id']);
const ofAll = listAlong([]);

/** `Action` records, newest first. */
export const actionList = (query: Parameters<typeof ofTenant>[0]) =>
  query.tenant_id == null ? ofAll(query) : ofTenant(query);

function actionOf(row: ActionRow): Action {
  const action = { ...row, details: JSON.parse(row.details) as Action['details'] };
  const mark = ROUTES[row.operation as RouteId]?.action;
  return { ...action, summary: actionSummary(mark, action) };
}

export function openActionFront() {
  return { operations: { 'actions.list': listBy(actionList) } } satisfies FrontRoom;
}
