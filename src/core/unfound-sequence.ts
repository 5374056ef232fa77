/** What is told of a sequence that a caller named, by its id or by its name, and that is not there for it. Pure. */

/** A name as callers give it; a version of null is the choice of the engine. */
interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly version: number | null;
}

/** How a version can be started nevertheless (docs/releases.md). */
const ALL_ON_HOLD =
  'every version of it is on hold; name one with version, or lift a hold with ' +
  'PATCH /sequences/{id} {"hold": false}';

/** @param found where the name led; null: nowhere, since every version is on hold */
export function unfoundSequence(
  id: string | null | undefined,
  name: Named | undefined,
  found: string | null | undefined,
): string {
  if (name === undefined) return `sequence ${id}`;
  const version = name.version === null ? '' : ` version ${name.version}`;
  const why = found === null ? `: ${ALL_ON_HOLD}` : '';
  return `sequence ${name.name}${version} in namespace ${name.namespace}${why}`;
}
