/**
 * The schemes by which requests for triggers are verified: one row each. A row finds the problem of a request, and the
 * id by which a repeated delivery is recognised. Secrets and signatures are compared in constant time. Pure.
 */

import { createHash, createHmac } from 'node:crypto';
import type { TriggerVerify, VerifyScheme } from '../../../schema/trigger-parts.js';
import type { JsonObject } from '../../../src/base/json.js';
import type { UnixMs } from '../../../src/base/time.js';
import { isSameText, signatureProblem } from './trigger-signature.js';

/** How a trigger verifies requests, without the secrets. */
export type Verification = Omit<TriggerVerify, 'secret'>;

export interface Delivery {
  readonly header: (name: string) => string | undefined;
  readonly body: Uint8Array;
}

interface Verified extends Delivery {
  readonly settings: Verification;
  /** Any of them authenticates. */
  readonly secrets: readonly string[];
  readonly now: UnixMs;
}

interface Scheme {
  /** The settings that it takes. */
  readonly takes: readonly (keyof Verification)[];
  readonly needs?: readonly (keyof Verification)[];
  /** The form of its secrets, as the end of a sentence. */
  readonly secretProblem?: (secret: string, settings: Verification) => string | undefined;
  /** The problem, as a message for the developers of the sender. */
  readonly problem: (delivery: Verified) => string | undefined;
  /** Without an id, every delivery has an effect. @param body parsed */
  readonly idOf: (delivery: Delivery, body: JsonObject) => string | undefined;
  /** A repeated delivery is 401: its id is a nonce, which a sender never repeats. */
  readonly refusesRepeats?: true;
  /** The sender must be answered 200 without a body. */
  readonly isAnsweredEmpty?: true;
}

const TOLERANCE_MS = 300_000;

const hmac = (
  algorithm: string,
  key: string | Uint8Array,
  parts: readonly (string | Uint8Array)[],
) => parts.reduce((mac, part) => mac.update(part), createHmac(algorithm, key));

/** Whether a secret gives one of the signatures. */
function isSigned(
  secrets: readonly string[],
  given: readonly string[],
  signatureOf: (secret: string) => string,
): boolean {
  return secrets.some((secret) => {
    const expected = signatureOf(secret);
    return given.some((signature) => isSameText(signature, expected));
  });
}

/** The secret was copied with something else. */
const edgeProblem = (secret: string) =>
  secret === secret.trim() ? undefined : 'must not begin or end with a blank or line break';

/** A token in a header has no blanks. */
const blankProblem = (secret: string) =>
  /\s/.test(secret) ? 'must not have blanks or line breaks' : undefined;

const SECONDS = /^\d{1,12}$/;

/** The problem of a time in seconds since 1970. */
function timeProblem(name: string, text: string | undefined, { settings, now }: Verified) {
  if (text === undefined || !SECONDS.test(text)) return `${name} must be the unix time in seconds`;
  const apart = Math.abs(now - Number(text) * 1_000);
  const tolerance = settings.tolerance_ms ?? TOLERANCE_MS;
  return apart > tolerance
    ? `${name} differs from the time of the server by more than ${tolerance} ms`
    : undefined;
}

/** The same request gives the same id, whatever its sender repeats. */
function digestOf({ body }: Delivery, timestamp = ''): string {
  return createHash('sha256').update(`${timestamp}.`).update(body).digest('hex');
}

// ---------------------------------------------------------------- standard webhooks

/** Some providers still send the names from before the standard. */
const standardHeader = ({ header }: Delivery, name: string) =>
  header(`webhook-${name}`) ?? header(`svix-${name}`);

const BASE64 = /^(?:whsec_)?[A-Za-z0-9+/]+={0,2}$/;

const standardKey = (secret: string) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64');

