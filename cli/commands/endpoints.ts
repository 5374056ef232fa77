/** Commands for worker endpoints. */

import type { WorkerEndpoint } from '../../client/src/index.js';
import { type Argument, acting, type Command, listing, showing } from '../command.js';
import { usageError } from '../exit.js';
import { secretIn } from '../json-input.js';
import { ago, memberText } from '../table.js';

const NAME: Argument = { name: 'name', about: 'The name of an endpoint.' };

const stateOf = ({ status }: WorkerEndpoint) => status?.state ?? '-';

export const ENDPOINT_COMMANDS: readonly Command[] = [
  acting({
    name: 'endpoints set',
    summary:
      'Deliver the tasks of handlers to an address. Settings that are not given are defaults.',
    args: [NAME, { name: 'url', about: 'Where tasks are posted.' }],
    options: [
      { flags: '--handler <name>', about: 'A handler; may be repeated.', isMany: true },
      {
        flags: '--secret-file <file>',
        about: 'A file with the secret, or - for standard input; default: it does not change.',
        completes: 'files',
      },
      { flags: '--concurrency <n>', about: 'Maximum number of requests at a time; default 10.' },
      { flags: '--timeout-ms <n>', about: 'Time limit of a request; default 30000.' },
      { flags: '--disabled', about: 'Deliver nothing for now.' },
      { flags: '--receives-secrets', about: 'Deliver the secrets that tasks name, too.' },
    ],
    ask: ({ client, tenant }, given) => {
      const handlers = given.texts('handler');
      if (handlers.length === 0) throw usageError('--handler is required: whose tasks to deliver');
      const file = given.text('secret-file');
      return client.workerEndpoints.put(given.arg(0), {
        tenant_id: tenant,
        handlers: [...handlers],
        url: given.arg(1),
        secret: file === undefined ? undefined : secretIn(file, '--secret-file'),
        concurrency: given.count('concurrency'),
        timeout_ms: given.count('timeout-ms'),
        enabled: !given.flag('disabled'),
        receives_secrets: given.flag('receives-secrets'),
      });
    },
    said: ({ name }) => name,
    noted: ({ handlers }) => `It gets the tasks of ${handlers.join(', ')}.`,
  }),
  listing<WorkerEndpoint>({
    name: 'endpoints list',
    summary: 'List worker endpoints by name.',
    columns: [
      { head: 'NAME', text: ({ name }) => name, isWhole: true },
      { head: 'HANDLERS', text: ({ handlers }) => handlers.join(', ') },
      { head: 'URL', text: ({ url }) => url },
      {
        head: 'STATE',
        text: stateOf,
        tone: (endpoint) => (stateOf(endpoint) === 'paused' ? 'bad' : undefined),
      },
      { head: 'IN FLIGHT', text: ({ status }) => String(status?.in_flight ?? 0) },
      { head: 'SUCCESS', text: ({ status }, now) => ago(status?.last_success_at ?? null, now) },
      { head: 'ERROR', text: ({ status }) => status?.last_error ?? '-' },
    ],
    ask: ({ client }, _given, limit) => client.workerEndpoints.list({ limit }),
  }),
  showing({
    name: 'endpoints get',
    summary: 'Show a worker endpoint.',
    args: [NAME],
    ask: ({ client }, given) => client.workerEndpoints.get(given.arg()),
  }),
  acting({
    name: 'endpoints delete',
    summary: 'Delete a worker endpoint; requests in flight still count.',
    args: [NAME],
    ask: ({ client }, given) => client.workerEndpoints.delete(given.arg()),
    said: (_, given) => `${memberText(given.arg())} was deleted.`,
  }),
];
