/**
 * What the wire is promised to be, written by hand: nothing here is taken from the schemas, so that
 * the document can be held against it. A field is written as its type, then `!` when it is required
 * (in bodies: exactly then), `= value` for its default, `<= value` for its maximum, and `of a|b` for
 * its words.
 */

export type Fields = Readonly<Record<string, string>>;

export interface WireRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** The one success that the tables give; nothing is said of the others. */
  readonly status: number;
  readonly body?: Fields;
  readonly query?: Fields;
  /** Of a single object, or of each item when `isList`. */
  readonly reply?: Fields;
  readonly isList?: true;
  /** No key and no tenant: health; a key alone: metrics. */
  readonly access?: 'open' | 'key';
}

function route(
  method: WireRoute['method'],
  path: string,
  status: number,
  more: Omit<WireRoute, 'method' | 'path' | 'status'> = {},
): WireRoute {
  return { method, path, status, ...more };
}

/** Of a text: `name: type, name: type`. */
function fields(text: string): Fields {
  const all = text.trim().split(/,\s+/);
  return Object.fromEntries(all.map((one) => one.split(': ')));
}

// ---------------------------------------------------------------- 'Resources and their fields'

const SEQUENCE_DEFINITION = fields(`
  id: uuid, tenant_id: string, namespace: string, name: string, version: integer,
  blocks: array, created_at: datetime
`);

/** Of the priority: "responses may show the value capitalised". */
const TASK_INSTANCE = fields(`
  id: uuid, sequence_id: uuid, tenant_id: string, namespace: string,
  state: string of scheduled|running|waiting|paused|failed|completed|cancelled,
  next_fire_at: datetime, priority: string of Low|Normal|High|Critical, timezone: string,
  metadata: object, context: object, context.data: object, context.config: object,
  context.audit: array, context.runtime: object, context.runtime.current_step: string,
  context.runtime.attempt: integer, concurrency_key: string, max_concurrency: integer,
  idempotency_key: string, created_at: datetime, updated_at: datetime
`);

const BLOCK_OUTPUT = fields(`
  id: uuid, instance_id: uuid, block_id: string, output: object, output_ref: any,
  output_size: integer, attempt: integer, created_at: datetime
`);

const CRON_SCHEDULE = fields(`
  id: uuid, tenant_id: string, namespace: string, sequence_id: uuid, cron_expr: string,
  timezone: string, metadata: object, enabled: boolean, next_fire_at: datetime
`);

const WORKER_TASK = fields(`
  id: uuid, instance_id: uuid, block_id: string, handler_name: string, params: object,
  context: object, context.data: object, context.config: object, attempt: integer,
  timeout_ms: integer, state: string, worker_id: string, claim_epoch: integer, lost_claims: integer,
  claimed_at: datetime, heartbeat_at: datetime, completed_at: datetime, output: object,
  error_message: string, error_retryable: boolean, created_at: datetime
`);

/** 'Block definitions': every block has `type` and `id`. */
export const WIRE_BLOCKS: Readonly<Record<string, Fields>> = {
  step: fields(`
    handler: string, params: object, delay: object, delay.duration: integer,
    delay.business_days_only: boolean, delay.jitter: integer, retry: object,
    retry.max_attempts: integer, retry.initial_backoff: integer, retry.max_backoff: integer,
    retry.backoff_multiplier: number, timeout: integer, rate_limit_key: string
  `),
  parallel: { branches: 'array' },
  race: {
    branches: 'array',
    semantics: 'string = first_to_resolve of first_to_resolve|first_to_succeed',
  },
  router: { routes: 'array', default: 'array' },
  try_catch: { try_block: 'array', catch_block: 'array', finally_block: 'array' },
  loop: { condition: 'string', body: 'array', max_iterations: 'integer = 1000' },
  for_each: fields(
    `collection: string, item_var: string, body: array, max_iterations: integer = 1000`,
  ),
  sub_sequence: fields(`sequence_name: string, version: integer, input: object`),
  cancellation_scope: { blocks: 'array' },
  saga: { steps: 'array' },
  ab_split: { variants: 'array' },
  a_b_split: { variants: 'array' },
};

/** "finally_block optional"; the others say nothing and may be optional as well. */
export const OPTIONAL_BLOCK_FIELDS: readonly string[] = ['try_catch.finally_block'];

