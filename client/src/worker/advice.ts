/** Advice for a worker that receives no tasks: names that nothing refers to. */

import type { Client } from '../client/client.js';

/** Above this number of sequences, no advice is given. */
const SEQUENCES_MAX = 1_000;

/**
 * @param handlers without a task so far
 * @param queues without a task so far
 * @param signal aborts the requests when the advice is no longer needed
 * @returns a sentence for each finding
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
  const waiting = others.length === 0 ? '' : `; tasks are waiting for ${others.join(', ')}`;
  const sentences: string[] = [];
  const isUnknown = (member: string, name: string) =>
    definitions !== undefined && !definitions.includes(`"${member}":${JSON.stringify(name)}`);
  for (const name of handlers) {
    if (builtin.includes(name)) {
      sentences.push(`"${name}" is a built-in handler, which workers cannot serve`);
    } else if (by_handler[name] === undefined && isUnknown('handler', name)) {
      const whose = 'no sequence or task';
      sentences.push(`${whose} of the tenant uses the handler "${name}"${waiting}`);
    }
  }
  for (const queue_name of queues.filter((name) => isUnknown('queue_name', name))) {
    const { items } = await client.workers.tasks({ queue_name, limit: 1 }, { signal });
    if (items.length > 0) continue;
    sentences.push(`no sequence or task of the tenant uses the queue "${queue_name}"`);
  }
  return sentences;
}

/** All definitions as text; undefined if the key may not read them. */
async function namedInSequences(client: Client, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { items, hasMore } = await client.sequences.list({ limit: SEQUENCES_MAX }, { signal });
    return hasMore ? undefined : JSON.stringify(items);
  } catch {
    // The key of a worker usually may not.
    return undefined;
  }
}
