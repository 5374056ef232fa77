/**
 * Authenticates a caller by the root key or the key of a tenant, checks whether the key allows the route, and reads the
 * tenant header (docs/authorization.md). A recently valid key is looked up by its text, every other one by its SHA-256.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import { isTenantTooLong, NAME_LENGTH_MAX } from '../../schema/common.js';
import { tenantProblem } from '../../schema/keywords.js';
import type { Capability } from '../../schema/route-row.js';
import { capabilitiesFor, type Route } from '../../schema/routes.js';
import { EngineError, forbidden, invalid } from '../base/errors.js';
import { isJsonObject } from '../base/json.js';
import { parseJson } from '../base/json-guard.js';
import { valueFor } from '../base/quota/last-used.js';
import { capabilityBits, type KeyRegistry, type ResidentKey } from './key-registry.js';
import type { HttpRequest } from './server.js';

export interface AuthSettings {
  readonly apiKey: string | undefined;
  readonly requireTenantHeader: boolean;
  /** The OpenAPI document requires key and tenant. */
  readonly protectDocs: boolean;
  readonly keys: Pick<KeyRegistry, 'use'>;
}

export interface Caller {
  /** The tenant of the key; with the root key the tenant of the header, or ''. */
  readonly tenant: string;
  /** Undefined: the root key, or no key on a public route. */
  readonly key: ResidentKey | undefined;
}

/** @throws EngineError 401, 403 or 400, in this order; 503 while the keys are not loaded */
export type Authorise = (request: Pick<HttpRequest, 'header'>, route: Route) => Caller;

/** The same error for a missing, wrong, revoked or expired key. */
export const UNAUTHENTICATED = new EngineError(
  'ENG_UNAUTHENTICATED',
  'unauthorized: a valid x-api-key is required',
);

const ANONYMOUS: Caller = { tenant: '', key: undefined };

interface Access {
  /** Empty: only the root key. */
  readonly capabilities: Exclude<Route['capability'], 'public'>;
  readonly bits: number;
  readonly tenant: Route['tenant'];
}

const ROOT = 'root';
/** Cached key texts: hashing the key of each request would be a tenth of the work of the front thread. */
const TEXTS_MAX = 4_096;
const SECRETS = capabilityBits(['secrets']);
const OPERATOR = capabilityBits(['operator']);
const READERS = capabilityBits(['operator', 'auditor']);

/** Whether a worker with this key receives the secrets of its tasks. @param key undefined: the root key */
export function seesSecrets(key: ResidentKey | undefined): boolean {
  return key === undefined || (key.capabilities & SECRETS) !== 0;
}

/** The groups for which the key may answer approvals; undefined: all. @param key undefined: the root key */
export function answerGroups(key: ResidentKey | undefined): readonly string[] | undefined {
  return key === undefined || (key.capabilities & OPERATOR) !== 0 ? undefined : key.groups;
}

/** The groups whose approvals the key may list; undefined: all. @param key undefined: the root key */
export function listedGroups(key: ResidentKey | undefined): readonly string[] | undefined {
  return key === undefined || (key.capabilities & READERS) !== 0 ? undefined : key.groups;
}

export function createAuth(settings: AuthSettings): Authorise {
  const { apiKey, requireTenantHeader, keys } = settings;
  const find = apiKey === undefined ? undefined : keyFinder(digest(apiKey), keys);
  const accesses = new Map<Route, Access | 'open'>();
  return (request, route) => {
    const access = valueFor(accesses, route, () => accessTo(route, settings.protectDocs));
    if (access === 'open') return ANONYMOUS;
    const isRequired = access.tenant === 'required' && requireTenantHeader;
    const key = find === undefined ? ROOT : find(request);
    if (key === ROOT) {
      if (access.tenant === 'none') return ANONYMOUS;
      return { tenant: tenantOf(request, isRequired), key: undefined };
    }
    if ((key.capabilities & access.bits) === 0) throw lacking(access);
    // A route without a tenant ignores the header.
    const named = access.tenant === 'none' ? '' : tenantOf(request, isRequired);
    if (named !== '' && named !== key.tenant) {
      throw forbidden('x-tenant-id is not the tenant of the key');
    }
    return { tenant: key.tenant, key };
  };
}

