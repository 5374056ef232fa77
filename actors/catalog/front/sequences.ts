/** Reads of stored definitions, and their deletion. One of another tenant is not found. */

import type { SequenceByNameQuery } from '../../../schema/sequence.js';
import { notFound } from '../../../src/base/errors.js';
import { sequenceNotFound } from '../../../src/core/sequence-not-found.js';
import {
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listBy,
  listQuery,
  type Operation,
} from '../../../src/http/operation.js';
import type { Shards } from '../../runtime/shards.js';
import type { sequenceOperations as OwnerOperations } from '../operations.js';
import { sequenceById, sequenceByName, sequenceList, versionList } from './sequence-reads.js';

const get: Operation<'sequences.get'> = async (deps, call) => {
  return jsonReply(await sequenceById(deps.reads, call.params.id, call.tenant));
};

const byName: Operation<'sequences.byName'> = async (deps, call) => {
  const { namespace, name, version } = call.query;
  const query = listQuery(call);
  const text = await sequenceByName(deps.reads, query, version);
  if (text !== undefined) return jsonReply(text);
  const isOnHold = version === undefined && (await hasVersions(deps, query));
  const asked = { namespace, name, version: version ?? null };
  throw notFound(sequenceNotFound(null, asked, isOnHold ? null : undefined));
};

/** Whether the name has any that are not deprecated. */
async function hasVersions({ reads }: FrontDeps, query: SequenceByNameQuery): Promise<boolean> {
  return (await reads.batch(versionList({ ...query, limit: 1 }))).texts.length > 0;
}

const versions: Operation<'sequences.versions'> = async (deps, call) => {
  const page = await deps.reads.page(versionList(listQuery(call)));
  return jsonReply(page.text);
};

/**
 * The catalog deletes.
 *
 * @param onDeleted called when a deleted sequence may have instances to remove
 */
export function sequenceDeletion(
  client: Shards<typeof OwnerOperations>,
  onDeleted: () => void,
): Operation<'sequences.delete'> {
  return async (_deps, { tenant, params, query }) => {
    const reply = await client.ask(CATALOG_SHARD, 'catalog.delete', tenant, params.id, query);
    if (query.dry_run) return jsonReply(reply.body);
    onDeleted();
    return { status: 204, body: undefined };
  };
}

const CATALOG_SHARD = 0;

/** The reads of sequences. */
export const sequenceOperations = {
  'sequences.list': listBy(sequenceList),
  'sequences.get': get,
  'sequences.byName': byName,
  'sequences.versions': versions,
} satisfies Partial<FrontOperations>;
