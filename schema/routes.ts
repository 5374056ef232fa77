/**
 * The table of operations, which drives routing, validation, authorisation and the OpenAPI document. Joins the rows of
 * all resources and derives the rest.
 */

import type { Static, TObject, TSchema } from '@sinclair/typebox';
import { ACTION_ROWS } from './action.js';
import { KEY_ROWS } from './api-key.js';
import { APPROVAL_ROWS } from './approval.js';
import { ATTEMPT_ROWS } from './attempt.js';
import { BULK_JOB_ROWS } from './bulk-job.js';
import { CELL_ROWS } from './cell.js';
import { CHANGE_ROWS } from './change.js';
import { strict } from './common.js';
import { CREDENTIAL_ROWS } from './credential.js';
import { CRON_ROWS } from './cron.js';
import { DRY_RUN_ROWS } from './dry-run.js';
import { EDIT_ROWS } from './edits.js';
import { EVENT_ROWS } from './event.js';
import { EXPLANATION_ROWS } from './explanation.js';
import { INSTANCE_ROWS } from './instance.js';
import { LOG_ROWS } from './log.js';
import { PENDING_START_ROWS } from './pending-start.js';
import { RATE_ROWS } from './rate.js';
import { RELEASE_ROWS } from './release.js';
import {
  CAPABILITIES,
  type Capability,
  type FrontOwner,
  type Method,
  type Owner,
  type RouteRow,
} from './route-row.js';
import { CONTINUITY_ROWS, HANDOFF_ROWS } from './routes-continuity.js';
import { SEARCH_ROWS } from './search.js';
import { SEQUENCE_ROWS } from './sequence.js';
import { words } from './states.js';
import { STATISTIC_ROWS } from './statistics.js';
import { SYSTEM_ROWS } from './system.js';
import { TENANT_ROWS } from './tenant-limits.js';
import { TRIGGER_ROWS } from './trigger.js';
import { WEBHOOK_ROWS } from './webhook.js';
import { WORKER_ROWS } from './worker.js';
import { WORKER_ENDPOINT_ROWS } from './worker-endpoint.js';

export type { Capability, Method, Owner, RouteRow } from './route-row.js';

const ROWS = {
  ...SYSTEM_ROWS,
  ...SEQUENCE_ROWS,
  ...INSTANCE_ROWS,
  ...ATTEMPT_ROWS,
  ...EXPLANATION_ROWS,
  ...APPROVAL_ROWS,
  ...EDIT_ROWS,
  ...DRY_RUN_ROWS,
  ...LOG_ROWS,
  ...BULK_JOB_ROWS,
  ...RATE_ROWS,
  ...CREDENTIAL_ROWS,
  ...WORKER_ROWS,
  ...WORKER_ENDPOINT_ROWS,
  ...CRON_ROWS,
  ...PENDING_START_ROWS,
  ...RELEASE_ROWS,
  ...CONTINUITY_ROWS,
  ...HANDOFF_ROWS,
  ...KEY_ROWS,
  ...ACTION_ROWS,
  ...TENANT_ROWS,
  ...CELL_ROWS,
  ...WEBHOOK_ROWS,
  ...TRIGGER_ROWS,
  ...EVENT_ROWS,
  ...CHANGE_ROWS,
  ...SEARCH_ROWS,
  ...STATISTIC_ROWS,
};

type Rows = typeof ROWS;
export type RouteId = keyof Rows;

export type RoutesOf<By extends Owner> = {
  [Id in RouteId]: Rows[Id]['owner'] extends By ? Id : never;
}[RouteId];
/** Operations answered by the front thread, and by shards. */
export type FrontRouteId = RoutesOf<FrontOwner>;
export type ShardRouteId = Exclude<RouteId, FrontRouteId>;

type PartOf<Row, Part extends 'body' | 'query' | 'params', None> =
  Row extends Record<Part, infer S extends TSchema> ? Static<S> : None;
