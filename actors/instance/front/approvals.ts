/**
 * What people are asked: the list, their answers, and the links by which they answer without a key. Whether
 * an answer is taken is for the instance to say, which is asked; what is closed is told from its row.
 */

import type { AnswerApproval, ApprovalAnswered } from '../../../schema/approval.js';
import { LINK_SECONDS_DEFAULT } from '../../../schema/approval.js';
import type { GateChoice } from '../../../schema/step-options.js';
import { conflict, EngineError, invalid, notFound, unavailable } from '../../../src/base/errors.js';
import { isoTime } from '../../../src/base/time.js';
import type { Keyring } from '../../../src/core/sealing/keys.js';
import { rowOf } from '../../../src/db/reads/lookup.js';
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
import type { HttpReply } from '../../../src/http/server.js';
import type { Shards } from '../../runtime/shards.js';
import { type ApprovalGrant, approvalToken, verifiedGrant } from '../core/approval-link.js';
import type { instanceOperations } from '../operations.js';
import { formPage, notePage } from './approval-page.js';
import { approvalById, approvalCount, approvalList, type KnownApproval } from './approval-reads.js';

type Client = Pick<Shards<typeof instanceOperations>, 'ask' | 'shardOf'>;

const list: Operation<'approvals.list'> = async (deps, call) => {
  const query = listQuery(call);
  const [page, total] = await Promise.all([
    deps.reads.page(approvalList(query)),
    approvalCount(deps.reads, query),
  ]);
  return pageReply(call, query, { ...page, text: `{"items":${page.text},"total":${total}}` });
};

// ---------------------------------------------------------------- answers

interface Answer extends AnswerApproval {
  /** Who gives it. */
  readonly by: string;
}

/** @throws EngineError 400, 404, or 409 when it is closed by anything but this very answer */
async function answer(
  client: Client,
  deps: FrontDeps,
  id: string,
  tenant: string,
  given: Answer,
): Promise<string> {
  const row = await rowOf(deps.reads, approvalById, 'approval', id, tenant);
  if (row.outcome !== null) return settled(row, given);
  const { instance_id: instance } = row;
  const { value, comment = null, answer_id: answerId = null, by } = given;
  const body = { approval: id, given: { value, comment, answerId, by } };
  try {
    const shard = client.shardOf(instance);
    return (await client.ask(shard, 'instances.answer', tenant, instance, body)).body;
  } catch (error) {
    if (!(error instanceof EngineError) || error.status !== 409) throw error;
    // Somebody was first: perhaps the same one, whose first request has got lost.
    const now = await rowOf(deps.reads, approvalById, 'approval', id, tenant);
    if (now.outcome === null) throw error;
    return settled(now, given);
  }
}

interface StoredAnswer {
  readonly value: string;
  readonly comment: string | null;
  readonly by: string | null;
  readonly answer_id: string | null;
}

/** Of a gate that is closed: what was taken, when that was this very answer. @throws EngineError 409 */
function settled(row: KnownApproval, given: Answer): string {
  const taken = row.answer === null ? null : (JSON.parse(row.answer) as StoredAnswer | null);
  const isSame =
    taken !== null &&
    given.answer_id != null &&
    taken.answer_id === given.answer_id &&
    taken.value === given.value;
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

// ---------------------------------------------------------------- links

function keysOf({ keyring }: FrontDeps): Keyring['links'] {
  if (keyring === undefined) {
    throw unavailable('ENG_NO_KEYS', 'the server has no encryption key (ENGINE_ENCRYPTION_KEY)');
  }
  return keyring.links;
}

export interface LinkPlace {
  /** Where people reach the server; undefined: where the caller has reached it. */
  readonly publicUrl: string | undefined;
  /** Whether links name their tenant: a proxy in front of several engines routes by it. */
  readonly mustNameTenant: boolean;
}

function link({ publicUrl, mustNameTenant }: LinkPlace): Operation<'approvals.link'> {
  return async (deps, call) => {
    const keys = keysOf(deps);
    const { id } = call.params;
    const row = await rowOf(deps.reads, approvalById, 'approval', id, call.tenant);
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
    const whose = mustNameTenant ? `?tenant_id=${encodeURIComponent(row.tenant_id)}` : '';
    const url = `${origin.replace(/\/$/, '')}/api/v1/approvals/by-link/${token}${whose}`;
    return { status: 201, body: JSON.stringify({ url, expires_at: isoTime(expiresAt) }) };
  };
}

interface StoredGate {
  readonly choices: readonly GateChoice[];
  readonly allow_comment: boolean;
}

function gateOf({ gate }: KnownApproval): StoredGate {
  return JSON.parse(gate) as StoredGate;
}

/** @throws EngineError 404 unless this server has made it, 410 when its time is over */
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
    const row = await rowOf(deps.reads, approvalById, 'approval', approval, '');
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
      const row = await rowOf(deps.reads, approvalById, 'approval', approval, '');
      await deps.admitTenant(row.tenant_id);
      const given = { value, comment: call.body.comment ?? null, by: recipient ?? 'link' };
      await answer(client, deps, approval, '', given);
      return notePage(200, 'Thank you', 'Your answer was taken.');
    });
}

/** Browsers are shown a page, whatever comes of it; programs are refused as everywhere. */
async function shown(call: AnyCall, make: () => Promise<HttpReply>): Promise<HttpReply> {
  try {
    return await make();
  } catch (error) {
    if (!wantsPage(call) || !(error instanceof EngineError) || error.status >= 500) throw error;
    const { headers = [] } = refusalReply(error);
    const told = notePage(error.status, 'This did not work', sentence(error.message));
    return { ...told, headers: [...(told.headers ?? []), ...headers] };
  }
}

/** Without the class of the error, which is for programs. */
function sentence(message: string): string {
  const text = message.slice(message.indexOf(': ') + 2);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

export function approvalOperations(client: Client, place: LinkPlace) {
  return {
    'approvals.list': list,
    'approvals.answer': async (deps, { params, tenant, body, by }) =>
      jsonReply(await answer(client, deps, params.id, tenant, { ...body, by })),
    'approvals.link': link(place),
    'approvals.page': page,
    'approvals.answerByLink': answerByLink(client),
  } satisfies Partial<FrontOperations>;
}
