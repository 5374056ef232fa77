/** The rows of the table of operations. They omit the statuses of every tenant route: 401, 403, 500 and 503. */

import type { TObject, TSchema } from '@sinclair/typebox';
import { ErrorBody, IdParams } from './common.js';
import { words } from './states.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export const CAPABILITIES = words(
  'operator worker device publisher approver auditor starter events secrets',
);
export type Capability = (typeof CAPABILITIES)[number];

/**
 * Who answers:
 * - `probe`: the front thread, immediately and in every state of the engine
 * - `front`: the front thread, from Postgres or by asking shards
 * - `stream`: the front thread, with events while the client is connected
 * - `by-id`, `by-limit`: the shard of the id in the path, or of the tenant and limit key
 * - `by-body`: the shard that the body leads to, by `ledBy` or after another shard has parsed it
 * - `first-shard`, `any-shard`
 */
export type Owner = FrontOwner | 'by-id' | 'by-limit' | 'by-body' | 'first-shard' | 'any-shard';
export type FrontOwner = 'probe' | 'front' | 'stream';

export const PLAIN_TEXT = 'text/plain; charset=utf-8';

export const BODY_BYTES_ANYWHERE = 64 * 1024;

/**
 * - `small`: a few fields, sent often
 * - `large`: contains values with limits of their own (contexts, outputs, payloads, definitions, sealed capsules, or
 *   lists of them or of log lines); bounded only by the server's limit
 */
export type BodySize = 'small' | 'large';

export function bodyBytesMax({ bodySize }: Pick<RouteRow, 'bodySize'>): number | undefined {
  if (bodySize === 'large') return undefined;
  return bodySize === 'small' ? BODY_BYTES_ANYWHERE : 1024 * 1024;
}

/**
 * The creations of a request, which its tenant pays for besides the bytes of its body (docs/limits.md): a row for each
 * instance or event, the blocks of a definition, a schedule. Instances may lead to open tasks.
 */
export type Made = 'instance' | 'instances' | 'event' | 'events' | 'definition' | 'schedule';

/** Place of the idempotency keys of instances: the body, each item of its list, or the body of a schedule's run. */
export type KeyPlace = 'body' | 'items' | 'run';

/**
 * How a body leads to the owner of its request:
 * - `name`, `id`: the member is the name or the id of the owner
 * - `instance-key`, `event-key`: the id of the owner is derived from the members
 * - `poll`: the handlers in the member are names of owners, the first of which spares the most messages
 */
export type LeadKind = 'name' | 'id' | 'instance-key' | 'event-key' | 'poll';

/** What an action changes (`action.ts`). */
export const ACTION_KINDS = words(
  'sequence instance bulk_job pending_start approval release migration effect',
  'credential trigger webhook webhook_delivery cron_schedule rate_limit worker_endpoint',
  'api_key tenant_limits',
);
export type ActionKind = (typeof ACTION_KINDS)[number];

/** How the request is recorded among the actions of its tenant, in the unit that changes something. */
export interface ActionMark {
  readonly kind: ActionKind;
  /** The verb of the sentence about it. */
  readonly did: string;
  /** Members of the body and the path that are recorded, which are no secrets. */
  readonly shows: readonly string[];
  /** Verbs for values of members. */
  readonly words: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Other values of these members are no actions. */
  readonly isOnlyOfWords?: true;
  /** Members of the body with the id of the changed object. Absent: the first of the path, or the new object. */
  readonly target: readonly string[];
  /** Requests in whose bodies one of these members is set are no actions. */
  readonly unless: readonly string[];
  /** Also the names of other members of the body are recorded. */
  readonly isChange?: true;
}

export const did = (
  kind: ActionKind,
  verb: string,
  { shows = [], words = {}, target = [], unless = [], ...more }: Partial<ActionMark> = {},
): ActionMark => ({ kind, did: verb, shows, words, target, unless, ...more });

export const ENABLED = { true: 'enabled', false: 'disabled' };

/** Members stand at the top of the body; without the first one nothing leads anywhere. */
export interface Lead {
  readonly kind: LeadKind;
  readonly members: readonly [string, ...string[]];
}

