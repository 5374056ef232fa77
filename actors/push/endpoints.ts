/**
 * The owner of worker endpoints, on the first shard. It caches no rows: each request reads, decides, and commits one
 * unit. The response is sent after every shard has the change (`served.ts`): deliveries that begin later follow it.
 */

import {
  ENDPOINT_DEFAULTS as DEFAULTS,
  type PutWorkerEndpoint,
  type WorkerEndpoint,
} from '../../schema/worker-endpoint.js';
import { conflict, forbidden, invalid, notFound } from '../../src/base/errors.js';
import { tenantOf } from '../../src/base/tenancy.js';
import { checkUnchanged, updatedAt } from '../../src/base/unchanged-since.js';
import { keyProblem } from '../../src/core/message-signature.js';
import type { StoredSecret } from '../../src/core/sealing/sealing.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, RouteOperations } from '../runtime/operation.js';
import { Publisher } from '../runtime/publisher.js';
import type { Messages, Room } from '../runtime/room.js';
import { type RowSecretsDeps, storedSecret, warnIfWeak } from '../runtime/row-secrets.js';
import { Service } from '../runtime/service.js';
import { EVERY_TENANT } from '../runtime/tenant-replica.js';
import { Turn } from '../runtime/turn.js';
import { type Endpoint, endpointOf, keyOf, type PushLoads } from './loads.js';
import { WORKER_ENDPOINT } from './tables.js';

export interface EndpointsDeps extends Kernel<PushLoads>, RowSecretsDeps {
  readonly sender: Pick<WebhookSender, 'problemOf'>;
}

const ENDPOINTS_PER_TENANT_MAX = 100;
/** Every shard reads all of them at its start, and waits at the queues of its own. */
const ENDPOINTS_MAX = 5_000;

export class Endpoints implements Room {
  readonly #deps: EndpointsDeps;
  readonly #publisher: Publisher<string>;
  /** Requests of one tenant are serialized, so that the limit holds. */
  readonly #service: Service;

  readonly operations = {
    'workerEndpoints.put': { serve: (call) => this.#put(call) },
    'workerEndpoints.delete': { serve: (call) => this.#delete(call) },
  } satisfies RouteOperations;
  readonly messages = {
    'endpoints.settled': ({ version, shard }) => this.#publisher.settled(version, shard),
  } satisfies Messages;

  constructor(deps: EndpointsDeps) {
    this.#deps = deps;
    this.#service = new Service('worker-endpoints', deps);
    const message = (version: number, tenants: readonly string[]) =>
      ({ kind: 'endpoints.read', version, tenants }) as const;
    this.#publisher = new Publisher<string>(deps, EVERY_TENANT, message);
  }

  get parts() {
    return [this.#publisher];
  }

  #put({
    request,
    tenant: header,
    target: name,
    body,
    maySeeSecrets,
  }: Call<PutWorkerEndpoint>): void {
    const tenant = tenantOf(header, body.tenant_id);
    if (tenant.trim() === '') throw invalid('tenant_id must not be blank');
    const problem = this.#deps.sender.problemOf(body.url);
    if (problem !== undefined) throw invalid(`url: ${problem}`);
    const wrong = body.secret == null ? undefined : keyProblem(body.secret);
    if (wrong !== undefined) throw invalid(`secret ${wrong}`);
    if (body.receives_secrets === true && maySeeSecrets !== true) {
      throw forbidden('receives_secrets takes a key with the capability secrets');
    }
    this.#service.answer(request, 200, tenant, () => this.#set(request, tenant, name, body));
  }

  async #set(
    request: number,
    tenant_id: string,
    name: string,
    body: PutWorkerEndpoint,
  ): Promise<WorkerEndpoint> {
    const { now } = this.#deps;
    const known = await this.#of(tenant_id);
    const before = known.find((endpoint) => endpoint.name === name);
    checkUnchanged(body.if_unchanged_since, before?.updated_at);
    if (before === undefined) await this.#checkRoom(known.length);
    const place = { tenant_id, name };
    const secret = body.secret == null ? before?.secret : this.#stored(place, body.secret);
    if (secret === undefined) throw invalid('secret is required for a new endpoint');
    const at = updatedAt(now(), before?.updated_at);
    const row: Endpoint = {
      ...place,
      handlers: body.handlers,
      url: body.url,
      secret,
      concurrency: body.concurrency ?? DEFAULTS.concurrency,
      timeout_ms: body.timeout_ms ?? DEFAULTS.timeout_ms,
      enabled: body.enabled ?? DEFAULTS.enabled,
      receives_secrets: body.receives_secrets ?? DEFAULTS.receives_secrets,
      created_at: before?.created_at ?? at,
      updated_at: at,
    };
    const turn = new Turn(tenant_id, request);
    turn.put(WORKER_ENDPOINT.set, keyOf(place), row);
    await this.#commit(turn, row);
    const { secret: _, handlers, ...shown } = row;
    return { ...shown, handlers: [...handlers] };
  }

  async #checkRoom(count: number): Promise<void> {
    if (count >= ENDPOINTS_PER_TENANT_MAX) {
      throw conflict(`a tenant has at most ${ENDPOINTS_PER_TENANT_MAX} worker endpoints`);
    }
    const last = () => this.#deps.loader.endpointAt(ENDPOINTS_MAX - 1);
    if ((await this.#service.read(last)) === undefined) return;
    throw conflict(`there are at most ${ENDPOINTS_MAX} worker endpoints of all tenants`);
  }

  #delete({ request, tenant, target: name }: Call): void {
    if (tenant === '') throw invalid('x-tenant-id is required');
    this.#service.answer(request, 204, tenant, async () => {
      const row = (await this.#of(tenant)).find((endpoint) => endpoint.name === name);
      if (row === undefined) throw notFound(`worker endpoint ${name}`);
      const turn = new Turn(tenant, request);
      turn.put(WORKER_ENDPOINT.clear, keyOf(row), { tenant_id: tenant, name });
      await this.#commit(turn, row);
      return undefined;
    });
  }

  async #of(tenant: string): Promise<Endpoint[]> {
    const rows = await this.#service.read(() => this.#deps.loader.endpoints([tenant]));
    return rows.map(endpointOf);
  }

  #commit(turn: Turn, row: Pick<Endpoint, 'tenant_id' | 'name'>): Promise<void> {
    const publish = () => this.#publisher.publish(row.tenant_id);
    return this.#service.commit(turn, { key: `endpoint:${keyOf(row)}`, publish });
  }

  #stored({ tenant_id, name }: Pick<Endpoint, 'tenant_id' | 'name'>, secret: string): StoredSecret {
    const { keyring, log } = this.#deps;
    const fields = { tenant: tenant_id, endpoint: name };
    if (keyring === undefined) log.warn(fields, 'the secret of an endpoint is stored unsealed');
    warnIfWeak(this.#deps, secret, fields);
    return storedSecret(this.#deps, { tenant_id, id: name }, secret);
  }
}
