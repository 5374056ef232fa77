/**
 * Reads definitions from files and publishes them as the builder does: versions are immutable, so a changed definition
 * becomes the next version and an unchanged one is skipped. A version number in the file is used as it is.
 */

import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import type { ReleaseSide } from '../actors/release/core/diff.js';
import {
  apply,
  held,
  isSameDefinition,
  standing,
  storedDefinition,
} from '../client/src/builder/apply.js';
import {
  type Client,
  type CreateSequence,
  EngineError,
  type SequenceDefinition,
} from '../client/src/index.js';
import type { Finding } from '../schema/finding.js';
import { CommandError, usageError } from './exit.js';
import { parsed, textIn } from './json-input.js';
import { definitionsOfModule, isModule } from './modules.js';

/** As written by the user: tenant and namespace may come from options, and the version may be left out. */
export type Written = Omit<CreateSequence, 'version'> & { readonly version?: number };

export interface InFile {
  readonly file: string;
  readonly definition: Written;
}

const IS_DEFINITION = /\.(?:json|ya?ml)$/i;

/** The definition files, in order: named files, and all files below named folders. */
export function definitionFiles(places: readonly string[]): string[] {
  return places.flatMap((place) => {
    if (place === '-' || !statSync(place, { throwIfNoEntry: false })?.isDirectory()) return [place];
    return definitionsBelow(place).sort();
  });
}

/**
 * Links are not followed: they may lead elsewhere or form a cycle. Folders are read one by one, since the option
 * `recursive` follows links from Node 22 on.
 */
function definitionsBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const found = path.join(folder, entry.name);
    if (/^(?:\.|node_modules)/.test(entry.name)) return [];
    if (entry.isDirectory()) return definitionsBelow(found);
    const isOne = IS_DEFINITION.test(entry.name) || isModule(entry.name);
    return entry.isFile() && isOne ? [found] : [];
  });
}

/**
 * A file contains one definition or a list of them, as JSON or YAML; a module exports them.
 * @throws CommandError that names the file
 */
export async function readDefinitions(file: string): Promise<InFile[]> {
  const found = await definitionsIn(file);
  const names = found.map(({ definition: { tenant_id, namespace = 'default', name, version } }) =>
    JSON.stringify([tenant_id, namespace, name, version]),
  );
  const twin = found.find((_, index) => names.indexOf(names[index] as string) < index);
  if (twin === undefined) return found;
  // They would replace each other, with two new versions each time that the file is applied.
  const { name, version } = twin.definition;
  const both = version === undefined ? name : `version ${version} of ${name}`;
  throw usageError(`${file}: defines ${both} twice`);
}

async function definitionsIn(file: string): Promise<InFile[]> {
  if (isModule(file)) {
    const found = await definitionsOfModule(file);
    return found.map((definition) => ({ file, definition: definition as Written }));
  }
  const text = textIn(file === '-' ? 0 : file, file);
  return [await parse(text, file)].flat().map((definition) => {
    if (typeof definition !== 'object' || definition === null || !('name' in definition)) {
      throw usageError(`${file}: contains no definition with a name`);
    }
    return { file, definition: definition as Written };
  });
}

async function parse(text: string, file: string): Promise<unknown> {
  if (!/\.ya?ml$/i.test(file)) return parsed(text, file);
  const { parseYaml } = await import('./yaml.js');
  try {
    // Parsed again as JSON, so that all limits of JSON values apply.
    return parsed(JSON.stringify(parseYaml(text)), file);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw usageError(`${file}: ${(error as Error).message}`);
  }
}

export interface Applied {
  readonly name: string;
  readonly namespace: string;
  readonly version: number;
  readonly id: string;
  readonly change: 'created' | 'changed' | 'unchanged';
  /** The name does not refer to it yet. */
  readonly hold: boolean;
  /** The differences from the previous version, in words. */
  readonly differences: readonly string[];
  readonly warnings: readonly Finding[];
}

export interface ApplyOptions {
  readonly isStrict?: boolean;
  /** If the version number is taken by another definition, uses the next one. */
  readonly isRaised?: boolean;
  /** Publishes nothing. */
  readonly isDryRun?: boolean;
  /** Publishes on hold, also if the definition does not say so. */
  readonly isOnHold?: boolean;
}

/** Shown for a version that differs only in ways that instances do not notice. */
const SAME_MEANING = 'written differently, with the same behavior';

/** @throws DefinitionError for an invalid definition, CommandError for a version number that is taken */
export async function applyDefinition(
  client: Client,
  { definition }: InFile,
  { isStrict = false, isRaised = false, isDryRun = false, isOnHold = false }: ApplyOptions = {},
): Promise<Applied> {
  const { name, namespace = 'default', version: wanted } = definition;
  const hold = isOnHold || (definition.hold ?? false);
  const mayRaise = wanted === undefined || isRaised;
  const warnings = await validateDefinition(client, definition, isStrict);
  const place = { name, namespace, tenant_id: definition.tenant_id };
  const { newest, same } = await standing(client.sequences, place, definition);
  const before = mayRaise
    ? (same ?? newest)
    : await storedDefinition(client.sequences, { ...place, version: wanted });
  const shown = { name, namespace, hold, warnings };
  if (before !== undefined && isSameDefinition(before, definition)) {
    const { id, version } = before;
    return { ...shown, version, id, change: 'unchanged', hold: before.hold, differences: [] };
  }
  const differences = before === undefined ? [] : await differencesOf(before, definition);
  if (before !== undefined && !mayRaise) {
    throw new CommandError(
      'refused',
      `version ${wanted} of ${name} already exists with another definition: ${differences.join('; ')}`,
      'Increase the version, or leave it out: then each change becomes the next version.',
    );
  }
  const change = newest === undefined ? 'created' : 'changed';
  if (isDryRun) {
    const version = mayRaise ? Math.max(wanted ?? 1, (newest?.version ?? 0) + 1) : wanted;
    return { ...shown, version, id: '', change, differences };
  }
  if (!mayRaise) {
    const { id } = await client.sequences.create({
      ...definition,
      version: wanted,
      ...held({ hold }),
    });
    return { ...shown, version: wanted, id, change, differences };
  }
  const applied = await apply(client, definition, { versionMin: wanted, hold });
  const { id, version, changed } = applied;
  // Another client may have published it in the meantime.
  const outcome = changed ? change : 'unchanged';
  return { ...shown, version, id, change: outcome, hold: applied.hold ?? false, differences };
}

/** Lists every error with its position. */
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
    // Validation does not depend on the version number.
    const body = { version: 1, ...definition };
    const { warnings } = await client.sequences.validate(body, { query: { strict: isStrict } });
    return warnings;
  } catch (error) {
    if (error instanceof EngineError && error.status === 400) throw new DefinitionError(error);
    throw error;
  }
}

/** In words. */
async function differencesOf(before: SequenceDefinition, after: Written): Promise<string[]> {
  const { semanticDiff } = await import('../actors/release/core/diff.js');
  const { entries } = semanticDiff(sideOf(before), sideOf(after));
  return entries.length === 0 ? [SAME_MEANING] : entries.map(({ summary }) => summary);
}

/** The server has validated it. */
const sideOf = (definition: unknown) => definition as ReleaseSide;

/** Each line starts with the position. */
export function findingLines(findings: readonly Finding[]): string[] {
  return findings.map(({ path: place, message }) =>
    message.startsWith(place) ? message : `${place}: ${message}`,
  );
}
