/**
 * The table of operations: one row each, which drives routing, validation, authorisation and the
 * OpenAPI document; and the matcher from method and path to a row. Statuses that any tenant route
 * may answer (400 for a bad tenant, 401, 403, 500, 503) are not repeated in the rows.
 */

import { type Static, type TArray, type TObject, type TSchema, Type } from '@sinclair/typebox';
import { ErrorBody, IdParams } from './common.js';
import * as instance from './instance.js';
import * as sequence from './sequence.js';
import { Health, Info } from './system.js';
import * as worker from './worker.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
export type Capability = 'operator' | 'worker' | 'publisher' | 'approver' | 'auditor';

/**
 * Who answers: the front thread itself (lists and reports, by SQL), any shard (which parses the body
 * and finds the owner), the shard that the id in the path names, a queue, or the catalog.
 */
export type Owner = 'front' | 'any-shard' | 'queue' | 'catalog' | { readonly shardOf: 'id' };

export interface RouteRow {
  readonly method: Method;
  /** Without the prefix; parameters in braces. */
  readonly path: string;
  readonly summary: string;
  readonly owner: Owner;
  readonly params?: TObject;
  readonly query?: TObject;
  readonly body?: TSchema;
  /** Success and particular refusals; null is an answer without a body. */
  readonly replies: Readonly<Record<number, TSchema | null>>;
  /** No key and no tenant is asked for. */
  readonly isPublic?: true;
  /** Each item names its tenant, so that the header may be left out (06 row 48). */
  readonly isTenantInBody?: true;
  /** At home at the root as well as under the prefix: the bare path is no deprecated alias. */
  readonly isAtRoot?: true;
}

type Refusals<S extends number> = Record<S, typeof ErrorBody>;

function refusals<S extends number>(...statuses: readonly S[]): Refusals<S> {
  return Object.fromEntries(statuses.map((status) => [status, ErrorBody])) as Refusals<S>;
}

const listOf = <T extends TSchema>(item: T): TArray<T> => Type.Array(item);
const byId = { params: IdParams, owner: { shardOf: 'id' } } as const;
const readById = { params: IdParams, owner: 'front' } as const;

