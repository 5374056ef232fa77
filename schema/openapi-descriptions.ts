/** The prose of the OpenAPI document: its description, tags, error responses, parameters, operations and headers. */

import { BLOCKS_MAX, BRANCHES_MAX, DEPTH_MAX, ITERATIONS_MAX } from './blocks.js';

const spoken = (count: number) => count.toLocaleString('en');

export const TITLE = 'Durable workflow engine';

export const DESCRIPTION = `Stores workflow definitions (sequences), runs instances of them durably,
hands steps to external workers, starts instances on schedules, moves traffic from one version of a
sequence to the next by guarded releases, and moves live executions between versions and servers.

**Addresses.** Everything is served under \`/api/v1\`. Health, \`/info\`, \`/metrics\`, this document and
its page are also served at the root. Every other path without the prefix is a deprecated alias; its
responses have the headers \`deprecation\`, \`sunset\` and \`link\`, which name the replacement. HEAD is
served wherever GET is, and preflight requests of browsers are answered 204. A path with another
method is answered 405 with the header \`allow\`, an unknown path 404.

**Keys and tenants.** Send the key in \`x-api-key\` or as a bearer token, and the tenant in
\`x-tenant-id\`. A server started with \`--insecure-auth\` requires no key; one with
\`ENGINE_REQUIRE_TENANT_HEADER=false\` requires no tenant. Objects of other tenants are answered 404.

**Bodies** are JSON in UTF-8. Optional fields may be null, which means absent. Requests that create or
read a single object ignore unknown fields and query parameters. Requests that select or change many
objects or grant rights refuse them and suggest the probable name: such a body has
\`additionalProperties: false\`, and an operation with such a query has it in \`x-query\`. Timestamps are
RFC 3339. Ids are UUIDs of any version, in any case, returned in lower case. Integers beyond 2^53 are
refused. Fields described as not supported are refused unless null or false.

**Errors** have the body \`{"error": message}\`; the header \`x-error-code\` has a code that does not
change. Every response has \`x-request-id\`: that of the request, or a new one.

**Lists** are arrays. A list that is full, or was truncated at 8 MiB, names its next page in the header
\`link\` with \`rel="next"\`. If the list has a parameter \`cursor\`, that page continues after the last row
and is not shifted by new rows; a request with an \`offset\` gets the next offset. The header
\`x-next-cursor\` has the cursor alone.

**Limits.** A body has at most 10 MiB, a context 256 KiB (a deployment may set others); JSON nests at
most 256 levels. The blocks of a sequence nest at most ${DEPTH_MAX} levels; there are at most
${spoken(BLOCKS_MAX)} of them, at most ${BRANCHES_MAX} branches in a parallel or race, and at most
${spoken(ITERATIONS_MAX)} iterations of a loop or for_each. Request line and headers have at most
16 KiB. Step times are whole milliseconds.`;

/** Tag and description by path; the first match counts. */
export const TAGS: readonly (readonly [path: RegExp, name: string, description: string])[] = [
  [/^\/sequences(?!\/releases)/, 'Sequences', 'Workflow definitions, immutable and versioned.'],
  [
    /^\/(?:sequences\/)?releases/,
    'Releases',
    'From one version of a sequence to another, step by step and reversibly.',
  ],
  [/^\/instances/, 'Instances', 'Runs of sequences.'],
  [/^\/approvals/, 'Approvals', 'Questions to people, and their answers.'],
  [/^\/(?:workers|handlers)/, 'Workers', 'External work: polls, claims, results.'],
  [
    /^\/continuity\/migrations/,
    'Migration',
    'Migration of a live execution to another version of its sequence, and its rollback.',
  ],
  [
    /^\/(?:continuity\/(?:handoffs|capsules|executions\/(?:claim|\{id\}\/(?:placement|handoff)))|runtimes)/,
    'Handoff',
    'Handoff of a live execution to another runtime, possibly another server.',
  ],
  [
    /^\/continuity/,
    'Continuity',
    'Executions: the owner of an instance, its locations and its external effects.',
  ],
  [/^\/rate-limits/, 'Rate limits', 'Limits on the starts of steps that share a key.'],
  [/^\/credentials/, 'Credentials', 'Sealed secrets that steps refer to; never returned.'],
  [/^\/cron/, 'Schedules', 'Instances created at certain times.'],
  [/^\/changes/, 'Changes', 'The change feed of the instances of a tenant.'],
  [
    /^\/webhooks/,
    'Webhooks',
    'Outbound webhooks: subscriptions of tenants; outbox and deliveries for the root key.',
  ],
  [/^\/triggers/, 'Triggers', 'Start instances and publish events from outside.'],
  [/^\/api-keys/, 'Keys', 'Keys of tenants; for the root key.'],
  [/^\/tenants/, 'Tenants', 'Limits of tenants; for the root key.'],
  [/^\/cells/, 'Cells', 'Parts of a cluster; for the root key.'],
  [/^/, 'Server', 'Health, metrics and documentation.'],
];

