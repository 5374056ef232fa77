/** Wire shapes and routes of the server: liveness, readiness and information. */

import { type Static, Type } from '@sinclair/typebox';
import { named, oneOfWords } from './common.js';
import { type RouteRow, read, refusals } from './route-row.js';

/** `unreachable`: it serves nobody. All others: it answers, though it does not write. */
const TROUBLE_KINDS = [
  ...(['unreachable', 'disk-full', 'resources', 'descriptors', 'connections', 'rights'] as const),
  ...(['schema', 'read-only', 'replica', 'lease', 'other'] as const),
] as const;
export type TroubleKind = (typeof TROUBLE_KINDS)[number];

/** The same body for liveness and readiness. */
export const Health = named('Health', { status: Type.Literal('ok') });

export const NotReady = named(
  'NotReady',
  '`reason` is present if the database is the cause, with its SQLSTATE if it answered.',
  {
    error: Type.String(),
    reason: Type.Optional(
      Type.Object({
        kind: oneOfWords(TROUBLE_KINDS),
        sql_state: Type.Optional(Type.String()),
      }),
    ),
  },
);
export type NotReady = Static<typeof NotReady>;

export const SEALING_KEY_STATES = ['unknown', 'none', 'fits', 'former', 'other'] as const;
export type SealingKeyState = (typeof SEALING_KEY_STATES)[number];

/**
 * `version` is the semantic version of the server, `cell` the Postgres schema of its tables, `cluster` whether other cells are
 * known; unset labels are null. `encryption_key` says whether the secrets in the database can be opened: there is no
 * key (`none`), the key `fits`, some secrets are sealed with the `former` key, or some with an `other` key that the
 * server does not have; `unknown` until the server owns the database.
 */
export const Info = named('Info', {
  version: Type.String(),
  storage_schema_version: Type.Integer(),
  contract_schema_version: Type.Integer(),
  cell: Type.String(),
  cluster: Type.Boolean(),
  env_label: Type.Union([Type.String(), Type.Null()]),
  env_color: Type.Union([Type.String(), Type.Null()]),
  // A `SealingKeyState`; absent from older servers.
  encryption_key: Type.Optional(Type.String()),
});
export type Info = Static<typeof Info>;

/** Raised when the wire contract changes visibly for clients. */
export const CONTRACT_VERSION = 1;

export const OpenApiDocument = named('OpenApiDocument', {
  openapi: Type.String(),
  info: Type.Object({}),
  paths: Type.Object({}),
});

const AssetParams = Type.Object({ file: Type.String({ maxLength: 255 }) });

const probe = { method: 'GET', owner: 'probe', isPublic: true, isAtRoot: true } as const;

export const SYSTEM_ROWS = {
  'health.live': {
    ...probe,
    path: '/health/live',
    summary: 'Answer 200 while the process runs.',
    replies: { 200: Health },
  },
  'health.ready': {
    ...probe,
    path: '/health/ready',
    summary: 'Answer 200 while this engine owns the database and can reach it.',
    replies: { 200: Health, 503: NotReady },
  },
  info: {
    ...probe,
    path: '/info',
    summary: 'Get the versions of the server and of its schemas.',
    replies: { 200: Info },
  },
  metrics: {
    ...read,
    path: '/metrics',
    summary: 'Get the metrics in the text format of Prometheus.',
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    replies: { 200: Type.String() },
    isTenantless: true,
    isAlwaysServed: true,
    isAtRoot: true,
  },
  'docs.openapi': {
    ...probe,
    path: '/api-docs/openapi.json',
    summary: 'Get this document.',
    replies: { 200: OpenApiDocument },
    isDocument: true,
  },
  'docs.ui': {
    ...probe,
    path: '/swagger-ui',
    summary: 'Show this document as a page that can send requests.',
    contentType: 'text/html; charset=utf-8',
    replies: { 200: Type.String() },
  },
  'docs.asset': {
    ...probe,
    path: '/swagger-ui/{file}',
    summary: 'Get the scripts and styles of that page.',
    params: AssetParams,
    contentType: ['text/css', 'text/javascript', 'text/plain', 'image/png'],
    replies: { 200: null, ...refusals(404) },
  },
} as const satisfies Record<string, RouteRow>;
