/**
 * The writer's side of the tenants' keys, on the first shard: each change is one commit unit, and its
 * answer leaves when that is durable. Which keys there are, and whether one is valid, is known by the
 * front thread alone (`src/http/key-registry.ts`), which is the only one who asks here; so nothing is
 * kept, and what comes has been checked. Secrets do not come this far: a row has their hash.
 */

import { Service, type ServiceDeps } from '../runtime/service.js';
import { API_KEY } from './tables.js';

/** A row of `api_keys`. */
export interface KeyRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly capabilities: readonly string[];
  /** Hexadecimal SHA-256 of the secret. */
  readonly secret_hash: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: null;
  readonly revoked: false;
}

/** When a key was last used. */
export interface KeyUse {
  readonly id: string;
  readonly last_used_at: string | null;
}

export class ApiKeys {
  readonly #service: Service;

  constructor(deps: ServiceDeps) {
    this.#service = new Service('api-keys', deps);
  }

  insert(request: number, row: KeyRow): void {
    this.#service.serve(request, (turn) => {
      turn.tenant = row.tenant_id;
      turn.put(API_KEY.insert, row.id, row);
      turn.reply(request, 204, '');
    });
  }

  /** Of its tenant's: while that is held the key must not seem to be revoked. */
  revoke(request: number, tenant: string, use: KeyUse): void {
    this.#service.serve(request, (turn) => {
      turn.tenant = tenant;
      turn.put(API_KEY.update, use.id, { ...use, revoked: true });
      turn.reply(request, 204, '');
    });
  }

  /**
   * Units commit in order, so a use that was noted before a revocation cannot undo it: the front
   * notes none afterwards.
   */
  used(request: number, uses: readonly KeyUse[]): void {
    this.#service.serve(request, (turn) => {
      for (const use of uses) turn.put(API_KEY.update, use.id, { ...use, revoked: false });
      turn.reply(request, 204, '');
    });
  }
}