/** Component and description of every error response by status. */
export const REFUSALS: Readonly<Record<number, readonly [name: string, description: string]>> = {
  400: [
    'BadRequest',
    'Invalid JSON, a missing or invalid field, parameter or header, data that cannot be ' +
      'stored, or an invalid state transition.',
  ],
  401: ['Unauthorized', 'Missing, unknown, expired or revoked key.'],
  403: ['Forbidden', 'The key lacks the capability, or belongs to another tenant.'],
  404: ['NotFound', 'The object does not exist, or belongs to another tenant.'],
  405: ['MethodNotAllowed', 'The path has no operation with this method.'],
  408: ['RequestTimeout', 'The body was received too slowly.'],
  409: [
    'Conflict',
    'Not possible in the current state: the object already exists, is in use, claimed by another ' +
      'worker, in another state, changed since it was read, or owned elsewhere.',
  ],
  410: ['Gone', 'The link has expired.'],
  413: ['ContentTooLarge', 'The body, a context or a checkpoint is larger than its limit.'],
  415: ['UnsupportedEncoding', 'The body is compressed.'],
  421: ['Misdirected', 'Another cell of the cluster owns the tenant: `cell` and x-cell name it.'],
  422: [
    'InputRefused',
    'context.data does not conform to the input_schema of the sequence, or a template gives no ' +
      'usable value for a member.',
  ],
  429: ['TooManyRequests', 'The tenant exceeds a limit: of work, of open tasks or of streams.'],
  431: ['HeadersTooLarge', 'Request line and headers are larger than 16 KiB.'],
  500: ['InternalError', 'A defect of the server. Its log has details under the request id.'],
  502: ['BadGateway', 'The called address did not accept the request.'],
  503: ['Unavailable', 'Temporarily unavailable; retry after the wait.'],
};

/** Descriptions of query parameters, by name. */
export const QUERY_NOTES: Readonly<Record<string, string>> = {
  tenant_id: 'The header x-tenant-id overrides it.',
  state: 'Separated by commas; default: all.',
  offset: 'Number of rows to skip.',
  limit: 'Maximum number of rows.',
  version: 'Default: the newest that is neither deprecated nor on hold.',
  poll_ms: 'Time in ms for which changes are collected before they are sent: 100 to 5,000.',
  include_outputs: 'False: omits the values of outputs.',
  alive_within_secs: 'Workers seen within this time count as alive.',
  include_stale: 'Also lists workers that are not alive.',
  n: 'Number of fires.',
  cursor: 'Position after which the list continues.',
};

