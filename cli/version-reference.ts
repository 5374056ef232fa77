/** One version of a sequence as it is given on a command line: `order@2`, or its id. */

import { storedDefinition } from '../client/src/builder/apply.js';
import type { SequenceDefinition } from '../client/src/index.js';
import type { Argument, Given } from './command.js';
import { NAMESPACE_DEFAULT } from './commands/selection.js';
import { CommandError, usageError } from './exit.js';
import type { Session } from './session.js';

export const VERSION_REFERENCE: Argument = {
  name: 'version',
  about: 'A name with a version, as order@2, or an id.',
};

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
export const isId = (text: string): boolean => UUID.test(text);

/** @throws CommandError when it is neither, or there is no such version */
export async function versionGiven(
  { client }: Session,
  given: Given,
  text: string,
): Promise<SequenceDefinition> {
  if (isId(text)) return client.sequences.get(text);
  const [, name = '', version] = /^(.+)@(-?\d{1,10})$/.exec(text) ?? [];
  if (version === undefined) {
    throw usageError(`a version is given as order@2, or by its id, not as ${text}`);
  }
  const namespace = given.text('namespace') ?? NAMESPACE_DEFAULT;
  const query = { name, namespace, version: Number(version) };
  const found = await storedDefinition(client.sequences, query);
  if (found !== undefined) return found;
  throw new CommandError('notFound', `there is no version ${version} of ${name} in ${namespace}`);
}
