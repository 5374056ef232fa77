/**
 * Who is asking, and for which tenant (spec/01 §2): the root key in `x-api-key` or as a bearer
 * token, then the tenant header. Keys of tenants with capabilities have their place here.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import { NAME_LENGTH_MAX } from '../../schema/common.js';
import type { Route } from '../../schema/routes.js';
import { EngineError, invalid } from '../errors.js';
import type { HttpRequest } from './server.js';

export interface AuthSettings {
  /** undefined: every caller counts as root (`--insecure-auth`). */
  readonly apiKey: string | undefined;
  readonly requireTenantHeader: boolean;
}

/** @returns the tenant the request acts for; '' when none is named and none is needed */
export type Authorise = (request: HttpRequest, route: Route) => string;

/** @throws EngineError 401 without a valid key, 400 without a tenant, both from the result */
export function createAuth(settings: AuthSettings): Authorise {
  const expected = settings.apiKey === undefined ? undefined : digest(settings.apiKey);
  return (request, route) => {
    if (route.capability === 'public') return '';
    if (expected !== undefined) checkKey(request, expected);
    return tenantOf(request, route.tenant === 'required' && settings.requireTenantHeader);
  };
}

/** `x-api-key` wins over a bearer key (spec/06 row 31). */
function checkKey(request: HttpRequest, expected: Buffer): void {
  const key = request.header('x-api-key') ?? bearerKey(request.header('authorization'));
  // Digests have one length, so the comparison takes the same time for every wrong key.
  if (key === undefined || !timingSafeEqual(digest(key), expected)) {
    throw new EngineError('ENG_UNAUTHENTICATED', 'unauthorized: a valid x-api-key is required');
  }
}

function bearerKey(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !/^bearer /i.test(authorization)) return undefined;
  return authorization.slice('bearer '.length).trim();
}

function tenantOf(request: HttpRequest, required: boolean): string {
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
