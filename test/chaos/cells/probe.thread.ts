/** Creates instances and reads them, one and then the other, without waiting for the answer before. */

import { parentPort, workerData } from 'node:worker_threads';
import { type Client, createClient, expectStatus, NoReplyError } from '../../helpers/client.js';
import { type Probing, sharedMs, type Took } from './probe.js';

const { url, apiKey, tenants, everyMs } = workerData as Probing;
const NAMES = { namespace: 'probe', name: 'probe' };
const BLOCKS = [{ type: 'step', id: 'only', handler: 'noop' }];

/** The proxy has answers of its own. */
const root = createClient({ url, apiKey, isChecked: false, connections: 64 });

async function begin(tenant: string): Promise<() => Promise<void>> {
  const client = root.with({ tenant });
  const body = { tenant_id: tenant, ...NAMES, version: 1, blocks: BLOCKS };
  const { id } = expectStatus(await client.post<{ id: string }>('/sequences', body), 201);
  const order = { tenant_id: tenant, namespace: NAMES.namespace, sequence_id: id };
  let made = expectStatus(await client.post<{ id: string }>('/instances', order), 201).id;
  let isReading = false;
  return async () => {
    isReading = !isReading;
    const reply = await told(tenant, () =>
      isReading ? client.get(`/instances/${made}`) : client.post('/instances', order),
    );
    const id = (reply?.body as { id?: string } | undefined)?.id;
    if (id !== undefined) made = id;
  };
}

async function told(tenant: string, request: () => ReturnType<Client['get']>) {
  const at = sharedMs();
  const tell = (status: number, code: unknown) => {
    const took: Took = { tenant, at, ms: sharedMs() - at, status, code: String(code ?? '') };
    parentPort?.postMessage(took);
  };
  try {
    const reply = await request();
    tell(reply.status, reply.headers['x-error-code']);
    return reply;
  } catch (error) {
    if (!(error instanceof NoReplyError)) throw error;
    tell(0, error.message);
    return undefined;
  }
}

const asks = await Promise.all(tenants.map(begin));
parentPort?.postMessage('begun');
for (const [at, ask] of asks.entries()) {
  // Side by side, not all at once.
  setTimeout(() => setInterval(() => void ask(), everyMs), (at * everyMs) / asks.length);
}
