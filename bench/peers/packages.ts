/**
 * The other engines, in exact versions, installed by npm into a folder of their own: nothing of theirs is
 * among the packages of the product. They are the newest that run on the Node that the product supports.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';

export const PACKAGES: Readonly<Record<string, string>> = {
  'pg-boss': '10.4.2',
  'graphile-worker': '0.17.3',
  bullmq: '6.7.0',
  // By which BullMQ speaks to Redis.
  ioredis: '5.11.1',
};

export const PEERS_FOLDER = path.join(tmpdir(), 'engine-bench-peers');

/** A registry that does not answer is given up after this. */
const INSTALL_TIMEOUT_MS = 180_000;

export class PeersMissingError extends Error {}

/** @throws PeersMissingError with what npm said */
export function installPeers(folder: string): void {
  const manifest = JSON.stringify({ private: true, dependencies: PACKAGES }, null, 2);
  const file = path.join(folder, 'package.json');
  if (missingIn(folder).length === 0) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, manifest);
  const { status, error, stdout, stderr } = spawnSync(
    'npm',
    ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'],
    { cwd: folder, encoding: 'utf8', timeout: INSTALL_TIMEOUT_MS },
  );
  const missing = missingIn(folder);
  if (status === 0 && missing.length === 0) return;
  const said = error?.message ?? `${stdout}${stderr}`.trim();
  throw new PeersMissingError(
    `${missing.join(', ')} could not be installed into ${folder}: is the npm registry within reach?\n${said}`,
  );
}

/** Those that are not there in the version that is asked for. */
export function missingIn(folder: string): readonly string[] {
  const names = Object.entries(PACKAGES).filter(([name, version]) => {
    const file = path.join(folder, 'node_modules', name, 'package.json');
    if (!existsSync(file)) return true;
    return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version !== version;
  });
  return names.map(([name, version]) => `${name}@${version}`);
}

/** The exports of the package. */
export function loadPeer<T>(folder: string, name: string): T {
  return createRequire(path.join(folder, 'package.json'))(name) as T;
}
