/**
 * Protects a server without keys from web pages in the developer's browser, and from DNS rebinding. A request must
 * name this machine as its host, come from a page of this machine if from any, and declare its body as JSON, which a
 * page can send to another origin only after a preflight.
 */

import { forbidden, invalid } from '../base/errors.js';
import type { HttpRequest } from './server.js';

/** @throws EngineError 403 or 400 */
export type InsecureGuard = (request: Pick<HttpRequest, 'header' | 'body'>) => void;

const IPV4_LOOPBACK = /^127(\.\d{1,3}){3}$/;

/** Whether a host name or address, without a port, always refers to this machine. */
export function isOwnMachine(host: string): boolean {
  const name = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '::1' ||
    IPV4_LOOPBACK.test(name) ||
    IPV4_LOOPBACK.test(name.replace(/^::ffff:/, ''))
  );
}

export interface InsecureSettings {
  readonly isAnywhere: boolean;
  /** Origins whose pages may call the server; `*` is any. */
  readonly corsOrigins: readonly string[];
}

export function insecureGuard({ isAnywhere, corsOrigins }: InsecureSettings): InsecureGuard {
  return (request) => {
    const host = request.header('host') ?? '';
    if (!isAnywhere && !isOwnMachine(host.replace(/:\d*$/, ''))) throw FOREIGN_HOST;
    const origin = request.header('origin');
    if (origin !== undefined && !mayCall(origin, host, isAnywhere, corsOrigins)) {
      throw FOREIGN_ORIGIN;
    }
    const hasBody = request.body.length > 0;
    if (hasBody && !JSON_BODY.test(request.header('content-type') ?? '')) throw NOT_JSON;
  };
}

const JSON_BODY = /^application\/json *(;|$)/i;

const FOREIGN_HOST = forbidden(
  'without keys the header host must name this machine, such as localhost; --insecure-auth-anywhere lifts that',
);
const FOREIGN_ORIGIN = forbidden(
  'without keys only pages of this machine, and of ENGINE_CORS_ORIGINS, may call',
);
const NOT_JSON = invalid(
  'header content-type must be application/json while the server asks for no keys (--insecure-auth)',
);

function mayCall(
  origin: string,
  host: string,
  isAnywhere: boolean,
  corsOrigins: readonly string[],
): boolean {
  if (corsOrigins.includes('*') || corsOrigins.includes(origin)) return true;
  const own = URL.canParse(origin) ? new URL(origin) : undefined;
  if (own === undefined) return false;
  return isOwnMachine(own.hostname) || (isAnywhere && own.host === host.toLowerCase());
}
