/** The tenants that there are, for who may choose among them. */

import { type FrontOperations, type Operation, pageReply } from '../../../src/http/operation.js';
import { tenantList } from './tenant-reads.js';

const list: Operation<'tenants.list'> = async ({ reads }, call) =>
  pageReply(call, { ...call.query, offset: 0 }, await reads.page(tenantList(call.query)));

export const tenantOperations = { 'tenants.list': list } satisfies Partial<FrontOperations>;