/** Descriptions of operations, by id. */
export const OPERATION_NOTES: Readonly<Record<string, string>> = {
  'sequences.create':
    'Warnings report parts without effect or that never work as written: unknown members, and ' +
    'misspelt functions, filters, blocks or handlers. With strict they are answered 400.',
  'sequences.validate': 'Does not check whether the id or the version already exists.',
  'sequences.update': 'Answered once every creation by name can use it. Repetitions are no error.',
  'instances.create':
    'If idempotency_key matches an instance of the tenant, its id is returned with deduplicated ' +
    'true. Repeating a request without such a key may create a second instance.',
  'instances.patchState': 'A transition that the state does not allow is answered 400.',
  'instances.signal':
    'pause pauses, resume resumes a paused instance, cancel cancels, update_context merges the ' +
    'payload into context.data, custom:<name> is free for any use, and custom:human_input:<block> ' +
    'answers the approval of that step, the only signal allowed to keys with approver only.',
  'instances.retry': 'Answers 400 unless the instance has failed. It is due immediately.',
  'instances.stream': 'Events: state, output, done and error, each with JSON as its data.',
  'cron.update':
    'A changed cron_expr, timezone or enabled recomputes the next fire from now. Other changes, and ' +
    'repeated values, keep a fire that is due or waits for an earlier run.',
  'approvals.answer':
    'Answers 409 if it was answered, has timed out or was withdrawn. With the answer_id of the ' +
    'accepted answer, that answer is returned.',
  'approvals.link': 'Requires an encryption key, else 503. The link ends with the approval.',
  'workers.poll':
    'Each task is claimed by one worker only, by priority of its instance, then age. The response ' +
    'is empty if there is none.',
  'workers.exchange':
    'Each result is checked separately and durable before the response, whatever happens to the ' +
    'others and to the poll. With results the response does not wait for tasks.',
  'workers.complete': 'The instance continues immediately.',
  'workers.fail':
    'With retryable true the step is retried; otherwise it fails, and with it an instance that has ' +
    'only steps.',
  'workers.heartbeat':
    'Recommended every 15 to 30 seconds. A task without one for 60 seconds returns to its queue.',
  'releases.create': 'Answers 409 while another release of the baseline routes instances.',
  'releases.validate':
    'Only for a draft. It becomes ready whatever the replays find, or failed if the candidate ' +
    'cannot run at all.',
  'releases.canary': 'For a ready or paused release. Answered once the whole server routes so.',
  'releases.evaluate': 'Gates are also evaluated automatically while instances finish.',
  'releases.promote':
    'Only for a canary. Answers 409 unless every gate passes; a failed gate rolls back.',
  'releases.pause': 'Only for a canary; canary, with any percentage, continues it.',
  'releases.rollback': 'For a canary or a paused release; repetitions are no error.',
  'continuity.create': 'In any state of the instance. The id is that of the instance.',
  'continuity.claim': 'The instance stays paused until its state is changed or it is resumed.',
  'continuity.effects': 'Receipts of all instances of the execution on this server.',
  'continuity.resolveEffect':
    'unknown becomes verified, committed, compensated or abandoned; committed and verified become ' +
    'compensated. Other transitions are answered 409.',
  'continuity.appendProvenance':
    'The server writes the other kinds itself. Answers 409 once the chain has 10,000 entries.',
  'continuity.verifyProvenance': 'An empty chain is valid. The deployment sets the trusted keys.',
  'continuity.place': 'The decision is stored, and nothing is moved.',
  'continuity.preview': 'Also answered if not compatible. 404 if the runtime is not live.',
  'migrations.plan': 'Only for a waiting or paused instance, which is not changed.',
  'migrations.apply':
    'Answers 409 if anything has changed since the plan. Requires an encryption key, else 503. ' +
    'The instance is left paused, in the next epoch.',
  'migrations.rollback':
    'Answers 409 once the target has run: if an effect of its epoch was dispatched, committed or ' +
    'verified, or is unknown.',
  'runtimes.register': 'Repeat it while the runtime lives. Earlier observations change nothing.',
  'handoffs.create': 'Answers 409 if anything has changed since the preview.',
  'handoffs.export':
    'The instance does not run here from then on. Requires an encryption key, else 503. Exported ' +
    'once: after a lost response, revoke the handoff and create another one.',
  'handoffs.accept': 'The epoch grows by 1. From then on the source never runs it again.',
  'handoffs.reject': 'Owner and epoch do not change.',
  'handoffs.revoke':
    'Owner and epoch do not change; the next handoff or migration takes the execution back.',
  'capsules.import':
    'A repetition returns the same instance. Requires an encryption key, else 503.',
  'health.live': 'Liveness probe.',
  'health.ready': 'Readiness probe.',
  metrics: 'Text format version 0.0.4.',
};

const MINIMAL = 'return=minimal: a success is answered 204, without the task.';

/** Headers that an operation reads beside those of the caller, with their descriptions, by id. */
export const HEADER_NOTES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'changes.stream': { 'last-event-id': 'Where to continue: the id of the last event read.' },
  'workers.complete': { prefer: MINIMAL },
  'workers.fail': { prefer: MINIMAL },
};
