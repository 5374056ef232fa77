/** The keys of continuity as they travel to the threads: as texts, which each makes a keyring of. */

import {
  createKeyring,
  type Keyring,
  parseMasterKey,
  parseTrustedKeys,
} from './core/continuity/keys.js';
import type { Parsed } from './core/continuity/parsed.js';

/** Plain data; never logged. */
export interface ContinuityKeys {
  /** 64 hexadecimal digits; undefined: what needs keys answers 503. */
  readonly master: string | undefined;
  /** The one before it, during a rotation. */
  readonly former: string | undefined;
  /** JSON of ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON. */
  readonly trusted: string;
}

/** Undefined without a master key. The texts were checked when the configuration was read. */
export function keyringOf({ master, former, trusted }: ContinuityKeys): Keyring | undefined {
  if (master === undefined) return undefined;
  const formerKey = former === undefined ? undefined : trustedValue(parseMasterKey(former));
  return createKeyring(
    trustedValue(parseMasterKey(master)),
    formerKey,
    trustedValue(parseTrustedKeys(trusted)),
  );
}

function trustedValue<T>(parsed: Parsed<T>): T {
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.value;
}
