/**
 * Modules of the dashboard for tests: its sources are for a browser and are compiled by its own build, so that
 * here they are bundled on demand.
 */

import { readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build } from 'esbuild';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');

/** The tests that lie beside the dashboard. */
export function uiTests(): string[] {
  return readdirSync(path.join(ROOT, 'ui/test'))
    .filter((name) => name.endsWith('.test.ts'))
    .sort();
}

/** @param entries below `ui`, without the folder */
export async function bundleUi(
  entries: readonly string[],
  outdir: string,
  options: BuildOptions,
): Promise<void> {
  await build({
    absWorkingDir: path.join(ROOT, 'ui'),
    entryPoints: [...entries],
    entryNames: '[name]',
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2023',
    jsx: 'automatic',
    alias: { 'durable-workflow-engine-client': path.join(ROOT, 'client/src/index.ts') },
    sourcemap: true,
    logLevel: 'warning',
    ...options,
  });
}
