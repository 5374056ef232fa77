/**
 * The writer's side of the tenants' keys, on the first shard: each change is one commit unit, and its
 * answer leaves when that is durable. Which keys there are, and whether one is valid, is known by the
 * front thread alone (`src/http/key-registry.ts`), which is the only one who asks here; so nothing is
 * kept, and what comes has been checked. Secrets do not come this far: a row has their hash.
 */

import { refusedData, UNKNOWN_OUTCOME } from '../src/errors.js';
import type { CommitLog, PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import { type Effect, Turn } from './turn.js';

/** The body of `apiKeys.mint`: a row of `api_keys`. */
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

/** The body of `apiKeys.revoke`, and each item of that of `apiKeys.used`. */
export interface KeyUse {
  readonly id: string;
  readonly last_used_at: string | null;
}

export type KeyOperation = 'apiKeys.mint' | 'apiKeys.revoke' | 'apiKeys.used';

export interface ApiKeysDeps {
  readonly commits: CommitLog;
  readonly release: (effects: readonly Effect[]) => void;
}

export class ApiKeys implements UnitOwner {
  readonly key = 'api-keys';
  incarnation: number;
  readonly #deps: ApiKeysDeps;

  constructor(deps: ApiKeysDeps) {
    this.#deps = deps;
    this.incarnation = deps.commits.nextIncarnation();
  }

  /**
   * The units of one actor commit in order, so a use that was noted before a revocation cannot undo
   * it: the front notes none afterwards.
   */
  handle(request: number, operation: KeyOperation, body: string): void {
    const turn = new Turn();
    if (operation === 'apiKeys.mint') {
      turn.put('apiKey.insert', (JSON.parse(body) as KeyRow).id, body);
    } else {
      const revoked = operation === 'apiKeys.revoke';
      const uses = revoked ? [JSON.parse(body) as KeyUse] : (JSON.parse(body) as KeyUse[]);
      for (const use of uses) turn.put('apiKey.update', use.id, { ...use, revoked });
    }
    turn.reply(request, 204, '');
    this.#deps.commits.append(this, turn);
  }

  settled(unit: PendingUnit, ack: Settlement): void {
    if (ack[1] === 'committed') {
      this.#deps.release(unit.effects);
      return;
    }
    // The rows of keys are independent: one that was refused says nothing about the next.
    if (ack[1] === 'refused') this.incarnation = this.#deps.commits.nextIncarnation();
    const error = ack[1] === 'refused' ? refusedData(ack[3]) : UNKNOWN_OUTCOME;
    for (const effect of unit.effects) {
      if (effect.kind === 'reply') {
        this.#deps.release([{ kind: 'error', request: effect.request, error }]);
      }
    }
  }
}
