/** The members of a trigger that say how its requests are verified, and which event it publishes (docs/triggers.md). */

import * as t from './common.js';
import { words } from './states.js';

/** The rows are in `actors/trigger/core/schemes.ts`. */
const VERIFY_SCHEMES = words('engine standard_webhooks stripe github slack hmac basic bearer');
export type VerifyScheme = (typeof VERIFY_SCHEMES)[number];

const ENCODINGS = ['hex', 'base64', 'base64url'] as const;
const HASHES = ['sha256', 'sha1', 'sha512'] as const;
/** Two are valid at once while a secret is replaced. */
export const SECRETS_MAX = 2;
/** A day: longer windows would outlast what recognises repeated deliveries. */
const TOLERANCE_MS_MAX = 86_400_000;
export const HEADER_PATTERN = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$";
/** A signature with its prefix is short; providers have prefixes such as `sha256=`. */
const PREFIX_LENGTH_MAX = 64;

export const TriggerSecret = t.secretText({
  pattern: '\\S',
  maxLength: t.KEY_LENGTH_MAX,
  description: 'Authenticates callers. Never returned.',
});

const SETTINGS = {
  scheme: t.oneOf(
    VERIFY_SCHEMES,
    'engine: as with `secret`. hmac: a signature of the body. basic: user:password. bearer: a token.',
  ),
  header: t.nullish(
    t.text({ pattern: HEADER_PATTERN, maxLength: t.NAME_LENGTH_MAX }),
    'Of hmac, which requires it, and bearer: the header with the signature or the token.',
  ),
  encoding: t.nullish(t.oneOf(ENCODINGS, 'Of hmac. Default: hex.')),
  prefix: t.nullish(
    t.text({ maxLength: PREFIX_LENGTH_MAX }),
    'Of hmac: precedes the signature in the header, such as sha256=.',
  ),
  algorithm: t.nullish(t.oneOf(HASHES, 'Of hmac. Default: sha256.')),
  tolerance_ms: t.nullish(
    t.integer({ minimum: 1_000, maximum: TOLERANCE_MS_MAX }),
    'Of standard_webhooks, stripe and slack: the greatest age of a request. Default: 300,000.',
  ),
};

export const TriggerVerify = t.strictNamed('TriggerVerify', {
  ...SETTINGS,
  secret: t.typed<string | readonly string[]>({
    'x-check': 'secrets',
    description: 'Shared with the sender; a list of two while it is replaced. Never returned.',
  }),
});
export type TriggerVerify = t.Static<typeof TriggerVerify>;

export const TriggerVerification = t.named('TriggerVerification', {
  ...SETTINGS,
  secret: t.text(`Always ${t.REDACTED}.`),
});
export type TriggerVerification = t.Static<typeof TriggerVerification>;

/** Of the template, in JSON: it is compiled for every delivery. */
export const PAYLOAD_LENGTH_MAX = 65_536;

const Template = t.text({ pattern: '\\S', maxLength: t.EXPRESSION_LENGTH_MAX });

export const TriggerPublish = t.strictNamed(
  'TriggerPublish',
  'Templates over `body` and `headers` of the request; headers have names in lower case.',
  {
    event: t.noted(Template, 'Name of the event.'),
    key: t.nullish(Template, 'Its correlation key. Default: none.'),
    payload: t.optional(t.AnyJson, 'Its payload. Default: the body.'),
    id: t.nullish(
      Template,
      'Its producer_event_id. Default: derived from the id of the delivery, so that a repeated ' +
        'delivery is a duplicate.',
    ),
  },
);
export type TriggerPublish = t.Static<typeof TriggerPublish>;
