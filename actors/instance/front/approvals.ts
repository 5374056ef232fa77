/**
 * Approvals: the list, answers, and links for answering without an API key. The instance accepts or
 * refuses an answer; requests about a closed approval are answered from its row.
 */

import {
  type AnswerApproval,
  APPROVALS_COUNTED_MAX,
  type ApprovalAnswered,
  LINK_SECONDS_DEFAULT,
} from '../../../schema/approval.js';
import type { GateChoice } from '../../../schema/step-options.js';
import { conflict, EngineError, invalid, notFound, unavailable } from '../../../src/base/errors.js';
import { groupsIn } from '../../../src/base/groups.js';
import { LIMITS } from '../../../src/base/limits.js';
import { isoTime } from '../../../src/base/time.js';
import { mayAnswer, notApprover } from '../../../src/core/blocks/gate.js';
import type { Keyring } from '../../../src/core/sealing/keys.js';
import { filtersOf, type Narrowing, narrow } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { Conditions, IS_PRESENT, type Query } from '../../../src/db/reads/query.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import { answerGroups, listedGroups } from '../../../src/http/auth.js';
import type { FrontSettings } from '../../../src/http/front-room.js';
import {
  type AnyCall,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listQuery,
  type Operation,
  pageReply,
} from '../../../src/http/operation.js';
import { refusalReply } from '../../../src/http/reply.js';
import { wantsPage } from '../../../src/http/request-head.js';
import type { RequestedAction } from '../../../src/http/requested-action.js';
import type { HttpReply } from '../../../src/http/server.js';
import type { Shards } from '../../runtime/shards.js';
import { type ApprovalGrant, approvalToken, verifiedGrant } from '../core/approval-link.js';
import type { instanceOperations } from '../operations.js';
import { APPROVALS } from '../output-tables.js';
import { formPage, notePage } from './approval-page.js';
import { SEQUENCE_NAME } from './instance-reads.js';

type Client = Pick<Shards<typeof instanceOperations>, 'ask' | 'shardOf'>;
type Answer = AnswerApproval & { readonly by: string };

/** @throws EngineError 400, 403, 404, or 409 unless the approval was closed by this very answer */
async function answer(
  client: Client,
  deps: FrontDeps,
  id: string,
  tenant: string,
  submitted: Answer,
  groups: readonly string[] | undefined,
  action: RequestedAction | undefined,
): Promise<string> {
  const row = await approvalOf(deps, id, tenant);
  const approvers = groupsIn(row.approvers);
  if (!mayAnswer({ approvers }, groups)) throw notApprover(approvers);
  if (row.outcome !== null) return settled(row, submitted);
  const { instance_id: instance } = row;
  const { value, comment = null, answer_id: answerId = null, by } = submitted;
  const body = { approval: id, given: { value, comment, answerId, by } };
  try {
    const shard = client.shardOf(instance);
    return (await client.ask(shard, 'instances.answer', tenant, instance, body, { action })).body;
  } catch (error) {
    if (!(error instanceof EngineError) || error.status !== 409) throw error;
    // Another answer was first; it is the same one if the response to this client was lost.
    const now = await approvalOf(deps, id, tenant);
    if (now.outcome === null) throw error;
    return settled(now, submitted);
  }
}

interface StoredAnswer {
  readonly value: string;
  readonly comment: string | null;
  readonly by: string | null;
  readonly answer_id: string | null;
}

/** The answer of a closed approval. @throws EngineError 409 unless it is the same answer */
function settled(row: KnownApproval, submitted: Answer): string {
  const taken = row.answer === null ? null : (JSON.parse(row.answer) as StoredAnswer | null);
  const isSame =
    taken !== null &&
    submitted.answer_id != null &&
    taken.answer_id === submitted.answer_id &&
    taken.value === submitted.value;
  if (!isSame) throw conflict(`approval ${row.id} ${closedText(row)}`);
  const reply: ApprovalAnswered = {
    id: row.id,
    instance_id: row.instance_id,
    block_id: row.block_id,
    value: taken.value,
    comment: taken.comment,
    answered_by: taken.by,
    answered_at: row.closed_at ?? '',
    repeated: true,
  };
  return JSON.stringify(reply);
}

