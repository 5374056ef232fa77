/**
 * Storing a definition when it changed. What is stored never changes, and a name has versions: the newest one is
 * compared, with those on hold that are to come after it, and another definition becomes the next version. Who is
 * first wins the number; the others look again.
 */

import type { Client } from '../client/client.js';
import { EngineError } from '../client/errors.js';
import type { CallOptions } from '../client/operation.js';
import type { CreateSequence, SequenceCreated, SequenceDefinition } from '../generated/types.js';

/** What the server has under the name now. */
export interface Applied {
  /** Of the stored version. */
  readonly id: string;
  readonly version: number;
  /** False: the newest version is the same already. */
  readonly changed: boolean;
  /** Its hold is to be lifted, or a release to promote it, before the name leads to it. */
  readonly hold?: true;
  /** What the server remarked when it stored the definition. */
  readonly warnings: NonNullable<SequenceCreated['warnings']>;
}

/** A definition whose number is the server's to give. */
export type Unnumbered = Omit<CreateSequence, 'version'>;

export interface ApplyOptions extends CallOptions {
  /** No lower number is given. Default: 1. */
  readonly versionMin?: number | undefined;
  /** What is stored is on hold: the name leads to it when that is lifted, or a release promotes it. Default: false. */
  readonly hold?: boolean | undefined;
}

/**
 * Looks and stores in turns, until the newest version is the definition. Processes that do so at the same time end
 * with one version, whose number only one of them gets.
 *
 * @throws EngineError 400 for a definition that is refused, and what else a call may reject with
 */
export async function apply(
  { sequences }: Pick<Client, 'sequences'>,
  definition: Unnumbered,
  { versionMin = 1, hold = false, ...options }: ApplyOptions = {},
): Promise<Applied> {
  const { name, namespace, tenant_id } = definition;
  const wanted = held({ hold: hold || definition.hold });
  for (let version = versionMin; ; version += 1) {
    const place = { name, namespace, tenant_id };
    const { newest, same } = await standing(sequences, place, definition, options);
    if (same !== undefined) {
      return { id: same.id, version: same.version, changed: false, ...held(same), warnings: [] };
    }
    // A number behind the newest may be taken by a version that is deprecated: then the next one is tried.
    version = Math.max(version, (newest?.version ?? 0) + 1);
    const stored = await store(sequences, { ...definition, version, ...wanted }, options);
    if (stored !== undefined) {
      const { id, warnings = [] } = stored;
      return { id, version, changed: true, ...wanted, warnings };
    }
  }
}

/** Only what is on hold says so, so that an older server is not asked for what it does not know. */
export const held = ({ hold }: Pick<CreateSequence, 'hold'>) => (hold ? { hold } : {});

/** What there is under a name that is to be stored. */
interface Standing {
  /** Not deprecated, but maybe on hold; undefined: none. */
  readonly newest: SequenceDefinition | undefined;
  /** The definition itself: what the name leads to, or a newer one on hold; undefined: it is another. */
  readonly same: SequenceDefinition | undefined;
}

/** Mostly nothing has changed, which one question tells. */
export async function standing(
  sequences: Client['sequences'],
  place: Place,
  definition: Unnumbered,
  options: CallOptions = {},
): Promise<Standing> {
  const led = await storedDefinition(sequences, place, options);
  if (led !== undefined && isSameDefinition(led, definition)) return { newest: led, same: led };
  const toCome = (await sequences.versions(place, options)).filter(
    ({ hold, version }) => hold && version > (led?.version ?? Number.NEGATIVE_INFINITY),
  );
  return {
    newest: toCome[0] ?? led,
    same: toCome.find((version) => isSameDefinition(version, definition)),
  };
}

type Place = Pick<Parameters<Client['sequences']['byName']>[0], 'name' | 'namespace' | 'tenant_id'>;

/** The newest version that is neither deprecated nor on hold, or the one that is asked for; undefined: none. */
export async function storedDefinition(
  sequences: Client['sequences'],
  query: Parameters<Client['sequences']['byName']>[0],
  options: CallOptions = {},
): Promise<SequenceDefinition | undefined> {
  try {
    return await sequences.byName(query, options);
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return undefined;
    throw error;
  }
}

/** Undefined: somebody else has the number. */
async function store(
  sequences: Client['sequences'],
  definition: CreateSequence,
  options: CallOptions,
): Promise<SequenceCreated | undefined> {
  try {
    return await sequences.create(definition, options);
  } catch (error) {
    if (error instanceof EngineError && error.status === 409) return undefined;
    throw error;
  }
}

/** What makes a definition; everything else is about the version. */
const MEANING = ['blocks', 'input_schema', 'on_failure', 'on_cancel'] as const;

/**
 * Whether what is to be stored is stored already: the same JSON, whatever the order of its members. Whoever applies
 * definitions asks this, and nothing else: the builder here, and the command line.
 */
export function isSameDefinition(stored: SequenceDefinition, definition: Unnumbered): boolean {
  return MEANING.every((member) => normal(stored[member]) === normal(definition[member]));
}

/** One text for all JSON that is equal, whatever the order of its members. */
function normal(value: unknown): string {
  return JSON.stringify(value ?? null, (_, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
