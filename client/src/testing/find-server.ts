/** Finds the program of the server: beside the tests, beside this package, or in the repository of both. */

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const NAME = 'durable-workflow-engine';

/** @throws Error if it is not found */
export function findServer(): string {
  for (const manifest of [installed(path.join(process.cwd(), '_')), installed(HERE), above(HERE)]) {
    if (manifest === undefined) continue;
    const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin: Record<string, string> };
    const program = path.join(path.dirname(manifest), bin[NAME] ?? '');
    if (existsSync(program)) return program;
  }
  throw new Error(`the package ${NAME} is not installed: run npm install --save-dev ${NAME}`);
}

const HERE = fileURLToPath(import.meta.url);

function installed(from: string): string | undefined {
  try {
    return createRequire(from).resolve(`${NAME}/package.json`);
  } catch {
    // Not installed there.
    return undefined;
  }
}

function above(from: string): string | undefined {
  for (
    let folder = path.dirname(from);
    folder !== path.dirname(folder);
    folder = path.dirname(folder)
  ) {
    const manifest = path.join(folder, 'package.json');
    if (!existsSync(manifest)) continue;
    if (JSON.parse(readFileSync(manifest, 'utf8')).name === NAME) return manifest;
  }
  return undefined;
}
