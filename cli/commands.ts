/**
 * The table of commands, in the order of the help. Modules that take long to load are loaded by the command that needs
 * them.
 */

import type { Command, Option } from './command.js';
import { ACTION_COMMANDS } from './commands/actions.js';
import { APPROVAL_COMMANDS } from './commands/approvals.js';
import { CELL_COMMANDS } from './commands/cells.js';
import { CREDENTIAL_COMMANDS } from './commands/credentials.js';
import { CRON_COMMANDS } from './commands/cron.js';
import { DEAD_LETTER_COMMANDS } from './commands/dead-letters.js';
import { ENDPOINT_COMMANDS } from './commands/endpoints.js';
import { EVENT_COMMANDS } from './commands/events.js';
import { INSTANCE_COMMANDS } from './commands/instances.js';
import { JOB_COMMANDS } from './commands/jobs.js';
import { KEY_COMMANDS } from './commands/keys.js';
import { LOG_COMMANDS } from './commands/logs.js';
import { PENDING_START_COMMANDS } from './commands/pending-starts.js';
import { PROFILE_COMMANDS } from './commands/profiles.js';
import { PROXY_COMMANDS } from './commands/proxy-config.js';
import { RATE_LIMIT_COMMANDS } from './commands/rate-limits.js';
import { RELEASE_COMMANDS } from './commands/releases.js';
import { SEARCH_COMMANDS } from './commands/search.js';
import { SEQUENCE_COMMANDS } from './commands/sequences.js';
import { TENANT_COMMANDS } from './commands/tenants.js';
import { TRIGGER_COMMANDS } from './commands/triggers.js';
import { WEBHOOK_COMMANDS } from './commands/webhooks.js';
import { WORKER_COMMANDS } from './commands/workers.js';
import { completionScript, SHELLS, type Shell } from './completion-scripts.js';

export const PROGRAM = 'durable-workflow-engine';

/** Options of every command. */
export const GLOBAL_OPTIONS: readonly Option[] = [
  {
    flags: '--url <address>',
    about: 'Address of the server; default ENGINE_URL, else http://127.0.0.1:8080.',
  },
  { flags: '--tenant <name>', about: 'The tenant; default ENGINE_TENANT.' },
  {
    flags: '--namespace <name>',
    about:
      'The namespace; default ENGINE_NAMESPACE. Without one, names are of the namespace default, and lists show all.',
  },
  {
    flags: '--profile <name>',
    about: 'Use address, tenant, namespace and key of this profile.',
    completes: 'profiles',
  },
  {
    flags: '--key-file <file>',
    about: 'A file with the key, or - for standard input; default ENGINE_API_KEY.',
    completes: 'files',
  },
  {
    flags: '--timeout <time>',
    about: 'How long to wait for responses and events: 30s, 5m, 500ms.',
  },
  { flags: '--json', about: 'Print the response as JSON.' },
];

/** Descriptions of the command groups. */
export const GROUPS: Readonly<Record<string, string>> = {
  sequences: 'Workflow definitions.',
  instances: 'Runs of sequences.',
  dlq: 'Failed instances: the dead letter queue.',
  failures: 'Reasons of failures.',
  jobs: 'Bulk changes that continue on the server.',
  approvals: 'Approvals that wait for an answer.',
  tasks: 'Tasks of workers.',
  queues: 'Waiting tasks by handler and queue.',
  workers: 'Connected workers.',
  endpoints: 'Addresses to which tasks are delivered.',
  cron: 'Schedules.',
  triggers: 'Starts and events from outside.',
  webhooks: 'Webhooks to your systems about ended instances.',
  'pending-starts': 'Instances that are yet to start from collected creations.',
  releases: 'Rollouts of new versions by canary.',
  credentials: 'Secrets that steps use.',
  events: 'Events that steps, triggers and sequences wait for.',
  'rate-limits': 'Rate limits of steps.',
  keys: 'Tenant keys.',
  tenants: 'Tenants and their cells.',
  cells: 'Cells of a cluster.',
  profiles: 'Named servers.',
};

/** For help and completion only: the server starts before this table is loaded. */
const START: Command = {
  name: 'start',
  summary: 'Start the server; start --help lists its flags and environment.',
  options: [
    {
      flags: '--insecure-auth',
      about: 'Accept every request without a key, from this machine only.',
    },
    {
      flags: '--insecure-auth-anywhere',
      about: 'Accept every request without a key, from any address.',
    },
    {
      flags: '--unsafe-database',
      about:
        'Accept a Postgres with fsync or full_page_writes off, and run the embedded one that way.',
    },
    {
      flags: '--migrate-only',
      about: 'Migrate the tables once no engine owns the database, and exit.',
    },
  ],
  run: async () => {
    throw new Error('the entry point starts the server');
  },
};

const DEV: Command = {
  name: 'dev',
  summary:
    'Start a development server without keys, and apply the definitions of a folder when they change.',
  args: [
    {
      name: 'folder',
      about: 'Folder of JSON or YAML definitions; default ./sequences.',
      isOptional: true,
      completes: 'folders',
    },
  ],
  options: [
    { flags: '--port <n>', about: 'Default 8080; 0: any free port.' },
    {
      flags: '--data-dir <folder>',
      about: 'Folder of the embedded database; default ./data.',
      completes: 'folders',
    },
  ],
  endsItself: true,
  run: async (session, given) => (await import('./dev.js')).dev(session, given),
};

const DOCTOR: Command = {
  name: 'doctor',
  summary:
    'Check a server and suggest repairs; with DATABASE_URL also its database, with ENGINE_CLUSTER_URL the cluster.',
  run: async (session) => (await import('./doctor/doctor.js')).doctor(session),
};

const COMPLETION: Command = {
  name: 'completion',
  summary: 'Print the completion script of a shell; see docs/cli.md for how to install it.',
  args: [{ name: 'shell', about: 'Your shell.', choices: SHELLS }],
  run: async ({ out }, given) => {
    out.line(completionScript(given.arg() as Shell, PROGRAM));
    return undefined;
  },
};

export const COMMANDS: readonly Command[] = [
  DEV,
  START,
  ...SEQUENCE_COMMANDS,
  ...INSTANCE_COMMANDS,
  ...SEARCH_COMMANDS,
  ...DEAD_LETTER_COMMANDS,
  ...JOB_COMMANDS,
  ...LOG_COMMANDS,
  ...APPROVAL_COMMANDS,
  ...WORKER_COMMANDS,
  ...ENDPOINT_COMMANDS,
  ...CRON_COMMANDS,
  ...TRIGGER_COMMANDS,
  ...WEBHOOK_COMMANDS,
  ...PENDING_START_COMMANDS,
  ...RELEASE_COMMANDS,
  ...CREDENTIAL_COMMANDS,
  ...EVENT_COMMANDS,
  ...RATE_LIMIT_COMMANDS,
  ...KEY_COMMANDS,
  ...ACTION_COMMANDS,
  ...TENANT_COMMANDS,
  ...CELL_COMMANDS,
  ...PROXY_COMMANDS,
  ...PROFILE_COMMANDS,
  DOCTOR,
  COMPLETION,
];
