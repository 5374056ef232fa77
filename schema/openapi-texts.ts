/** What the document says in prose, and the statuses and error codes that answers have. */

import { BLOCKS_MAX, BRANCHES_MAX, DEPTH_MAX, ITERATIONS_MAX } from './blocks.js';

const spoken = (count: number) => count.toLocaleString('en');

export const TITLE = 'Durable workflow engine';

export const DESCRIPTION = `Stores workflow definitions (sequences), runs instances of them durably,
hands steps to external workers, starts instances on schedules, leads from one version of a sequence
to the next by guarded releases, and moves live executions between versions and between servers.

**Addresses.** Everything is served under \`/api/v1\`. Health, \`/info\`, \`/metrics\`, this document and
the page that shows it are at home at the root as well. Every other bare path is a deprecated alias of
the prefixed one; its answers carry the headers \`deprecation\`, \`sunset\` and \`link\`, which name what
replaces it. HEAD is served wherever GET is, and a browser's preflight is answered 204. A path
with another method is answered 405 with the header \`allow\`, an unknown path 404.

**Keys and tenants.** Send the key in \`x-api-key\` or as a bearer token, and the tenant in
\`x-tenant-id\`. A server that was started with \`--insecure-auth\` asks for no key; one with
\`ENGINE_REQUIRE_TENANT_HEADER=false\` for no tenant. What belongs to another tenant is answered 404.

**Bodies** are JSON in UTF-8. Optional fields may be null, which means absent. Unknown fields and query
parameters are ignored where a single thing is made or read, and refused, with the name that was
probably meant, where many are selected or changed or rights are granted: such a body has
\`additionalProperties: false\`, and an operation with such a query has it in \`x-query\`. Timestamps are RFC 3339. Ids are UUIDs of any version, in any case, and are
shown in lower case. Integers beyond 2^53 are refused. Fields described as not supported are refused
unless null or false.

**Errors** have the body \`{"error": message}\`; the header \`x-error-code\` has a code that does not
change. Every answer carries \`x-request-id\`: that of the request, or a new one.

**Lists** are arrays. One that is full, or was cut at 8 MiB, names its next page in the header \`link\`
with \`rel="next"\`. Where a list has a parameter \`cursor\`, that page goes on behind the last row, and
what is created meanwhile shifts nothing; a request that names an \`offset\` gets the next offset. The
header \`x-next-cursor\` has the cursor alone.

**Limits.** A body has at most 10 MiB, a context 256 KiB (a deployment may set others); JSON nests at
most 256 levels. The blocks of a sequence nest at most ${DEPTH_MAX} levels; there are at most
${spoken(BLOCKS_MAX)} of them, at most ${BRANCHES_MAX} branches in a parallel or race, and at most
${spoken(ITERATIONS_MAX)} iterations of a loop or for_each. Request line and headers have at most
16 KiB. Step times are whole milliseconds.`;

/** The first whose prefix the path begins with. */
export const TAGS: readonly {
  readonly name: string;
  readonly path: RegExp;
  readonly description: string;
}[] = [
  {
    name: 'Sequences',
    path: /^\/sequences(?!\/releases)/,
    description: 'Workflow definitions, immutable and versioned.',
  },
  {
    name: 'Releases',
    path: /^\/(?:sequences\/)?releases/,
    description: 'From one version of a sequence to another, step by step and with a way back.',
  },
  { name: 'Instances', path: /^\/instances/, description: 'Runs of sequences.' },
  {
    name: 'Approvals',
    path: /^\/approvals/,
    description: 'What people are asked, and their answers.',
  },
  {
    name: 'Workers',
    path: /^\/(?:workers|handlers)/,
    description: 'External work: polls, claims, outcomes.',
  },
  {
    name: 'Migration',
    path: /^\/continuity\/migrations/,
    description: 'A live execution goes over to another version of its sequence, and back.',
  },
  {
    name: 'Handoff',
    path: /^\/(?:continuity\/(?:handoffs|capsules|executions\/(?:claim|\{id\}\/(?:placement|handoff)))|runtimes)/,
    description: 'A live execution goes over to another runtime, which may be another server.',
  },
  {
    name: 'Continuity',
    path: /^\/continuity/,
    description: 'Executions: who owns an instance, where it was, and what it did outside.',
  },
  {
    name: 'Rate limits',
    path: /^\/rate-limits/,
    description: 'How often steps with a key may begin.',
  },
  {
    name: 'Credentials',
    path: /^\/credentials/,
    description: 'What steps authenticate with: sealed, named in parameters, never shown.',
  },
  { name: 'Schedules', path: /^\/cron/, description: 'Instances that are created by the clock.' },
  {
    name: 'Changes',
    path: /^\/changes/,
    description: 'What happened to the instances of a tenant.',
  },
  {
    name: 'Webhooks',
    path: /^\/webhooks/,
    description:
      'Outbound webhooks: subscriptions of tenants; outbox and deliveries for the root key.',
  },
  {
    name: 'Triggers',
    path: /^\/triggers/,
    description: 'What starts instances from outside.',
  },
  { name: 'Keys', path: /^\/api-keys/, description: 'Keys of tenants; for the root key.' },
  { name: 'Tenants', path: /^\/tenants/, description: 'Limits of tenants; for the root key.' },
  { name: 'Cells', path: /^\/cells/, description: 'Parts of a cluster; for the root key.' },
  { name: 'Server', path: /^/, description: 'Health, metrics and documentation.' },
];

/** Name of its component and words, of every status that is not a success. */
export const REFUSALS: Readonly<Record<number, readonly [name: string, description: string]>> = {
  400: [
    'BadRequest',
    'Invalid JSON, a field, parameter or header that is missing or wrong, data that cannot be ' +
      'stored, or an invalid state transition.',
  ],
  401: ['Unauthorized', 'Missing, unknown, expired or revoked key.'],
  403: ['Forbidden', 'The key lacks the capability, or names another tenant.'],
  404: ['NotFound', 'There is none, or it belongs to another tenant.'],
  405: ['MethodNotAllowed', 'The path has no operation with this method.'],
  408: ['RequestTimeout', 'The body came too slowly.'],
  409: [
    'Conflict',
    'True when asked, not now: it exists already, is in use, is claimed otherwise, is in another ' +
      'state than the move starts from, has changed since it was looked at, or belongs elsewhere.',
  ],
  410: ['Gone', 'The link has expired.'],
  413: ['ContentTooLarge', 'The body, a context or a checkpoint is larger than its limit.'],
  415: ['UnsupportedEncoding', 'The body is compressed.'],
  421: ['Misdirected', 'Another cell of the cluster has the tenant: `cell` and x-cell name it.'],
  422: ['InputRefused', 'context.data does not conform to the input_schema of the sequence.'],
  429: [
    'TooManyRequests',
    'The tenant has used up its share: of work, of open tasks or of streams.',
  ],
  431: ['HeadersTooLarge', 'Request line and headers are larger than 16 KiB.'],
  500: [
    'InternalError',
    'A defect of the server. The body tells nothing; its log has the request id.',
  ],
  502: ['BadGateway', 'The address that was called did not take what was sent.'],
  503: ['Unavailable', 'Not now; ask again after the wait.'],
};
