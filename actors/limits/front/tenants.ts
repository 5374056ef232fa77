/** The tenants that there are, for who may choose among them. */

import { tenantList } from '../../../src/db/reads/tenant-reads.js';
import { type FrontOperations, type Operation, pageReply } from '../../../src/http/operation.js';

const list: Operation<'tenants.list'> = async ({ reads }, call) =>
  pageReply(call, { ...call.query, offset: 0 }, await reads.page(tenantList(call.query)));

export const tenantOperations = { 'tenants.list': list } satisfies Partial<FrontOperations>;
