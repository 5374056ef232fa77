/** The registration of a runtime. A runtime is live until `expires_at`; there is no other heartbeat. */

import { toUnixMs } from '../../../schema/common.js';
import { TRUST_LEVELS, type TrustLevel } from '../../../schema/continuity-words.js';
import type { RegisterRuntime, RuntimeCapabilities } from '../../../schema/handoff.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { type Parsed, parsing, refuse } from '../../../src/core/parsed.js';
import { parsePublicKey } from '../../../src/core/sealing/ed25519.js';

/** How far the clock of a runtime may be ahead. */
const OBSERVED_AHEAD_MS_MAX = 30_000;
const CAPABILITIES_LIFE_MS_MAX = 5 * 60_000;

export function trustRank(trust: TrustLevel): number {
  return TRUST_LEVELS.indexOf(trust);
}

export function isLive(capabilities: RuntimeCapabilities, now: UnixMs): boolean {
  const expiresMs = toUnixMs(capabilities.expires_at);
  return expiresMs !== undefined && expiresMs > now;
}

/** Turns a minimum into a maximum. */
export function negated(value: number | undefined): number | undefined {
  return value === undefined ? undefined : -value;
}

/** The fields that are stored when they are present. */
const KEPT = [
  'runtime_id',
  'kind',
  'trust',
  'handlers',
  'plugins',
  'credentials',
  'regions',
  'hardware',
  'connectivity',
  'battery_percent',
  'estimated_cost_microunits',
  'estimated_latency_ms',
  'capsule_signing_public_key',
] as const satisfies readonly (keyof RuntimeCapabilities)[];
type Kept = Pick<RuntimeCapabilities, (typeof KEPT)[number]>;

/** The stored form; the message names the invalid field. */
export function capabilitiesOf(
  sent: RegisterRuntime['capabilities'],
  now: UnixMs,
): Parsed<RuntimeCapabilities> {
  return parsing(() => {
    const key = sent.capsule_signing_public_key ?? undefined;
    if (key !== undefined && parsePublicKey(key) === undefined) {
      const rule = 'must be an Ed25519 public key of 32 bytes in base64';
      refuse('capabilities.capsule_signing_public_key', rule);
    }
    const present = KEPT.filter((field) => {
      const value = sent[field] ?? [];
      return !Array.isArray(value) || value.length > 0;
    });
    return {
      ...(Object.fromEntries(present.map((field) => [field, sent[field]])) as unknown as Kept),
      offline_capable: sent.offline_capable ?? false,
      draining: sent.draining ?? false,
      ...lifeOf(sent, now),
    };
  });
}

function lifeOf(
  { observed_at, expires_at }: RegisterRuntime['capabilities'],
  now: UnixMs,
): { observed_at: string; expires_at: string } {
  const observedMs = Date.parse(observed_at);
  const expiresMs = Date.parse(expires_at);
  const refuseField = (field: string, rule: string) => refuse(`capabilities.${field}`, rule);
  if (observedMs > now + OBSERVED_AHEAD_MS_MAX) {
    refuseField('observed_at', `must be at most ${OBSERVED_AHEAD_MS_MAX / 1_000} s from now`);
  }
  if (expiresMs <= now) refuseField('expires_at', 'must be in the future');
  if (expiresMs <= observedMs) refuseField('expires_at', 'must be after observed_at');
  if (expiresMs > observedMs + CAPABILITIES_LIFE_MS_MAX) {
    const minutes = CAPABILITIES_LIFE_MS_MAX / 60_000;
    refuseField('expires_at', `must be at most ${minutes} minutes after observed_at`);
  }
  return { observed_at: isoTime(observedMs), expires_at: isoTime(expiresMs) };
}
