/**
 * Publishes a definition if it has changed. Versions are immutable: the definition is compared with the newest version
 * and with those on hold after it, and a different definition becomes the next version. Of concurrent processes only
 * one gets the version number; the others compare again.
 */

import type { Client } from '../client/client.js';
import { EngineError } from '../client/errors.js';
import type { CallOptions } from '../client/operation.js';
import type { CreateSequence, SequenceCreated, SequenceDefinition } from '../generated/types.js';

/** The version that has the definition. */
export interface Applied {
  /** Id of the version. */
  readonly id: string;
  readonly version: number;
  /** False if the newest version already had this definition. */
  readonly changed: boolean;
  /** The version is on hold: its name does not refer to it until the hold is lifted or a release promotes it. */
  readonly hold?: true;
  /** Warnings about the definition when it was published. */
  readonly warnings: NonNullable<SequenceCreated['warnings']>;
}

/** A definition whose version number is assigned by the server. */
export type Unnumbered = Omit<CreateSequence, 'version'>;

export interface ApplyOptions extends CallOptions {
  /** The lowest version number to use. Default: 1. */
  readonly versionMin?: number | undefined;
  /**
   * Publish on hold: the name does not refer to the version until the hold is lifted or a release promotes it. Default:
   * false.
   */
  readonly hold?: boolean | undefined;
}

/**
 * Compares and publishes until the newest version has the definition. Concurrent processes end up with a single
 * version.
 *
 * @throws EngineError 400 for an invalid definition, and whatever else a call may reject with
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
    // A deprecated version may have this number: then the next one is tried.
    version = Math.max(version, (newest?.version ?? 0) + 1);
    const stored = await store(sequences, { ...definition, version, ...wanted }, options);
    if (stored !== undefined) {
      const { id, warnings = [] } = stored;
      return { id, version, changed: true, ...wanted, warnings };
    }
  }
}

/** Sent only when set, so that older servers accept the request. */
export const held = ({ hold }: Pick<CreateSequence, 'hold'>) => (hold ? { hold } : {});

/** The existing versions of a name. */
interface Standing {
  /** The newest version that is not deprecated, even if it is on hold; undefined: none. */
  readonly newest: SequenceDefinition | undefined;
  /** The version with this very definition: the current one, or a newer one on hold; undefined: none. */
  readonly same: SequenceDefinition | undefined;
}

/** Usually nothing has changed, and one request is enough. */
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

/** The newest version that is neither deprecated nor on hold, or the requested version; undefined: none. */
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

/** Undefined if the version number is taken. */
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

/** The members that make up the definition; all others belong to the version. */
const MEANING = [
  'blocks',
  'input_schema',
  'on_failure',
  'on_cancel',
  'concurrency',
  'throttle',
  'cancel_on',
  'debounce',
  'batch',
  'searchable',
] as const;

/**
 * Whether two definitions are equal as JSON, whatever the order of members. The only such comparison: used by the
 * builder and the command line.
 */
export function isSameDefinition(stored: SequenceDefinition, definition: Unnumbered): boolean {
  return MEANING.every((member) => normal(stored[member]) === normal(definition[member]));
}

/** The same text for equal JSON, whatever the order of members. */
function normal(value: unknown): string {
  return JSON.stringify(value ?? null, (_, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
