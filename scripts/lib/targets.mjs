/**
 * What is built, and of which files: a target is current while its stamp has the hash of them. The server as
 * compiled modules and as a bundle, and the dashboard.
 */

import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { bundleServer, copySwaggerUi } from './bundle.mjs';

const root = path.resolve(import.meta.dirname, '../..');
const at = (name) => path.join(root, name);
const read = (name) => readFileSync(at(name), 'utf8');
const compile = (run, project) => run(at('node_modules/typescript/bin/tsc'), '-p', at(project));

export const SERVER = {
  name: 'the server',
  stamp: at('dist/.build-stamp'),
  madeFrom: [
    ...JSON.parse(read('tsconfig.json')).include,
    'tsconfig.json',
    'scripts/lib/bundle.mjs',
  ],
  /** @param run runs a script of Node with arguments, and ends the process when it fails */
  build: async (run) => {
    await compile(run, '.');
    rmSync(at('dist/server'), { recursive: true, force: true });
    copySwaggerUi(root);
    await bundleServer(at('dist'));
  },
};

export const DASHBOARD = {
  name: 'the dashboard',
  stamp: at('dist/.ui-stamp'),
  madeFrom: ['ui', 'client/src', 'docs/openapi.json', 'scripts/lib/ui.mjs'],
  build: async (run) => {
    await compile(run, 'ui');
    await run(at('scripts/lib/ui.mjs'));
  },
};

export const isCurrent = (target) =>
  existsSync(target.stamp) && readFileSync(target.stamp, 'utf8') === hashOf(target);

export function hashOf({ madeFrom }) {
  const hash = createHash('sha256');
  for (const file of ['package.json', 'package-lock.json', ...madeFrom.flatMap(filesIn)].sort()) {
    hash.update(`\0${file}\0`).update(readFileSync(at(file)));
  }
  return hash.digest('hex');
}

/** The files of a folder, at any depth, or the file itself. */
function filesIn(place) {
  if (!lstatSync(at(place)).isDirectory()) return [place];
  return readdirSync(at(place), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath ?? entry.path, entry.name)));
}
