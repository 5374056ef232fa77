/**
 * What a runtime says of itself when it registers, and how long that holds (05 §4). A runtime is live
 * exactly until `expires_at`; there is no other sign of life.
 */

import { toUnixMs } from '../../../schema/common.js';
import type { JsonValue } from '../json.js';
import { isoTime, type UnixMs } from '../time.js';
import { parsePublicKey } from './ed25519.js';
import { Fields, type Parsed, parsing } from './parsed.js';

export const RUNTIME_KINDS = ['server', 'edge', 'mobile', 'desktop', 'browser'] as const;
export type RuntimeKind = (typeof RUNTIME_KINDS)[number];

/** From low to high. */
export const TRUST_LEVELS = ['unverified', 'registered', 'signed', 'attested'] as const;
export type TrustLevel = (typeof TRUST_LEVELS)[number];

/** The others need a proof that a registration does not carry. */
const CLAIMABLE_TRUST: readonly TrustLevel[] = ['unverified', 'registered'];

export const CONNECTIVITIES = ['offline', 'metered', 'wifi', 'ethernet'] as const;
export type Connectivity = (typeof CONNECTIVITIES)[number];

export const CAPABILITY_FACTS_MAX = 256;
/** How far the clock of a runtime may be ahead. */
export const OBSERVED_AHEAD_MS_MAX = 30_000;
export const CAPABILITIES_LIFE_MS_MAX = 5 * 60_000;

/** Lists without entries are left out. Times are RFC 3339 in UTC. */
export interface RuntimeCapabilities {
  readonly runtime_id: string;
  readonly kind: RuntimeKind;
  readonly trust: TrustLevel;
  readonly handlers?: readonly string[];
  readonly plugins?: readonly string[];
  readonly credentials?: readonly string[];
  readonly regions?: readonly string[];
  readonly hardware?: readonly string[];
  readonly offline_capable: boolean;
  readonly draining: boolean;
  readonly connectivity?: Connectivity;
  readonly battery_percent?: number;
  readonly estimated_cost_microunits?: number;
  readonly estimated_latency_ms?: number;
  /** 32 bytes in base64. */
  readonly capsule_signing_public_key?: string;
  readonly observed_at: string;
  readonly expires_at: string;
}

/** Higher trust has the higher rank. */
export function trustRank(trust: TrustLevel): number {
  return TRUST_LEVELS.indexOf(trust);
}

export function isLive(capabilities: RuntimeCapabilities, now: UnixMs): boolean {
  const expiresMs = toUnixMs(capabilities.expires_at);
  return expiresMs !== undefined && expiresMs > now;
}

/** The message names the field of `capabilities` that is wrong. */
export function parseCapabilities(
  value: JsonValue | undefined,
  now: UnixMs,
): Parsed<RuntimeCapabilities> {
  return parsing(() => {
    const fields = new Fields(value, 'capabilities');
    return withoutAbsent({
      runtime_id: fields.required('runtime_id', fields.uuid('runtime_id')),
      kind: fields.required('kind', fields.word('kind', RUNTIME_KINDS)),
      trust: readTrust(fields),
      handlers: readFacts(fields, 'handlers'),
      plugins: readFacts(fields, 'plugins'),
      credentials: readFacts(fields, 'credentials'),
      regions: readFacts(fields, 'regions'),
      hardware: readFacts(fields, 'hardware'),
      offline_capable: fields.flag('offline_capable') ?? false,
      draining: fields.flag('draining') ?? false,
      connectivity: fields.word('connectivity', CONNECTIVITIES),
      battery_percent: fields.integer('battery_percent', 0, 100),
      estimated_cost_microunits: fields.integer('estimated_cost_microunits', 0),
      estimated_latency_ms: fields.integer('estimated_latency_ms', 0),
      capsule_signing_public_key: readPublicKey(fields),
      ...readLife(fields, now),
    });
  });
}

/** What every member of `T` may also be while it is put together. */
type Loose<T> = { [K in keyof T]-?: undefined extends T[K] ? T[K] | undefined : T[K] };

/** A member that is undefined is one that the interface calls optional. */
function withoutAbsent(loose: Loose<RuntimeCapabilities>): RuntimeCapabilities {
  const present = Object.entries(loose).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as unknown as RuntimeCapabilities;
}

function readTrust(fields: Fields): TrustLevel {
  const trust = fields.required('trust', fields.word('trust', TRUST_LEVELS));
  if (!CLAIMABLE_TRUST.includes(trust)) {
    fields.refuse('trust', `must be one of ${CLAIMABLE_TRUST.join(', ')} at a registration`);
  }
  return trust;
}

function readFacts(fields: Fields, field: string): readonly string[] | undefined {
  const facts = fields.facts(field, CAPABILITY_FACTS_MAX);
  return facts.length === 0 ? undefined : facts;
}

function readPublicKey(fields: Fields): string | undefined {
  const field = 'capsule_signing_public_key';
  const key = fields.text(field);
  if (key !== undefined && parsePublicKey(key) === undefined) {
    fields.refuse(field, 'must be an Ed25519 public key of 32 bytes in base64');
  }
  return key;
}

function readLife(fields: Fields, now: UnixMs): { observed_at: string; expires_at: string } {
  const observedMs = readTime(fields, 'observed_at');
  const expiresMs = readTime(fields, 'expires_at');
  if (observedMs > now + OBSERVED_AHEAD_MS_MAX) {
    fields.refuse('observed_at', `must be at most ${OBSERVED_AHEAD_MS_MAX / 1_000} s from now`);
  }
  if (expiresMs <= now) fields.refuse('expires_at', 'must be in the future');
  if (expiresMs <= observedMs) fields.refuse('expires_at', 'must be after observed_at');
  if (expiresMs > observedMs + CAPABILITIES_LIFE_MS_MAX) {
    const minutes = CAPABILITIES_LIFE_MS_MAX / 60_000;
    fields.refuse('expires_at', `must be at most ${minutes} minutes after observed_at`);
  }
  return { observed_at: isoTime(observedMs), expires_at: isoTime(expiresMs) };
}

function readTime(fields: Fields, field: string): UnixMs {
  const ms = toUnixMs(fields.required(field, fields.timestamp(field)));
  return fields.required(field, ms);
}
