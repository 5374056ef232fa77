/**
 * The table of commands, in the order of the help. Modules that take long to load are loaded by the command that needs
 * them.
 */

import type { Command, Option } from './command.js';
import { APPROVAL_COMMANDS } from './commands/approvals.js';
import { CELL_COMMANDS } from './commands/cells.js';
import { CRON_COMMANDS } from './commands/cron.js';
import { DEAD_LETTER_COMMANDS } from './commands/dead-letters.js';
import { INSTANCE_COMMANDS } from './commands/instances.js';
import { JOB_COMMANDS } from './commands/jobs.js';
import { KEY_COMMANDS } from './commands/keys.js';
import { PROFILE_COMMANDS } from './commands/profiles.js';
import { PROXY_COMMANDS } from './commands/proxy-config.js';
import { RELEASE_COMMANDS } from './commands/releases.js';
import { SEQUENCE_COMMANDS } from './commands/sequences.js';
import { TENANT_COMMANDS } from './commands/tenants.js';
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
    flags: '--profile <name>',
    about: 'Use address, tenant and key of this profile.',
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
  cron: 'Schedules.',
  releases: 'Rollouts of new versions by canary.',
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
  ...DEAD_LETTER_COMMANDS,
  ...JOB_COMMANDS,
  ...APPROVAL_COMMANDS,
  ...WORKER_COMMANDS,
  ...CRON_COMMANDS,
  ...RELEASE_COMMANDS,
  ...KEY_COMMANDS,
  ...TENANT_COMMANDS,
  ...CELL_COMMANDS,
  ...PROXY_COMMANDS,
  ...PROFILE_COMMANDS,
  DOCTOR,
  COMPLETION,
];