// ---------------------------------------------------------------- 'Endpoints'

/** "query filters below"; "same query parameters as list" for the dead letter queue. */
const LIST_QUERY = fields(`
  tenant_id: string, namespace: string, sequence_id: uuid, state: array, offset: integer = 0,
  limit: integer = 100 <= 1000
`);

const CREATE_INSTANCE = fields(`
  sequence_id: uuid, sequence: string, version: integer, tenant_id: string !, namespace: string !,
  priority: string = normal of low|normal|high|critical, timezone: string = UTC,
  metadata: object, context: object, context.data: object, context.config: object,
  next_fire_at: datetime, concurrency_key: string, max_concurrency: integer,
  idempotency_key: string
`);

export const WIRE_ROUTES: readonly WireRoute[] = [
  route('GET', '/health/live', 200, { access: 'open' }),
  route('GET', '/health/ready', 200, { access: 'open' }),

  route('POST', '/sequences', 201, {
    // The text does not say which fields may be left out; without these there is no definition.
    body: {
      ...SEQUENCE_DEFINITION,
      ...fields(`tenant_id: string !, namespace: string !, name: string !`),
      ...fields(`version: integer !, blocks: array !`),
    },
    reply: { id: 'uuid !' },
  }),
  route('GET', '/sequences/{id}', 200, { reply: SEQUENCE_DEFINITION }),
  route('GET', '/sequences/by-name', 200, {
    query: fields(`tenant_id: string !, namespace: string !, name: string !, version: integer`),
    reply: SEQUENCE_DEFINITION,
  }),

  route('POST', '/instances', 201, {
    body: CREATE_INSTANCE,
    reply: { id: 'uuid !', deduplicated: 'boolean !' },
  }),
  route('POST', '/instances/batch', 201, {
    body: { instances: 'array !' },
    reply: { count: 'integer !' },
  }),
  route('GET', '/instances/{id}', 200, { reply: TASK_INSTANCE }),
  route('GET', '/instances', 200, { query: LIST_QUERY, reply: TASK_INSTANCE, isList: true }),
  route('PATCH', '/instances/{id}/state', 200, {
    body: {
      state: 'string ! of scheduled|running|waiting|paused|failed|completed|cancelled',
      next_fire_at: 'datetime',
    },
  }),
  route('PATCH', '/instances/{id}/context', 200, {
    body: { context: 'object !', 'context.data': 'object' },
  }),
  route('POST', '/instances/{id}/signals', 201, {
    body: { signal_type: 'string !', payload: 'any' },
    reply: { signal_id: 'uuid !' },
  }),
  route('GET', '/instances/{id}/outputs', 200, { reply: BLOCK_OUTPUT, isList: true }),
  route('POST', '/instances/{id}/retry', 200, {
    reply: { id: 'uuid !', state: 'string ! of scheduled' },
  }),
  route('PATCH', '/instances/bulk/state', 200, {
    body: fields(`
      filter: object !, filter.tenant_id: string, filter.namespace: string,
      filter.sequence_id: uuid, filter.states: array, state: string !
    `),
    reply: { count: 'integer !' },
  }),
  route('GET', '/instances/dlq', 200, { query: LIST_QUERY, reply: TASK_INSTANCE, isList: true }),

  route('POST', '/cron', 201, {
    body: fields(`
      tenant_id: string !, namespace: string !, sequence_id: uuid, sequence: string,
      version: integer, cron_expr: string !, context: object, priority: string = normal of low|normal|high|critical,
      timezone: string = UTC, metadata: object, enabled: boolean = true
    `),
    reply: { id: 'uuid !', next_fire_at: 'datetime !' },
  }),
  route('GET', '/cron/{id}', 200, { reply: CRON_SCHEDULE }),
  route('GET', '/cron', 200, {
    query: { tenant_id: 'string' },
    reply: CRON_SCHEDULE,
    isList: true,
  }),
  route('PUT', '/cron/{id}', 200, {
    body: fields(`cron_expr: string, timezone: string, enabled: boolean, metadata: object`),
    reply: CRON_SCHEDULE,
  }),
  route('DELETE', '/cron/{id}', 204),

  route('POST', '/workers/tasks/poll', 200, {
    body: { handler_name: 'string !', worker_id: 'string !', limit: 'integer = 1' },
    reply: WORKER_TASK,
    isList: true,
  }),
  route('POST', '/workers/tasks/{id}/complete', 200, {
    body: { worker_id: 'string !', output: 'object !', claim_epoch: 'integer' },
  }),
  route('POST', '/workers/tasks/{id}/fail', 200, {
    body: fields(
      `worker_id: string !, message: string !, retryable: boolean = false, claim_epoch: integer`,
    ),
  }),
  route('POST', '/workers/tasks/{id}/heartbeat', 200, {
    // The worker is not said to be required; a claim is nobody's without it.
    body: fields(`
      worker_id: string !, claim_epoch: integer, checkpoint_seq: integer, checkpoint: object,
      release: boolean = false
    `),
  }),
  route('GET', '/workers/tasks/{id}/attempts', 200, { isList: true }),

  route('POST', '/releases', 201, {
    // The text does not say which fields may be left out; without these there is no release.
    body: fields(`
      tenant_id: string, baseline_sequence_id: uuid !, candidate_sequence_id: uuid !, gates: array,
      in_flight_policy: string = pin
    `),
    reply: fields(`
      tenant_id: string, baseline_sequence_id: uuid, candidate_sequence_id: uuid, gates: array,
      in_flight_policy: string
    `),
  }),
  // "HTTP method and payloads: not shown"
  ...['validate', 'canary', 'evaluate', 'promote', 'pause', 'rollback'].map((step) =>
    route('POST', `/releases/{id}/${step}`, 200),
  ),
  route('GET', '/releases/{id}/diff', 200),
  route('GET', '/releases/{id}/decisions', 200, { isList: true }),

  route('GET', '/metrics', 200, { access: 'key' }),
  route('GET', '/api-docs/openapi.json', 200, { access: 'open' }),
  route('GET', '/swagger-ui', 200, { access: 'open' }),
];

