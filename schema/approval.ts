/** Wire shapes and routes of approvals and their answers (docs/reference/approvals.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  JsonObjectSchema,
  Key,
  Name,
  named,
  noted,
  optional,
  orNull,
  pageOf,
  Timestamp,
  Uuid,
} from './common.js';
import { actById, get, type RouteRow, refusals } from './route-row.js';
import { GateChoice } from './step-options.js';
import { strictNamed, strictObject } from './strict.js';

export const COMMENT_LENGTH_MAX = 4_096;
/** Counting stops here, so that a page costs the same however many approvals are open. */
export const APPROVALS_COUNTED_MAX = 10_000;
/** A week: recipients of mailed links may be away for some days. */
export const LINK_SECONDS_DEFAULT = 7 * 24 * 60 * 60;
const LINK_SECONDS_MAX = 30 * 24 * 60 * 60;
/** Fits a value and a recipient of the greatest length, in base64, and a signature. */
const TOKEN_LENGTH_MAX = 8_192;

const Value = noted(Name, 'One of the values in choices.');
const Comment = noted(
  Type.String({ maxLength: COMMENT_LENGTH_MAX, 'x-check': 'empty-is-absent' }),
  'Allowed only with allow_comment.',
);

const ApprovalListQuery = strictObject({
  tenant_id: Type.Optional(Type.String()),
  namespace: Type.Optional(Type.String()),
  sequence_id: Type.Optional(Uuid),
  sequence_name: Type.Optional(
    Type.String({ description: 'Includes every version of the sequences with this name.' }),
  ),
  sequence: Type.Optional(Type.String({ description: 'Alias of sequence_name.' })),
  ...pageOf(),
});

export const Approval = named('Approval', "A step that waits for a person's answer.", {
  id: Uuid,
  instance_id: Uuid,
  tenant_id: Type.String(),
  namespace: Type.String(),
  sequence_id: Uuid,
  sequence_name: orNull(Type.String()),
  block_id: Type.String(),
  path: noted(Type.String(), 'Path from the outermost block, such as orders[2]/charge.'),
  prompt: noted(Type.String(), 'The question.'),
  choices: Type.Array(GateChoice),
  store_as: noted(Type.String(), 'Key of context.data that receives the value.'),
  timeout_seconds: orNull(Type.Number()),
  escalation_handler: orNull(Type.String()),
  allow_comment: Type.Boolean(),
  waiting_since: Timestamp,
  deadline: noted(orNull(Timestamp), 'Null: no deadline.'),
  metadata: noted(JsonObjectSchema, 'Metadata of the instance.'),
});
export type Approval = Static<typeof Approval>;

export const ApprovalPage = named('ApprovalPage', {
  items: Type.Array(Approval),
  total: Type.Integer({
    description: `Number on all pages; at most ${APPROVALS_COUNTED_MAX} of a bounded number of open ones.`,
  }),
});
export type ApprovalPage = Static<typeof ApprovalPage>;

export const AnswerApproval = named('AnswerApproval', {
  value: Value,
  comment: optional(Comment),
  answer_id: optional(
    noted(Key, 'A repetition with the same id returns the first answer instead of a conflict.'),
  ),
});
export type AnswerApproval = Static<typeof AnswerApproval>;

export const ApprovalAnswered = named('ApprovalAnswered', 'The accepted answer.', {
  id: Uuid,
  instance_id: Uuid,
  block_id: Type.String(),
  value: Type.String(),
  comment: orNull(Type.String()),
  answered_by: noted(orNull(Type.String()), 'Name of the key, or recipient of the link.'),
  answered_at: Timestamp,
  repeated: noted(Type.Boolean(), 'True: the answer with this answer_id was accepted before.'),
});
export type ApprovalAnswered = Static<typeof ApprovalAnswered>;

export const MakeApprovalLink = strictNamed('MakeApprovalLink', {
  expires_in_seconds: optional(
    Type.Integer({ minimum: 1, maximum: LINK_SECONDS_MAX, default: LINK_SECONDS_DEFAULT }),
  ),
  value: optional(noted(Value, 'Restricts the link to this value.')),
  recipient: optional(noted(Name, 'Recorded as answered_by.')),
});

export const ApprovalLink = named('ApprovalLink', {
  url: Type.String({ description: 'Allows its holder to answer once, without a key.' }),
  expires_at: Timestamp,
});
export type ApprovalLink = Static<typeof ApprovalLink>;

const TokenParams = Type.Object({
  token: Type.String({ minLength: 1, maxLength: TOKEN_LENGTH_MAX }),
});

export const AnswerByLink = named('AnswerByLink', {
  value: optional(Value),
  comment: optional(Comment),
});

const HTML = 'text/html; charset=utf-8';

export const APPROVAL_ROWS = {
  'approvals.list': get('/approvals', 'List open approvals, oldest first.', ApprovalPage, {
    query: ApprovalListQuery,
  }),
  'approvals.answer': {
    ...actById,
    owner: 'front',
    path: '/approvals/{id}',
    summary: 'Answer an approval. The first answer counts.',
    body: AnswerApproval,
    replies: { 200: ApprovalAnswered, ...refusals(400, 404, 409, 413) },
  },
  'approvals.link': {
    ...actById,
    owner: 'front',
    path: '/approvals/{id}/link',
    summary: 'Create a link with which one person can answer once, without a key.',
    body: MakeApprovalLink,
    isBodyOptional: true,
    replies: { 201: ApprovalLink, ...refusals(400, 404, 409) },
  },
  'approvals.page': {
    method: 'GET',
    path: '/approvals/by-link/{token}',
    summary: 'Show the question and choices of a link, without answering.',
    owner: 'front',
    params: TokenParams,
    isPublic: true,
    isPage: true,
    contentType: HTML,
    replies: { 200: null, ...refusals(404, 409, 410) },
  },
  'approvals.answerByLink': {
    method: 'POST',
    path: '/approvals/by-link/{token}',
    summary: 'Answer once by link.',
    owner: 'front',
    params: TokenParams,
    body: AnswerByLink,
    isBodyOptional: true,
    isForm: true,
    isPublic: true,
    isPage: true,
    contentType: HTML,
    replies: { 200: null, ...refusals(400, 404, 409, 410, 413) },
  },
} as const satisfies Record<string, RouteRow>;
