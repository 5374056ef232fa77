/**
 * The keys that the embedded set-up makes for itself on its first start (spec/06 row 32), so that a
 * newcomer has a protected server without having set anything.
 */

import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface GeneratedKey {
  readonly value: string;
  readonly file: string;
}

/** Sent in `x-api-key`; the form of the secrets that are minted for tenants. */
export function rootKeyIn(dataDir: string): GeneratedKey {
  return keyIn(dataDir, 'root-key', () => `sk_${randomBytes(32).toString('hex')}`);
}

/** 64 hexadecimal digits, as ENGINE_ENCRYPTION_KEY takes it. */
export function encryptionKeyIn(dataDir: string): GeneratedKey {
  return keyIn(dataDir, 'encryption-key', () => randomBytes(32).toString('hex'));
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
  return { value: readFileSync(file, 'utf8').trim(), file };
}