const ENDS: Readonly<Record<string, string>> = {
  answered: 'was answered already',
  timed_out: 'has timed out',
  escalated: 'has timed out and was escalated',
  withdrawn: 'was withdrawn',
};

function closedText({ outcome, closed_at }: KnownApproval): string {
  return `${ENDS[outcome ?? ''] ?? 'is closed'} (${closed_at})`;
}

function keysOf({ keyring }: FrontDeps): Keyring['links'] {
  if (keyring === undefined) {
    throw unavailable('ENG_NO_KEYS', 'the server has no encryption key (ENGINE_ENCRYPTION_KEY)');
  }
  return keyring.links;
}

interface LinkPlace extends Pick<FrontSettings, 'publicUrl'> {
  /** A proxy in front of several engines routes links by their tenant. */
  readonly mustNameTenant: boolean;
}

function link({ publicUrl, mustNameTenant }: LinkPlace): Operation<'approvals.link'> {
  return async (deps, call) => {
    const keys = keysOf(deps);
    const { id } = call.params;
    const row = await approvalOf(deps, id, call.tenant);
    if (row.outcome !== null) throw conflict(`approval ${id} ${closedText(row)}`);
    const { value = null, recipient = null, expires_in_seconds: seconds } = call.body;
    const { choices } = gateOf(row);
    if (value !== null && !choices.some((choice) => choice.value === value)) {
      throw invalid(`value must be one of ${choices.map((choice) => choice.value).join(', ')}`);
    }
    const expiresAt = deps.now() + (seconds ?? LINK_SECONDS_DEFAULT) * 1_000;
    const token = approvalToken({ approval: id, expiresAt, value, recipient }, keys);
    const host = call.header('host');
    const origin = publicUrl ?? (host === undefined ? '' : `http://${host}`);
    const suffix = mustNameTenant ? `?tenant_id=${encodeURIComponent(row.tenant_id)}` : '';
    const url = `${origin.replace(/\/$/, '')}/api/v1/approvals/by-link/${token}${suffix}`;
    return { status: 201, body: JSON.stringify({ url, expires_at: isoTime(expiresAt) }) };
  };
}

function gateOf({ gate }: KnownApproval) {
  return JSON.parse(gate) as {
    readonly choices: readonly GateChoice[];
    readonly allow_comment: boolean;
  };
}

/** @throws EngineError 404 unless this server signed the link, 410 when it has expired */
function granted(deps: FrontDeps, token: string): ApprovalGrant {
  const grant = verifiedGrant(token, keysOf(deps));
  if (grant === undefined) throw notFound('there is no such link');
  if (grant.expiresAt <= deps.now()) {
    throw new EngineError('ENG_GONE', `gone: the link has expired (${isoTime(grant.expiresAt)})`);
  }
  return grant;
}

const page: Operation<'approvals.page'> = (deps, call) =>
  shown(call, async () => {
    const { approval, value } = granted(deps, call.params.token);
    const row = await approvalOf(deps, approval, '');
    await deps.admitTenant(row.tenant_id);
    if (row.outcome !== null) throw conflict(`this question ${closedText(row)}`);
    const { choices, allow_comment } = gateOf(row);
    return formPage({
      prompt: row.prompt === '' ? `Step ${row.block_id} waits for an answer.` : row.prompt,
      choices: value === null ? choices : choices.filter((choice) => choice.value === value),
      allowComment: allow_comment,
      deadline: row.deadline,
    });
  });