const STANDARD_WEBHOOKS: Scheme = {
  takes: ['tolerance_ms'],
  secretProblem: (secret) =>
    BASE64.test(secret) && standardKey(secret).length > 0
      ? undefined
      : 'must be whsec_ and the key in base64',
  problem: (delivery) => {
    const id = standardHeader(delivery, 'id');
    const timestamp = standardHeader(delivery, 'timestamp');
    if (id === undefined || id === '') return 'webhook-id is missing';
    const late = timeProblem('webhook-timestamp', timestamp, delivery);
    if (late !== undefined) return late;
    const given = (standardHeader(delivery, 'signature') ?? '').split(' ');
    const isValid = isSigned(delivery.secrets, given, (secret) => {
      const mac = hmac('sha256', standardKey(secret), [`${id}.${timestamp}.`, delivery.body]);
      return `v1,${mac.digest('base64')}`;
    });
    return isValid ? undefined : 'webhook-signature does not fit';
  },
  idOf: (delivery) => standardHeader(delivery, 'id'),
};

// ---------------------------------------------------------------- providers

/** `t=…,v1=…,v1=…`; other versions of signatures are ignored. */
function stripeParts(text: string): { readonly t: string | undefined; readonly v1: string[] } {
  const pairs = text.split(',').map((pair) => pair.trim());
  const valuesOf = (name: string) =>
    pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
  return { t: valuesOf('t')[0], v1: valuesOf('v1') };
}

const textIn = (body: JsonObject, member: string) => {
  const value = Object.hasOwn(body, member) ? body[member] : undefined;
  return typeof value === 'string' ? value : undefined;
};

const STRIPE: Scheme = {
  takes: ['tolerance_ms'],
  secretProblem: edgeProblem,
  problem: (delivery) => {
    const { t, v1 } = stripeParts(delivery.header('stripe-signature') ?? '');
    const late = timeProblem('t of stripe-signature', t, delivery);
    if (late !== undefined) return late;
    const isValid = isSigned(delivery.secrets, v1, (secret) =>
      hmac('sha256', secret, [`${t}.`, delivery.body]).digest('hex'),
    );
    return isValid ? undefined : 'stripe-signature does not fit';
  },
  idOf: (delivery, body) => textIn(body, 'id') ?? digestOf(delivery),
};

const GITHUB: Scheme = {
  takes: [],
  secretProblem: edgeProblem,
  problem: ({ header, secrets, body }) => {
    const given = [header('x-hub-signature-256') ?? ''];
    const isValid = isSigned(
      secrets,
      given,
      (secret) => `sha256=${hmac('sha256', secret, [body]).digest('hex')}`,
    );
    return isValid ? undefined : 'x-hub-signature-256 does not fit';
  },
  idOf: (delivery) => delivery.header('x-github-delivery') ?? digestOf(delivery),
};

const slackTime = ({ header }: Delivery) => header('x-slack-request-timestamp');

const SLACK: Scheme = {
  takes: ['tolerance_ms'],
  secretProblem: edgeProblem,
  isAnsweredEmpty: true,
  problem: (delivery) => {
    const timestamp = slackTime(delivery);
    const late = timeProblem('x-slack-request-timestamp', timestamp, delivery);
    if (late !== undefined) return late;
    const given = [delivery.header('x-slack-signature') ?? ''];
    const isValid = isSigned(delivery.secrets, given, (secret) => {
      const mac = hmac('sha256', secret, [`v0:${timestamp}:`, delivery.body]);
      return `v0=${mac.digest('hex')}`;
    });
    return isValid ? undefined : 'x-slack-signature does not fit';
  },
  // Slack signs a repeated event anew; commands and interactions have no id and are not repeated.
  idOf: (delivery, body) => textIn(body, 'event_id') ?? digestOf(delivery, slackTime(delivery)),
};

// ---------------------------------------------------------------- without a provider

const ENGINE: Scheme = {
  takes: [],
  refusesRepeats: true,
  problem: ({ header, secrets, body, now }) => {
    const head = {
      timestamp: header('x-trigger-timestamp'),
      nonce: header('x-trigger-nonce'),
      signature: header('x-engine-signature'),
    };
    const problems = secrets.map((secret) => signatureProblem(head, body, secret, now));
    return problems.includes(undefined) ? undefined : problems[0];
  },
  idOf: ({ header }) => header('x-trigger-nonce'),
};

