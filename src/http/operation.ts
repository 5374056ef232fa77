/** The operations of the front thread: their types, the validation of their input, and their replies. */

import { randomUUID } from 'node:crypto';
import {
  type BodyOf,
  type BodyRouteId,
  type FrontRouteId,
  type ParamsOf,
  type QueryOf,
  ROUTES,
  type Route,
  type RouteId,
  type RoutesOf,
} from '../../schema/routes.js';
import { createValidators, type Validators } from '../../schema/validators.js';
import { type EngineError, shareTaken, unavailable } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import type { Offload } from '../base/offload.js';
import { FairSlots } from '../base/quota/fair-slots.js';
import type { UnixMs } from '../base/time.js';
import type { Keyring } from '../core/sealing/keys.js';
import type { PageBounds } from '../db/reads/query.js';
import type { Page, PageRequest } from '../db/reads/reader.js';
import type { Reads } from '../db/reads.js';
import { inPieces, LARGE_BODY, parseAsJudged, parseBody, parseInPieces, validOf } from './body.js';
import { JUDGE_BODY } from './body-jobs.js';
import type { ResidentKey } from './key-registry.js';
import { type RequestedAction, requestedAction } from './requested-action.js';
import type { HttpExchange, HttpReply, HttpRequest } from './server.js';

export interface AnyCall {
  /** '' without a header, where it is optional. */
  readonly tenant: string;
  /** Undefined: the root key. */
  readonly key: ResidentKey | undefined;
  readonly by: string;
  /** Of a route that is an action; handed on with the request to the owner of what it changes. */
  readonly action: RequestedAction | undefined;
  readonly path: string;
  /** The raw query, without `?`. */
  readonly search: string;
  readonly traceparent: string | undefined;
  readonly header: HttpRequest['header'];
  readonly allHeaders: HttpRequest['allHeaders'];
  readonly peer: HttpRequest['peer'];
  readonly raw: Buffer;
}

/** A validated request; ids are in lower case. */
export interface Call<Id extends FrontRouteId> extends AnyCall {
  readonly params: ParamsOf<Id>;
  readonly query: QueryOf<Id>;
  readonly body: BodyOf<Id>;
}

export interface UncheckedCall extends Omit<AnyCall, 'action'> {
  readonly params: Readonly<Record<string, string>>;
  readonly bodyText: string;
}

export interface CallById extends AnyCall {
  readonly params: { readonly id: string };
}

export interface FrontDeps {
  readonly reads: Reads;
  readonly now: () => UnixMs;
  /** Undefined without an encryption key. */
  readonly keyring: Keyring | undefined;
  /** Before a write for a tenant that only a row names. @throws EngineError 421, 503; or the promise rejects */
  readonly admitTenant: (tenant: string) => Promise<void> | undefined;
}

/** @param params of the path, not validated */
export type Probe = (params: Readonly<Record<string, string>>) => HttpReply;

/** Rejects with an `EngineError`; any other error is a defect. */
export type Operation<Id extends RoutesOf<'front'>> = (
  deps: FrontDeps,
  call: Call<Id>,
) => Promise<HttpReply>;

/** Resolves with a function that streams the response; rejects like an `Operation`. */
export type StreamOperation<Id extends RoutesOf<'stream'>> = (
  deps: FrontDeps,
  call: Call<Id>,
) => Promise<(exchange: HttpExchange) => void>;

export type FrontOperations = {
  readonly [Id in RoutesOf<'probe'>]: Probe;
} & { readonly [Id in RoutesOf<'front'>]: Operation<Id> } & {
  readonly [Id in RoutesOf<'stream'>]: StreamOperation<Id>;
};

export interface FrontBodies {
  readonly validators: Validators;
  readonly offload: Offload;
  readonly places: FairSlots;
}

export function frontBodies(offload: Offload): FrontBodies {
  const places = new FairSlots([
    { activeMax: LIMITS.frontBodiesMax, waitingMax: LIMITS.frontBodiesWaitingMax },
    {
      activeMax: LIMITS.frontBodiesPerTenantMax,
      waitingMax: LIMITS.frontBodiesWaitingPerTenantMax,
    },
  ]);
  return { validators: createValidators(), offload, places };
}

/** Returns a promise for a large body. @throws EngineError 400 or 413, as the promise rejects with */
export function checkCall<Id extends FrontRouteId>(
  bodies: FrontBodies,
  id: Id,
  { bodyText, ...call }: UncheckedCall,
): Call<Id> | Promise<Call<Id>> {
  const query = validOf(bodies.validators.parseQuery(id, call.search));
  const { body: schema, isRaw, action: isRecorded }: Route = ROUTES[id];
  const withBody = (body: unknown) => {
    const action = isRecorded === undefined ? undefined : actionOf(id, call, body);
    return { ...call, query, body, action } as Call<Id>;
  };
  if (schema === undefined || isRaw === true) return withBody(undefined);
  const body = bodyIn(bodies, id as BodyRouteId, call.tenant, bodyText);
  return body instanceof Promise ? body.then(withBody) : withBody(body);
}

