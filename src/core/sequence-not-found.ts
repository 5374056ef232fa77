/** The message for a sequence that was named by id or name and does not exist. */

/** How to start a version anyway (docs/releases.md). */
const ALL_ON_HOLD =
  'every version of it is on hold; name one with version, or lift a hold with ' +
  'PATCH /sequences/{id} {"hold": false}';

/** @param found null: every version is on hold */
export function sequenceNotFound(
  id: string | null | undefined,
  name: { readonly namespace: string; name: string; version: number | null } | undefined,
  found: string | null | undefined,
): string {
  if (name === undefined) return `sequence ${id}`;
  const version = name.version === null ? '' : ` version ${name.version}`;
  const why = found === null ? `: ${ALL_ON_HOLD}` : '';
  return `sequence ${name.name}${version} in namespace ${name.namespace}${why}`;
}
