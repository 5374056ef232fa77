/** Wire shapes and routes of the server: liveness, readiness and information. */

import * as t from './common.js';
import { front, ownedBy, type RouteRow, refusals } from './route-row.js';

/** `unreachable`: it serves nobody. All others: it answers, though it does not write. */
const TROUBLE_KINDS = [
  ...(['unreachable', 'disk-full', 'resources', 'descriptors', 'connections', 'rights'] as const),
  ...(['schema', 'read-only', 'replica', 'lease', 'other'] as const),
] as const;
export type TroubleKind = (typeof TROUBLE_KINDS)[number];

/** The same body for liveness and readiness. */
export const Health = t.named('Health', { status: t.literal('ok') });

export const NotReady = t.named(
  'NotReady',
  '`reason` is present if the database is the cause, with its SQLSTATE if it answered.',
  {
    error: t.text(),
    reason: t.optional(t.object({ kind: t.oneOf(TROUBLE_KINDS), sql_state: t.optional(t.text()) })),
  },
);
export type NotReady = t.Static<typeof NotReady>;

/**
 * `fits`: opens all secrets in the database. `former`, `other`: some are sealed with the former key, or with a key that
 * the server does not have. `unknown`: until the server owns the database.
 */
export const SEALING_KEY_STATES = ['unknown', 'none', 'fits', 'former', 'other'] as const;
export type SealingKeyState = (typeof SEALING_KEY_STATES)[number];

export const LINK_PLACES = ['instance', 'step'] as const;

/** The values that the dashboard puts into the URL of a link. */
export const LINK_VALUES = [
  'instance_id',
  'tenant_id',
  'namespace',
  'sequence',
  'trace_id',
  'block_id',
] as const;

export const UiLink = t.named('UiLink', 'A link of the dashboard to another system.', {
  label: t.text(),
  url: t.text('With placeholders such as {instance_id}.'),
  on: t.oneOf(LINK_PLACES),
});
export type UiLink = t.Static<typeof UiLink>;

export const Info = t.named('Info', {
  version: t.text(),
  storage_schema_version: t.integer(),
  contract_schema_version: t.integer(),
  cell: t.text('The Postgres schema of its tables.'),
  cluster: t.boolean('Whether other cells are known.'),
  env_label: t.refOrNull(t.text()),
  env_color: t.refOrNull(t.text()),
  // Absent from older servers.
  ui_links: t.optional(t.list(UiLink)),
  // A `SealingKeyState`; absent from older servers.
  encryption_key: t.optional(t.text()),
});
export type Info = t.Static<typeof Info>;

/** Raised when the wire contract changes visibly for clients. */
export const CONTRACT_VERSION = 1;

export const OpenApiDocument = t.named('OpenApiDocument', {
  openapi: t.text(),
  info: t.object({}),
  paths: t.object({}),
});

const probe = ownedBy({ owner: 'probe', isPublic: true, isAtRoot: true });

export const SYSTEM_ROWS = {
  'health.live': probe.get('/health/live', {
    summary: 'Answer 200 while the process runs.',
    replies: { 200: Health },
  }),
  'health.ready': probe.get('/health/ready', {
    summary: 'Answer 200 while this engine owns the database and can reach it.',
    replies: { 200: Health, 503: NotReady },
  }),
  info: probe.get('/info', {
    summary: 'Get the versions of the server and of its schemas.',
    replies: { 200: Info },
  }),
  metrics: front.get('/metrics', {
    summary: 'Get the metrics in the text format of Prometheus.',
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    replies: { 200: t.text() },
    isTenantless: true,
    isAlwaysServed: true,
    isAtRoot: true,
  }),
  'docs.openapi': probe.get('/api-docs/openapi.json', {
    summary: 'Get this document.',
    replies: { 200: OpenApiDocument },
    isDocument: true,
  }),
  'docs.ui': probe.get('/swagger-ui', {
    summary: 'Show this document as a page that can send requests.',
    contentType: 'text/html; charset=utf-8',
    replies: { 200: t.text() },
  }),
  'docs.asset': probe.get('/swagger-ui/{file}', {
    summary: 'Get the scripts and styles of that page.',
    params: t.object({ file: t.text({ maxLength: 255 }) }),
    contentType: ['text/css', 'text/javascript', 'text/plain', 'image/png'],
    replies: { 200: null, ...refusals(404) },
  }),
} as const satisfies Record<string, RouteRow>;
