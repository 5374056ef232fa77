/** `ENGINE_HTTP_ALLOW` and `ENGINE_HTTP_DENY` (docs/reference/handlers.md#where-requests-may-go). */

import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { words } from '../../schema/states.js';
import {
  type AddressPolicy,
  type Endpoint,
  isPublicAddress,
  withoutRoot,
} from './address-guard.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** One rule; without a port it applies to every port. */
export type OutboundRule = { readonly port: number | undefined } & (
  | { readonly kind: 'any' }
  | { readonly kind: 'name'; readonly name: string; readonly isBelow: boolean }
  | { readonly kind: 'range'; readonly range: readonly [Address, number] }
);

export interface OutboundSettings {
  /** `ENGINE_ALLOW_INTERNAL_URLS`: allows every address that is not denied. */
  readonly allowInternalUrls: boolean;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

const BRACKETED = /^\[([^\]]*)\](?::(\d{1,5}))?$/;
const PLAIN = /^([^:]+)(?::(\d{1,5}))?$/;
const LABELS = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/**
 * `*`, `api.example.com`, `*.example.com` (everything below it), `10.0.0.0/8`, `192.0.2.1`, `fd00::/8`; each may end
 * with `:port`, with IPv6 in brackets.
 */
export function parseOutboundRule(text: string): OutboundRule | undefined {
  const isBareIpv6 = !text.startsWith('[') && text.split(':').length > 2;
  const match = isBareIpv6 ? [text, text] : (BRACKETED.exec(text) ?? PLAIN.exec(text));
  if (match === null) return undefined;
  const [, host = '', portText] = match;
  const port = portText === undefined ? undefined : Number(portText);
  if (port !== undefined && (port < 1 || port > 65_535)) return undefined;
  if (host === '*') return { kind: 'any', port };
  if (text.startsWith('[') || host.includes('/') || isIP(host) !== 0) {
    const range = rangeOf(host);
    return range && { kind: 'range', range, port };
  }
  const isBelow = host.startsWith('*.');
  const name = asciiName(isBelow ? host.slice(2) : host);
  return name === undefined ? undefined : { kind: 'name', name, isBelow, port };
}

function rangeOf(text: string): [Address, number] | undefined {
  const [address = '', bits, ...rest] = text.split('/');
  // The library also accepts octal and shortened forms, which are ambiguous.
  if (isIP(address) === 0 || address.includes('%') || rest.length > 0) return undefined;
  const parsed = ipaddr.parse(address);
  const bitsMax = parsed.kind() === 'ipv4' ? 32 : 128;
  if (bits === undefined) return [parsed, bitsMax];
  return /^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax ? [parsed, Number(bits)] : undefined;
}

/** The name as the URL parser writes it; undefined for an invalid name, or one that would become an address. */
function asciiName(text: string): string | undefined {
  // These would be other parts of the URL.
  if (/[@/?#\\%\s]/.test(text) || !URL.canParse(`http://${text}/`)) return undefined;
  const { hostname } = new URL(`http://${text}/`);
  const name = withoutRoot(hostname);
  return isIP(name) === 0 && LABELS.test(name) ? name : undefined;
}

/** How long the machine's own addresses are cached: reading them takes 0.1 ms, and they seldom change. */
const OWN_ADDRESSES_MS = 5_000;

/** Of all interfaces, including public ones. */
export function ownAddresses(): () => ReadonlySet<string> {
  let known: ReadonlySet<string> = new Set();
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - readAt > OWN_ADDRESSES_MS) {
      readAt = now;
      const all = Object.values(networkInterfaces()).flatMap((each = []) => each);
      known = new Set(all.map(({ address }) => ipaddr.parse(address).toNormalizedString()));
    }
    return known;
  };
}

/** Denied endpoints are refused, then allowed ones accepted; else only public addresses, without this machine's own. */
export function outboundPolicy(settings: OutboundSettings, own = ownAddresses()): AddressPolicy {
  const allow = rulesOf(settings.allow);
  const deny = rulesOf(settings.deny);
  const isAllowed = (address: string, of: Endpoint = { hostname: address, port: undefined }) => {
    if (isIP(address) === 0) return false;
    const parsed = ipaddr.parse(address);
    if (deny.some((rule) => isAbout(rule, of, [parsed, ...within(parsed)]))) return false;
    if (settings.allowInternalUrls) return true;
    for (const rule of allow) {
      if (!isAbout(rule, of, [parsed])) continue;
      if (rule.kind === 'range' || REACHED_BY_NAME.has(parsed.range())) return true;
    }
    return isPublicAddress(address) && !own().has(parsed.toNormalizedString());
  };
  return Object.assign(isAllowed, {
    refusesName: (of: Endpoint) => deny.some((rule) => isAbout(rule, of, [])),
  });
}

/** The ranges a name may resolve to. Link-local addresses, where clouds serve credentials, must be allowed as such. */
const REACHED_BY_NAME: ReadonlySet<string> = new Set(
  words('unicast private uniqueLocal carrierGradeNat loopback'),
);

function rulesOf(texts: readonly string[]): readonly OutboundRule[] {
  return texts.map((text) => {
    const rule = parseOutboundRule(text);
    if (rule === undefined) throw new Error(`no rule: ${text}`);
    return rule;
  });
}

/** @param addresses the checked address in each of its forms; empty while only the name is known */
function isAbout(rule: OutboundRule, of: Endpoint, addresses: readonly Address[]): boolean {
  if (rule.port !== undefined && rule.port !== of.port) return false;
  switch (rule.kind) {
    case 'any':
      return true;
    case 'name': {
      const hostname = withoutRoot(of.hostname);
      if (isIP(hostname) !== 0) return false;
      return rule.isBelow ? hostname.endsWith(`.${rule.name}`) : hostname === rule.name;
    }
    case 'range':
      return addresses.some((address) => isWithin(address, rule.range));
  }
}

function isWithin(address: Address, [base, bits]: readonly [Address, number]): boolean {
  if (address instanceof ipaddr.IPv4)
    return base instanceof ipaddr.IPv4 && address.match(base, bits);
  return base instanceof ipaddr.IPv6 && address.match(base, bits);
}

/** The forms of IPv6 that wrap an IPv4 address: its byte offset, and whether it is inverted. */
const WRAPPINGS = [
  ['::/96', 12, 0],
  ['::ffff:0:0/96', 12, 0],
  ['::ffff:0:0:0/96', 12, 0],
  ['64:ff9b::/96', 12, 0],
  ['64:ff9b:1::/48', 12, 0],
  ['2002::/16', 2, 0],
  ['2001::/32', 12, 0xff],
] as const;
const WRAPPING_RANGES = WRAPPINGS.map(([cidr, from, mask]) => {
  return { range: ipaddr.IPv6.parseCIDR(cidr), from, mask };
});

/** The IPv4 address that an IPv6 address wraps, so that no rule is bypassed by another form. */
function within(address: Address): readonly Address[] {
  if (address instanceof ipaddr.IPv4) return [];
  const wrapping = WRAPPING_RANGES.find(({ range }) => address.match(range));
  if (wrapping === undefined) return [];
  const { from, mask } = wrapping;
  const bytes = address.toByteArray().slice(from, from + 4);
  return [new ipaddr.IPv4(bytes.map((byte) => byte ^ mask))];
}
