/**
 * What a row of the table of operations says, and what rows share. Statuses that any tenant route may
 * answer (400 for a bad tenant, 401, 403, 500, 503) are not repeated in the rows.
 */

import { type TArray, type TObject, type TSchema, Type } from '@sinclair/typebox';
import { ErrorBody, IdParams } from './common.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What a tenant's key may be allowed. */
export const CAPABILITIES = [
  'operator',
  'worker',
  'device',
  'publisher',
  'approver',
  'auditor',
  'starter',
  'secrets',
] as const;
export type Capability = (typeof CAPABILITIES)[number];

/**
 * Who answers:
 * - `probe`: the front thread, at once and in every state of the engine
 * - `front`: the front thread, by what it reads from Postgres or asks of shards
 * - `stream`: the front thread, by events for as long as the client listens
 * - `by-id`, `by-limit`: the shard that the id in the path leads to, or the tenant and its limit's key
 * - `by-body`: the shard that the body leads to, by `ledBy` or once another shard has parsed it
 * - `first-shard`, `any-shard`
 */
export type Owner = FrontOwner | 'by-id' | 'by-limit' | 'by-body' | 'first-shard' | 'any-shard';
export type FrontOwner = 'probe' | 'front' | 'stream';

/** Of a body that any route takes, if it takes one at all. */
export const BODY_BYTES_ANYWHERE = 64 * 1024;

/**
 * - `small`: a few fields, sent again and again
 * - `large`: holds what has limits of its own (contexts, outputs, payloads, definitions, sealed capsules,
 *   lists of them or of lines that a worker logs), which are judged by value: whatever the server takes at all
 */
export type BodySize = 'small' | 'large';

/** How long the body of a request may be, unless the server takes less; undefined: all it takes. */
export function bodyBytesMax({ bodySize }: Pick<RouteRow, 'bodySize'>): number | undefined {
  if (bodySize === 'large') return undefined;
  return bodySize === 'small' ? BODY_BYTES_ANYWHERE : 1024 * 1024;
}

/**
 * What a request makes, which is what it costs its tenant beside the bytes of its body (docs/limits.md): a row for
 * each instance or event, the blocks of a definition, a schedule. Instances may come to open tasks.
 */
export type Made = 'instance' | 'instances' | 'event' | 'events' | 'definition' | 'schedule';

/**
 * Where the idempotency keys of instances stand by which the server knows a repetition: in the body, in each item of
 * its list, or in the body of a run of the schedule that the path names.
 */
export type KeyPlace = 'body' | 'items' | 'run';

/**
 * How a body leads to the owner of its request:
 * - `name`, `id`: the member is the name or the id of the owner
 * - `instance-key`, `event-key`: the id of the owner is derived from the members
 * - `poll`: the handlers in the member are names of owners, the first of which spares the most messages
 */
export type LeadKind = 'name' | 'id' | 'instance-key' | 'event-key' | 'poll';

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
  /** Success and particular refusals; null is an answer without a body. */
  readonly replies: Readonly<Record<number, TSchema | null>>;
  /** No key and no tenant is asked for. */
  readonly isPublic?: true;
  /** Each item, or the query, names its tenant: the header may be left out. */
  readonly isTenantInBody?: true;
  /** No resource of a tenant: a key is asked for, a tenant never. */
  readonly isTenantless?: true;
  /** The API's description: open unless the deployment protects it. */
  readonly isDocument?: true;
  /** Answered in every state of the engine: it needs neither shards nor database. */
  readonly isAlwaysServed?: true;
  /** A poll: the answer may wait for as long as the caller does. */
  readonly isParked?: true;
  /** The member of the body whose items are judged one by one: a wrong one is refused by itself. */
  readonly judgesEach?: string;
  /** Of a success that is not `application/json`; one of several where it depends on what is asked for. */
  readonly contentType?: string | readonly string[];
  /** The body is a definition, of which all mistakes are told at once; how messages call it. */
  readonly definition?: string;
  /** The body is judged by its bytes before it is read: the function is given them as they came. */
  readonly isRaw?: true;
  /** For people: browsers are refused by a page, too. */
  readonly isPage?: true;
  /** The body may be that of an HTML form as well. */
  readonly isForm?: true;
  /** Of a signal: what the type of one begins with that answers for a person. */
  readonly answers?: string;
  /** Signals that it brings may answer for a person: the owner is given the name of the key. */
  readonly bringsSignals?: true;
  /** How long the body may be; absent: 1 MiB. */
  readonly bodySize?: BodySize;
  readonly makes?: Made;
  readonly keyed?: KeyPlace;
  /**
   * Of a POST or PATCH that may be sent again when no answer came: why that does no harm. Left out is what a second
   * time answers otherwise than the first one, and what moves by a distance. Of other methods all may be.
   */
  readonly repeats?: string;
  /** A request without a body stands for an empty object. */
  readonly isBodyOptional?: true;
  /**
   * Of `by-body`: lets the front thread find the owner in the text. Left out where the body has to be parsed for that:
   * then any shard does it.
   */
  readonly ledBy?: Lead;
  /** At home at the root as well as under the prefix: the bare path is no deprecated alias. */
  readonly isAtRoot?: true;
}

type Refusals<S extends number> = Record<S, typeof ErrorBody>;

/** The refusals of an operation, all of one shape. */
export function refusals<S extends number>(...statuses: readonly S[]): Refusals<S> {
  return Object.fromEntries(statuses.map((status) => [status, ErrorBody])) as Refusals<S>;
}

export const listOf = <T extends TSchema>(item: T): TArray<T> => Type.Array(item);
/** What is asked of the owner of the id, done by it, and read for it. */
export const byId = { params: IdParams, owner: 'by-id' } as const;
export const actById = { method: 'POST', ...byId } as const;
export const readById = { method: 'GET', params: IdParams, owner: 'front' } as const;
export const read = { method: 'GET', owner: 'front' } as const;
