/** `npm run bench -- report`: docs/performance.md, its pictures and docs/security.md, written anew by the stored results. */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fillRegions, type Regions } from '../../scripts/reference/regions.js';
import { picturesOf } from './pictures.js';
import { pressureRegions } from './pressure.js';
import { PICTURES, regionsOf } from './regions.js';
import { readStored } from './stored.js';

const PAGE = 'performance.md';
const SECURITY_PAGE = 'security.md';

/** @returns what is to stand in the files of the manual, by their paths from its folder */
export function pageFiles(results: string, docs: string): Readonly<Record<string, string>> {
  const parts = readStored(results);
  const pictures = picturesOf(parts);
  const regions = regionsOf(parts, new Set(Object.keys(pictures)));
  const filled = (name: string, regions: Regions) =>
    fillRegions(readFileSync(path.join(docs, name), 'utf8'), regions);
  const drawn = Object.entries(pictures).map(([name, svg]) => [path.join(PICTURES, name), svg]);
  return {
    [PAGE]: filled(PAGE, regions),
    [SECURITY_PAGE]: filled(SECURITY_PAGE, pressureRegions(parts)),
    ...Object.fromEntries(drawn),
  };
}

/** Pictures that nothing is drawn for any more are removed. @returns what was written */
export function writePage(results: string, docs: string): readonly string[] {
  const files = pageFiles(results, docs);
  rmSync(path.join(docs, PICTURES), { recursive: true, force: true });
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(docs, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return Object.keys(files).map((name) => path.join(docs, name));
}

/** Of the pictures that are there. */
export function drawnIn(docs: string): readonly string[] {
  const folder = path.join(docs, PICTURES);
  return existsSync(folder) ? readdirSync(folder).map((name) => path.join(PICTURES, name)) : [];
}
