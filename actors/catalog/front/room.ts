/** Sequences and API keys on the front thread. All live keys are loaded before requests are served. */

import { notFound } from '../../../src/base/errors.js';
import { sequenceNotFound } from '../../../src/core/sequence-not-found.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listBy, listQuery } from '../../../src/http/operation.js';
import type { Shards } from '../../runtime/shards.js';
import type { Catalog } from '../catalog.js';
import type { keyOperations } from '../front-rows.js';
import { KeyOperations, liveKeys } from './api-keys.js';
import { sequenceById, sequenceByName, sequenceList, versionList } from './sequence-reads.js';

type Client = Shards<typeof keyOperations> & Shards<() => Catalog['operations']>;
const CATALOG_SHARD = 0;

/** @param onDeleted called when instances of a deleted sequence may have to be removed */
export function openCatalogFront(kernel: FrontKernel<Client>, onDeleted: () => void) {
  const { client, reads, keys } = kernel;
  const page = (after: string, limit: number) => liveKeys.rows(reads, after, limit);
  return {
    parts: [new KeyOperations({ ...kernel, registry: keys })],
    operations: {
      'sequences.list': listBy(sequenceList),
      'sequences.get': async (deps, { params, tenant }) =>
        jsonReply(await sequenceById(deps.reads, params.id, tenant)),
      'sequences.byName': async (deps, call) => {
        const { namespace, name, version } = call.query;
        const query = listQuery(call);
        const text = await sequenceByName(deps.reads, query, version);
        if (text !== undefined) return jsonReply(text);
        const listed = versionList({ ...query, limit: 1 });
        const isOnHold = version === undefined && (await deps.reads.batch(listed)).texts.length > 0;
        const named = { namespace, name, version: version ?? null };
        throw notFound(sequenceNotFound(null, named, isOnHold ? null : undefined));
      },
      'sequences.versions': async (deps, call) =>
        jsonReply((await deps.reads.page(versionList(listQuery(call)))).text),
      'sequences.delete': async (_deps, { tenant, params, query, action }) => {
        const { id } = params;
        const asked = { action };
        const reply = await client.ask(CATALOG_SHARD, 'catalog.delete', tenant, id, query, asked);
        if (query.dry_run) return jsonReply(reply.body);
        onDeleted();
        return { status: 204, body: undefined };
      },
    },
    prepare: () => keys.load(page),
    tenantComes: (tenant) => keys.reload(tenant, page),
  } satisfies FrontRoom;
}
