/**
 * Definitions in code: modules that export sequences of the builder, or definitions as plain objects. Each is run in a
 * process of its own, so that it is read anew with everything that it imports, and nothing that it starts goes on.
 */

import { execFile } from 'node:child_process';
import { usageError } from './exit.js';

const IS_MODULE = /\.m?[jt]s$/i;
const IS_TYPED = /\.m?ts$/i;
/** Declarations and tests stand beside them. */
const IS_OTHER = /\.(?:d|test|spec)\.m?[jt]s$/i;

export const isModule = (file: string) => IS_MODULE.test(file) && !IS_OTHER.test(file);

const PATIENCE_MS = 15_000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** Before the definitions, which follow what the module itself prints. */
const MARK = '\u0001definitions:';

/** The builder numbers its definitions 1 until they are applied. */
const SCRIPT = `
import { pathToFileURL } from 'node:url';
import { writeSync } from 'node:fs';
import { resolve } from 'node:path';
const exported = Object.values(await import(pathToFileURL(resolve(process.argv[1])).href)).flat();
const found = [...new Set(exported)].flatMap((one) => {
  if (typeof one !== 'object' || one === null) return [];
  const { version, ...unnumbered } = one.definition ?? {};
  const definition = one.definition === undefined ? one : unnumbered;
  return typeof definition.name === 'string' && Array.isArray(definition.blocks) ? [definition] : [];
});
const text = Buffer.from(${JSON.stringify(MARK)} + JSON.stringify(found));
for (let at = 0; at < text.length; ) at += writeSync(1, text, at);
process.exit(0);
`;

/** The definitions that the module exports, none for a module of helpers. @throws CommandError that names the file */
export async function definitionsOfModule(file: string): Promise<unknown[]> {
  if (IS_TYPED.test(file) && STRIPPING === undefined) {
    const wanted = 'Node 22.18 or later runs TypeScript';
    throw usageError(
      `${file}: ${wanted}, and this is ${process.version}; save it as JavaScript, or apply it with its own program`,
    );
  }
  const flags = IS_TYPED.test(file) ? (STRIPPING ?? []) : [];
  const args = [...flags, '--no-warnings', '--input-type=module', '-e', SCRIPT, file];
  const options = { timeout: PATIENCE_MS, maxBuffer: OUTPUT_BYTES_MAX };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      const at = stdout.lastIndexOf(MARK);
      if (at >= 0) resolve(JSON.parse(stdout.slice(at + MARK.length)));
      else reject(usageError(`${file}: ${reasonOf(stderr) ?? error?.message ?? 'cannot be run'}`));
    });
  });
}

/** The flags with which this Node runs TypeScript; undefined: it cannot. */
const STRIPPING = strippingOf(process.versions.node);

function strippingOf(version: string): readonly string[] | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18)) return [];
  if (major === 23 || (major === 22 && minor >= 6)) return ['--experimental-strip-types'];
  return undefined;
}

/** The line of the error; the rest is its stack. */
const reasonOf = (stderr: string) => /^(?:\w*Error\b.*|SyntaxError.*)$/m.exec(stderr)?.[0];
