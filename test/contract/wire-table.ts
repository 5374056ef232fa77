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

// ---------------------------------------------------------------- 'Resources and their fields'

const SEQUENCE_DEFINITION: Fields = {
  id: 'uuid',
  tenant_id: 'string',
  namespace: 'string',
  name: 'string',
  version: 'integer',
  blocks: 'array',
  created_at: 'datetime',
};

const TASK_INSTANCE: Fields = {
  id: 'uuid',
  sequence_id: 'uuid',
  tenant_id: 'string',
  namespace: 'string',
  state: 'string of scheduled|running|waiting|paused|failed|completed|cancelled',
  next_fire_at: 'datetime',
  // "responses may show the value capitalised"
  priority: 'string of Low|Normal|High|Critical',
  timezone: 'string',
  metadata: 'object',
  context: 'object',
  'context.data': 'object',
  'context.config': 'object',
  'context.audit': 'array',
  'context.runtime': 'object',
  'context.runtime.current_step': 'string',
  'context.runtime.attempt': 'integer',
  concurrency_key: 'string',
  max_concurrency: 'integer',
  idempotency_key: 'string',
  created_at: 'datetime',
  updated_at: 'datetime',
};

const BLOCK_OUTPUT: Fields = {
  id: 'uuid',
  instance_id: 'uuid',
  block_id: 'string',
  output: 'object',
  output_ref: 'any',
  output_size: 'integer',
  attempt: 'integer',
  created_at: 'datetime',
};

const CRON_SCHEDULE: Fields = {
  id: 'uuid',
  tenant_id: 'string',
  namespace: 'string',
  sequence_id: 'uuid',
  cron_expr: 'string',
  timezone: 'string',
  metadata: 'object',
  enabled: 'boolean',
  next_fire_at: 'datetime',
};

const WORKER_TASK: Fields = {
  id: 'uuid',
  instance_id: 'uuid',
  block_id: 'string',
  handler_name: 'string',
  params: 'object',
  context: 'object',
  'context.data': 'object',
  'context.config': 'object',
  attempt: 'integer',
  timeout_ms: 'integer',
  state: 'string',
  worker_id: 'string',
  claim_epoch: 'integer',
  claimed_at: 'datetime',
  heartbeat_at: 'datetime',
  completed_at: 'datetime',
  output: 'object',
  error_message: 'string',
  error_retryable: 'boolean',
  created_at: 'datetime',
};

/** 'Block definitions': every block has `type` and `id`. */
export const WIRE_BLOCKS: Readonly<Record<string, Fields>> = {
  step: {
    handler: 'string',
    params: 'object',
    delay: 'object',
    'delay.duration': 'integer',
    'delay.business_days_only': 'boolean',
    'delay.jitter': 'integer',
    retry: 'object',
    'retry.max_attempts': 'integer',
    'retry.initial_backoff': 'integer',
    'retry.max_backoff': 'integer',
    'retry.backoff_multiplier': 'number',
    timeout: 'integer',
    rate_limit_key: 'string',
  },
  parallel: { branches: 'array' },
  race: {
    branches: 'array',
    semantics: 'string = first_to_resolve of first_to_resolve|first_to_succeed',
  },
  router: { routes: 'array', default: 'array' },
  try_catch: { try_block: 'array', catch_block: 'array', finally_block: 'array' },
  loop: { condition: 'string', body: 'array', max_iterations: 'integer = 1000' },
  for_each: {
    collection: 'string',
    item_var: 'string',
    body: 'array',
    max_iterations: 'integer = 1000',
  },
};

/** "finally_block optional"; the others say nothing and may be optional as well. */
export const OPTIONAL_BLOCK_FIELDS: readonly string[] = ['try_catch.finally_block'];

// ---------------------------------------------------------------- 'Endpoints'

/** "query filters below"; "same query parameters as list" for the dead letter queue. */
const LIST_QUERY: Fields = {
  tenant_id: 'string',
  namespace: 'string',
  sequence_id: 'uuid',
  state: 'array',
  offset: 'integer = 0',
  limit: 'integer = 100 <= 1000',
};

