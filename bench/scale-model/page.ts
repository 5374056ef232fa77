/** docs/scale.md as the model has it; `npm run bench -- report` writes it. */

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fillRegions } from '../../scripts/reference/regions.js';
import { scaleRegions } from './tables.js';

const PAGE = 'scale.md';

/** @returns the page with its tables worked out anew, some seconds later */
export function scalePage(docs: string): { readonly file: string; readonly text: string } {
  const file = path.join(docs, PAGE);
  return { file, text: fillRegions(readFileSync(file, 'utf8'), scaleRegions()) };
}

/** @returns the file that was written */
export function writeScalePage(docs: string): string {
  const { file, text } = scalePage(docs);
  writeFileSync(file, text);
  return file;
}
