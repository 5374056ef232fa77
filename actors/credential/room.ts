/** Credentials: read for each call on every shard, and changed on the first shard. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { Credentials } from './credentials.js';
import type { CredentialLoads } from './loads.js';
import { Secrets } from './secrets.js';

export interface CredentialNeeds {
  readonly webhookSender: WebhookSender;
  readonly keyring?: Keyring | undefined;
}

export type CredentialRoom = ReturnType<typeof openCredentials>;

export function openCredentials(
  kernel: Kernel<CredentialLoads>,
  { webhookSender: sender, keyring }: CredentialNeeds,
) {
  const credentials = onFirstShard(kernel, () => new Credentials({ ...kernel, sender, keyring }));
  return { secrets: new Secrets({ ...kernel, keyring }), parts: [credentials] };
}
