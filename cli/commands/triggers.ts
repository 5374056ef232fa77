/** Commands for triggers. Secrets are never arguments, which every process list would show. */

import type {
  CreateTrigger,
  Trigger,
  TriggerPublish,
  TriggerVerify,
  UpdateTrigger,
} from '../../client/src/index.js';
import {
  type Argument,
  acting,
  type Command,
  type Given,
  listing,
  type Option,
  showing,
} from '../command.js';
import { usageError } from '../exit.js';
import { objectOf, secretIn } from '../json-input.js';
import { byName } from '../sequence-names.js';
import { ago, memberText } from '../table.js';

const SLUG: Argument = { name: 'slug', about: 'Its name, a part of its address.' };

/** The type makes the list complete. */
const SCHEMES = Object.keys({
  engine: true,
  standard_webhooks: true,
  stripe: true,
  github: true,
  slack: true,
  hmac: true,
  basic: true,
  bearer: true,
} satisfies Record<TriggerVerify['scheme'], true>);

const SETTINGS: readonly Option[] = [
  {
    flags: '--publish <json>',
    about: 'Publish this event: event, key, payload, id; JSON, @file or -.',
  },
  { flags: '--sequence-version <n>', about: 'Always start this version.' },
  { flags: '--event-name <name>', about: 'Fired by events with this name.' },
  { flags: '--correlation-key <key>', about: 'With --event-name: only with this key.' },
  { flags: '--scheme <word>', about: 'How requests are verified.', choices: SCHEMES },
  {
    flags: '--secret-file <file>',
    about: 'A file with the secret, or - for standard input; twice while it is replaced.',
    isMany: true,
    completes: 'files',
  },
  { flags: '--header <name>', about: 'Of the schemes hmac and bearer.' },
  { flags: '--encoding <word>', about: 'Of hmac.', choices: ['hex', 'base64', 'base64url'] },
  { flags: '--prefix <text>', about: 'Of hmac, such as sha256=.' },
  { flags: '--algorithm <word>', about: 'Of hmac.', choices: ['sha256', 'sha1', 'sha512'] },
  { flags: '--tolerance-ms <n>', about: 'The greatest age of a signed request.' },
];

/** The settings that creation and update share; options that were not given are left out. */
function settingsOf(given: Given) {
  const event_name = given.text('event-name');
  const correlation_key = given.text('correlation-key');
  const isOfEvents = event_name !== undefined;
  if (!isOfEvents && correlation_key !== undefined) {
    throw usageError('--correlation-key needs --event-name');
  }
  return {
    publish: objectOf(given.text('publish'), '--publish') as TriggerPublish | undefined,
    version: given.count('sequence-version'),
    config: isOfEvents
      ? { event_name, ...(correlation_key !== undefined && { correlation_key }) }
      : undefined,
    ...authenticationOf(given),
  };
}

function authenticationOf(given: Given): { secret?: string; verify?: TriggerVerify } {
  const secrets = given.texts('secret-file').map((file) => secretIn(file, '--secret-file'));
  const [secret] = secrets;
  const scheme = given.text('scheme') as TriggerVerify['scheme'] | undefined;
  const settings = {
    header: given.text('header'),
    encoding: given.text('encoding') as TriggerVerify['encoding'],
    prefix: given.text('prefix'),
    algorithm: given.text('algorithm') as TriggerVerify['algorithm'],
    tolerance_ms: given.count('tolerance-ms'),
  };
  if (scheme === undefined) {
    const hasMore = Object.values(settings).some((value) => value !== undefined);
    if (hasMore || secrets.length > 1) throw usageError('--scheme is required with these options');
    return secret === undefined ? {} : { secret };
  }
  if (secret === undefined) throw usageError('--secret-file is required with --scheme');
  return { verify: { scheme, ...settings, secret: secrets.length > 1 ? secrets : secret } };
}

function changesOf(given: Given): UpdateTrigger {
  if (given.flag('enable') && given.flag('disable')) {
    throw usageError('use either --enable or --disable');
  }
  const settings = settingsOf(given);
  const sequence_name = given.text('sequence');
  return {
    ...settings,
    // One effect replaces the other.
    ...(sequence_name !== undefined && { sequence_name, publish: null }),
    ...(settings.publish !== undefined && { sequence_name: null, version: null }),
    ...(given.flag('enable') || given.flag('disable') ? { enabled: given.flag('enable') } : {}),
    if_unchanged_since: given.text('if-unchanged-since'),
  };
}