export type BodyOf<Id extends RouteId> = PartOf<Rows[Id], 'body', undefined>;
export type QueryOf<Id extends RouteId> = PartOf<Rows[Id], 'query', Record<string, never>>;
export type ParamsOf<Id extends RouteId> = PartOf<Rows[Id], 'params', Record<string, never>>;

type SuccessReply<R> = R extends { 200: infer S } ? S : R extends { 201: infer S } ? S : null;
type WireOf<S> = S extends TSchema ? Static<S> : undefined;
/** The body of a success; undefined for a response without one. */
export type ReplyOf<Id extends RouteId> = WireOf<SuccessReply<Rows[Id]['replies']>>;

export type BodyRouteId = {
  [Id in RouteId]: Rows[Id] extends { body: TSchema } ? Id : never;
}[RouteId];

/** A row with its derived members. The root key may use every route. */
export interface Route extends RouteRow {
  readonly id: RouteId;
  /** Capabilities of which a tenant key needs one; empty: root only. */
  readonly capability: 'public' | readonly Capability[];
  readonly tenant: 'required' | 'optional' | 'none';
  readonly paramNames: readonly string[];
}

const ROOT_ONLY = words(
  '/api-keys /tenants /cells /cluster/nodes /workers/version-pins /workers/commands',
  '/workers/{id}/commands /webhooks/outbox /webhooks/deliveries',
);

export const ROUTES: Readonly<Record<RouteId, Route>> = Object.fromEntries(
  Object.entries<RouteRow>(ROWS).map(([id, row]) => [id, completeRow(id as RouteId, row)]),
) as Record<RouteId, Route>;

function completeRow(id: RouteId, row: RouteRow): Route {
  return {
    ...row,
    id,
    ...(row.query === undefined ? {} : { query: queryOf(row, row.query) }),
    capability: row.isPublic ? 'public' : capabilitiesFor(row.method, row.path),
    tenant: tenantFor(row),
    paramNames: [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string),
  };
}

/** Lists are strict: an ignored filter would return rows that it should exclude. */
function queryOf({ replies }: RouteRow, query: TObject): TObject {
  return replies[200]?.type === 'array' ? strict(query) : query;
}

function tenantFor(row: RouteRow): Route['tenant'] {
  if (row.isPublic || row.isTenantless) return 'none';
  return row.isTenantInBody ? 'optional' : 'required';
}

/** By path without the prefix; HEAD counts as GET. The table is in docs/authorization.md. */
export function capabilitiesFor(method: Method, path: string): readonly Capability[] {
  const isUnder = (...starts: readonly string[]) => starts.some((start) => path.startsWith(start));
  if (isUnder(...ROOT_ONLY)) return [];
  // Every key may read its own capabilities.
  if (path === '/whoami') return CAPABILITIES;
  const granted: Capability[] = ['operator'];
  if (isUnder('/workers') || path === '/handlers') granted.push('worker');
  if (isUnder('/mobile')) granted.push('device');
  if (isUnder('/releases', '/plugins', '/sequences')) granted.push('publisher');
  const isSignal = isUnder('/instances/') && path.endsWith('/signals');
  // A link passes an approver's rights to another person.
  const isAnswer = isUnder('/approvals') && !path.endsWith('/link');
  if (isAnswer || isSignal) granted.push('approver');
  // A preview creates nothing.
  const isQuestion = method === 'GET' || path === '/cron/preview';
  if (isQuestion) granted.push('auditor');
  const isCreation = method === 'POST' && (path === '/instances' || path === '/instances/batch');
  // A creation may answer with a pending start, whose instance the application waits for.
  const mayRead = ['/instances', '/pending-starts', '/sequences', '/search'];
  const isRead = method === 'GET' && isUnder(...mayRead);
  if (isCreation || isRead || isSignal) granted.push('starter');
  // Applications that start instances also report what happens outside.
  if (method === 'POST' && isUnder('/events')) granted.push('starter', 'events');
  return granted;
}