function actionOf(
  id: RouteId,
  { by, key, params }: Omit<UncheckedCall, 'bodyText'>,
  body: unknown,
): RequestedAction | undefined {
  const requester = { by, key: key?.id };
  return requestedAction(id, requester, Object.values(params).join('/'), body, randomUUID);
}

export function bodyIn<Id extends BodyRouteId>(
  bodies: FrontBodies,
  operation: Id,
  tenant: string,
  text: string,
): BodyOf<Id> | Promise<BodyOf<Id>> {
  return text.length <= LARGE_BODY
    ? parseBody(bodies.validators, operation, text)
    : parseLarge(bodies, operation, tenant, text);
}

async function parseLarge<Id extends BodyRouteId>(
  { validators, offload, places }: FrontBodies,
  operation: Id,
  tenant: string,
  text: string,
): Promise<BodyOf<Id>> {
  const place = await places.acquire([tenant]);
  if (!place.ok) throw tooManyLarge(places);
  try {
    const body = await inPieces(parseInPieces(validators, operation, text));
    if (body !== undefined) return body;
    const judgement = await offload.run(tenant, JUDGE_BODY, { operation, text, isListed: false });
    const judged = await inPieces(parseAsJudged(validators, operation, text, judgement));
    return judged as BodyOf<Id>;
  } finally {
    place.release();
  }
}

function tooManyLarge({ waiting }: FairSlots): EngineError {
  const all = LIMITS.frontBodiesWaitingMax;
  if (waiting >= all) return unavailable('ENG_OVERLOADED', `${all} large bodies wait to be parsed`);
  const own = LIMITS.frontBodiesWaitingPerTenantMax;
  return shareTaken(`${own} large bodies of this tenant wait to be parsed`);
}

/** The header overrides the query; undefined: all tenants. */
export function listTenant(
  { tenant }: AnyCall,
  queried: string | null | undefined = undefined,
): string | undefined {
  return tenant || queried || undefined;
}

export function listQuery<Query extends { readonly tenant_id?: string | undefined }>(
  call: AnyCall & { readonly query: Query },
): Query {
  return { ...call.query, tenant_id: listTenant(call, call.query.tenant_id) };
}

export function jsonReply(body: string): HttpReply {
  return { status: 200, body };
}

/**
 * A list, with a link to its next page when it is full or was cut. The link has a cursor where the list supports
 * them, so that new items shift nothing, else an offset.
 */
export function pageReply(call: AnyCall, bounds: PageBounds, page: Page): HttpReply {
  const isFull = page.count > 0 && page.count === bounds.limit;
  if (!isFull && !page.isCut) return jsonReply(page.text);
  const { cursor } = page;
  const isByCursor =
    cursor !== undefined &&
    (page.isWalked || !pairsOf(call).some((pair) => nameOf(pair) === 'offset'));
  const place = isByCursor ? `cursor=${cursor}` : `offset=${bounds.offset + page.count}`;
  const link = ['link', `<${nextPage(call, place)}>; rel="next"`] as const;
  const headers = cursor === undefined ? [link] : [link, ['x-next-cursor', cursor] as const];
  return { status: 200, body: page.text, headers };
}

export function listBy<Query extends object, Row>(pageOf: (query: Query) => PageRequest<Row>) {
  type Asked = Query & PageBounds & { readonly tenant_id?: string | undefined };
  return async ({ reads }: FrontDeps, call: AnyCall & { readonly query: Asked }) => {
    const query = listQuery(call);
    return pageReply(call, query, await reads.page(pageOf(query)));
  };
}

/** The address of the request with another position. */
function nextPage(call: AnyCall, place: string): string {
  const kept = pairsOf(call).filter((pair) => !PLACES.has(nameOf(pair)));
  const address = `${call.path}?${[...kept, place].join('&')}`;
  // These are allowed in a request line, but would end the address in the header.
  return address.replace(/[<>"\\^`{|}]/g, (character) => encodeURIComponent(character));
}

const PLACES: ReadonlySet<string> = new Set(['offset', 'cursor']);

function pairsOf({ search }: AnyCall): string[] {
  return search.split('&').filter((pair) => pair !== '');
}

/** The query was validated, so its encoding is correct. */
function nameOf(pair: string): string {
  return decodeURIComponent(pair.split('=', 1)[0] ?? '');
}
