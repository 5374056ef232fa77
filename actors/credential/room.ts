/** What steps authenticate with: read at the moment of each call, and on the first shard kept. */

import type { Keyring } from '../../src/core/continuity/keys.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { Credentials } from './credentials.js';
import { Secrets } from './secrets.js';

export interface CredentialNeeds {
  readonly sender: WebhookSender;
  readonly keyring: Keyring | undefined;
}

export function openCredentials(kernel: Kernel, { sender, keyring }: CredentialNeeds) {
  return {
    secrets: new Secrets({ ...kernel, keyring }),
    credentials: onFirstShard(kernel, () => new Credentials({ ...kernel, sender, keyring })),
  };
}
