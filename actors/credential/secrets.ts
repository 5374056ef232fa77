/**
 * Fills secrets into the parameters of a call (docs/secrets.md), in memory only. Each call reads the rows, so that new
 * values apply at once and no thread caches secrets.
 */

import type { JsonValue } from '../../src/base/json.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Parsed } from '../../src/core/parsed.js';
import { openSecret, type StoredSecret } from '../../src/core/sealing/sealing.js';
import { type Filled, fillSecrets, secretIdsIn } from '../../src/core/secret-texts.js';
import type { Kernel } from '../runtime/kernel.js';
import type { NamedSecrets } from '../runtime/protocol.js';
import { BatchedReads } from '../runtime/queries.js';
import type { RowSecretsDeps } from '../runtime/row-secrets.js';
import { type CredentialLoads, type CredentialPlace, type CredentialRow, keyOf } from './loads.js';

type SecretsDeps = Pick<Kernel<CredentialLoads>, 'loader' | 'now'> &
  Pick<RowSecretsDeps, 'keyring'>;

export class Secrets {
  readonly #deps: SecretsDeps;
  readonly #reads: BatchedReads<CredentialPlace, CredentialRow | undefined>;

  constructor(deps: SecretsDeps) {
    this.#deps = deps;
    this.#reads = new BatchedReads(async (places) => {
      const rows = await deps.loader.credentials(places);
      const found = new Map(rows.map((row) => [keyOf(row), row]));
      return places.map((place) => found.get(keyOf(place)));
    });
  }

  /** `ok: false` names a missing secret. @throws when the rows cannot be read */
  async fill(params: JsonValue, { tenant, texts }: NamedSecrets): Promise<Parsed<Filled>> {
    const ids = secretIdsIn(texts);
    const rows = await Promise.all(ids.map((id) => this.#reads.read({ tenant_id: tenant, id })));
    const values = new Map(ids.map((id, i) => [id, this.#valueOf(rows[i])]));
    const closed = ids.find((_, i) => isUsable(rows[i], this.#deps.now()) && !values.get(ids[i]!));
    const filled = fillSecrets(params, texts, (id) => values.get(id));
    if (filled.ok || closed === undefined) return filled;
    const message = `secret ${closed} is sealed with an encryption key that the server does not have`;
    return { ok: false, message };
  }

  #valueOf(row: CredentialRow | undefined): string | undefined {
    if (!isUsable(row, this.#deps.now())) return undefined;
    return openSecret(row, JSON.parse(row.value) as StoredSecret, this.#deps.keyring);
  }
}

function isUsable(row: CredentialRow | undefined, now: UnixMs): row is CredentialRow {
  if (row === undefined || !row.enabled) return false;
  return row.expires_at === null || Date.parse(row.expires_at) > now;
}
