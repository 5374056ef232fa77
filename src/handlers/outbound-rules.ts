/**
 * What an operator says about where requests of workflows and webhooks may go: `ENGINE_HTTP_ALLOW` and
 * `ENGINE_HTTP_DENY` (docs/reference/handlers.md#where-requests-may-go). The one place that reads the spelling of a rule, and
 * that joins rules with the rule that only public addresses are reached.
 */

import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import {
  type AddressPolicy,
  type Endpoint,
  isPublicAddress,
  withoutRoot,
} from './address-guard.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** One rule; without a port it is about every port. */
export type OutboundRule = { readonly port: number | undefined } & (
  | { readonly kind: 'any' }
  | { readonly kind: 'name'; readonly name: string; readonly isBelow: boolean }
  | { readonly kind: 'range'; readonly range: readonly [Address, number] }
);

export interface OutboundSettings {
  /** `ENGINE_ALLOW_INTERNAL_URLS`: every address that is not denied. */
  readonly allowInternalUrls: boolean;
  /** Rules as they were written; each of them parses. */
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** Addresses of this machine in canonical form. */
export type OwnAddresses = () => ReadonlySet<string>;

const BRACKETED = /^\[([^\]]*)\](?::(\d{1,5}))?$/;
const PLAIN = /^([^:]+)(?::(\d{1,5}))?$/;
const LABELS = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/**
 * `*`, `api.example.com`, `*.example.com` (what lies below it), `10.0.0.0/8`, `192.0.2.1`, `fd00::/8`; each
 * with `:port` behind it, IPv6 in brackets then.
 *
 * @returns undefined: it is none of these
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
  // The library also reads octal and shortened forms, which people and programs take for different addresses.
  if (isIP(address) === 0 || address.includes('%') || rest.length > 0) return undefined;
  const parsed = ipaddr.parse(address);
  const bitsMax = parsed.kind() === 'ipv4' ? 32 : 128;
  if (bits === undefined) return [parsed, bitsMax];
  return /^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax ? [parsed, Number(bits)] : undefined;
}

/** As the parser of URLs spells it; undefined of what is no name, or would become an address there. */
function asciiName(text: string): string | undefined {
  // These would be other parts of the URL.
  if (/[@/?#\\%\s]/.test(text) || !URL.canParse(`http://${text}/`)) return undefined;
  const { hostname } = new URL(`http://${text}/`);
  const name = withoutRoot(hostname);
  return isIP(name) === 0 && LABELS.test(name) ? name : undefined;
}

/** How long the list of the machine's own addresses holds: it takes 0.1 ms, and seldom changes. */
const OWN_ADDRESSES_MS = 5_000;

/** Of all interfaces, public ones as well. */
export function ownAddresses(): OwnAddresses {
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

/**
 * Joins all rules: what is denied is refused whatever else is said; then what is allowed is reached; of the
 * rest only public addresses that are not the machine's own.
 */
export function outboundPolicy(
  settings: OutboundSettings,
  own: OwnAddresses = ownAddresses(),
): AddressPolicy {
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

/**
 * Where a name that is allowed may lead: who answers for the name is not always who wrote the rule, so
 * link-local addresses, at which clouds give their machines credentials, are only opened as addresses.
 */
const REACHED_BY_NAME: ReadonlySet<string> = new Set([
  'unicast',
  'private',
  'uniqueLocal',
  'carrierGradeNat',
  'loopback',
]);

function rulesOf(texts: readonly string[]): readonly OutboundRule[] {
  return texts.map((text) => {
    const rule = parseOutboundRule(text);
    if (rule === undefined) throw new Error(`no rule: ${text}`);
    return rule;
  });
}

/** @param addresses the one that is judged, in each of its forms; none where only the name is known yet */
function isAbout(rule: OutboundRule, of: Endpoint, addresses: readonly Address[]): boolean {
  if (rule.port !== undefined && rule.port !== of.port) return false;
  switch (rule.kind) {
    case 'any':
      return true;
    case 'name':
      return isNamed(rule, withoutRoot(of.hostname));
    case 'range':
      return addresses.some((address) => isWithin(address, rule.range));
  }
}

function isNamed(
  { name, isBelow }: { readonly name: string; readonly isBelow: boolean },
  hostname: string,
): boolean {
  if (isIP(hostname) !== 0) return false;
  return isBelow ? hostname.endsWith(`.${name}`) : hostname === name;
}

function isWithin(address: Address, [base, bits]: readonly [Address, number]): boolean {
  if (address instanceof ipaddr.IPv4)
    return base instanceof ipaddr.IPv4 && address.match(base, bits);
  return base instanceof ipaddr.IPv6 && address.match(base, bits);
}

/** The forms of IPv6 that lead to an IPv4 address, how many bytes lie before it, and whether it is inverted. */
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

/** The IPv4 address that an IPv6 address leads to: a rule against it must not be passed in disguise. */
function within(address: Address): readonly Address[] {
  if (address instanceof ipaddr.IPv4) return [];
  const wrapping = WRAPPING_RANGES.find(({ range }) => address.match(range));
  if (wrapping === undefined) return [];
  const { from, mask } = wrapping;
  const bytes = address.toByteArray().slice(from, from + 4);
  return [new ipaddr.IPv4(bytes.map((byte) => byte ^ mask))];
}