function answerByLink(client: Client): Operation<'approvals.answerByLink'> {
  return (deps, call) =>
    shown(call, async () => {
      const { approval, value: fixed, recipient } = granted(deps, call.params.token);
      const value = call.body.value ?? fixed;
      if (value == null) throw invalid('value is required');
      if (fixed !== null && value !== fixed) throw invalid(`the link answers ${fixed} only`);
      const row = await approvalOf(deps, approval, '');
      await deps.admitTenant(row.tenant_id);
      const submitted = { value, comment: call.body.comment ?? null, by: recipient ?? 'link' };
      const signed = call.action && { ...call.action, by: submitted.by, target: approval };
      await answer(client, deps, approval, '', submitted, undefined, signed);
      return notePage(200, 'Thank you', 'Your answer was taken.');
    });
}

/** Browsers get errors as pages; programs get the usual response. */
async function shown(call: AnyCall, make: () => Promise<HttpReply>): Promise<HttpReply> {
  try {
    return await make();
  } catch (error) {
    if (!wantsPage(call) || !(error instanceof EngineError) || error.status >= 500) throw error;
    const { headers = [] } = refusalReply(error);
    const reply = notePage(error.status, 'This did not work', sentence(error.message));
    return { ...reply, headers: [...(reply.headers ?? []), ...headers] };
  }
}

