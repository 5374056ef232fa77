/**
 * Who is asking, and for which tenant (docs/authorization.md): the root key or a key of a tenant,
 * in `x-api-key` or as a bearer token; then whether the key may use the route; then the tenant
 * header. All of it is in memory: one SHA-256 and a look-up for each request.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import { NAME_LENGTH_MAX } from '../../schema/common.js';
import { capabilitiesFor, type Route } from '../../schema/routes.js';
import { isJsonObject } from '../core/json.js';
import { parseJson } from '../core/json-guard.js';
import { EngineError, forbidden, invalid } from '../errors.js';
import { capabilityBits, type KeyRegistry, type ResidentKey } from './key-registry.js';
import type { HttpRequest } from './server.js';

export interface AuthSettings {
  /** undefined: every caller counts as root (`--insecure-auth`). */
  readonly apiKey: string | undefined;
  readonly requireTenantHeader: boolean;
  /** The API's description asks for key and tenant. */
  readonly protectDocs: boolean;
  readonly keys: Pick<KeyRegistry, 'use'>;
}

export interface Caller {
  /**
   * Whom the request acts for: the key's tenant, whatever the request says; with the root key the
   * header's, '' when none is named and none is needed.
   */
  readonly tenant: string;
  /** Of a tenant; undefined: root, or nobody on a route that is open. */
  readonly key: ResidentKey | undefined;
}

/** @throws EngineError 401, 403 or 400, in this order; 503 while nobody knows which keys there are */
export type Authorise = (request: Pick<HttpRequest, 'header'>, route: Route) => Caller;

/** One text for a key that is missing, wrong, revoked or expired. */
export const UNAUTHENTICATED = new EngineError(
  'ENG_UNAUTHENTICATED',
  'unauthorized: a valid x-api-key is required',
);

const NOBODY: Caller = { tenant: '', key: undefined };

/** What a route asks for. */
interface Access {
  /** Empty: the root key. */
  readonly capabilities: Exclude<Route['capability'], 'public'>;
  readonly bits: number;
  readonly tenant: Route['tenant'];
}

const ROOT = 'root';

const SECRETS = capabilityBits(['secrets']);

/** Whether a worker with this key is given the secrets of its tasks; undefined: the root key. */
export function seesSecrets(key: ResidentKey | undefined): boolean {
  return key === undefined || (key.capabilities & SECRETS) !== 0;
}

export function createAuth(settings: AuthSettings): Authorise {
  const { apiKey, requireTenantHeader, keys } = settings;
  const root = apiKey === undefined ? undefined : digest(apiKey);
  const accesses = new Map<Route, Access | 'open'>();
  return (request, route) => {
    let access = accesses.get(route);
    if (access === undefined) {
      access = accessTo(route, settings.protectDocs);
      accesses.set(route, access);
    }
    if (access === 'open') return NOBODY;
    const isRequired = access.tenant === 'required' && requireTenantHeader;
    const key = root === undefined ? ROOT : keyOf(request, root, keys);
    if (key === ROOT) {
      if (access.tenant === 'none') return NOBODY;
      return { tenant: tenantOf(request, isRequired), key: undefined };
    }
    if ((key.capabilities & access.bits) === 0) throw lacking(access);
    // What is no tenant's has no tenant to contradict.
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
 * A key that has no more than `approver` answers what people are asked, and nothing else. A body that cannot
 * be read is refused by who owns the route.
 *
 * @returns why the body must not be sent, to somebody who may know of the instance
 */
export function approverRefusal(
  { body }: Pick<HttpRequest, 'body'>,
  { capability, approverSends = '' }: Route,
  key: ResidentKey | undefined,
): EngineError | undefined {
  if (key === undefined || capability === 'public') return undefined;
  const others = capability.filter((word) => word !== 'approver');
  if ((key.capabilities & capabilityBits(others)) !== 0) return undefined;
  const parsed = parseJson(body.toString('utf8'));
  if (!parsed.ok || !isJsonObject(parsed.value)) return undefined;
  const { signal_type: given } = parsed.value;
  const custom = given !== undefined && isJsonObject(given) ? given.custom : undefined;
  const type = custom === undefined ? given : `custom:${custom}`;
  if (typeof type === 'string' && type.startsWith(approverSends)) return undefined;
  return forbidden(`a key with the capability approver may only send ${approverSends}<block id>`);
}

/** `x-api-key` wins over a bearer key. */
function keyOf(
  request: Pick<HttpRequest, 'header'>,
  root: Buffer,
  keys: AuthSettings['keys'],
): ResidentKey | typeof ROOT {
  const text = request.header('x-api-key') ?? bearerKey(request.header('authorization'));
  if (text !== undefined && text !== '') {
    const given = digest(text);
    // Digests have one length, so the comparison takes the same time for every other key.
    if (timingSafeEqual(given, root)) return ROOT;
    const key = keys.use(given.toString('hex'));
    if (key !== undefined) return key;
  }
  throw UNAUTHENTICATED;
}

function bearerKey(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !/^bearer /i.test(authorization)) return undefined;
  return authorization.slice('bearer '.length).trim();
}

function lacking({ capabilities }: Access): EngineError {
  if (capabilities.length === 0) return forbidden('only the root key may do this');
  return forbidden(`this takes a key with the capability ${capabilities.join(' or ')}`);
}

function tenantOf(request: Pick<HttpRequest, 'header'>, required: boolean): string {
  const tenant = request.header('x-tenant-id')?.trim() ?? '';
  if (tenant === '' && required) throw invalid('the header x-tenant-id is required');
  if (tenant.length > NAME_LENGTH_MAX) {
    throw invalid(`x-tenant-id must have at most ${NAME_LENGTH_MAX} characters`);
  }
  return tenant;
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
