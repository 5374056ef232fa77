/**
 * What the form of a trigger holds: its values as typed, read from a trigger, and the requests that they make. Secrets
 * are never read back: an empty one keeps the stored one. Pure.
 */

import type {
  CreateTrigger,
  Trigger,
  TriggerPublish,
  TriggerType,
  TriggerVerify,
  UpdateTrigger,
} from 'durable-workflow-engine-client';
import { jsonTextOf } from '../../lib/format.ts';
import { jsonOf } from '../../lib/json-text.ts';
import { type NumberLimits, numberOf } from '../../lib/numbers.ts';

export type Scheme = TriggerVerify['scheme'];
type Setting = keyof Omit<TriggerVerify, 'scheme' | 'secret'>;

interface SchemeLook {
  readonly label: string;
  /** Those that its fields are for. */
  readonly settings: readonly Setting[];
  /** Where the secret comes from, and its form. */
  readonly secret: string;
}

/** In the order of the form. */
export const SCHEMES: Readonly<Record<Scheme, SchemeLook>> = {
  engine: {
    label: 'Our signature',
    settings: [],
    secret: 'The key with which callers sign their requests',
  },
  standard_webhooks: {
    label: 'Standard Webhooks',
    settings: ['tolerance_ms'],
    secret: 'whsec_ and the key in base64, as the sender shows it',
  },
  stripe: {
    label: 'Stripe',
    settings: ['tolerance_ms'],
    secret: 'The signing secret of the endpoint in Stripe’s dashboard: whsec_…',
  },
  github: { label: 'GitHub', settings: [], secret: 'The secret of the webhook in GitHub' },
  slack: {
    label: 'Slack',
    settings: ['tolerance_ms'],
    secret: 'The signing secret of the app in Slack',
  },
  hmac: {
    label: 'HMAC of the body',
    settings: ['header', 'prefix', 'algorithm', 'encoding'],
    secret: 'The key of the HMAC',
  },
  basic: { label: 'Basic authentication', settings: [], secret: 'user:password' },
  bearer: { label: 'Bearer token', settings: ['header'], secret: 'The token' },
};

export const ALGORITHMS = ['sha256', 'sha1', 'sha512'] as const;
export const ENCODINGS = ['hex', 'base64', 'base64url'] as const;
export const TOLERANCE_MS: NumberLimits = { isInteger: true, min: 1_000, max: 86_400_000 };

export interface VerifyDraft {
  /** Empty: webhooks are refused. */
  readonly scheme: Scheme | '';
  readonly secret: string;
  /** Accepted, too, until the new one is stored alone. */
  readonly oldSecret: string;
  readonly header: string;
  readonly prefix: string;
  readonly algorithm: (typeof ALGORITHMS)[number];
  readonly encoding: (typeof ENCODINGS)[number];
  readonly tolerance: string;
}

export interface TriggerDraft {
  readonly slug: string;
  readonly type: TriggerType;
  readonly verify: VerifyDraft;
  readonly eventName: string;
  readonly correlationKey: string;
  readonly effect: 'start' | 'publish';
  readonly namespace: string;
  readonly sequence: string;
  readonly event: string;
  readonly key: string;
  /** JSON; empty: the body of the request. */
  readonly payload: string;
  readonly id: string;
}

/** @param trigger undefined: a new one */
export function draftOf(trigger?: Trigger): TriggerDraft {
  const { verify = null, publish = null, config = {} as Trigger['config'] } = trigger ?? {};
  return {
    slug: trigger?.slug ?? '',
    type: trigger?.trigger_type ?? 'webhook',
    verify: {
      scheme: trigger === undefined ? 'engine' : (schemeOf(trigger) ?? ''),
      secret: '',
      oldSecret: '',
      header: verify?.header ?? '',
      prefix: verify?.prefix ?? '',
      algorithm: verify?.algorithm ?? 'sha256',
      encoding: verify?.encoding ?? 'hex',
      tolerance: verify?.tolerance_ms?.toString() ?? '',
    },
    eventName: textIn(config.event_name),
    correlationKey: textIn(config.correlation_key),
    effect: publish === null ? 'start' : 'publish',
    namespace: trigger?.namespace ?? 'default',
    sequence: trigger?.sequence_name ?? '',
    event: publish?.event ?? '',
    key: publish?.key ?? '',
    payload: publish?.payload === undefined ? '' : jsonTextOf(publish.payload),
    id: publish?.id ?? '',
  };
}

const textIn = (value: unknown) => (typeof value === 'string' ? value : '');