const ROWS = {
  'health.live': {
    method: 'GET',
    path: '/health/live',
    summary: 'Answers while the process runs.',
    owner: 'front',
    replies: { 200: Health },
    isPublic: true,
    isAtRoot: true,
  },
  'health.ready': {
    method: 'GET',
    path: '/health/ready',
    summary: 'Answers 200 while this engine owns the database and can reach it.',
    owner: 'front',
    replies: { 200: Health, ...refusals(503) },
    isPublic: true,
    isAtRoot: true,
  },
  info: {
    method: 'GET',
    path: '/info',
    summary: 'Versions of the server and of its schemas.',
    owner: 'front',
    replies: { 200: Info },
    isPublic: true,
    isAtRoot: true,
  },

  'sequences.create': {
    method: 'POST',
    path: '/sequences',
    summary: 'Store an immutable sequence definition.',
    owner: 'catalog',
    body: sequence.CreateSequence,
    replies: { 201: sequence.SequenceCreated, ...refusals(400, 409, 413) },
  },
  'sequences.list': {
    method: 'GET',
    path: '/sequences',
    summary: 'List definitions by tenant, namespace, name and descending version.',
    owner: 'front',
    query: sequence.SequenceListQuery,
    replies: { 200: sequence.SequenceList, ...refusals(400) },
  },
  'sequences.byName': {
    method: 'GET',
    path: '/sequences/by-name',
    summary: 'Get a version of a definition by name; the newest not deprecated when not given.',
    owner: 'catalog',
    query: sequence.SequenceByNameQuery,
    replies: { 200: sequence.SequenceDefinition, ...refusals(400, 404) },
  },
  'sequences.versions': {
    method: 'GET',
    path: '/sequences/versions',
    summary: 'List the versions of a name that are not deprecated, newest first.',
    owner: 'front',
    query: sequence.SequenceVersionsQuery,
    replies: { 200: sequence.SequenceList, ...refusals(400) },
  },
  'sequences.get': {
    method: 'GET',
    path: '/sequences/{id}',
    summary: 'Get a definition.',
    owner: 'catalog',
    params: IdParams,
    replies: { 200: sequence.SequenceDefinition, ...refusals(400, 404) },
  },
  'sequences.deprecate': {
    method: 'POST',
    path: '/sequences/{id}/deprecate',
    summary: 'Take a version out of the choice of the newest one.',
    owner: 'catalog',
    params: IdParams,
    replies: { 204: null, ...refusals(400, 404) },
  },
  'sequences.delete': {
    method: 'DELETE',
    path: '/sequences/{id}',
    summary: 'Delete a definition that no live instance uses, with its finished instances.',
    owner: 'catalog',
    params: IdParams,
    replies: { 204: null, ...refusals(400, 404, 409) },
  },

  'instances.create': {
    method: 'POST',
    path: '/instances',
    summary: 'Create an instance of a sequence.',
    owner: 'any-shard',
    body: instance.CreateInstance,
    replies: { 201: instance.InstanceCreated, ...refusals(400, 404, 413, 422) },
  },
  'instances.createBatch': {
    method: 'POST',
    path: '/instances/batch',
    summary: 'Create up to 10,000 instances, all or none.',
    owner: 'any-shard',
    body: instance.CreateBatch,
    isTenantInBody: true,
    replies: { 201: instance.BatchCreated, ...refusals(400, 404, 413, 422) },
  },
  'instances.list': {
    method: 'GET',
    path: '/instances',
    summary: 'List instances, newest first.',
    owner: 'front',
    query: instance.InstanceListQuery,
    replies: { 200: instance.InstanceList, ...refusals(400) },
  },
  'instances.deadLetters': {
    method: 'GET',
    path: '/instances/dlq',
    summary: 'List failed instances, newest first.',
    owner: 'front',
    query: instance.InstanceListQuery,
    replies: { 200: instance.InstanceList, ...refusals(400) },
  },
  'instances.bulkState': {
    method: 'PATCH',
    path: '/instances/bulk/state',
    summary: 'Set the state of every matching instance that is not completed or cancelled.',
    owner: 'front',
    body: instance.BulkState,
    replies: { 200: instance.BulkUpdated, ...refusals(400) },
  },
  'instances.get': {
    method: 'GET',
    path: '/instances/{id}',
    summary: 'Get an instance.',
    ...byId,
    replies: { 200: instance.TaskInstance, ...refusals(400, 404) },
  },
  'instances.patchState': {
    method: 'PATCH',
    path: '/instances/{id}/state',
    summary: 'Move an instance to another state.',
    ...byId,
    body: instance.PatchState,
    replies: { 200: instance.TaskInstance, ...refusals(400, 404) },
  },
  'instances.patchContext': {
    method: 'PATCH',
    path: '/instances/{id}/context',
    summary: 'Replace sections of the context.',
    ...byId,
    body: instance.PatchContext,
    replies: { 200: instance.ContextPatched, ...refusals(400, 404, 413) },
  },
  'instances.signal': {
    method: 'POST',
    path: '/instances/{id}/signals',
    summary: 'Send a signal.',
    ...byId,
    body: instance.SendSignal,
    replies: { 201: instance.SignalAccepted, ...refusals(400, 404, 413) },
  },
  'instances.retry': {
    method: 'POST',
    path: '/instances/{id}/retry',
    summary: 'Run a failed instance again from where it failed.',
    ...byId,
    replies: { 200: instance.InstanceRetried, ...refusals(400, 404) },
  },
  'instances.tree': {
    method: 'GET',
    path: '/instances/{id}/tree',
    summary: 'Get the nodes of the execution tree.',
    ...byId,
    replies: { 200: listOf(instance.TreeNode), ...refusals(400, 404) },
  },
  'instances.outputs': {
    method: 'GET',
    path: '/instances/{id}/outputs',
    summary: 'List block outputs, oldest first.',
    ...readById,
    query: instance.PageQuery,
    replies: { 200: listOf(instance.BlockOutput), ...refusals(400, 404) },
  },
  'instances.children': {
    method: 'GET',
    path: '/instances/{id}/children',
    summary: 'List the instances that this one started, oldest first.',
    ...readById,
    query: instance.PageQuery,
    replies: { 200: instance.InstanceList, ...refusals(400, 404) },
  },
  'instances.audit': {
    method: 'GET',
    path: '/instances/{id}/audit',
    summary: 'List the newest 200 audit entries, newest first.',
    ...readById,
    replies: { 200: listOf(instance.AuditEntry), ...refusals(400, 404) },
  },
  'instances.timeline': {
    method: 'GET',
    path: '/instances/{id}/timeline',
    summary: 'Get state transitions and outputs in the order in which they happened.',
    ...readById,
    query: instance.TimelineQuery,
    replies: { 200: instance.Timeline, ...refusals(400, 404) },
  },

  'workers.poll': {
    method: 'POST',
    path: '/workers/tasks/poll',
    summary: 'Claim tasks of a handler.',
    owner: 'queue',
    body: worker.PollTasks,
    replies: { 200: worker.TaskList, ...refusals(400) },
  },
  'workers.pollQueue': {
    method: 'POST',
    path: '/workers/tasks/poll/queue',
    summary: 'Claim tasks of a handler from a named queue.',
    owner: 'queue',
    body: worker.PollQueue,
    replies: { 200: worker.TaskList, ...refusals(400) },
  },
  'workers.tasks': {
    method: 'GET',
    path: '/workers/tasks',
    summary: 'List tasks, newest first.',
    owner: 'front',
    query: worker.TaskListQuery,
    replies: { 200: worker.TaskList, ...refusals(400) },
  },
  'workers.stats': {
    method: 'GET',
    path: '/workers/tasks/stats',
    summary: 'Count tasks by state and handler.',
    owner: 'front',
    replies: { 200: worker.TaskStats },
  },
  'workers.complete': {
    method: 'POST',
    path: '/workers/tasks/{id}/complete',
    summary: 'Complete a claimed task with its output.',
    ...byId,
    body: worker.CompleteTask,
    replies: { 200: worker.WorkerTask, ...refusals(400, 404, 409, 413) },
  },
  'workers.fail': {
    method: 'POST',
    path: '/workers/tasks/{id}/fail',
    summary: 'Fail a claimed task.',
    ...byId,
    body: worker.FailTask,
    replies: { 200: worker.WorkerTask, ...refusals(400, 404, 409) },
  },
  'workers.heartbeat': {
    method: 'POST',
    path: '/workers/tasks/{id}/heartbeat',
    summary: 'Keep a claim alive and save a checkpoint.',
    ...byId,
    body: worker.HeartbeatTask,
    replies: { 200: worker.HeartbeatAccepted, ...refusals(400, 404, 409, 413) },
  },
  'workers.attempts': {
    method: 'GET',
    path: '/workers/tasks/{id}/attempts',
    summary: 'List the claim history of a task, oldest first.',
    ...readById,
    query: instance.PageQuery,
    replies: { 200: listOf(worker.WorkerAttempt), ...refusals(400, 404) },
  },
  'workers.list': {
    method: 'GET',
    path: '/workers',
    summary: 'List workers by when they were last seen, newest first.',
    owner: 'front',
    query: worker.WorkerListQuery,
    replies: { 200: listOf(worker.WorkerInfo), ...refusals(400) },
  },
  handlers: {
    method: 'GET',
    path: '/handlers',
    summary: 'Names of built-in handlers and of those that workers serve.',
    owner: 'front',
    replies: { 200: worker.HandlerNames },
  },
} as const satisfies Record<string, RouteRow>;

