/** Reads of stored definitions, and their deletion. One of another tenant is not found. */

import type { ShardClient } from '../../../actors/shard/client.js';
import { notFound } from '../../errors.js';
import {
  type FrontOperations,
  jsonReply,
  listTenant,
  type Operation,
  pageReply,
} from './operation.js';

const list: Operation<'sequences.list'> = async (deps, call) => {
  const { query } = call;
  const tenant = listTenant(call, query.tenant_id);
  return pageReply(call, query, await deps.reads.sequences.list(tenant, query.namespace, query));
};

const get: Operation<'sequences.get'> = async (deps, call) => {
  const { id } = call.params;
  const text = await deps.reads.sequences.get(id, call.tenant);
  if (text === undefined) throw notFound(`sequence ${id}`);
  return jsonReply(text);
};

const byName: Operation<'sequences.byName'> = async (deps, call) => {
  const { query } = call;
  const { namespace, name, version } = query;
  const tenant = listTenant(call, query.tenant_id) ?? '';
  const text = await deps.reads.sequences.byName(tenant, { namespace, name }, version);
  if (text === undefined) {
    const which = version === undefined ? '' : ` version ${version}`;
    throw notFound(`sequence ${name}${which} in namespace ${namespace}`);
  }
  return jsonReply(text);
};

const versions: Operation<'sequences.versions'> = async (deps, call) => {
  const { query } = call;
  const page = await deps.reads.sequences.versions(listTenant(call, query.tenant_id), query);
  return jsonReply(page.text);
};

/**
 * The catalog deletes.
 *
 * @param onDeleted told when the instances of a sequence may be there to be removed
 */
export function sequenceDeletion(
  client: ShardClient,
  onDeleted: () => void,
): Operation<'sequences.delete'> {
  return async (_deps, { tenant, params, query }) => {
    await client.ask(CATALOG_SHARD, 'catalog.delete', tenant, params.id, query);
    onDeleted();
    return { status: 204, body: undefined };
  };
}

const CATALOG_SHARD = 0;

/** The reads of sequences. */
export const sequenceOperations = {
  'sequences.list': list,
  'sequences.get': get,
  'sequences.byName': byName,
  'sequences.versions': versions,
} satisfies Partial<FrontOperations>;
