/** Wire shapes and routes of what people are asked, and of their answers (docs/reference/approvals.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  Cursor,
  JsonObjectSchema,
  Key,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  Limit,
  Name,
  named,
  noted,
  Offset,
  optional,
  orNull,
  Timestamp,
  Uuid,
} from './common.js';
import { actById, type RouteRow, read, refusals } from './route-row.js';
import { GateChoice } from './step-options.js';
import { strict } from './strict.js';

/** A page of text. */
export const COMMENT_LENGTH_MAX = 4_096;
/** No more are counted, so that a page of the list costs the same however many wait. */
export const APPROVALS_COUNTED_MAX = 10_000;
/** Whoever gets a link by mail may be away for some days. */
export const LINK_SECONDS_DEFAULT = 7 * 24 * 60 * 60;
export const LINK_SECONDS_MAX = 30 * 24 * 60 * 60;
/** Of a value and a recipient of the greatest length, in base64, and a signature. */
const TOKEN_LENGTH_MAX = 8_192;

const Value = noted(Name, 'One of the values of its choices.');
const Comment = Type.String({
  maxLength: COMMENT_LENGTH_MAX,
  'x-check': 'empty-is-absent',
  description: 'Only where allow_comment says so.',
});

export const ApprovalListQuery = strict(
  Type.Object({
    tenant_id: Type.Optional(Type.String()),
    namespace: Type.Optional(Type.String()),
    sequence_id: Type.Optional(Uuid),
    sequence_name: Type.Optional(
      Type.String({ description: 'Every version of the sequences with this name.' }),
    ),
    sequence: Type.Optional(Type.String({ description: 'The same.' })),
    offset: Offset,
    limit: Limit(LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX),
    cursor: Cursor,
  }),
);
export type ApprovalListQuery = Static<typeof ApprovalListQuery>;

export const Approval = named('Approval', 'A step that waits for the answer of a person.', {
  id: Uuid,
  instance_id: Uuid,
  tenant_id: Type.String(),
  namespace: Type.String(),
  sequence_id: Uuid,
  sequence_name: orNull(Type.String()),
  block_id: Type.String(),
  path: noted(Type.String(), 'From the outermost block, as in orders[2]/charge.'),
  prompt: noted(Type.String(), 'What is asked.'),
  choices: Type.Array(GateChoice),
  store_as: noted(Type.String(), 'The key of context.data for the value.'),
  timeout_seconds: orNull(Type.Number()),
  escalation_handler: orNull(Type.String()),
  allow_comment: Type.Boolean(),
  waiting_since: Timestamp,
  deadline: noted(orNull(Timestamp), 'Null: it waits for ever.'),
  metadata: noted(JsonObjectSchema, 'Of the instance.'),
});
export type Approval = Static<typeof Approval>;

export const ApprovalPage = named('ApprovalPage', {
  items: Type.Array(Approval),
  total: Type.Integer({
    description:
      `How many there are on all pages; at most ${APPROVALS_COUNTED_MAX} are counted, ` +
      'among a bounded number of open ones.',
  }),
});
export type ApprovalPage = Static<typeof ApprovalPage>;

export const AnswerApproval = named('AnswerApproval', {
  value: Value,
  comment: optional(Comment),
  answer_id: optional(
    noted(Key, 'A repetition with the same one is told of the first answer, and is no conflict.'),
  ),
});
export type AnswerApproval = Static<typeof AnswerApproval>;

export const ApprovalAnswered = named('ApprovalAnswered', 'What was taken.', {
  id: Uuid,
  instance_id: Uuid,
  block_id: Type.String(),
  value: Type.String(),
  comment: orNull(Type.String()),
  answered_by: noted(orNull(Type.String()), 'The name of the key, or the recipient of the link.'),
  answered_at: Timestamp,
  repeated: Type.Boolean({ description: 'True: the answer with this answer_id was taken before.' }),
});
export type ApprovalAnswered = Static<typeof ApprovalAnswered>;

export const MakeApprovalLink = strict(
  named('MakeApprovalLink', {
    expires_in_seconds: optional(
      Type.Integer({ minimum: 1, maximum: LINK_SECONDS_MAX, default: LINK_SECONDS_DEFAULT }),
    ),
    value: optional(noted(Value, 'The link answers this and nothing else.')),
    recipient: optional(noted(Name, 'Whom the link is for: noted as who answered.')),
  }),
);
export type MakeApprovalLink = Static<typeof MakeApprovalLink>;

export const ApprovalLink = named('ApprovalLink', {
  url: Type.String({ description: 'Whoever has it can answer, once.' }),
  expires_at: Timestamp,
});
export type ApprovalLink = Static<typeof ApprovalLink>;

const TokenParams = Type.Object({
  token: Type.String({ minLength: 1, maxLength: TOKEN_LENGTH_MAX }),
});

/** What the form of the page sends. Without a value the link has to fix one. */
export const AnswerByLink = named('AnswerByLink', {
  value: optional(Value),
  comment: optional(Comment),
});
export type AnswerByLink = Static<typeof AnswerByLink>;

// ---------------------------------------------------------------- routes

const HTML = 'text/html; charset=utf-8';

export const APPROVAL_ROWS = {
  'approvals.list': {
    ...read,
    path: '/approvals',
    summary: 'List what people are asked, oldest first.',
    query: ApprovalListQuery,
    replies: { 200: ApprovalPage, ...refusals(400) },
  },
  'approvals.answer': {
    ...actById,
    owner: 'front',
    path: '/approvals/{id}',
    summary: 'Answer for a person. The first answer counts.',
    body: AnswerApproval,
    replies: { 200: ApprovalAnswered, ...refusals(400, 404, 409, 413) },
  },
  'approvals.link': {
    ...actById,
    owner: 'front',
    path: '/approvals/{id}/link',
    summary: 'Make a link by which one person can answer once, without a key.',
    body: MakeApprovalLink,
    isBodyOptional: true,
    replies: { 201: ApprovalLink, ...refusals(400, 404, 409) },
  },
  'approvals.page': {
    method: 'GET',
    path: '/approvals/by-link/{token}',
    summary: 'The page of a link: the question and its choices. It answers nothing.',
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
    summary: 'Answer by a link, once.',
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
