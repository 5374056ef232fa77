/**
 * Keeps requests that workflows define away from the network that the engine itself lives in (server
 * side request forgery). A URL is judged before a request, and every address once more inside the
 * socket's own lookup: the addresses that were judged are the ones that are connected to, so a name
 * that answers differently the second time (rebinding) gains nothing.
 *
 * Nothing here sends a request or keeps state.
 */

import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/** What a request is for. */
export interface Endpoint {
  /** In lower case, without brackets. */
  readonly hostname: string;
  /** undefined: any, where only an address is asked about. */
  readonly port: number | undefined;
}

/** Whether a literal IPv4 or IPv6 address, without brackets, may be connected to for an endpoint. */
export interface AddressPolicy {
  (address: string, of?: Endpoint): boolean;
  /** No request for it is made, whatever its address. Absent: names do not matter. */
  readonly refusesName?: (of: Endpoint) => boolean;
}

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Answers every address of a name. Rejects with a `code` of node:dns when it cannot. */
export type Resolver = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** The host, or one of its addresses, is not public. No retry changes that. */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError';
  readonly code = 'BLOCKED_ADDRESS';

  constructor(hostname: string) {
    // The address stays unsaid, and which rule it was: what internal names resolve to is not for the
    // author of a workflow.
    super(`the address of ${hostname} is not public, or requests to it are not allowed`);
  }
}

/**
 * The name does not exist, which counts as blocked (docs/reference/handlers.md). A resolver out of
 * reach is another matter.
 */
export class UnresolvableHostError extends Error {
  override readonly name = 'UnresolvableHostError';
  readonly code = 'UNRESOLVABLE_HOST';

  constructor(hostname: string, cause?: unknown) {
    super(`${hostname} does not resolve`, { cause });
  }
}

/** Azure answers metadata requests of its machines at this otherwise ordinary address. */
const AZURE_METADATA = '168.63.129.16';

const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether an address belongs to the public internet. IPv6 addresses that wrap an IPv4 address
 * (mapped, NAT64, 6to4, Teredo) are refused whatever they wrap: a public service is reachable without
 * them, and where they lead is up to the network. Anything that is not an address is refused.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.parse(address);
  // An IPv6 range that has no name of its own would pass as unicast, so allocated space is required.
  if (parsed.kind() === 'ipv6' && !parsed.match(GLOBAL_UNICAST)) return false;
  return parsed.range() === 'unicast' && address !== AZURE_METADATA;
}

export type UrlCheck =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly message: string };

/**
 * Judges a URL without touching the network: scheme, credentials, and the host when it is an address
 * or a name that means this machine. The parser has by then turned decimal, hexadecimal, octal,
 * shortened, percent-encoded and full-width spellings into plain ones, and refused zone ids.
 * `base` is the URL of the answer that redirected here.
 */
export function checkUrl(text: string, isAllowed: AddressPolicy, base?: URL): UrlCheck {
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
    return { ok: false, message: 'credentials do not belong in the url, but in the headers' };
  }
  const of = endpointOf(url);
  return isAllowedHost(of, isAllowed)
    ? { ok: true, url }
    : { ok: false, message: new BlockedAddressError(of.hostname).message };
}

/** @param url of http or https: also what `undici` is about to connect to */
export function endpointOf(url: Pick<URL, 'hostname' | 'port' | 'protocol'>): Endpoint {
  const byDefault = url.protocol === 'https:' ? 443 : 80;
  const port = url.port ? Number(url.port) : byDefault;
  return { hostname: bareHostname(url.hostname), port };
}

/**
 * The lookup that a socket calls. One refused address refuses the host: a name that mixes public and
 * private answers is an attack or a mistake, and trying the rest would make the outcome a lottery.
 *
 * @param port of the endpoint, which the socket does not tell
 */
export function guardedLookup(
  resolve: Resolver,
  isAllowed: AddressPolicy,
  port?: number,
): LookupFunction {
  return (hostname, options, callback) => {
    resolveAllowed({ hostname, port }, resolve, isAllowed).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all === true) callback(null, [...addresses]);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, []),
    );
  };
}

/** The resolver of the operating system, so that its hosts file and search domains count. */
export const systemResolver: Resolver = (hostname) =>
  lookup(hostname, { all: true, verbatim: true });

type Addresses = readonly [ResolvedAddress, ...ResolvedAddress[]];

async function resolveAllowed(
  of: Endpoint,
  resolve: Resolver,
  isAllowed: AddressPolicy,
): Promise<Addresses> {
  const { hostname } = of;
  const [first, ...rest] = await resolveExisting(hostname, resolve);
  if (first === undefined) throw new UnresolvableHostError(hostname);
  const addresses: Addresses = [first, ...rest];
  if (!addresses.every(({ address }) => isAllowed(address, of))) {
    throw new BlockedAddressError(hostname);
  }
  return addresses;
}

async function resolveExisting(
  hostname: string,
  resolve: Resolver,
): Promise<readonly ResolvedAddress[]> {
  // RFC 6761: such names never exist, which a machine without a name server could not tell.
  if (isWithin(hostname, 'invalid')) throw new UnresolvableHostError(hostname);
  try {
    return await resolve(hostname);
  } catch (error) {
    if (hasCode(error, NAME_ABSENT_CODES)) throw new UnresolvableHostError(hostname, error);
    throw error;
  }
}

/** What node:dns says of a name that does not exist or has no address; the rest is trouble on the way. */
const NAME_ABSENT_CODES: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA', 'ENONAME']);

function hasCode(error: unknown, codes: ReadonlySet<string>): boolean {
  return error instanceof Error && 'code' in error && codes.has(String(error.code));
}

/** Whether a literal address, or a name as far as it is known without a lookup, may be connected to. */
export function isAllowedHost(of: Endpoint, isAllowed: AddressPolicy): boolean {
  if (isAllowed.refusesName?.(of) === true) return false;
  if (isIP(of.hostname) !== 0) return isAllowed(of.hostname, of);
  // RFC 6761: these names are loopback by definition, whatever a name server says of them.
  if (!isWithin(of.hostname, 'localhost')) return true;
  return isAllowed('127.0.0.1', of) || isAllowed('::1', of);
}

/** Whether a name is `domain` or below it; one trailing dot, the root, makes no difference. */
function isWithin(hostname: string, domain: string): boolean {
  const name = withoutRoot(hostname);
  return name === domain || name.endsWith(`.${domain}`);
}

/** `example.com.` is `example.com`. */
export function withoutRoot(hostname: string): string {
  return hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
}

/** URL keeps an IPv6 host in brackets; everything else speaks of it without them. */
function bareHostname(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