/** Removes the error class, which is for programs. */
function sentence(message: string): string {
  const text = message.slice(message.indexOf(': ') + 2);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

export function approvalOperations(client: Client, place: LinkPlace) {
  return {
    'approvals.list': async ({ reads }, call) => {
      const { group, ...asked } = listQuery(call);
      const groups = listedGroups(call.key);
      const approvers =
        group === undefined && groups === undefined
          ? undefined
          : await approversFor(reads, asked.tenant_id, group, groups);
      if (approvers?.length === 0) return jsonReply(NOTHING_OPEN);
      const query = { ...asked, approvers };
      const [page, [counted]] = await Promise.all([
        reads.page(approvalList(query)),
        reads.rowsOf<{ readonly total: number }>(approvalCountQuery(query), CHEAPER),
      ]);
      const text = `{"items":${page.text},"total":${counted?.total ?? 0}}`;
      return pageReply(call, query, { ...page, text });
    },
    'approvals.answer': async (deps, { params, tenant, body, by, key, action }) => {
      const submitted = { ...body, by };
      const groups = answerGroups(key);
      return jsonReply(await answer(client, deps, params.id, tenant, submitted, groups, action));
    },
    'approvals.link': link(place),
    'approvals.page': page,
    'approvals.answerByLink': answerByLink(client),
  } satisfies Partial<FrontOperations>;
}

const NOTHING_OPEN = '{"items":[],"total":0}';

/** The approvers of open approvals of a tenant: one step along the index for each. */
export const openApprovers = lookup<StoredRow<typeof APPROVALS, 'approvers'>>(
  'reads_approvers',
  'with recursive one as ((select approvers from approvals where tenant_id = $1::text and ' +
    'outcome is null order by approvers limit 1) union all select (select a.approvers from ' +
    'approvals a where a.tenant_id = $1::text and a.outcome is null and a.approvers > one.approvers ' +
    'order by a.approvers limit 1) from one where one.approvers is not null) ' +
    'select approvers from one where approvers is not null',
);

/**
 * The values of the column that concern the caller.
 *
 * @param group that they must name
 * @param groups of the caller; undefined: all
 * @throws EngineError 400
 */
async function approversFor(
  reads: FrontDeps['reads'],
  tenant: string | undefined,
  group: string | undefined,
  groups: readonly string[] | undefined,
): Promise<readonly string[]> {
  if (tenant === undefined) throw invalid('group takes a tenant (x-tenant-id or tenant_id)');
  const open = await openApprovers.rows(reads, tenant);
  return open
    .map(({ approvers }) => approvers)
    .filter((text) => {
      const approvers = groupsIn(text);
      return mayAnswer({ approvers }, groups) && (group === undefined || approvers.includes(group));
    });
}

const COLUMNS = columnsBut(APPROVALS, 'iteration', 'outcome', 'closed_at', 'answer');
type OpenRow = StoredRow<typeof APPROVALS, (typeof COLUMNS)[number]> & {
  readonly sequence_name: string | null;
  readonly metadata: string;
};

const FILTERS = {
  ...filtersOf(APPROVALS, ['tenant_id', 'approvers', 'namespace', 'sequence_id'], 'a'),
  sequence_name: SEQUENCE_NAME,
  sequence: SEQUENCE_NAME,
};

/** `offset 0` forces a lookup by key for each approval. */
const INSTANCE =
  '(select tenant_id, sequence_id, fence, metadata from instances ' +
  'where id = a.instance_id offset 0) i';
/** As in the partial indexes. */
const IN_INDEX = 'a.outcome is null';
/** Instances in or after a handover have a fence, and accept no answers here. */
const IS_OPEN = `${IN_INDEX} and i.fence is null and ${IS_PRESENT}`;
const ORDER = orderBy(APPROVALS, ['waiting_since', 'id'], 'ascending', 'a');
const CHEAPER = 'name the tenant, or use a smaller offset';

/**
 * `Approval` records, oldest first. Walks `approvals_open_by_approvers`, `approvals_open_by_tenant` or
 * `approvals_open`. `approvers` takes a tenant.
 */
export const approvalList = list({
  columns:
    `${selected(COLUMNS, 'a')}, i.metadata, ` +
    '(select s.name from sequences s where s.id = a.sequence_id) as sequence_name',
  from: `approvals a cross join lateral ${INSTANCE}`,
  by: FILTERS,
  always: IS_OPEN,
  walk: {
    table: 'approvals a',
    alias: 'a',
    along: ['approvers', 'tenant_id'],
    isMergedAlone: true,
    isOfAll: true,
    only: IN_INDEX,
    within: ['tenant_id'],
    join: `left join lateral ${INSTANCE} on true`,
  },
  order: ORDER,
  toText: approvalText,
  cheaper: CHEAPER,
});

/** Counts the list on all pages, up to a bound. */
export function approvalCountQuery(filter: Narrowing<keyof typeof FILTERS>): Query {
  const { tenant_id, approvers, ...others } = FILTERS;
  const walked = new Conditions();
  walked.add(IN_INDEX);
  narrow(walked, { tenant_id, approvers }, filter);
  const conditions = new Conditions(walked.values);
  narrow(conditions, others, filter);
  conditions.add(IS_OPEN);
  return conditions.query(
    'select count(*)::float8 as total from (select 1 from ' +
      `(select * from approvals a ${walked.where} limit ${LIMITS.rowsWalkedMax}) a cross join lateral ${INSTANCE} ${conditions.where} ` +
      `limit ${APPROVALS_COUNTED_MAX}) a`,
  );
}

const KNOWN = columnsBut(APPROVALS, 'iteration', 'sequence_id', 'waiting_since', 'path');
type KnownApproval = StoredRow<typeof APPROVALS, (typeof KNOWN)[number]>;

export const approvalById = lookup<KnownApproval>(
  'reads_approval',
  `select ${selected(KNOWN, 'a')} from approvals a join instances i on i.id = a.instance_id ` +
    `where a.id = $1::uuid and ${IS_PRESENT}`,
);

/** @throws EngineError 404 */
function approvalOf({ reads }: FrontDeps, id: string, tenant: string): Promise<KnownApproval> {
  return rowOf(reads, approvalById, 'approval', id, tenant);
}

export const promptsOf = lookup<StoredRow<typeof APPROVALS, 'id' | 'prompt'>>(
  'reads_approval_prompts',
  'select id, prompt from approvals where instance_id = $1::uuid and outcome is null ' +
    'order by waiting_since, id limit $2::bigint',
);

/** Splices in the members of the gate, whose JSON the engine wrote. */
function approvalText({ gate, metadata, approvers, ...row }: OpenRow): string {
  const text = JSON.stringify({ ...row, approvers: groupsIn(approvers) });
  return `${text.slice(0, -1)},${gate.trim().slice(1, -1)},"metadata":${metadata}}`;
}
