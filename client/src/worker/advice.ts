/** What is probably wrong with a worker that gets no tasks: names that nobody knows. */

import type { Client } from '../client/client.js';

/** Sequences that are looked through: of more than these nothing is said. */
const SEQUENCES_MAX = 1_000;

/**
 * @param handlers those that had no task yet
 * @param queues those that had none
 * @param signal ends the looking, since nobody would read the sentences
 * @returns a sentence for each that is worth a look
 */
export async function adviceFor(
  client: Client,
  handlers: readonly string[],
  queues: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const [{ builtin }, { by_handler }] = await Promise.all([
    client.handlers({}, { signal }),
    client.workers.stats({}, { signal }),
  ]);
  const definitions = await namedInSequences(client, signal);
  const others = Object.entries(by_handler)
    .filter(([name, counts]) => !handlers.includes(name) && (counts.pending ?? 0) > 0)
    .map(([name, counts]) => `"${name}" (${counts.pending})`);
  const waiting = others.length === 0 ? '' : `; tasks wait for ${others.join(', ')}`;
  const sentences: string[] = [];
  const isUnknown = (member: string, name: string) =>
    definitions !== undefined && !definitions.includes(`"${member}":${JSON.stringify(name)}`);
  for (const name of handlers) {
    if (builtin.includes(name)) {
      sentences.push(`"${name}" is a handler of the server itself: no worker gets its tasks`);
    } else if (by_handler[name] === undefined && isUnknown('handler', name)) {
      const whose = 'no sequence and no task';
      sentences.push(`${whose} of the tenant names the handler "${name}"${waiting}`);
    }
  }
  for (const queue_name of queues.filter((name) => isUnknown('queue_name', name))) {
    const { items } = await client.workers.tasks({ queue_name, limit: 1 }, { signal });
    if (items.length > 0) continue;
    sentences.push(`no sequence and no task of the tenant names the queue "${queue_name}"`);
  }
  return sentences;
}

/** The definitions as text; undefined where the key may not read all of them, so that nothing can be said. */
async function namedInSequences(client: Client, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { items, hasMore } = await client.sequences.list({ limit: SEQUENCES_MAX }, { signal });
    return hasMore ? undefined : JSON.stringify(items);
  } catch {
    // A worker's key usually may not.
    return undefined;
  }
}