const HMAC: Scheme = {
  takes: ['header', 'encoding', 'prefix', 'algorithm'],
  needs: ['header'],
  problem: ({ header, secrets, body, settings }) => {
    const { header: name, encoding, prefix, algorithm } = settings;
    const named = (name ?? '').toLowerCase();
    const given = header(named) ?? '';
    const form = encoding ?? 'hex';
    const isValid = isSigned(
      secrets,
      [plainest(form, given.slice((prefix ?? '').length))],
      (secret) => plainest(form, hmac(algorithm ?? 'sha256', secret, [body]).digest(form)),
    );
    return isValid && given.startsWith(prefix ?? '') ? undefined : `${named} does not fit`;
  },
  idOf: (delivery) => digestOf(delivery),
};

/** Senders differ in the case of hexadecimal digits and in the padding of base64. */
const plainest = (encoding: string, text: string) =>
  encoding === 'hex' ? text.toLowerCase() : text.replace(/=+$/, '');

/** Without control characters, and without blanks at its ends, which no receiver sees. */
const HEADER_VALUE = /^[^\s\p{Cc}](?:[^\p{Cc}]*[^\s\p{Cc}])?$/u;

/** A sender that proves only who it is may repeat the same body on purpose. */
const keyOfSender = ({ header }: Delivery) => header('idempotency-key');

const BASIC: Scheme = {
  takes: [],
  secretProblem: (secret) => {
    const isPair = secret.includes(':') && secret.replaceAll(':', '').trim() !== '';
    return isPair ? undefined : 'must be user:password';
  },
  problem: ({ header, secrets }) => {
    const given = /^basic +(\S+)$/i.exec(header('authorization') ?? '')?.[1] ?? '';
    const isValid = isSigned(secrets, [given], (secret) => Buffer.from(secret).toString('base64'));
    return isValid ? undefined : 'authorization does not fit';
  },
  idOf: keyOfSender,
};

const tokenHeader = (settings: Verification) => (settings.header ?? 'authorization').toLowerCase();

const BEARER: Scheme = {
  takes: ['header'],
  secretProblem: (secret, settings) => {
    if (tokenHeader(settings) === 'authorization') return blankProblem(secret);
    return HEADER_VALUE.test(secret) ? undefined : 'must be what a header can carry';
  },
  problem: ({ header, secrets, settings }) => {
    const name = tokenHeader(settings);
    const text = header(name) ?? '';
    const given = name === 'authorization' ? (/^bearer +(\S+)$/i.exec(text)?.[1] ?? '') : text;
    return isSigned(secrets, [given], (secret) => secret) ? undefined : `${name} does not fit`;
  },
  idOf: keyOfSender,
};

const SCHEMES: Readonly<Record<VerifyScheme, Scheme>> = {
  engine: ENGINE,
  standard_webhooks: STANDARD_WEBHOOKS,
  stripe: STRIPE,
  github: GITHUB,
  slack: SLACK,
  hmac: HMAC,
  basic: BASIC,
  bearer: BEARER,
};

export const schemeOf = ({ scheme }: Verification): Scheme => SCHEMES[scheme];

/** What is wrong with the settings of a scheme, beginning with the member. */
export function verifyProblem(verify: TriggerVerify): string | undefined {
  const { secret, scheme, ...given } = verify;
  const { takes, needs = [], secretProblem } = SCHEMES[scheme];
  const settings = Object.entries(given).filter(([, value]) => value != null);
  const stray = settings.find(([name]) => !(takes as readonly string[]).includes(name));
  if (stray !== undefined) return `verify.${stray[0]} is not used by the scheme ${scheme}`;
  const missing = needs.find((name) => verify[name] == null);
  if (missing !== undefined) return `verify.${missing} is required by the scheme ${scheme}`;
  const problem = secretsOf(secret)
    .map((one) => secretProblem?.(one, verify))
    .find((found) => found !== undefined);
  return problem === undefined ? undefined : `verify.secret ${problem}`;
}

export const secretsOf = (secret: TriggerVerify['secret']): readonly string[] =>
  typeof secret === 'string' ? [secret] : secret;

const DELIVERY_ID = /^[\x21-\x7e]{1,128}$/;

/** Fits into a key: ids of providers are short, but any sender writes headers. */
export function boundedId(id: string): string {
  return DELIVERY_ID.test(id) ? id : createHash('sha256').update(id).digest('hex');
}
