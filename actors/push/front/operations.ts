/** Reads of worker endpoints. Each shard reports the state of those that it serves. */

import type { EndpointStatus, WorkerEndpoint } from '../../../schema/worker-endpoint.js';
import { invalid, notFound } from '../../../src/base/errors.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listQuery, listTenant, pageReply } from '../../../src/http/operation.js';
import type { Shards } from '../../runtime/shards.js';
import { keyOf } from '../loads.js';
import type { pushOperations } from '../room.js';
import type { NamedStatus } from '../served.js';
import { WORKER_ENDPOINTS } from '../tables.js';

const COLUMNS = selected(columnsBut(WORKER_ENDPOINTS, 'secret'));

/** `WorkerEndpoint` records without their status. */
const endpointList = list({
  columns: COLUMNS,
  from: 'worker_endpoints',
  by: filtersOf(WORKER_ENDPOINTS, ['tenant_id']),
  order: 'tenant_id, name',
});

type StoredEndpoint = Omit<WorkerEndpoint, 'handlers' | 'status'> & { readonly handlers: string };

const endpointNamed = lookup<StoredEndpoint>(
  'read_worker_endpoint',
  `select ${COLUMNS} from worker_endpoints where tenant_id = $1 and name = $2`,
);

type Kernel = Pick<FrontKernel<Shards<typeof pushOperations>>, 'client' | 'settings'>;

/** Of an endpoint that its shard does not know yet. */
const UNKNOWN: EndpointStatus = {
  state: 'idle',
  in_flight: 0,
  last_error: null,
  last_success_at: null,
  paused_until: null,
};

async function statuses({ client, settings }: Kernel, tenant: string) {
  const requests = Array.from({ length: settings.shards }, async (_, shard) => {
    const { body } = await client.ask(shard, 'workerEndpoints.statuses', tenant, '', undefined);
    return JSON.parse(body) as NamedStatus[];
  });
  const found = (await Promise.all(requests)).flat();
  const byKey = new Map(found.map((it) => [keyOf(it), it.status]));
  return ({ handlers, ...row }: StoredEndpoint): WorkerEndpoint => ({
    ...row,
    handlers: JSON.parse(handlers) as string[],
    status: byKey.get(keyOf(row)) ?? UNKNOWN,
  });
}

export function openPushFront(kernel: Kernel) {
  return {
    operations: {
      'workerEndpoints.list': async ({ reads }, call) => {
        const query = listQuery(call);
        const page = await reads.page(endpointList(query));
        const shown = await statuses(kernel, listTenant(call, call.query.tenant_id) ?? '');
        const rows = (JSON.parse(page.text) as StoredEndpoint[]).map(shown);
        return pageReply(call, query, { ...page, text: JSON.stringify(rows) });
      },
      'workerEndpoints.get': async ({ reads }, { tenant, params: { name } }) => {
        if (tenant === '') throw invalid('x-tenant-id is required');
        const row = await endpointNamed.row(reads, tenant, name);
        if (row === undefined) throw notFound(`worker endpoint ${name}`);
        const shown = await statuses(kernel, tenant);
        return jsonReply(JSON.stringify(shown(row)));
      },
    },
  } satisfies FrontRoom;
}
