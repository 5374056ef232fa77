/** Wire shapes and routes of approvals and their answers (docs/reference/approvals.md). */

import * as t from './common.js';
import { created, did, front, get, ok, type RouteRow, refusals } from './route-row.js';
import { GateChoice } from './step-options.js';

export const COMMENT_LENGTH_MAX = 4_096;
/** Counting stops here, so that a page costs the same however many approvals are open. */
export const APPROVALS_COUNTED_MAX = 10_000;
/** A week: recipients of mailed links may be away for some days. */
export const LINK_SECONDS_DEFAULT = 7 * 24 * 60 * 60;
const LINK_SECONDS_MAX = 30 * 24 * 60 * 60;
/** Fits a value and a recipient of the greatest length, in base64, and a signature. */
const TOKEN_LENGTH_MAX = 8_192;

const Value = t.noted(t.Name, 'One of the values in choices.');
const Comment = t.noted(
  t.text({ maxLength: COMMENT_LENGTH_MAX, 'x-check': 'empty-is-absent' }),
  'Comment, allowed only with allow_comment.',
);

const ApprovalListQuery = t.strictObject({
  tenant_id: t.optional(t.text()),
  namespace: t.optional(t.text()),
  sequence_id: t.optional(t.Uuid),
  sequence_name: t.optional(t.text('Includes every version of the sequences with this name.')),
  sequence: t.optional(t.text('Alias of sequence_name.')),
  group: t.optional(t.GroupName, 'Only approvals that name this group; takes a tenant.'),
  ...t.pageOf(),
});

export const Approval = t.named('Approval', "A step that waits for a person's answer.", {
  id: t.Uuid,
  instance_id: t.Uuid,
  tenant_id: t.text(),
  namespace: t.text(),
  sequence_id: t.Uuid,
  sequence_name: t.nullable(t.text()),
  block_id: t.text(),
  path: t.text('Path from the outermost block, such as orders[2]/charge.'),
  prompt: t.text('Question to the person.'),
  choices: t.list(GateChoice),
  store_as: t.text('Key of context.data that receives the value.'),
  timeout_seconds: t.nullable(t.number()),
  escalation_handler: t.nullable(t.text()),
  allow_comment: t.boolean(),
  approvers: t.list(t.text(), 'Groups whose members may answer; empty: every key that may answer.'),
  waiting_since: t.Timestamp,
  deadline: t.nullable(t.Timestamp, 'Time of the time-out; null: never.'),
  metadata: t.noted(t.JsonObjectSchema, 'Metadata of the instance.'),
});
export type Approval = t.Static<typeof Approval>;

export const ApprovalPage = t.named('ApprovalPage', {
  items: t.list(Approval),
  total: t.integer(`Number of approvals, counted up to ${APPROVALS_COUNTED_MAX}.`),
});
export type ApprovalPage = t.Static<typeof ApprovalPage>;

export const AnswerApproval = t.named('AnswerApproval', {
  value: Value,
  comment: t.nullish(Comment),
  answer_id: t.nullish(t.Key, 'A repetition with the same id returns the first answer.'),
});
export type AnswerApproval = t.Static<typeof AnswerApproval>;

export const ApprovalAnswered = t.named('ApprovalAnswered', 'The accepted answer.', {
  id: t.Uuid,
  instance_id: t.Uuid,
  block_id: t.text(),
  value: t.text(),
  comment: t.nullable(t.text()),
  answered_by: t.nullable(t.text(), 'Name of the key, or recipient of the link.'),
  answered_at: t.Timestamp,
  repeated: t.boolean('True: the answer with this answer_id was accepted before.'),
});
export type ApprovalAnswered = t.Static<typeof ApprovalAnswered>;

export const MakeApprovalLink = t.strictNamed('MakeApprovalLink', {
  expires_in_seconds: t.nullish(
    t.integer({ minimum: 1, maximum: LINK_SECONDS_MAX, default: LINK_SECONDS_DEFAULT }),
  ),
  value: t.nullish(Value, 'Restricts the link to this value.'),
  recipient: t.nullish(t.Name, 'Name of the recipient, recorded as answered_by.'),
});

export const ApprovalLink = t.named('ApprovalLink', {
  url: t.text('Allows its holder to answer once, without a key.'),
  expires_at: t.Timestamp,
});
export type ApprovalLink = t.Static<typeof ApprovalLink>;

const TokenParams = t.object({ token: t.text({ minLength: 1, maxLength: TOKEN_LENGTH_MAX }) });

export const AnswerByLink = t.named('AnswerByLink', {
  value: t.nullish(Value),
  comment: t.nullish(Comment),
});

const HTML = 'text/html; charset=utf-8';

export const APPROVAL_ROWS = {
  'approvals.list': get('/approvals', 'List open approvals, oldest first.', ApprovalPage, {
    query: ApprovalListQuery,
  }),
  'approvals.answer': front.post('/approvals/{id}', {
    summary: 'Answer an approval. The first answer counts.',
    body: AnswerApproval,
    replies: ok(ApprovalAnswered, 403, 404, 409, 413),
    action: did('approval', 'answered', { shows: ['value'] }),
  }),
  'approvals.link': front.post('/approvals/{id}/link', {
    summary: 'Create a link with which one person can answer once, without a key.',
    body: MakeApprovalLink,
    isBodyOptional: true,
    replies: created(ApprovalLink, 404, 409),
  }),
  'approvals.page': front.get('/approvals/by-link/{token}', {
    summary: 'Show the question and choices of a link, without answering.',
    params: TokenParams,
    isPublic: true,
    isPage: true,
    contentType: HTML,
    replies: { 200: null, ...refusals(404, 409, 410) },
  }),
  'approvals.answerByLink': front.post('/approvals/by-link/{token}', {
    summary: 'Answer an approval once, by a link.',
    params: TokenParams,
    body: AnswerByLink,
    isBodyOptional: true,
    isForm: true,
    isPublic: true,
    isPage: true,
    contentType: HTML,
    replies: ok(null, 404, 409, 410, 413),
    action: did('approval', 'answered', { shows: ['value'] }),
  }),
} as const satisfies Record<string, RouteRow>;