function effectOf({ sequence_name, publish }: Trigger): string {
  return publish === null ? `start ${sequence_name}` : `publish ${publish.event}`;
}

function causeOf({ config, verify, secret, trigger_type }: Trigger): string {
  if (trigger_type === 'event') return `event ${String(config.event_name)}`;
  return verify?.scheme ?? (secret === null ? 'calls' : 'engine');
}

export const TRIGGER_COMMANDS: readonly Command[] = [
  acting({
    name: 'triggers create',
    summary: 'Create a trigger that starts a sequence or, with --publish, publishes an event.',
    args: [
      SLUG,
      {
        name: 'sequence',
        about: 'The name of a sequence, resolved at each fire.',
        isOptional: true,
      },
    ],
    options: [{ flags: '--disabled', about: 'Create it disabled.' }, ...SETTINGS],
    ask: (session, given) => {
      const sequence = given.args[1] as string | undefined;
      const settings = settingsOf(given);
      const body: CreateTrigger = {
        tenant_id: session.tenant,
        namespace: session.namespaceOfName,
        slug: given.arg(0),
        sequence_name: sequence,
        trigger_type: settings.config === undefined ? 'webhook' : 'event',
        enabled: !given.flag('disabled'),
        ...settings,
      };
      const create = () => session.client.triggers.create(body);
      return sequence === undefined ? create() : byName(session, sequence, create);
    },
    said: ({ slug }) => slug,
  }),
  listing<Trigger>({
    name: 'triggers list',
    summary: 'List triggers, oldest first.',
    columns: [
      { head: 'SLUG', text: ({ slug }) => slug, isWhole: true },
      { head: 'EFFECT', text: effectOf },
      { head: 'FIRED BY', text: causeOf },
      {
        head: 'STATE',
        text: ({ enabled }) => (enabled ? 'enabled' : 'disabled'),
        tone: ({ enabled }) => (enabled ? undefined : 'quiet'),
      },
      { head: 'UPDATED', text: ({ updated_at }, now) => ago(updated_at, now) },
    ],
    ask: ({ client, namespace }, _given, limit) => client.triggers.list({ namespace, limit }),
  }),
  showing({
    name: 'triggers get',
    summary: 'Show a trigger, without its secrets.',
    args: [SLUG],
    ask: ({ client }, given) => client.triggers.get(given.arg()),
  }),
  acting({
    name: 'triggers update',
    summary: 'Change a trigger; values that are not given do not change.',
    args: [SLUG],
    options: [
      { flags: '--sequence <name>', about: 'Start this sequence.' },
      ...SETTINGS,
      { flags: '--enable', about: 'Enable the trigger.' },
      { flags: '--disable', about: 'Disable the trigger.' },
      {
        flags: '--if-unchanged-since <time>',
        about: 'The updated_at that you read; refused if the trigger has changed since.',
      },
    ],
    ask: ({ client }, given) => client.triggers.update(given.arg(), changesOf(given)),
    said: ({ slug, enabled }) =>
      `${memberText(slug)} was changed; it is ${enabled ? 'enabled' : 'disabled'}.`,
  }),
  acting({
    name: 'triggers fire',
    summary: 'Fire a trigger now; prints the id of its instance or event.',
    args: [SLUG],
    options: [
      { flags: '--data <json>', about: 'The body: JSON, @file or -.' },
      {
        flags: '--secret-file <file>',
        about: 'A file with the secret of the trigger, if it has one without a scheme.',
        completes: 'files',
      },
    ],
    ask: ({ client }, given) => {
      const file = given.text('secret-file');
      const headers = file && { 'x-trigger-secret': secretIn(file, '--secret-file') };
      const data = objectOf(given.text('data'), '--data') ?? {};
      return client.triggers.fire(given.arg(), data, headers ? { headers } : {});
    },
    said: ({ instance_id, event_id }) => instance_id ?? memberText(event_id),
  }),
  acting({
    name: 'triggers delete',
    summary: 'Delete a trigger; its instances continue.',
    args: [SLUG],
    ask: ({ client }, given) => client.triggers.delete(given.arg()),
    said: (_, given) => `${memberText(given.arg())} was deleted.`,
  }),
];
