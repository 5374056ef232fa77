/** Names of sequences: in place of ids in lists, and in namespaces other than the given one. */

import { EngineError } from '../client/src/index.js';
import { EXIT, exitOf } from './exit.js';
import type { Session } from './session.js';

/** A page of a list may have this many versions; the others are shown by id. */
const NAMES_MAX = 20;

/** `name vN` by id, where readable. */
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

/** Runs a request that names a sequence. If the name is known in other namespaces only, the error's hint says so. */
export async function byName<T>(session: Session, name: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (exitOf(error) === EXIT.notFound) {
      const elsewhere = await namespacesOf(session, name);
      if (elsewhere.length > 0)
        Object.assign(error as Error, { hint: hintFor(session, elsewhere) });
    }
    throw error;
  }
}

async function namespacesOf(
  { client, namespaceOfName }: Session,
  wanted: string,
): Promise<readonly string[]> {
  const query = { name_contains: wanted, newest_only: true, include_definition: false };
  const found = new Set<string>();
  try {
    for await (const { name, namespace } of client.sequences.list(query)) {
      if (name === wanted && namespace !== namespaceOfName) found.add(namespace);
    }
  } catch (error) {
    // The key may start sequences and not list them.
    if (!(error instanceof EngineError)) throw error;
  }
  return [...found];
}

function hintFor({ namespaceOfName }: Session, elsewhere: readonly string[]): string {
  const [first] = elsewhere;
  return `Not in namespace ${namespaceOfName}; ${elsewhere.join(', ')} has one: use --namespace ${first}.`;
}
