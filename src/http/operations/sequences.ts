/** Reads of stored definitions. One of another tenant is not found. */

import type { RouteId } from '../../../schema/routes.js';
import { notFound } from '../../errors.js';
import { jsonReply, listTenant, type Operation, pageReply, queryOf } from './operation.js';

const list: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'sequences.list');
  const tenant = listTenant(call, query.tenant_id);
  return pageReply(call, query, await deps.reads.sequences.list(tenant, query.namespace, query));
};

const get: Operation = async (deps, call) => {
  const id = call.params.id ?? '';
  const text = await deps.reads.sequences.get(id, call.tenant);
  if (text === undefined) throw notFound(`sequence ${id}`);
  return jsonReply(text);
};

const byName: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'sequences.byName');
  const { namespace, name, version } = query;
  const tenant = listTenant(call, query.tenant_id) ?? '';
  const text = await deps.reads.sequences.byName(tenant, { namespace, name }, version);
  if (text === undefined) {
    const which = version === undefined ? '' : ` version ${version}`;
    throw notFound(`sequence ${name}${which} in namespace ${namespace}`);
  }
  return jsonReply(text);
};

const versions: Operation = async (deps, call) => {
  const query = queryOf(deps, call, 'sequences.versions');
  const page = await deps.reads.sequences.versions(listTenant(call, query.tenant_id), query);
  return jsonReply(page.text);
};

/** The reads of sequences; their changes belong to the catalog. */
export const sequenceOperations = {
  'sequences.list': list,
  'sequences.get': get,
  'sequences.byName': byName,
  'sequences.versions': versions,
} satisfies Partial<Record<RouteId, Operation>>;