export interface RouteRow {
  readonly method: Method;
  /** Without the prefix; parameters in braces. */
  readonly path: string;
  readonly summary: string;
  readonly owner: Owner;
  readonly params?: TObject;
  readonly query?: TObject;
  readonly body?: TSchema;
  /** Success and specific errors; null is a response without a body, a string is plain text. */
  readonly replies: Readonly<Record<number, TSchema | null>>;
  /** Requires no key and no tenant. */
  readonly isPublic?: true;
  /** Each item, or the query, has a tenant: the header is optional. */
  readonly isTenantInBody?: true;
  /** Requires a key but no tenant. */
  readonly isTenantless?: true;
  /** The API's description: public unless the deployment protects it. */
  readonly isDocument?: true;
  /** Answered in every state of the engine, without shards and database. */
  readonly isAlwaysServed?: true;
  /** Its body may let others receive the secrets of tasks, which takes a key that receives them itself. */
  readonly grantsSecrets?: true;
  /** A long poll: the response may wait as long as the caller does. */
  readonly isParked?: true;
  /** The query may have `wait_ms`: the response then waits as long, or as long as the caller does. */
  readonly mayWait?: true;
  /** The body's member whose items are checked separately: an invalid item is refused alone. */
  readonly judgesEach?: string;
  /** Type of a success that is not `application/json`; one of several if it depends on the request. */
  readonly contentType?: string | readonly string[];
  /** The body is a definition, whose errors are all reported; the value names it in messages. */
  readonly definition?: string;
  /** The function receives the raw bytes of the body. */
  readonly isRaw?: true;
  /** For people: browsers receive errors as a page. */
  readonly isPage?: true;
  /** The body may also be an HTML form. */
  readonly isForm?: true;
  /** Prefix of signal types that answer an approval. */
  readonly answers?: string;
  /** Honours `Prefer: return=minimal`: the success is then a 204 without a body. */
  readonly mayBeMinimal?: true;
  /** Its signals may answer approvals: the owner receives the name of the key. */
  readonly bringsSignals?: true;
  /** Limit of the body; default: 1 MiB. */
  readonly bodySize?: BodySize;
  readonly makes?: Made;
  readonly keyed?: KeyPlace;
  /** Why a POST or PATCH may be repeated after a lost response; absent if it may not. Other methods always may. */
  readonly repeats?: string;
  /** A request without a body counts as an empty object. */
  readonly isBodyOptional?: true;
  /** For `by-body`: how the front thread finds the owner in the text. Absent: any shard parses the body for that. */
  readonly ledBy?: Lead;
  /** Absent: a read, or a request of programs (test/api/actions.test.ts). */
  readonly action?: ActionMark;
  /** Also served without the prefix, where it is not a deprecated alias. */
  readonly isAtRoot?: true;
}

type Refusals<S extends number> = Record<S, typeof ErrorBody>;

export function refusals<S extends number>(...statuses: readonly S[]): Refusals<S> {
  return Object.fromEntries(statuses.map((status) => [status, ErrorBody])) as Refusals<S>;
}

type Reply = TSchema | null;

/** A success with its errors; 400 is always among them. */
const success =
  <Status extends number>(status: Status) =>
  <R extends Reply, S extends number = 400>(reply: R, ...errors: readonly S[]) => ({
    ...({ [status]: reply } as Record<Status, R>),
    ...refusals<S | 400>(400, ...errors),
  });
export const ok = success(200);
export const created = success(201);

type Row = Omit<RouteRow, 'method' | 'path' | 'owner'>;

/** `{id}` in a path is a UUID, unless the row says otherwise. */
const idIn = <Path extends string>(path: Path) =>
  (path.includes('{id}') ? { params: IdParams } : {}) as Path extends `${string}{id}${string}`
    ? { readonly params: typeof IdParams }
    : object;

/** Rows with the same owner. */
export function ownedBy<const Base extends Partial<RouteRow> & Pick<RouteRow, 'owner'>>(
  base: Base,
) {
  const rowsWith =
    <M extends Method>(method: M) =>
    <const Path extends string, const R extends Row>(path: Path, row: R) => ({
      ...idIn(path),
      ...base,
      method,
      path,
      ...row,
    });
  return {
    get: rowsWith('GET'),
    post: rowsWith('POST'),
    put: rowsWith('PUT'),
    patch: rowsWith('PATCH'),
    delete: rowsWith('DELETE'),
    remove: <const Path extends string, const More extends Partial<Row> = object>(
      path: Path,
      summary: string,
      more?: More,
    ) =>
      rowsWith('DELETE')(path, {
        summary,
        replies: { 204: null, ...refusals(400, 404) },
        ...(more as More),
      }),
  };
}

export const front = ownedBy({ owner: 'front' });
export const stream = ownedBy({ owner: 'stream' });
export const firstShard = ownedBy({ owner: 'first-shard' });
export const anyShard = ownedBy({ owner: 'any-shard' });
export const byBody = ownedBy({ owner: 'by-body' });
export const byId = ownedBy({ owner: 'by-id' });

/** Rows with the same owner and errors, answered 200. */
export const rowsOf =
  <const Base extends Partial<RouteRow> & Pick<RouteRow, 'method' | 'owner'>, S extends number>(
    base: Base,
    ...errors: readonly S[]
  ) =>
  <const Path extends string, R extends TSchema, const More extends Partial<Row> = object>(
    path: Path,
    summary: string,
    reply: R,
    more?: More,
  ) => ({
    ...idIn(path),
    ...base,
    path,
    summary,
    replies: { 200: reply, ...refusals(...errors) },
    ...(more as More),
  });

export const get = rowsOf({ method: 'GET', owner: 'front' }, 400);
export const getById = rowsOf({ method: 'GET', owner: 'front' }, 400, 404);
export const act = rowsOf({ method: 'POST', owner: 'by-id' }, 400, 404, 409, 413);
