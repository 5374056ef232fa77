/** Reads of credentials; their changes belong to their owner on the first shard. */

import { invalid, notFound } from '../../../src/base/errors.js';
import type { FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listQuery, type Operation, pageReply } from '../../../src/http/operation.js';
import { credentialById, credentialList } from './reads.js';

const list: Operation<'credentials.list'> = async (deps, call) => {
  const query = listQuery(call);
  return pageReply(call, query, await deps.reads.page(credentialList(query)));
};

const get: Operation<'credentials.get'> = async ({ reads }, { tenant, params: { id } }) => {
  if (tenant === '') throw invalid('x-tenant-id is required');
  const row = await credentialById.row(reads, tenant, id);
  if (row === undefined) throw notFound(`credential ${id}`);
  return jsonReply(JSON.stringify(row));
};

export function openCredentialFront() {
  return {
    operations: { 'credentials.list': list, 'credentials.get': get },
  } satisfies FrontRoom;
}