const CREATE_INSTANCE: Fields = {
  sequence_id: 'uuid !',
  tenant_id: 'string !',
  namespace: 'string !',
  priority: 'string = normal of low|normal|high|critical',
  timezone: 'string = UTC',
  metadata: 'object',
  context: 'object',
  'context.data': 'object',
  'context.config': 'object',
  next_fire_at: 'datetime',
  concurrency_key: 'string',
  max_concurrency: 'integer',
  idempotency_key: 'string',
};

export const WIRE_ROUTES: readonly WireRoute[] = [
  { method: 'GET', path: '/health/live', status: 200, access: 'open' },
  { method: 'GET', path: '/health/ready', status: 200, access: 'open' },

  {
    method: 'POST',
    path: '/sequences',
    status: 201,
    // The text does not say which fields may be left out; without these there is no definition.
    body: {
      ...SEQUENCE_DEFINITION,
      tenant_id: 'string !',
      namespace: 'string !',
      name: 'string !',
      version: 'integer !',
      blocks: 'array !',
    },
    reply: { id: 'uuid !' },
  },
  { method: 'GET', path: '/sequences/{id}', status: 200, reply: SEQUENCE_DEFINITION },
  {
    method: 'GET',
    path: '/sequences/by-name',
    status: 200,
    query: {
      tenant_id: 'string !',
      namespace: 'string !',
      name: 'string !',
      version: 'integer',
    },
    reply: SEQUENCE_DEFINITION,
  },

  {
    method: 'POST',
    path: '/instances',
    status: 201,
    body: CREATE_INSTANCE,
    reply: { id: 'uuid !', deduplicated: 'boolean !' },
  },
  {
    method: 'POST',
    path: '/instances/batch',
    status: 201,
    body: { instances: 'array !' },
    reply: { count: 'integer !' },
  },
  { method: 'GET', path: '/instances/{id}', status: 200, reply: TASK_INSTANCE },
  {
    method: 'GET',
    path: '/instances',
    status: 200,
    query: LIST_QUERY,
    reply: TASK_INSTANCE,
    isList: true,
  },
  {
    method: 'PATCH',
    path: '/instances/{id}/state',
    status: 200,
    body: {
      state: 'string ! of scheduled|running|waiting|paused|failed|completed|cancelled',
      next_fire_at: 'datetime',
    },
  },
  {
    method: 'PATCH',
    path: '/instances/{id}/context',
    status: 200,
    body: { context: 'object !', 'context.data': 'object' },
  },
  {
    method: 'POST',
    path: '/instances/{id}/signals',
    status: 201,
    body: { signal_type: 'string !', payload: 'any' },
    reply: { signal_id: 'uuid !' },
  },
  {
    method: 'GET',
    path: '/instances/{id}/outputs',
    status: 200,
    reply: BLOCK_OUTPUT,
    isList: true,
  },
  {
    method: 'POST',
    path: '/instances/{id}/retry',
    status: 200,
    reply: { id: 'uuid !', state: 'string ! of scheduled' },
  },
  {
    method: 'PATCH',
    path: '/instances/bulk/state',
    status: 200,
    body: {
      filter: 'object !',
      'filter.tenant_id': 'string',
      'filter.namespace': 'string',
      'filter.sequence_id': 'uuid',
      'filter.states': 'array',
      state: 'string !',
    },
    reply: { count: 'integer !' },
  },
  {
    method: 'GET',
    path: '/instances/dlq',
    status: 200,
    query: LIST_QUERY,
    reply: TASK_INSTANCE,
    isList: true,
  },

  {
    method: 'POST',
    path: '/cron',
    status: 201,
    body: {
      tenant_id: 'string !',
      namespace: 'string !',
      sequence_id: 'uuid !',
      cron_expr: 'string !',
      timezone: 'string = UTC',
      metadata: 'object',
      enabled: 'boolean = true',
    },
    reply: { id: 'uuid !', next_fire_at: 'datetime !' },
  },
  { method: 'GET', path: '/cron/{id}', status: 200, reply: CRON_SCHEDULE },
  {
    method: 'GET',
    path: '/cron',
    status: 200,
    query: { tenant_id: 'string' },
    reply: CRON_SCHEDULE,
    isList: true,
  },
  {
    method: 'PUT',
    path: '/cron/{id}',
    status: 200,
    body: {
      cron_expr: 'string',
      timezone: 'string',
      enabled: 'boolean',
      metadata: 'object',
    },
    reply: CRON_SCHEDULE,
  },
  { method: 'DELETE', path: '/cron/{id}', status: 204 },

  {
    method: 'POST',
    path: '/workers/tasks/poll',
    status: 200,
    body: { handler_name: 'string !', worker_id: 'string !', limit: 'integer = 1' },
    reply: WORKER_TASK,
    isList: true,
  },
  {
    method: 'POST',
    path: '/workers/tasks/{id}/complete',
    status: 200,
    body: { worker_id: 'string !', output: 'object !', claim_epoch: 'integer' },
  },
  {
    method: 'POST',
    path: '/workers/tasks/{id}/fail',
    status: 200,
    body: {
      worker_id: 'string !',
      message: 'string !',
      retryable: 'boolean = false',
      claim_epoch: 'integer',
    },
  },
  {
    method: 'POST',
    path: '/workers/tasks/{id}/heartbeat',
    status: 200,
    body: {
      // Not said to be required; a claim is nobody's without it.
      worker_id: 'string !',
      claim_epoch: 'integer',
      checkpoint_seq: 'integer',
      checkpoint: 'object',
    },
  },
  { method: 'GET', path: '/workers/tasks/{id}/attempts', status: 200, isList: true },

  {
    method: 'POST',
    path: '/releases',
    status: 201,
    // The text does not say which fields may be left out; without these there is no release.
    body: {
      tenant_id: 'string',
      baseline_sequence_id: 'uuid !',
      candidate_sequence_id: 'uuid !',
      gates: 'array',
      in_flight_policy: 'string = pin',
    },
    reply: {
      tenant_id: 'string',
      baseline_sequence_id: 'uuid',
      candidate_sequence_id: 'uuid',
      gates: 'array',
      in_flight_policy: 'string',
    },
  },
  // "HTTP method and payloads: not shown"
  { method: 'POST', path: '/releases/{id}/validate', status: 200 },
  { method: 'POST', path: '/releases/{id}/canary', status: 200 },
  { method: 'POST', path: '/releases/{id}/evaluate', status: 200 },
  { method: 'POST', path: '/releases/{id}/promote', status: 200 },
  { method: 'POST', path: '/releases/{id}/pause', status: 200 },
  { method: 'POST', path: '/releases/{id}/rollback', status: 200 },
  { method: 'GET', path: '/releases/{id}/diff', status: 200 },
  { method: 'GET', path: '/releases/{id}/decisions', status: 200, isList: true },

  { method: 'GET', path: '/metrics', status: 200, access: 'key' },
  { method: 'GET', path: '/api-docs/openapi.json', status: 200, access: 'open' },
  { method: 'GET', path: '/swagger-ui', status: 200, access: 'open' },
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
export const WIRE_LIMIT_TEXTS: readonly {
  readonly limit: string;
  /** A component and its field, or an operation. */
  readonly place: string;
  readonly text: RegExp;
}[] = [
  {
    limit: 'http_request timeout_ms default 10000',
    place: 'StepBlock.params',
    text: /timeout_ms \(default 10000\)/,
  },
  {
    limit: 'sleep duration_ms default 100',
    place: 'StepBlock.params',
    text: /duration_ms \(default 100\)/,
  },
  {
    limit: 'worker heartbeat interval',
    place: 'POST /workers/tasks/{id}/heartbeat',
    text: /every 15 to 30 seconds/,
  },
  {
    limit: 'worker heartbeat silence',
    place: 'POST /workers/tasks/{id}/heartbeat',
    text: /60 seconds/,
  },
  {
    limit: 'concurrency',
    place: 'CreateInstance.max_concurrency',
    text: /at once/,
  },
];
