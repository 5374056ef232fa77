/**
 * Finds files of the package. The same code runs compiled, where each module is in the folder of its source, and as
 * the server bundle, whose files are in one folder (`scripts/lib/bundle.mjs`).
 */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** `dist/src/base`, or `dist/server` in the bundle. */
const HERE = path.dirname(fileURLToPath(import.meta.url));
const IS_BUNDLE = path.basename(HERE) === 'server';

/** The path of a file or folder that is shipped unchanged, such as `package.json`. */
export function packageFile(place: string): string {
  return path.join(HERE, IS_BUNDLE ? '../..' : '../../..', place);
}

/** @param place path of a thread entry below the folder of the compiled modules */
export function threadEntry(place: string): string {
  return new URL(IS_BUNDLE ? path.basename(place) : `../../${place}`, import.meta.url).href;
}

export function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string })
    .version;
}
