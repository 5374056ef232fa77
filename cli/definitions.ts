/**
 * Definitions in files, and storing them: a version is immutable, so a changed definition becomes the next one,
 * and one that means the same as the newest is left alone. A number that the file gives is taken as it is.
 */

import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import {
  type Client,
  type CreateSequence,
  EngineError,
  type SequenceDefinition,
} from '../client/src/index.js';
import type { Finding } from '../schema/finding.js';
import type { ReleaseSide } from '../src/core/releases/diff.js';
import { CommandError, usageError } from './exit.js';
import { textIn } from './json-input.js';

/** As a person writes it: tenant and namespace may be said elsewhere, the version may be left to us. */
export type Written = Omit<CreateSequence, 'version'> & { readonly version?: number };

export interface InFile {
  readonly file: string;
  readonly definition: Written;
}

const IS_DEFINITION = /\.(?:json|ya?ml)$/i;

/** The files that hold definitions, in order: those that are named, and all below named folders. */
export function definitionFiles(places: readonly string[]): string[] {
  return places.flatMap((place) => {
    if (place === '-' || !statSync(place, { throwIfNoEntry: false })?.isDirectory()) return [place];
    return readdirSync(place, { recursive: true, encoding: 'utf8' })
      .filter((name) => IS_DEFINITION.test(name) && !/(?:^|[\\/])(?:\.|node_modules)/.test(name))
      .sort()
      .map((name) => path.join(place, name));
  });
}

/**
 * A file holds one definition or a list of them, as JSON or YAML.
 * @throws CommandError that names the file
 */
export async function readDefinitions(file: string): Promise<InFile[]> {
  const text = textIn(file === '-' ? 0 : file, file);
  const parsed = await parse(text, file);
  return [parsed].flat().map((definition) => {
    if (typeof definition !== 'object' || definition === null || !('name' in definition)) {
      throw usageError(`${file}: no definition with a name`);
    }
    return { file, definition: definition as Written };
  });
}

async function parse(text: string, file: string): Promise<unknown> {
  try {
    if (!/\.ya?ml$/i.test(file)) return JSON.parse(text);
    return (await import('./yaml.js')).parseYaml(text);
  } catch (error) {
    throw usageError(`${file}: ${(error as Error).message}`);
  }
}

export interface Applied {
  readonly name: string;
  readonly namespace: string;
  readonly version: number;
  readonly id: string;
  readonly change: 'created' | 'changed' | 'unchanged';
  /** What is different from the version before, in words. */
  readonly differences: readonly string[];
  readonly warnings: readonly Finding[];
}

export interface ApplyOptions {
  readonly isStrict?: boolean;
  /** A number that is taken by another definition gives way to the next one. */
  readonly isRaised?: boolean;
  /** Nothing is stored. */
  readonly isDryRun?: boolean;
}

/** Others may store a version between our look and our writing. */
const TRIES = 20;

/** @throws DefinitionError for a definition that is not valid, CommandError for a number that is taken */
export async function applyDefinition(
  client: Client,
  { definition }: InFile,
  { isStrict = false, isRaised = false, isDryRun = false }: ApplyOptions = {},
): Promise<Applied> {
  const { name, namespace = 'default', version: wanted } = definition;
  const mayRaise = wanted === undefined || isRaised;
  const warnings = await validateDefinition(client, definition, isStrict);
  const newest = await stored(client, definition);
  const before = mayRaise ? newest : await stored(client, definition, wanted);
  const differences = before === undefined ? [] : await differencesOf(before, definition);
  const shown = { name, namespace, warnings, differences };
  if (before !== undefined && differences.length === 0) {
    return { ...shown, version: before.version, id: before.id, change: 'unchanged' };
  }
  if (before !== undefined && !mayRaise) {
    throw new CommandError(
      'refused',
      `version ${wanted} of ${name} is stored already, as another definition: ${differences.join('; ')}`,
      'Raise version, or leave it out: then each change becomes the next version.',
    );
  }
  const next = mayRaise ? Math.max(wanted ?? 1, (newest?.version ?? 0) + 1) : wanted;
  const change = newest === undefined ? 'created' : 'changed';
  if (isDryRun) return { ...shown, version: next, id: '', change };
  for (let version = next; ; version++) {
    try {
      const { id } = await client.sequences.create({ ...definition, version });
      return { ...shown, version, id, change };
    } catch (error) {
      const isTaken = error instanceof EngineError && error.status === 409;
      if (!isTaken || !mayRaise || version >= next + TRIES) throw error;
    }
  }
}

/** Every mistake with the place where it is. */
export class DefinitionError extends CommandError {
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];

  constructor({ message, body }: EngineError) {
    super('failed', message);
    const { errors = [], warnings = [] } = (body ?? {}) as Partial<DefinitionError>;
    this.errors = errors;
    this.warnings = warnings;
  }
}

/** @returns the warnings @throws DefinitionError */
export async function validateDefinition(
  client: Client,
  definition: Written,
  isStrict: boolean,
): Promise<readonly Finding[]> {
  try {
    // Which number it will be given does not matter here.
    const body = { version: 1, ...definition };
    const { warnings } = await client.sequences.validate(body, { query: { strict: isStrict } });
    return warnings;
  } catch (error) {
    if (error instanceof EngineError && error.status === 400) throw new DefinitionError(error);
    throw error;
  }
}

/** The newest version that is not deprecated, or the one that is asked for; undefined: none. */
export async function stored(
  client: Client,
  { name, namespace, tenant_id }: Pick<Written, 'name' | 'namespace' | 'tenant_id'>,
  version?: number,
): Promise<SequenceDefinition | undefined> {
  try {
    return await client.sequences.byName({ name, namespace, tenant_id, version });
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return undefined;
    throw error;
  }
}

/** In words; none where both mean the same for a new instance. */
export async function differencesOf(before: SequenceDefinition, after: Written): Promise<string[]> {
  const { semanticDiff } = await import('../src/core/releases/diff.js');
  const { entries } = semanticDiff(sideOf(before), sideOf(after));
  return entries.map(({ summary }) => summary);
}

/** The server has checked it. */
const sideOf = (definition: unknown) => definition as ReleaseSide;

/** Each begins with its place. */
export function findingLines(findings: readonly Finding[]): string[] {
  return findings.map(({ path: place, message }) =>
    message.startsWith(place) ? message : `${place}: ${message}`,
  );
}
