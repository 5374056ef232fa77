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

/** Why readiness is refused. */
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
 * `version` is the semantic version of the server, `cell` the version of its tables, `cluster` whether other cells are
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

/** The OpenAPI document; OpenAPI has a schema of its own. */
export const OpenApiDocument = named('OpenApiDocument', {
  openapi: Type.String(),
  info: Type.Object({}),
  paths: Type.Object({}),
});

const AssetParams = Type.Object({ file: Type.String({ maxLength: 255 }) });

export const SYSTEM_ROWS = {
  'health.live': {
    method: 'GET',
    path: '/health/live',
    summary: 'Answer 200 while the process runs.',
    owner: 'probe',
    replies: { 200: Health },
    isPublic: true,
    isAtRoot: true,
  },
  'health.ready': {
    method: 'GET',
    path: '/health/ready',
    summary: 'Answer 200 while this engine owns the database and can reach it.',
    owner: 'probe',
    replies: { 200: Health, 503: NotReady },
    isPublic: true,
    isAtRoot: true,
  },

  info: {
    method: 'GET',
    path: '/info',
    summary: 'Get the versions of the server and of its schemas.',
    owner: 'probe',
    replies: { 200: Info },
    isPublic: true,
    isAtRoot: true,
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
    method: 'GET',
    path: '/api-docs/openapi.json',
    summary: 'Get this document.',
    owner: 'probe',
    replies: { 200: OpenApiDocument },
    isPublic: true,
    isDocument: true,
    isAtRoot: true,
  },
  'docs.ui': {
    method: 'GET',
    path: '/swagger-ui',
    summary: 'Show this document as a page that can send requests.',
    owner: 'probe',
    contentType: 'text/html; charset=utf-8',
    replies: { 200: Type.String() },
    isPublic: true,
    isAtRoot: true,
  },
  'docs.asset': {
    method: 'GET',
    path: '/swagger-ui/{file}',
    summary: 'Get the scripts and styles of that page.',
    owner: 'probe',
    params: AssetParams,
    contentType: ['text/css', 'text/javascript', 'text/plain', 'image/png'],
    replies: { 200: null, ...refusals(404) },
    isPublic: true,
    isAtRoot: true,
  },
} as const satisfies Record<string, RouteRow>;
