/** Wire shapes and routes of worker endpoints, to which the engine delivers tasks by POST (docs/push-workers.md). */

import { UNCHANGED } from './change-shapes.js';
import * as t from './common.js';
import { did, firstShard, front, get, ok, type RouteRow } from './route-row.js';

const URL_LENGTH_MAX = 2_000;
/** Each handler is a queue that the endpoint waits at. */
const HANDLERS_MAX = 50;
const CONCURRENCY_DEFAULT = 10;
/** Below the connections of a shard, so that one endpoint leaves room for others. */
const CONCURRENCY_MAX = 256;
const TIMEOUT_MS_DEFAULT = 30_000;
const TIMEOUT_MS_MIN = 100;
/** The longest run of common serverless platforms. */
const TIMEOUT_MS_MAX = 15 * 60_000;

const EndpointState = t.typed<'idle' | 'delivering' | 'paused' | 'disabled'>({
  $id: 'EndpointState',
  type: 'string',
  enum: ['idle', 'delivering', 'paused', 'disabled'],
});

export const ENDPOINT_DEFAULTS = {
  concurrency: CONCURRENCY_DEFAULT,
  timeout_ms: TIMEOUT_MS_DEFAULT,
  enabled: true,
  receives_secrets: false,
} as const;

const EndpointName = t.text({
  pattern: '^[A-Za-z0-9._-]+$',
  maxLength: 100,
  description: 'Letters, digits, dots, _ and -.',
});

const HandlerName = t.checked('worker-handler', t.Name);

const SETTINGS = {
  concurrency: t.nullish(
    t.integer({ minimum: 1, maximum: CONCURRENCY_MAX, default: CONCURRENCY_DEFAULT }),
    'Maximum number of requests at a time.',
  ),
  timeout_ms: t.nullish(
    t.integer({ minimum: TIMEOUT_MS_MIN, maximum: TIMEOUT_MS_MAX, default: TIMEOUT_MS_DEFAULT }),
    'Maximum time until the end of the response, in ms.',
  ),
  enabled: t.flag(true, 'False: no new tasks are delivered.'),
  receives_secrets: t.flag(
    false,
    'True: tasks are delivered with the secrets that they name. Requires the capability secrets.',
  ),
};

export const PutWorkerEndpoint = t.strictNamed(
  'PutWorkerEndpoint',
  'Replaces the endpoint; only an absent secret stays as it is.',
  {
    tenant_id: t.nullish(t.BodyTenant),
    handlers: t.noted(
      t.list(HandlerName, { minItems: 1, maxItems: HANDLERS_MAX, uniqueItems: true }),
      'The handlers whose tasks are delivered, from every queue.',
    ),
    url: t.noted(
      t.text({ pattern: '\\S', maxLength: URL_LENGTH_MAX }),
      'http or https, without credentials; a public address unless the deployment allows others.',
    ),
    secret: t.nullish(
      t.secretText({
        pattern: '\\S',
        maxLength: t.KEY_LENGTH_MAX,
        description:
          'Key of the signatures: whsec_ and base64 as in Standard Webhooks, or any text. ' +
          'Required for a new endpoint; never returned.',
      }),
    ),
    ...SETTINGS,
    ...UNCHANGED,
  },
);
export type PutWorkerEndpoint = t.Static<typeof PutWorkerEndpoint>;

/** Since the start of the shard that serves the endpoint. */
export const EndpointStatus = t.named('EndpointStatus', {
  state: EndpointState,
  in_flight: t.integer('Claimed tasks whose delivery has not ended.'),
  last_error: t.nullable(t.text()),
  last_success_at: t.nullable(t.Timestamp),
  paused_until: t.nullable(t.Timestamp),
});
export type EndpointStatus = t.Static<typeof EndpointStatus>;

export const WorkerEndpoint = t.named('WorkerEndpoint', 'An endpoint without its secret.', {
  name: t.text(),
  tenant_id: t.text(),
  handlers: t.list(t.text()),
  url: t.text(),
  concurrency: t.integer(),
  timeout_ms: t.integer(),
  enabled: t.boolean(),
  receives_secrets: t.boolean(),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
  /** Absent in the response to a change. */
  status: t.optional(EndpointStatus),
});
export type WorkerEndpoint = t.Static<typeof WorkerEndpoint>;

export const WORKER_ENDPOINT_ROWS = {
  'workerEndpoints.put': firstShard.put('/worker-endpoints/{name}', {
    summary: 'Set an endpoint to which the tasks of handlers are delivered by signed POST.',
    params: t.object({ name: t.addressed(EndpointName) }),
    body: PutWorkerEndpoint,
    grantsSecrets: true,
    replies: ok(WorkerEndpoint, 409, 413),
    action: did('worker_endpoint', 'set', { shows: ['handlers', 'enabled', 'concurrency'] }),
  }),
  'workerEndpoints.list': get(
    '/worker-endpoints',
    'List the worker endpoints of the tenant by name, with their current state.',
    t.list(WorkerEndpoint),
    { query: t.object({ ...t.TenantQuery.properties, ...t.ALL_ROWS }) },
  ),
  'workerEndpoints.get': front.get('/worker-endpoints/{name}', {
    summary: 'Get a worker endpoint with its current state.',
    params: t.object({ name: EndpointName }),
    replies: ok(WorkerEndpoint, 404),
  }),
  'workerEndpoints.delete': firstShard.remove(
    '/worker-endpoints/{name}',
    'Delete a worker endpoint. Requests in flight still count.',
    { params: t.object({ name: EndpointName }), action: did('worker_endpoint', 'deleted') },
  ),
} as const satisfies Record<string, RouteRow>;
