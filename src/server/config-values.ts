/** Parsers of environment variables. Each rejects invalid values with a message that names the variable. */

import { LINK_PLACES, LINK_VALUES, type UiLink } from '../../schema/system.js';
import { ConfigError } from '../base/config-error.js';
import { LIMITS } from '../base/limits.js';
import { parseTrustedKeys } from '../core/sealing/keys.js';
import { hostUrlsOf, isSchemaName, whichServer } from '../db/database-url.js';
import { parseOutboundRule } from '../handlers/outbound-rules.js';
import type { AddressRange } from '../http/connections.js';

export const MIB = 1024 * 1024;

export interface Parse<T> {
  /** @param text trimmed; undefined when the variable is unset or empty */
  (text: string | undefined, name: string): T;
  readonly takes?: string;
  /** The default value as text. Default: none. */
  readonly byDefault?: string;
  /** The value may also be in a file, named by the variable with the suffix `_FILE`. */
  readonly isSecret?: true;
}

/** @param byDefault undefined: none, or described in `config-help.ts` */
function described<T>(
  parse: Parse<T>,
  takes: string,
  byDefault?: string | number | boolean,
): Parse<T> {
  const words = byDefault === undefined ? { takes } : { takes, byDefault: String(byDefault) };
  return Object.assign(parse, words);
}

/** @param must the requirement, after the name of the variable and "must" */
function optional(
  isValid: (text: string) => boolean,
  must: (text: string) => string,
  takes = 'a text',
): Parse<string | undefined> {
  const parse: Parse<string | undefined> = (value, name) => {
    if (value === undefined || isValid(value)) return value;
    throw new ConfigError(`${name} must ${must(value)}`);
  };
  return described(parse, takes);
}

export function text(value: string | undefined): string | undefined {
  return value;
}

/** Allows the value in a file, since other programs and people can read an environment. */
export function secret<T>(parse: Parse<T>): Parse<T> {
  const inner: Parse<T> = (value, name) => parse(value, name);
  return Object.assign(inner, parse, { isSecret: true as const });
}

/** Checked here because `pg` accepts a wrong scheme, and any word as a host. */
const DATABASE_URL_EXAMPLE = 'postgresql://user:password@host:5432/database';
/** The values of `target_session_attrs` that select the primary. */
const WRITABLE = ['read-write', 'primary'];

/** Validates a URL of Postgres. The messages omit its text, which may contain a password. */
export function databaseUrl(value: string | undefined, name: string): string | undefined {
  if (value === undefined) return undefined;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(value)?.[1]?.toLowerCase();
  if (scheme !== 'postgres' && scheme !== 'postgresql') {
    const found = scheme === undefined ? 'has no scheme' : `begins with ${scheme}:`;
    throw new ConfigError(
      `${name} ${found}, not with postgresql:; write it as ${DATABASE_URL_EXAMPLE}`,
    );
  }
  // A missing host means this machine; `URL` alone rejects it.
  if (!hostUrlsOf(value).every((url) => URL.canParse(url.replace('@/', '@localhost/')))) {
    throw new ConfigError(
      `${name} is no URL: write it as ${DATABASE_URL_EXAMPLE}, with %2F for / and %40 for @ in the password`,
    );
  }
  const which = whichServer(value);
  if (which === undefined || WRITABLE.includes(which)) return value;
  throw new ConfigError(
    `${name} has target_session_attrs=${which}: the engine works with the primary alone, ` +
      `so that it is ${WRITABLE.join(' or ')}, or left out`,
  );
}

export const schemaName = optional(
  isSchemaName,
  (value) =>
    'be 1 to 63 of a-z, 0-9 and _, begin with no digit and not with pg_, ' +
    `and not be information_schema; it is "${value}"`,
  'a name of a-z, 0-9 and _',
);

/** The label is part of a line of each page. */
const LABEL_LENGTH_MAX = 24;

export const label = optional(
  ({ length }) => length <= LABEL_LENGTH_MAX,
  () => `have ${LABEL_LENGTH_MAX} characters at most`,
  `a text of ${LABEL_LENGTH_MAX} characters at most`,
);

