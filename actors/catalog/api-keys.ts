/**
 * Commits changes of API keys, on the first shard; the response follows when the change is durable. The front thread
 * alone knows and validates keys (`src/http/key-registry.ts`), so nothing is cached here, and input is already checked.
 * A row has the hash of a secret only.
 */

import { Service, type ServiceDeps } from '../runtime/service.js';
import { API_KEY } from './tables.js';

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

  /** The tenant of the unit is the key's: while it is suspended the key must not seem to be revoked. */
  revoke(request: number, tenant: string, use: KeyUse): void {
    this.#service.serve(request, (turn) => {
      turn.tenant = tenant;
      turn.put(API_KEY.update, use.id, { ...use, revoked: true });
      turn.reply(request, 204, '');
    });
  }

  /** Units commit in order, and the front reports no use after a revocation: so a stored use cannot undo it. */
  used(request: number, uses: readonly KeyUse[]): void {
    this.#service.serve(request, (turn) => {
      for (const use of uses) turn.put(API_KEY.update, use.id, { ...use, revoked: false });
      turn.reply(request, 204, '');
    });
  }
}
