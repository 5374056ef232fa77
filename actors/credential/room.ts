/** Credentials: read for each call on every shard, and changed on the first shard. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import type { RouteOperations } from '../runtime/operation.js';
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
  const operations = onFirstShard(kernel, () => {
    const credentials = new Credentials({ ...kernel, sender, keyring });
    return {
      'credentials.create': { serve: (call) => credentials.create(call) },
      'credentials.update': { serve: (call) => credentials.update(call) },
      'credentials.delete': { serve: (call) => credentials.delete(call) },
    } satisfies RouteOperations;
  });
  return { secrets: new Secrets({ ...kernel, keyring }), operations };
}
