/** A version of a sequence as an argument: `order@2`, or its id. */

import { storedDefinition } from '../client/src/builder/apply.js';
import type { SequenceDefinition } from '../client/src/index.js';
import type { Argument } from './command.js';
import { CommandError, usageError } from './exit.js';
import { byName } from './sequence-names.js';
import type { Session } from './session.js';

export const VERSION_REFERENCE: Argument = {
  name: 'version',
  about: 'A name with a version, such as order@2, or an id.',
};

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
export const isId = (text: string): boolean => UUID.test(text);

/** @throws CommandError if it is neither, or the version does not exist */
export async function versionGiven(session: Session, text: string): Promise<SequenceDefinition> {
  const { client, namespaceOfName: namespace } = session;
  if (isId(text)) return client.sequences.get(text);
  const [, name = '', version] = /^(.+)@(-?\d{1,10})$/.exec(text) ?? [];
  if (version === undefined) {
    throw usageError(`a version must be given as order@2 or by its id, not as ${text}`);
  }
  const query = { name, namespace, version: Number(version) };
  return byName(session, name, async () => {
    const found = await storedDefinition(client.sequences, query);
    if (found !== undefined) return found;
    throw new CommandError('notFound', `version ${version} of ${name} not found in ${namespace}`);
  });
}
