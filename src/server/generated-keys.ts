/**
 * Keys that the embedded set-up generates on its first start, so that a newcomer has a protected server
 * (docs/decisions/0020-start-and-command-line.md).
 */

import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ContinuityKeys } from '../core/sealing/keys.js';
import type { Config } from './config.js';

export interface GeneratedKey {
  readonly value: string;
  readonly file: string;
}

/** Only with the embedded database; undefined when a root key is set, or none is checked. */
export function generatedRootKey(config: Config): GeneratedKey | undefined {
  const { databaseUrl, insecureAuth, apiKey, dataDir } = config;
  if (databaseUrl !== undefined || insecureAuth || apiKey !== undefined) return undefined;
  // The form of the secrets that are minted for tenants.
  return keyIn(dataDir, 'root-key', () => `sk_${randomBytes(32).toString('hex')}`);
}

export function continuityKeysOf(config: Config): ContinuityKeys {
  const { databaseUrl, dataDir, encryptionKey, oldEncryptionKey, trustedSigningKeys } = config;
  const generated = () =>
    databaseUrl === undefined
      ? keyIn(dataDir, 'encryption-key', () => randomBytes(32).toString('hex')).value
      : undefined;
  return {
    master: encryptionKey ?? generated(),
    former: oldEncryptionKey,
    trusted: trustedSigningKeys,
  };
}

/** Reads the file, or makes it readable for its owner only. @throws Error of the file system */
function keyIn(dataDir: string, name: string, make: () => string): GeneratedKey {
  const file = path.join(dataDir, name);
  mkdirSync(dataDir, { recursive: true });
  try {
    writeFileSync(file, `${make()}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  try {
    return { value: readFileSync(file, 'utf8').trim(), file };
  } catch (error) {
    // A folder in its place is told without its name.
    throw Object.assign(error as NodeJS.ErrnoException, { path: file });
  }
}