function accessTo(route: Route, protectDocs: boolean): Access | 'open' {
  const { capability, tenant, method, path } = route;
  if (route.isDocument === true && protectDocs) {
    const capabilities = capabilitiesFor(method, path);
    return { capabilities, bits: capabilityBits(capabilities), tenant: 'required' };
  }
  if (capability === 'public') return 'open';
  return { capabilities: capability, bits: capabilityBits(capability), tenant };
}

/**
 * Checks the type of a signal: answering for a person takes `approver`, other signals take `starter`; `operator` may
 * send both.
 *
 * @returns the refusal, for callers that may know of the instance
 */
export function signalRefusal(
  { body }: Pick<HttpRequest, 'body'>,
  answers: string,
  key: ResidentKey | undefined,
): EngineError | undefined {
  const has = (word: Capability) => ((key?.capabilities ?? 0) & capabilityBits([word])) !== 0;
  if (key === undefined || has('operator')) return undefined;
  const [mayAnswer, maySend] = [has('approver'), has('starter')];
  if (mayAnswer && maySend) return undefined;
  const parsed = parseJson(body.toString('utf8'));
  if (!parsed.ok || !isJsonObject(parsed.value)) return undefined;
  const { signal_type: given } = parsed.value;
  const custom = given !== undefined && isJsonObject(given) ? given.custom : undefined;
  const type = custom === undefined ? given : `custom:${custom}`;
  const isAnswer = typeof type === 'string' && type.startsWith(answers);
  if (isAnswer ? mayAnswer : maySend) return undefined;
  return forbidden(
    isAnswer
      ? `${answers}<block id> answers for a person: that takes a key with approver or operator`
      : `a key with the capability approver may only send ${answers}<block id>`,
  );
}

/**
 * The registry checks at every request whether a cached key is still valid. A wrong text is hashed every time and
 * never cached, so that the response time does not reveal how much of it is right.
 */
function keyFinder(
  root: Buffer,
  keys: AuthSettings['keys'],
): (request: Pick<HttpRequest, 'header'>) => ResidentKey | typeof ROOT {
  const digests = new Map<string, string>();
  const nameOf = (text: string): string => {
    const given = digest(text);
    // All digests have the same length, so comparing them takes constant time.
    return timingSafeEqual(given, root) ? ROOT : given.toString('hex');
  };
  return (request) => {
    // `x-api-key` takes precedence over a bearer key.
    const text = request.header('x-api-key') ?? bearerKey(request.header('authorization'));
    if (text === undefined || text === '') throw UNAUTHENTICATED;
    const known = digests.get(text);
    const name = known ?? nameOf(text);
    const key = name === ROOT ? ROOT : keys.use(name);
    if (key === undefined) {
      digests.delete(text);
      throw UNAUTHENTICATED;
    }
    if (known === undefined) {
      if (digests.size >= TEXTS_MAX) digests.clear();
      digests.set(text, name);
    }
    return key;
  };
}

function bearerKey(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !/^bearer /i.test(authorization)) return undefined;
  return authorization.slice('bearer '.length).replace(AROUND, '');
}

function lacking({ capabilities }: Access): EngineError {
  if (capabilities.length === 0) return forbidden('only the root key may do this');
  return forbidden(`this takes a key with the capability ${capabilities.join(' or ')}`);
}

/** The white space that RFC 9110 allows around a header value; other characters are part of the value. */
const AROUND = /^[ \t]+|[ \t]+$/g;

export function tenantIn(request: Pick<HttpRequest, 'header'>): string {
  return request.header('x-tenant-id')?.replace(AROUND, '') ?? '';
}

function tenantOf(request: Pick<HttpRequest, 'header'>, required: boolean): string {
  const tenant = tenantIn(request);
  if (tenant === '' && required) throw invalid('the header x-tenant-id is required');
  if (isTenantTooLong(tenant)) {
    throw invalid(`x-tenant-id must have at most ${NAME_LENGTH_MAX} characters`);
  }
  if (tenant !== '' && !/\S/.test(tenant)) throw invalid('x-tenant-id must not be blank');
  const problem = tenantProblem(tenant);
  if (problem !== undefined) throw invalid(`x-tenant-id ${problem}`);
  return tenant;
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