/** By what its webhooks are verified; undefined: it accepts none. */
export function schemeOf({ secret, verify }: Pick<Trigger, 'secret' | 'verify'>) {
  return verify?.scheme ?? (secret === null ? undefined : 'engine');
}

/** Whether a secret must be typed: a change of `verify` replaces all of it. */
export function needsSecret({ verify }: TriggerDraft, trigger?: Trigger): boolean {
  return verify.scheme !== '' && (trigger === undefined || isVerifyChanged(verify, trigger));
}

function isVerifyChanged(draft: VerifyDraft, trigger: Trigger): boolean {
  const before = draftOf(trigger).verify;
  return draft.scheme !== before.scheme || textOfSettings(draft) !== textOfSettings(before);
}

const textOfSettings = (draft: VerifyDraft) =>
  draft.scheme === '' ? '' : SCHEMES[draft.scheme].settings.map((one) => typed(draft, one)).join();

const typed = (draft: VerifyDraft, setting: Setting) =>
  setting === 'tolerance_ms' ? draft.tolerance.trim() : draft[setting].trim();

/** @throws Error with the label of a field that cannot be read */
export function createOf(draft: TriggerDraft): CreateTrigger {
  const { slug, type, namespace, sequence } = draft;
  return {
    ...{ slug, trigger_type: type, namespace },
    ...(draft.effect === 'start' ? { sequence_name: sequence } : { publish: publishOf(draft) }),
    ...causeOf(draft),
  };
}

/** @throws Error with the label of a field that cannot be read */
export function changeOf(draft: TriggerDraft, trigger: Trigger): UpdateTrigger {
  const effect =
    draft.effect === 'start'
      ? { sequence_name: draft.sequence, publish: null }
      : { sequence_name: null, version: null, publish: publishOf(draft) };
  return { ...effect, ...causeOf(draft, trigger) };
}

function causeOf(draft: TriggerDraft, trigger?: Trigger) {
  if (draft.type === 'webhook') return authenticationOf(draft, trigger);
  const { eventName, correlationKey } = draft;
  return {
    config: {
      event_name: eventName,
      ...(correlationKey !== '' && { correlation_key: correlationKey }),
    },
  };
}

/** Our signature is the member `secret`, unless the trigger has it in `verify` already. */
function authenticationOf(draft: TriggerDraft, trigger?: Trigger) {
  const { scheme, secret, oldSecret } = draft.verify;
  if (trigger !== undefined && secret === '' && !isVerifyChanged(draft.verify, trigger)) return {};
  if (scheme === '') return trigger === undefined ? {} : { secret: null, verify: null };
  if (scheme === 'engine' && (trigger?.verify ?? null) === null) return { secret };
  const settings = SCHEMES[scheme].settings
    .map((name) => [name, typed(draft.verify, name)] as const)
    .filter(([, text]) => text !== '')
    .map(([name, text]) => [
      name,
      name === 'tolerance_ms' ? numberOf('Tolerance', text, TOLERANCE_MS) : text,
    ]);
  const secrets = oldSecret === '' ? secret : [secret, oldSecret];
  return { verify: { scheme, ...Object.fromEntries(settings), secret: secrets } };
}

/** Whether two secrets can be valid at once. */
export const takesOldSecret = ({ verify: { scheme } }: TriggerDraft, trigger: Trigger) =>
  scheme !== '' && scheme === trigger.verify?.scheme;

function publishOf({ event, key, payload, id }: TriggerDraft): TriggerPublish {
  return {
    event,
    ...(key !== '' && { key }),
    ...(payload.trim() !== '' && { payload: jsonOf('The payload', payload) }),
    ...(id !== '' && { id }),
  };
}

/** What two versions of a trigger are compared by: its values without the secrets. */
export function viewOf(draft: TriggerDraft): object {
  const { type, effect, verify } = draft;
  const { sequence, event, key, payload, id, eventName, correlationKey } = draft;
  const { scheme } = verify;
  const settings = scheme === '' ? [] : SCHEMES[scheme].settings;
  return {
    ...(effect === 'start' ? { sequence } : { publish: shown({ event, key, payload, id }) }),
    ...(type === 'event'
      ? { event: shown({ name: eventName, correlation_key: correlationKey }) }
      : {
          verify: shown({
            scheme,
            ...Object.fromEntries(settings.map((name) => [name, typed(verify, name)])),
          }),
        }),
  };
}

const shown = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(values).filter(([, text]) => text !== ''));