/** 'Release states'. */
export const WIRE_RELEASE_STATES = [
  ...['draft', 'validating', 'ready', 'canary'],
  ...['promoted', 'paused', 'rolled_back', 'failed'],
];

/** Where the document takes or shows more than the type that the text gives, and why. */
export const WIDER: Readonly<Record<string, string>> = {
  'GET /instances/{id}/outputs reply.output': 'any JSON, since handlers decide what they give',
  'POST /workers/tasks/poll reply.params': 'any JSON, which the definition holds',
  'POST /instances/{id}/signals body.signal_type': 'custom signals have an object form, too',
};

// ---------------------------------------------------------------- 'Errors'

/** Every status of the table 'Errors', with what its operations have in common. */
export const WIRE_ERRORS = {
  body: { error: 'string !' },
  /** "invalid JSON, missing required field, or invalid state transition" */
  400: (route: WireRoute) => route.body !== undefined || route.query !== undefined,
  /** "missing or revoked API key" */
  401: (route: WireRoute) => route.access !== 'open',
  /** "key lacks the required capability" */
  403: (route: WireRoute) => route.access !== 'open',
  /** "instance, sequence, cron schedule or worker task not found" */
  404: (route: WireRoute) => route.path.includes('{id}') || route.path.endsWith('by-name'),
  /** "internal server error" */
  500: () => true,
  /** "readiness probe when the database is unreachable" */
  503: (route: WireRoute) => route.path === '/health/ready',
} as const;

/** Every status that the text names. */
export const WIRE_STATUSES = [200, 201, 204, 400, 401, 403, 404, 409, 500, 503];

// ---------------------------------------------------------------- 'Limits'

/** Limits that no field carries: the document must say them in words, each in this place. */
export const WIRE_LIMIT_TEXTS: readonly (readonly [
  limit: string,
  /** A component and its field, or an operation. */
  place: string,
  text: RegExp,
])[] = [
  ['http_request timeout_ms', 'StepBlock.params', /timeout_ms \(default 10000\)/],
  ['sleep duration_ms', 'StepBlock.params', /duration_ms \(default 100\)/],
  ['heartbeat interval', 'POST /workers/tasks/{id}/heartbeat', /every 15 to 30 seconds/],
  ['heartbeat silence', 'POST /workers/tasks/{id}/heartbeat', /60 seconds/],
  ['concurrency', 'CreateInstance.max_concurrency', /at once/],
];
