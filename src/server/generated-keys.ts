/** Generates keys at the first embedded start (docs/decisions/0020-start-and-command-line.md). */

import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ContinuityKeys } from '../core/sealing/keys.js';
import type { Config } from './config.js';

export interface GeneratedKey {
  readonly value: string;
  readonly file: string;
}

/** Undefined without the embedded database, with a configured root key, and with `--insecure-auth`. */
export function generatedRootKey(config: Config): GeneratedKey | undefined {
  const { databaseUrl, insecureAuth, apiKey, dataDir } = config;
  if (databaseUrl !== undefined || insecureAuth || apiKey !== undefined) return undefined;
  // The form of the secrets of tenants' keys.
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

/** Reads the file, or creates it, readable for its owner only. @throws Error of the file system */
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
    // The error for a folder in its place does not contain the path.
    throw Object.assign(error as NodeJS.ErrnoException, { path: file });
  }
}