type Rows = typeof ROWS;
export type RouteId = keyof Rows;

/** What the body, query and path parameters of an operation are once they were checked. */
export type BodyOf<Id extends RouteId> = Rows[Id] extends { body: infer S extends TSchema }
  ? Static<S>
  : undefined;
export type QueryOf<Id extends RouteId> = Rows[Id] extends { query: infer S extends TSchema }
  ? Static<S>
  : Record<string, never>;
export type ParamsOf<Id extends RouteId> = Rows[Id] extends { params: infer S extends TSchema }
  ? Static<S>
  : Record<string, never>;

type SuccessReply<R> = R extends { 200: infer S } ? S : R extends { 201: infer S } ? S : null;
type WireOf<S> = S extends TSchema ? Static<S> : undefined;
/** The body of a success; undefined for an answer without one. */
export type ReplyOf<Id extends RouteId> = WireOf<SuccessReply<Rows[Id]['replies']>>;

/** Operations that take a body. */
export type BodyRouteId = {
  [Id in RouteId]: Rows[Id] extends { body: TSchema } ? Id : never;
}[RouteId];

/** A row with what follows from it. The root key may use every route. */
export interface Route extends RouteRow {
  readonly id: RouteId;
  /** The capabilities any one of which opens the route to a tenant's key (01 §2.1). */
  readonly capability: 'public' | readonly Capability[];
  readonly tenant: 'required' | 'optional' | 'none';
  /** Names of the path's parameters in order. */
  readonly paramNames: readonly string[];
}

export const ROUTES: Readonly<Record<RouteId, Route>> = Object.fromEntries(
  Object.entries<RouteRow>(ROWS).map(([id, row]) => [id, completeRow(id as RouteId, row)]),
) as Record<RouteId, Route>;

function completeRow(id: RouteId, row: RouteRow): Route {
  return {
    ...row,
    id,
    capability: row.isPublic ? 'public' : capabilitiesFor(row.method, row.path),
    tenant: row.isPublic ? 'none' : row.isTenantInBody ? 'optional' : 'required',
    paramNames: row.path.split('/').filter(isParameter).map(parameterName),
  };
}

