/** The names of the sequences of instances: `name vN` in place of an id, where readable. */

import { EngineError } from '../client/src/index.js';
import type { Session } from './session.js';

/** A page of a list may have this many versions; the others are shown by id. */
const NAMES_MAX = 20;

export async function sequenceNames(
  { client }: Session,
  items: readonly { readonly sequence_id: string }[],
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(items.map(({ sequence_id }) => sequence_id))].slice(0, NAMES_MAX);
  const named = await Promise.all(
    ids.map(async (id): Promise<[string, string]> => {
      try {
        const { name, version } = await client.sequences.get(id);
        return [id, `${name} v${version}`];
      } catch (error) {
        // A version that was deleted or may not be read keeps its id: the list itself was answered.
        if (error instanceof EngineError) return [id, id];
        throw error;
      }
    }),
  );
  return new Map(named);
}
