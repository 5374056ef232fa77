/**
 * What an operation that the front thread answers by itself is given and gives, and what all of them
 * share: checked queries and bodies, whose tenant counts, and the form of replies.
 */

import type { Change, ChangeCounts } from '../../../actors/change-many.js';
import type { BodyOf, BodyRouteId, QueryOf, RouteId } from '../../../schema/routes.js';
import type { Validators } from '../../../schema/validators.js';
import { parseBody } from '../../body.js';
import type { Keyring } from '../../core/continuity/keys.js';
import type { UnixMs } from '../../core/time.js';
import type { PageBounds } from '../../db/reads/query.js';
import type { Page } from '../../db/reads/reader.js';
import type { Reads } from '../../db/reads.js';
import { invalid } from '../../errors.js';
import type { HttpExchange, HttpReply } from '../server.js';

/** A request that was matched and authorised. */
export interface Call {
  /** Of the header; '' when it is absent, which only an optional header allows. */
  readonly tenant: string;
  /** Raw, without `?`. */
  readonly query: string;
  /** Checked; ids in lower case. */
  readonly params: Readonly<Record<string, string>>;
  /** As requested, for links to further pages. */
  readonly path: string;
  readonly bodyText: string;
  /** What the caller's work belongs to; undefined when it is not traced. */
  readonly traceparent?: string | undefined;
  /** Of a stream that is resumed. */
  readonly lastEventId?: string | undefined;
}

export interface FrontDeps {
  readonly reads: Reads;
  readonly validators: Validators;
  /** Engine time. */
  readonly now: () => UnixMs;
  /** Undefined without an encryption key. */
  readonly keyring: Keyring | undefined;
  /** Asks the owners; resolves with what became of the instances, once that is durable. */
  readonly changeMany: (ids: readonly string[], change: Change) => Promise<ChangeCounts>;
}

/** Rejects with an `EngineError`; anything else is a defect. */
export type Operation = (deps: FrontDeps, call: Call) => Promise<HttpReply>;

/** Resolves with what answers the exchange by a stream; rejects like an `Operation`. */
export type StreamOperation = (
  deps: FrontDeps,
  call: Call,
) => Promise<(exchange: HttpExchange) => void>;

/** @throws EngineError 400 */
export function queryOf<Id extends RouteId>(deps: FrontDeps, call: Call, id: Id): QueryOf<Id> {
  const checked = deps.validators.parseQuery(id, call.query);
  if (!checked.ok) throw invalid(checked.message);
  return checked.value;
}

/** @throws EngineError 400 */
export function bodyOf<Id extends BodyRouteId>(deps: FrontDeps, call: Call, id: Id): BodyOf<Id> {
  return parseBody(deps.validators, id, call.bodyText);
}

/** The header overrides the query silently; undefined spans all tenants (spec/01 §2). */
export function listTenant(
  call: Call,
  queried: string | null | undefined = undefined,
): string | undefined {
  return call.tenant || queried || undefined;
}

export function jsonReply(body: string): HttpReply {
  return { status: 200, body };
}

/** A list, with the way to its next page when it is full or was cut (spec/06 rows 9 and 51). */
export function pageReply(call: Call, bounds: PageBounds, page: Page): HttpReply {
  const isFull = page.count > 0 && page.count === bounds.limit;
  if (!isFull && !page.isCut) return jsonReply(page.text);
  const next = nextPage(call, bounds.offset + page.count);
  return { status: 200, body: page.text, headers: [['link', `<${next}>; rel="next"`]] };
}

/** The request's own address with another offset. */
function nextPage(call: Call, offset: number): string {
  const kept = call.query.split('&').filter((pair) => pair !== '' && !isOffset(pair));
  const address = `${call.path}?${[...kept, `offset=${offset}`].join('&')}`;
  // What may stand in a request line as it is, and would end the address within the header.
  return address.replace(/[<>"\\^`{|}]/g, (character) => encodeURIComponent(character));
}

/** The query was checked, so that its encoding is right. */
function isOffset(pair: string): boolean {
  return decodeURIComponent(pair.split('=', 1)[0] ?? '') === 'offset';
}