/** 01 §2.1, by path without the prefix. */
function capabilitiesFor(method: Method, path: string): Capability[] {
  const granted: Capability[] = ['operator'];
  if (path.startsWith('/workers') || path === '/handlers') granted.push('worker');
  if (path.startsWith('/sequences') || path.startsWith('/releases')) granted.push('publisher');
  if (path.startsWith('/instances/') && path.endsWith('/signals')) granted.push('approver');
  if (method === 'GET') granted.push('auditor');
  return granted;
}

// ---------------------------------------------------------------- matching

const PREFIX = '/api/v1';

export interface RouteMatch {
  readonly route: Route;
  /** Percent-decoded, not yet checked against the row's `params`. */
  readonly params: Readonly<Record<string, string>>;
  /** The path was the deprecated bare form of a prefixed route. */
  readonly isBareAlias: boolean;
}

/**
 * `not-found` is a 404, `bad-encoding` (a path parameter that is no percent-encoded UTF-8) a 400, and
 * `allow` a 405 with the methods that the path knows.
 */
export type MatchResult =
  | RouteMatch
  | 'not-found'
  | 'bad-encoding'
  | { readonly allow: readonly string[] };

/** A tree over path segments; a parameter is tried only where no fixed segment leads to a route. */
interface PathNode {
  readonly fixed: Map<string, PathNode>;
  parameter: PathNode | undefined;
  routes: Map<string, Route> | undefined;
}

const newNode = (): PathNode => ({ fixed: new Map(), parameter: undefined, routes: undefined });
const tree = newNode();
/** Paths without parameters, with and without the prefix: most polls and creations. */
const wholePaths = new Map<string, PathNode>();
for (const route of Object.values(ROUTES)) addRoute(route);

/**
 * Finds the operation for a request.
 *
 * @param method upper case; HEAD is served wherever GET is
 * @param path without query; under `/api/v1` or bare. A trailing or doubled slash is not found.
 */
export function matchRoute(method: string, path: string): MatchResult {
  const isPrefixed = path.startsWith(PREFIX) && path.charCodeAt(PREFIX.length) === 47;
  const values: string[] = [];
  const node = wholePaths.get(path) ?? findNode(path, isPrefixed ? 3 : 1, values);
  if (node?.routes === undefined) return 'not-found';
  const route = node.routes.get(method);
  if (route === undefined) return { allow: [...node.routes.keys()] };
  const params = decodeParams(route, values);
  if (params === undefined) return 'bad-encoding';
  return { route, params, isBareAlias: !isPrefixed && route.isAtRoot !== true };
}

function findNode(path: string, firstSegment: number, values: string[]): PathNode | undefined {
  const segments = path.split('/');
  return segments[0] === '' ? walk(tree, segments, firstSegment, values) : undefined;
}

/** Depth-first, fixed segments first; leaves the parameters' values of the found path in `values`. */
function walk(
  node: PathNode,
  segments: readonly string[],
  index: number,
  values: string[],
): PathNode | undefined {
  const segment = segments[index];
  if (segment === undefined) return node.routes === undefined ? undefined : node;
  const next = node.fixed.get(segment);
  if (next !== undefined) {
    const found = walk(next, segments, index + 1, values);
    if (found !== undefined) return found;
  }
  if (node.parameter === undefined || segment === '') return undefined;
  values.push(segment);
  const found = walk(node.parameter, segments, index + 1, values);
  if (found === undefined) values.pop();
  return found;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

function decodeParams(
  route: Route,
  values: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (values.length === 0) return NO_PARAMS;
  const params: Record<string, string> = {};
  for (const [index, name] of route.paramNames.entries()) {
    const value = decodeSegment(values[index] ?? '');
    if (value === undefined) return undefined;
    params[name] = value;
  }
  return params;
}

function decodeSegment(segment: string): string | undefined {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    // Not percent-encoded UTF-8: the caller answers 400.
    return undefined;
  }
}

function addRoute(route: Route): void {
  let node = tree;
  for (const segment of route.path.split('/').slice(1)) {
    node = isParameter(segment) ? parameterNode(node) : fixedNode(node, segment);
  }
  node.routes ??= new Map();
  node.routes.set(route.method, route);
  if (route.method === 'GET') node.routes.set('HEAD', route);
  if (route.paramNames.length === 0) {
    wholePaths.set(route.path, node);
    wholePaths.set(PREFIX + route.path, node);
  }
}

function parameterNode(node: PathNode): PathNode {
  node.parameter ??= newNode();
  return node.parameter;
}

function fixedNode(node: PathNode, segment: string): PathNode {
  const next = node.fixed.get(segment) ?? newNode();
  node.fixed.set(segment, next);
  return next;
}

function isParameter(segment: string): boolean {
  return segment.startsWith('{');
}

function parameterName(segment: string): string {
  return segment.slice(1, -1);
}
