/** Lists and reports about instances. An instance of another tenant is not found. */

import { CHECKPOINTS_LISTED_MAX } from '../../../schema/edits.js';
import { notFound } from '../../../src/base/errors.js';
import { rowOf } from '../../../src/db/reads/lookup.js';
import type { Reads } from '../../../src/db/reads.js';
import {
  type CallById,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listQuery,
  type Operation,
  pageReply,
} from '../../../src/http/operation.js';
import type { HttpReply } from '../../../src/http/server.js';
import { instanceText } from '../wire-texts.js';
import { instanceAttempts } from './attempts.js';
import { auditList } from './audit-reads.js';
import {
  childList,
  deadLetterList,
  instanceById,
  instanceList,
  instanceTenant,
  withVersions,
} from './instance-reads.js';
import { checkpointList, lineList } from './note-reads.js';
import { outputList, timelineText } from './output-reads.js';
import { signalList } from './signal-reads.js';

/** Failed ones are found by the rows that stand for them, however many others are newer. */
const list: Operation<'instances.list'> = async (deps, call) => {
  const query = listQuery(call);
  const { state: states, parent_instance_id } = query;
  const isOfFailed = states?.length === 1 && states[0] === 'failed';
  // The instances of one parent are few, and have an index of their own.
  const isOfDeadLetters = isOfFailed && parent_instance_id == null;
  const wanted = isOfDeadLetters ? deadLetterList : instanceList;
  return pageReply(
    call,
    query,
    await deps.reads.page(wanted(await withVersions(deps.reads, query))),
  );
};

/** The same query; its states do not matter, since all of these failed. */
const deadLetters: Operation<'instances.deadLetters'> = async (deps, call) => {
  const query = listQuery(call);
  const request = deadLetterList(await withVersions(deps.reads, query));
  return pageReply(call, query, await deps.reads.page(request));
};

const outputs: Operation<'instances.outputs'> = async (deps, call) => {
  const { query } = call;
  const request = outputList({ ...query, instance_id: await ownInstance(deps, call) });
  return pageReply(call, query, await deps.reads.page(request));
};

const signals: Operation<'instances.signals'> = async (deps, call) => {
  const { query } = call;
  const request = signalList({ ...query, instance_id: await ownInstance(deps, call) });
  return pageReply(call, query, await deps.reads.page(request));
};

const children: Operation<'instances.children'> = async (deps, call) => {
  const { query } = call;
  const request = childList({ ...query, parent_instance_id: await ownInstance(deps, call) });
  return pageReply(call, query, await deps.reads.page(request));
};

const audit: Operation<'instances.audit'> = async (deps, call) => {
  const { query } = call;
  const page = await deps.reads.page(auditList(await ownInstance(deps, call), query));
  return pageReply(call, { ...query, offset: 0 }, page);
};

const timeline: Operation<'instances.timeline'> = async (deps, call) => {
  const { params, tenant, query } = call;
  const { text, cursor } = await timelineText(deps.reads, params.id, tenant, query);
  const reply = jsonReply(text);
  return cursor === undefined ? reply : { ...reply, headers: [['x-next-cursor', cursor]] };
};

const logs: Operation<'instances.logs'> = async (deps, call) => {
  const { query } = call;
  const request = lineList({ ...query, instance_id: await ownInstance(deps, call) });
  return pageReply(call, query, await deps.reads.page(request));
};

const checkpoints: Operation<'instances.checkpoints'> = async (deps, call) => {
  const instance_id = await ownInstance(deps, call);
  const request = checkpointList({ instance_id, limit: CHECKPOINTS_LISTED_MAX });
  return jsonReply((await deps.reads.page(request)).text);
};

const latestCheckpoint: Operation<'instances.latestCheckpoint'> = async (deps, call) => {
  const instance_id = await ownInstance(deps, call);
  const { texts } = await deps.reads.batch(checkpointList({ instance_id, limit: 1 }));
  if (texts[0] === undefined) throw notFound(`instance ${instance_id} has no checkpoint`);
  return jsonReply(texts[0]);
};

/** The reads about instances. */
export const instanceOperations = {
  'instances.list': list,
  'instances.deadLetters': deadLetters,
  'instances.outputs': outputs,
  'instances.signals': signals,
  'instances.children': children,
  'instances.audit': audit,
  'instances.timeline': timeline,
  'instances.attempts': instanceAttempts,
  'instances.logs': logs,
  'instances.checkpoints': checkpoints,
  'instances.latestCheckpoint': latestCheckpoint,
} satisfies Partial<FrontOperations>;

/** The id in the path, of an instance that the tenant has. */
async function ownInstance(deps: FrontDeps, call: CallById): Promise<string> {
  const { id } = call.params;
  await rowOf(deps.reads, instanceTenant, 'instance', id, call.tenant);
  return id;
}

/** The record as it is committed. Rejects with an EngineError 404 or 503. */
export async function committedInstance(
  reads: Reads,
  tenant: string,
  id: string,
): Promise<HttpReply> {
  return jsonReply(instanceText(await rowOf(reads, instanceById, 'instance', id, tenant)));
}
