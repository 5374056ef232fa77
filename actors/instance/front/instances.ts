/** Lists and reports about instances. */

import { CHECKPOINTS_LISTED_MAX } from '../../../schema/edits.js';
import { COUNTED_INSTANCES_MAX, type InstanceCounts } from '../../../schema/instance.js';
import { invalid, notFound } from '../../../src/base/errors.js';
import type { JsonValue } from '../../../src/base/json.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { rowOf, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import type { PageBounds } from '../../../src/db/reads/query.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import type { Reads } from '../../../src/db/reads.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import {
  type CallById,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listQuery,
  pageReply,
} from '../../../src/http/operation.js';
import type { HttpReply } from '../../../src/http/server.js';
import { CHECKPOINTS, SIGNALS } from '../output-tables.js';
import { CHECKPOINT_COLUMNS, checkpointText, instanceText } from '../wire-texts.js';
import { instanceAttempts } from './attempts.js';
import { auditList } from './audit-reads.js';
import {
  childList,
  countsQuery,
  deadLetterList,
  instanceById,
  instanceList,
  instanceTenant,
  withVersions,
} from './instance-reads.js';
import { lineList, NARROWER, newestLineList, tenantLogPage, tenantLogQuery } from './logs.js';
import { outputList, timeline } from './outputs.js';

type Counted = Omit<InstanceCounts, 'complete'>;

async function pageOf<Row>(
  deps: FrontDeps,
  call: CallById & { readonly query: Partial<PageBounds> },
  request: (instance_id: string) => PageRequest<Row>,
): Promise<HttpReply> {
  const page = await deps.reads.page(request(await ownInstance(deps, call)));
  return pageReply(call, { offset: 0, ...call.query }, page);
}

export const instanceOperations = {
  'instances.list': async (deps, call) => {
    const query = listQuery(call);
    const { state: states, parent_instance_id } = query;
    const isOfFailed = states?.length === 1 && states[0] === 'failed';
    // Dead letters have a table of their own. Children of one parent are few, and have an index.
    const isOfDeadLetters = isOfFailed && parent_instance_id == null;
    const wanted = isOfDeadLetters ? deadLetterList : instanceList;
    const page = await deps.reads.page(wanted(await withVersions(deps.reads, query)));
    return pageReply(call, query, page);
  },
  'instances.deadLetters': async (deps, call) => {
    const query = listQuery(call);
    const request = deadLetterList(await withVersions(deps.reads, query));
    return pageReply(call, query, await deps.reads.page(request));
  },
  'instances.counts': async ({ reads }, call) => {
    const filter = await withVersions(reads, listQuery(call));
    const [row] = await reads.rowsOf<Counted>(countsQuery(filter), 'name the tenant');
    const { looked_at: found, ...states } = row as Counted;
    const answer: InstanceCounts = {
      ...states,
      looked_at: Math.min(found, COUNTED_INSTANCES_MAX),
      complete: found <= COUNTED_INSTANCES_MAX,
    };
    return jsonReply(JSON.stringify(answer));
  },
  'logs.list': async ({ reads }, call) => {
    const query = listQuery(call);
    const { tenant_id: tenant } = query;
    if (tenant == null) throw invalid('name a tenant: logs are read for one at a time');
    const request = tenantLogQuery({ ...query, tenant });
    const page = tenantLogPage(query, await reads.rowsOf(request, NARROWER));
    return pageReply(call, { offset: 0, ...query }, page);
  },
  'instances.outputs': (deps, call) =>
    pageOf(deps, call, (instance_id) => outputList({ ...call.query, instance_id })),
  'instances.signals': (deps, call) =>
    pageOf(deps, call, (instance_id) => signalList({ ...call.query, instance_id })),
  'instances.children': (deps, call) =>
    pageOf(deps, call, (id) => childList({ ...call.query, parent_instance_id: id })),
  'instances.audit': (deps, call) => pageOf(deps, call, (id) => auditList(id, call.query)),
  'instances.timeline': timeline,
  'instances.attempts': instanceAttempts,
  'instances.logs': (deps, call) => {
    const lines = call.query.order === 'newest' ? newestLineList : lineList;
    return pageOf(deps, call, (instance_id) => lines({ ...call.query, instance_id }));
  },
  'instances.checkpoints': async (deps, call) => {
    const instance_id = await ownInstance(deps, call);
    const request = checkpointList({ instance_id, limit: CHECKPOINTS_LISTED_MAX });
    return jsonReply((await deps.reads.page(request)).text);
  },
  'instances.latestCheckpoint': async (deps, call) => {
    const instance_id = await ownInstance(deps, call);
    const { texts } = await deps.reads.batch(checkpointList({ instance_id, limit: 1 }));
    if (texts[0] === undefined) throw notFound(`instance ${instance_id} has no checkpoint`);
    return jsonReply(texts[0]);
  },
} satisfies Partial<FrontOperations>;

/** @throws EngineError 404 for an instance of another tenant */
async function ownInstance(deps: FrontDeps, call: CallById): Promise<string> {
  const { id } = call.params;
  await rowOf(deps.reads, instanceTenant, 'instance', id, call.tenant);
  return id;
}

/** The committed record. @throws EngineError 404 or 503 */
export async function committedInstance(
  reads: Reads,
  tenant: string,
  id: string,
): Promise<HttpReply> {
  return jsonReply(instanceText(await rowOf(reads, instanceById, 'instance', id, tenant)));
}

const SIGNAL_COLUMNS = columnsBut(SIGNALS, 'traceparent');
type SignalRow = StoredRow<typeof SIGNALS, (typeof SIGNAL_COLUMNS)[number]>;

export const signalList = list({
  columns: selected(SIGNAL_COLUMNS),
  from: 'signals',
  of: filtersOf(SIGNALS, ['instance_id']),
  by: {
    ...filtersOf(SIGNALS, ['signal_type']),
    status: {
      column: 'signals.status',
      type: 'text',
      holds: (status, wanted) => `coalesce(${status}, 'applied') = ${wanted}`,
    },
  },
  order: orderBy(SIGNALS, ['seq']),
  toText: ({ seq: _, payload, status, ...row }: SignalRow) =>
    JSON.stringify({
      ...row,
      payload: JSON.parse(payload ?? 'null') as JsonValue,
      status: status ?? 'applied',
    }),
  cheaper: 'ask for a smaller offset and limit',
});

export const checkpointList = list({
  columns: selected(CHECKPOINT_COLUMNS),
  from: 'checkpoints',
  of: filtersOf(CHECKPOINTS, ['instance_id']),
  order: 'id desc',
  toText: checkpointText,
  cheaper: TRY_LATER,
});