const COLOR = 'a colour such as #b3261e';

export const color = optional(
  (value) => /^#[0-9a-f]{6}$/i.test(value),
  (value) => `be ${COLOR}, not "${value}"`,
  COLOR,
);

const WEB_ADDRESS = 'an address that begins with http:// or https://';

export const webAddress = optional(
  (value) => /^https?:\/\/[^?#\s<>"]+$/i.test(value) && URL.canParse(value),
  () => `be ${WEB_ADDRESS}`,
  WEB_ADDRESS,
);

/** The message omits the URL, which may contain a password. */
export const proxyUrl = optional(
  (value) => isWebUrl(value) && new URL(value).pathname === '/' && !new URL(value).search,
  () => 'be a proxy: write http://user:password@host:port',
  WEB_ADDRESS,
);

export const hexKey = optional(
  (value) => /^[0-9a-fA-F]{64}$/.test(value),
  () => 'be 64 hexadecimal digits',
);

function isWebUrl(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

export function integer(byDefault: number, min: number, max: number): Parse<number> {
  const parse = (value: string | undefined, name: string) => {
    if (value === undefined) return byDefault;
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new ConfigError(`${name} must be an integer from ${min} to ${max}, not "${value}"`);
    }
    return number;
  };
  return described(parse, `an integer from ${min} to ${max}`, byDefault);
}

export function seconds(byDefault: number, min: number, max: number): Parse<number> {
  const parse = integer(byDefault, min, max);
  const inMs: Parse<number> = (value, name) => parse(value, name) * 1_000;
  return described(inMs, `${parse.takes}, in seconds`, byDefault);
}

export function bytes(byDefault: number, min: number, max: number): Parse<number> {
  const parse = integer(byDefault, min, max);
  return described(parse, `${parse.takes}, in bytes`, `${byDefault} (${byDefault / MIB} MiB)`);
}

export function toggle<Absent extends boolean | undefined>(
  absent: Absent,
): Parse<boolean | Absent> {
  const parse = (value: string | undefined, name: string) => {
    const word = value?.toLowerCase();
    if (word === undefined) return absent;
    if (word === 'true' || word === '1') return true;
    if (word === 'false' || word === '0') return false;
    throw new ConfigError(`${name} must be true, false, 1 or 0, not "${word}"`);
  };
  return described(parse, 'true, false, 1 or 0', absent);
}

export function lenientToggle(byDefault: boolean): Parse<boolean> {
  const parse = (value: string | undefined) =>
    value === undefined ? byDefault : /^(?:true|1)$/i.test(value);
  return described(parse, 'true, false, 1 or 0', byDefault);
}

export function choice<const T extends string>(
  allowed: readonly T[],
  byDefault: NoInfer<T>,
): Parse<T> {
  const parse = (value: string | undefined, name: string) => {
    const found = value === undefined ? byDefault : allowed.find((word) => word === value);
    if (found !== undefined) return found;
    throw new ConfigError(`${name} must be one of ${allowed.join(', ')}, not "${value}"`);
  };
  return described(parse, `one of ${allowed.join(', ')}`, byDefault);
}

export function list(value: string | undefined): readonly string[] {
  const items = (value ?? '').split(',').map((item) => item.trim());
  return items.filter((item) => item !== '');
}

/** The rules of `src/handlers/outbound-rules.ts` in their text form. */
export const outboundRules = described<readonly string[]>((value, name) => {
  for (const item of list(value)) {
    if (parseOutboundRule(item.toLowerCase()) !== undefined) continue;
    throw new ConfigError(
      `${name}: "${item}" is no host, pattern, address or range; write api.example.com, ` +
        '*.example.com, 10.0.0.0/8 or [fd00::/8], perhaps with :port behind it',
    );
  }
  return list(value?.toLowerCase());
}, 'hosts, patterns such as *.example.com and address ranges, separated by commas');

/** Names are rejected, since someone else could control their resolution. */
export const addressRanges = described<readonly AddressRange[]>(
  (value, name) =>
    list(value).map((item) => {
      const rule = parseOutboundRule(item);
      if (rule?.kind !== 'range' || rule.port !== undefined) {
        throw new ConfigError(
          `${name}: "${item}" is no address or range; write 10.0.0.7, 10.0.0.0/8 or fd00::/8`,
        );
      }
      const [address, bits] = rule.range;
      return { address: address.toString(), bits };
    }),
  'addresses and address ranges, separated by commas',
);

/** Absolute http or https addresses, without duplicates. The messages omit them, since they may be secret. */
export function urls(value: string | undefined, name: string): readonly string[] {
  const distinct = new Set<string>();
  for (const [index, item] of list(value).entries()) {
    if (!isWebUrl(item)) {
      throw new ConfigError(`${name}: address ${index + 1} is not an http or https URL`);
    }
    const { username, password } = new URL(item);
    if (username !== '' || password !== '') {
      throw new ConfigError(`${name}: address ${index + 1} must not contain credentials`);
    }
    distinct.add(item);
  }
  if (distinct.size > LIMITS.webhookUrlsMax) {
    throw new ConfigError(`${name} must name at most ${LIMITS.webhookUrlsMax} addresses`);
  }
  return [...distinct];
}

/** More would fill the page. */
const UI_LINKS_MAX = 20;

/** Links to other systems: a JSON array of `{"label", "url", "on"}`. */
export const uiLinks = described<readonly UiLink[]>((value, name) => {
  if (value === undefined) return [];
  const entries = jsonArrayOf(value);
  if (entries === undefined || entries.length > UI_LINKS_MAX) {
    throw new ConfigError(`${name} must be a JSON array of at most ${UI_LINKS_MAX} links`);
  }
  return entries.map((entry, index) => {
    const fault = faultOfLink(entry);
    if (fault !== undefined) throw new ConfigError(`${name}: entry ${index + 1}: ${fault}`);
    const { label: text, url, on = 'instance' } = entry as UiLink;
    return { label: text, url, on };
  });
}, 'a JSON array of {"label", "url", "on"}');

function jsonArrayOf(text: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function faultOfLink(entry: unknown): string | undefined {
  if (typeof entry !== 'object' || entry === null) return 'must be an object';
  const { label: text, url, on = 'instance', ...others } = entry as Record<string, unknown>;
  const [other] = Object.keys(others);
  if (other !== undefined) return `has an unknown member ${other}`;
  if (typeof text !== 'string' || text === '' || text.length > LABEL_LENGTH_MAX) {
    return `label must be a text of 1 to ${LABEL_LENGTH_MAX} characters`;
  }
  if (!LINK_PLACES.some((place) => place === on)) return `on must be ${LINK_PLACES.join(' or ')}`;
  // Values come from users, so they must not choose the host.
  if (typeof url !== 'string' || !/^https?:\/\/[^/?#{}@\s]+(?:[/?#]|$)/i.test(url)) {
    return `url must begin with http:// or https:// and a host, without credentials and placeholders`;
  }
  const named = [...url.matchAll(/\{(.*?)\}/g)].map(([, placeholder]) => placeholder);
  const unknown = named.find((one) => !LINK_VALUES.some((value) => value === one));
  if (unknown !== undefined) {
    return `url has an unknown placeholder {${unknown}}; there are ${LINK_VALUES.join(', ')}`;
  }
  if (on !== 'step' && named.includes('block_id')) return '{block_id} needs "on": "step"';
  return URL.canParse(url.replaceAll(/[{}]/g, '')) ? undefined : 'url is no URL';
}

export function address(
  byDefault: string,
): Parse<{ readonly host: string; readonly port: number }> {
  const parse = (value = byDefault, name: string) => {
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(value);
    const port = Number(match?.[3]);
    if (match === null || port > 65_535) {
      throw new ConfigError(`${name} must be host:port, not "${value}"`);
    }
    return { host: match[1] ?? match[2]!, port };
  };
  return described(parse, 'an address and a port', byDefault);
}

export function trustedKeys(value = '', name = ''): string {
  const parsed = parseTrustedKeys(value);
  if (!parsed.ok) throw new ConfigError(`${name}: ${parsed.message}`);
  return value;
}
