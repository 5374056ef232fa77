/**
 * The table of commands: what the command line can do, in the order of its help. What takes long to load is
 * loaded by the command that needs it.
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

/** Of every command. */
export const GLOBAL_OPTIONS: readonly Option[] = [
  { flags: '--url <address>', about: 'Of the server; ENGINE_URL, else http://127.0.0.1:8080.' },
  { flags: '--tenant <name>', about: 'Whose things are meant; ENGINE_TENANT.' },
  {
    flags: '--profile <name>',
    about: 'Address, tenant and key of this profile.',
    completes: 'profiles',
  },
  {
    flags: '--key-file <file>',
    about: 'A file with the key, or - for the standard input; ENGINE_API_KEY has the key itself.',
    completes: 'files',
  },
  {
    flags: '--timeout <time>',
    about: 'How long an answer may take, and what is waited for: 30s, 5m, 500ms.',
  },
  { flags: '--json', about: 'Print what the server answered, as JSON.' },
];

/** What the first words are about. */
export const GROUPS: Readonly<Record<string, string>> = {
  sequences: 'Definitions of workflows.',
  instances: 'Runs of them.',
  dlq: 'Instances that failed: the dead letter queue.',
  failures: 'Why instances fail.',
  jobs: 'Changes of many instances that go on behind their answer.',
  approvals: 'What people are asked.',
  tasks: 'What workers are to do.',
  queues: 'What waits for workers.',
  workers: 'Who does it.',
  cron: 'Schedules.',
  releases: 'New versions, led in by a canary.',
  keys: 'Keys of tenants.',
  tenants: 'Those whose things there are.',
  cells: 'Parts of a cluster, each with some of its tenants.',
  profiles: 'Servers under a name.',
};

/** The server is started before anything of this table is loaded: this row is for help and completion. */
const START: Command = {
  name: 'start',
  summary: 'Start the server; start --help has its flags and its environment.',
  options: [
    {
      flags: '--insecure-auth',
      about: 'Accept every request without a key, from this machine only.',
    },
    {
      flags: '--insecure-auth-anywhere',
      about: 'The same from wherever the address can be reached.',
    },
    {
      flags: '--unsafe-database',
      about: 'Accept a Postgres with fsync or full_page_writes off, and run the embedded one so.',
    },
    {
      flags: '--migrate-only',
      about: 'Bring the tables up to date once no engine owns the database, and end.',
    },
  ],
  run: async () => {
    throw new Error('the server is started by the first file of the program');
  },
};

const DEV: Command = {
  name: 'dev',
  summary:
    'Start a server of your own, without keys, and apply the definitions of a folder whenever they change.',
  args: [
    {
      name: 'folder',
      about: 'With definitions as JSON or YAML; ./sequences unless given.',
      isOptional: true,
      completes: 'folders',
    },
  ],
  options: [
    { flags: '--port <n>', about: '8080 unless given; 0: any that is free.' },
    {
      flags: '--data-dir <folder>',
      about: 'Of the embedded database; ./data unless given.',
      completes: 'folders',
    },
  ],
  endsItself: true,
  run: async (session, given) => (await import('./dev.js')).dev(session, given),
};

const DOCTOR: Command = {
  name: 'doctor',
  summary:
    'Look for what is wrong with a server, and say what to do; with DATABASE_URL it looks at the database, with ENGINE_CLUSTER_URL at the cluster, too.',
  run: async (session) => (await import('./doctor/doctor.js')).doctor(session),
};

const COMPLETION: Command = {
  name: 'completion',
  summary: 'Print what makes a shell complete commands; docs/cli.md says where it goes.',
  args: [{ name: 'shell', about: 'Of yours.', choices: SHELLS }],
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
