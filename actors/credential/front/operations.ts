/** Reads of credentials. */

import { invalid, notFound } from '../../../src/base/errors.js';
import type { FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listBy, type Operation } from '../../../src/http/operation.js';
import { credentialById, credentialList } from './reads.js';

const get: Operation<'credentials.get'> = async ({ reads }, { tenant, params: { id } }) => {
  if (tenant === '') throw invalid('x-tenant-id is required');
  const row = await credentialById.row(reads, tenant, id);
  if (row === undefined) throw notFound(`credential ${id}`);
  return jsonReply(JSON.stringify(row));
};

export function openCredentialFront() {
  return {
    operations: { 'credentials.list': listBy(credentialList), 'credentials.get': get },
  } satisfies FrontRoom;
}
