/** Requests as providers sign them, by the algorithms in their documents. */

import { createHmac } from 'node:crypto';

type Headers = Record<string, string>;

export const secondsNow = () => String(Math.floor(Date.now() / 1_000));

const hex = (secret: string, text: string) =>
  createHmac('sha256', secret).update(text).digest('hex');

/** docs.stripe.com/webhooks: `t=<seconds>,v1=<hex of "<seconds>.<body>">`. */
export function stripe(secret: string, body: string, at = secondsNow()): Headers {
  return { 'stripe-signature': `t=${at},v1=${hex(secret, `${at}.${body}`)}` };
}

/** docs.github.com/webhooks: `sha256=<hex of the body>`. */
export function github(secret: string, body: string, delivery: string): Headers {
  return { 'x-hub-signature-256': `sha256=${hex(secret, body)}`, 'x-github-delivery': delivery };
}

/** api.slack.com/authentication/verifying-requests-from-slack: `v0=<hex of "v0:<seconds>:<body>">`. */
export function slack(secret: string, body: string, at = secondsNow()): Headers {
  return {
    'x-slack-request-timestamp': at,
    'x-slack-signature': `v0=${hex(secret, `v0:${at}:${body}`)}`,
  };
}

/** standardwebhooks.com: `v1,<base64 of "<id>.<seconds>.<body>">`, with the key in base64 behind `whsec_`. */
export function standardWebhooks(
  secret: string,
  body: string,
  id: string,
  at = secondsNow(),
): Headers {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const mac = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': `v1,${mac}` };
}
