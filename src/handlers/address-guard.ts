/**
 * Keeps requests of workflows away from internal networks (server-side request forgery). A URL is checked before the
 * request, and every address again inside the lookup of the socket, so that DNS rebinding has no effect.
 */

import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Parsed } from '../core/parsed.js';

export interface Endpoint {
  /** Lower case, without brackets. */
  readonly hostname: string;
  readonly port: number | undefined;
}

/** Whether a literal IPv4 or IPv6 address, without brackets, may be connected to. */
export interface AddressPolicy {
  (address: string, of?: Endpoint): boolean;
  /** Refuses an endpoint whatever its address. Absent: names do not matter. */
  readonly refusesName?: (of: Endpoint) => boolean;
}

/** Resolves all addresses of a name. Rejects with a `code` of node:dns. */
export type Resolver = (hostname: string) => Promise<readonly LookupAddress[]>;

/** The host, or one of its addresses, is not public. A permanent failure. */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError';
  readonly code = 'BLOCKED_ADDRESS';

  constructor(hostname: string) {
    // The message hides the address and the rule: authors of workflows must not learn what internal names resolve to.
    super(`the address of ${hostname} is not public, or requests to it are not allowed`);
  }
}

/** The name does not exist, which counts as blocked (docs/reference/handlers.md). Other DNS errors may be temporary. */
export class UnresolvableHostError extends Error {
  override readonly name = 'UnresolvableHostError';
  readonly code = 'UNRESOLVABLE_HOST';

  constructor(hostname: string, cause?: unknown) {
    super(`${hostname} does not resolve`, { cause });
  }
}

/** Azure serves machine metadata at this otherwise public address. */
const AZURE_METADATA = '168.63.129.16';
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/** Whether an address is public. IPv6 that wraps IPv4 is refused: the network decides where it leads. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.parse(address);
  // An unnamed IPv6 range would pass as unicast, so only allocated space is accepted.
  if (parsed.kind() === 'ipv6' && !parsed.match(GLOBAL_UNICAST)) return false;
  return parsed.range() === 'unicast' && address !== AZURE_METADATA;
}

/**
 * Checks scheme, credentials and host without using the network. The URL parser normalises all spellings of addresses.
 * @param base the URL of the response that redirected here
 */
export function checkUrl(text: string, isAllowed: AddressPolicy, base?: URL): Parsed<URL> {
  let url: URL;
  try {
    url = new URL(text, base);
  } catch {
    return { ok: false, message: 'the url is not valid' };
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return { ok: false, message: 'the url must use http or https' };
  }
  if (url.username !== '' || url.password !== '') {
    return { ok: false, message: 'credentials do not belong in the url' };
  }
  const of = endpointOf(url);
  return isAllowedHost(of, isAllowed)
    ? { ok: true, value: url }
    : { ok: false, message: new BlockedAddressError(of.hostname).message };
}

/** @param url of http or https, or what undici is about to connect to */
export function endpointOf(url: Pick<URL, 'hostname' | 'port' | 'protocol'>): Endpoint {
  const byDefault = url.protocol === 'https:' ? 443 : 80;
  const port = url.port ? Number(url.port) : byDefault;
  // URL keeps an IPv6 host in brackets.
  const hostname = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  return { hostname, port };
}

/** The lookup of a socket; one refused address refuses the host. @param port of the endpoint */
export function guardedLookup(
  resolve: Resolver,
  isAllowed: AddressPolicy,
  port?: number,
): LookupFunction {
  return (hostname, options, callback) => {
    resolveAllowed({ hostname, port }, resolve, isAllowed).then(
      (addresses) => {
        const { address, family } = addresses[0]!;
        if (options.all === true) callback(null, [...addresses]);
        else callback(null, address, family);
      },
      (error: Error) => callback(error, []),
    );
  };
}

/** The resolver of the operating system, so that its hosts file and search domains apply. */
export const systemResolver: Resolver = (hostname) =>
  lookup(hostname, { all: true, verbatim: true });

async function resolveAllowed(
  of: Endpoint,
  resolve: Resolver,
  isAllowed: AddressPolicy,
): Promise<readonly LookupAddress[]> {
  const { hostname } = of;
  const addresses = await resolveExisting(hostname, resolve);
  if (addresses.length === 0) throw new UnresolvableHostError(hostname);
  if (!addresses.every(({ address }) => isAllowed(address, of))) {
    throw new BlockedAddressError(hostname);
  }
  return addresses;
}

async function resolveExisting(hostname: string, resolve: Resolver) {
  // RFC 6761: such names never exist; without a name server the lookup would fail otherwise.
  if (isWithin(hostname, 'invalid')) throw new UnresolvableHostError(hostname);
  try {
    return await resolve(hostname);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw NAME_ABSENT_CODES.has(code) ? new UnresolvableHostError(hostname, error) : error;
  }
}

/** The errors of node:dns for a name that does not exist or has no address; all others may be temporary. */
const NAME_ABSENT_CODES: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA', 'ENONAME']);

/** Whether an endpoint may be connected to, as far as this can be decided without a lookup. */
export function isAllowedHost(of: Endpoint, isAllowed: AddressPolicy): boolean {
  if (isAllowed.refusesName?.(of) === true) return false;
  if (isIP(of.hostname) !== 0) return isAllowed(of.hostname, of);
  // RFC 6761: these names are loopback by definition.
  if (!isWithin(of.hostname, 'localhost')) return true;
  return isAllowed('127.0.0.1', of) || isAllowed('::1', of);
}

function isWithin(hostname: string, domain: string): boolean {
  const name = withoutRoot(hostname);
  return name === domain || name.endsWith(`.${domain}`);
}

/** `example.com.` is `example.com`. */
export function withoutRoot(hostname: string): string {
  return hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
}
