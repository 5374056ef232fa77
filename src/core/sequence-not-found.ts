/** The message about a sequence that a caller named by id or name and that does not exist. Pure. */

interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly version: number | null;
}

/** How to start a version anyway (docs/releases.md). */
const ALL_ON_HOLD =
  'every version of it is on hold; name one with version, or lift a hold with ' +
  'PATCH /sequences/{id} {"hold": false}';

/** @param found null: every version is on hold */
export function sequenceNotFound(
  id: string | null | undefined,
  name: Named | undefined,
  found: string | null | undefined,
): string {
  if (name === undefined) return `sequence ${id}`;
  const version = name.version === null ? '' : ` version ${name.version}`;
  const why = found === null ? `: ${ALL_ON_HOLD}` : '';
  return `sequence ${name.name}${version} in namespace ${name.namespace}${why}`;
}
