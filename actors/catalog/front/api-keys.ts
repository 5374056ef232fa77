/**
 * Creates, lists and revokes API keys. The first shard commits each change, and the registry has it before the response.
 * Only the response contains the secret; the shard gets its hash. If the outcome of a creation is unknown, the key may
 * be listed although its secret is lost.
 */

import { createHash, randomBytes } from 'node:crypto';
import type { KeyMinted, MintKey } from '../../../schema/api-key.js';
import { toUnixMs } from '../../../schema/common.js';
import type { Clock, TimerHandle } from '../../../src/base/clock.js';
import { EngineError, invalid, notFound } from '../../../src/base/errors.js';
import { groupsIn, groupsText } from '../../../src/base/groups.js';
import type { Logger } from '../../../src/base/log.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import { columnsBut, columnsOf, type StoredRow, selected } from '../../../src/db/table.js';
import type { KeyRegistry, LiveKeyRow, ResidentKey } from '../../../src/http/key-registry.js';
import { type FrontDeps, type FrontOperations, pageReply } from '../../../src/http/operation.js';
import type { RequestedAction } from '../../../src/http/requested-action.js';
import type { HttpReply } from '../../../src/http/server.js';
import type { Shards } from '../../runtime/shards.js';
import type { KeyRow, KeyUse, keyOperations } from '../front-rows.js';
import { API_KEYS } from '../tables.js';

const LIVE = columnsBut(API_KEYS, 'created_at', 'revoked');
const STATE = columnsOf(API_KEYS, 'tenant_id', 'name', 'revoked', 'last_used_at');
export type KeyState = StoredRow<typeof API_KEYS, (typeof STATE)[number]>;
const LISTED = columnsBut(API_KEYS, 'secret_hash');
type ListedKeyRow = StoredRow<typeof API_KEYS, (typeof LISTED)[number]>;

export const liveKeys = lookup<LiveKeyRow>(
  'reads_key_live',
  `select ${selected(LIVE)} from api_keys where id > $1::text and not revoked ` +
    'order by id limit $2::bigint',
);

export const keyState = lookup<KeyState>(
  'reads_key_state',
  `select ${selected(STATE)} from api_keys where id = $1::text`,
);

const storedKeyList = list({
  columns: selected(LISTED),
  from: 'api_keys',
  of: filtersOf(API_KEYS, ['tenant_id']),
  order: orderBy(API_KEYS, ['created_at', 'id']),
  cheaper: 'ask for a smaller offset and limit',
});

/** @param lastUsedAt the last use that is not stored yet */
export function keyList(
  query: Parameters<typeof storedKeyList>[0],
  lastUsedAt: (id: string) => string | undefined,
): PageRequest<ListedKeyRow> {
  const toText = (row: ListedKeyRow) => {
    const capabilities = JSON.parse(row.capabilities) as unknown;
    const last_used_at = lastUsedAt(row.id) ?? row.last_used_at;
    return JSON.stringify({ ...row, capabilities, groups: groupsIn(row.groups), last_used_at });
  };
  return { ...storedKeyList(query), toText };
}

export interface KeyOperationsDeps {
  readonly registry: KeyRegistry;
  readonly client: Pick<Shards<typeof keyOperations>, 'ask'>;
  readonly clock: Clock;
  readonly log: Logger;
}

const SHARD = 0;

/** Maximum delay of a stored last use, and of closing the streams of an expired key. */
const ROUND_MS = 60_000;
const USED_BATCH = 1_000;
const REVOKE_AGAIN_MS = 1_000;
/** The status of requests that another cell serves. */
const WRONG_CELL = 421;
const NO_CONTENT: HttpReply = { status: 204, body: undefined };

export class KeyOperations {
  readonly #deps: KeyOperationsDeps;
  readonly #timers = new Set<TimerHandle>();
  #isStopped = false;

  constructor(deps: KeyOperationsDeps) {
    this.#deps = deps;
    this.#later(ROUND_MS, () => this.#round());
  }

  /** Uses since the last round are not stored. Idempotent. */
  stop(): void {
    this.#isStopped = true;
    for (const timer of this.#timers) this.#deps.clock.clearTimeout(timer);
    this.#timers.clear();
  }

  readonly operations = {
    'apiKeys.mint': async (front, call) => {
      const { registry, client } = this.#deps;
      if ((call.body.groups ?? []).length > 0 && !call.body.capabilities.includes('approver')) {
        throw invalid('groups takes the capability approver');
      }
      const secret = `sk_${randomBytes(32).toString('hex')}`;
      const row = newRow(call.body, secret, front.now());
      registry.reserve(row.id);
      try {
        await client.ask(SHARD, 'keys.insert', '', '', row, { action: call.action });
        registry.add({ ...row, capabilities: JSON.stringify(row.capabilities) });
      } finally {
        registry.release(row.id);
      }
      const { id, tenant_id, name, created_at, expires_at } = row;
      const { capabilities } = call.body;
      const groups = [...groupsIn(row.groups)];
      const minted = { id, tenant_id, name, capabilities, groups, secret, created_at, expires_at };
      return { status: 201, body: JSON.stringify(minted satisfies KeyMinted) };
    },
    'apiKeys.list': async (front, call) => {
      const { query } = call;
      const { registry } = this.#deps;
      const request = keyList(query, (id) => {
        const at = registry.find(id)?.lastUsedAt;
        return at === undefined ? undefined : isoTime(at);
      });
      return pageReply(call, query, await front.reads.page(request));
    },
    /** Idempotent. An expired key can be revoked, too. */
    'apiKeys.revoke': async (front, call) => {
      const { id } = call.params;
      const { registry } = this.#deps;
      const live = registry.find(id)?.tenant;
      const stored = live === undefined ? await keyState.row(front.reads, id) : undefined;
      const tenant = live ?? stored?.tenant_id;
      if (tenant === undefined) throw notFound(`key ${id}`);
      // A key that has moved with its tenant must be revoked in its new cell.
      const admitted = front.admitTenant(tenant);
      // The key is refused from this turn on, unless the tenant is moving.
      if (admitted !== undefined) await admitted;
      const key = registry.remove(id);
      const { action } = call;
      if (key !== undefined) {
        return this.#commitRevocation(front, tenant, useOf(key), named(action, key.name));
      }
      if (stored === undefined || stored.revoked) return NO_CONTENT;
      const use = { id, last_used_at: stored.last_used_at };
      return this.#commitRevocation(front, tenant, use, named(action, stored.name));
    },
  } satisfies Partial<FrontOperations>;

  /** With an unknown outcome the caller gets an error, and the revocation is retried in the background. */
  async #commitRevocation(
    front: Pick<FrontDeps, 'admitTenant'>,
    tenant: string,
    use: KeyUse,
    action: RequestedAction | undefined,
  ): Promise<HttpReply> {
    try {
      // The tenant, with the key, may have moved since the last attempt.
      await front.admitTenant(tenant);
      await this.#deps.client.ask(SHARD, 'keys.revoke', tenant, '', use, { action });
      return NO_CONTENT;
    } catch (error) {
      if (error instanceof EngineError && error.status === WRONG_CELL) {
        this.#deps.log.warn({ keyId: use.id, err: error }, 'key not revoked: its tenant has left');
        throw error;
      }
      this.#deps.log.warn({ keyId: use.id, err: error }, 'key not revoked yet; trying again');
      // Failures are logged and retried.
      const again = () => this.#commitRevocation(front, tenant, use, action).catch(() => undefined);
      this.#later(REVOKE_AGAIN_MS, again);
      throw error;
    }
  }

  /** Stores uses since the last round, and closes streams of expired keys. */
  async #round(): Promise<void> {
    const { registry, client, log } = this.#deps;
    registry.dropExpired();
    const used = registry.takeUsed();
    for (let at = 0; at < used.length; at += USED_BATCH) {
      const batch = used.slice(at, at + USED_BATCH);
      try {
        await client.ask(SHARD, 'keys.used', '', '', batch.map(useOf));
      } catch (error) {
        registry.restoreUsed(batch);
        log.debug({ err: error }, 'uses of keys not stored; trying again');
      }
    }
    this.#later(ROUND_MS, () => this.#round());
  }

  #later(ms: number, work: () => void): void {
    if (this.#isStopped) return;
    const timer = this.#deps.clock.setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer);
  }
}

/** The action says what the key is called. */
function named(action: RequestedAction | undefined, name: string): RequestedAction | undefined {
  return action && { ...action, details: { name } };
}

function newRow(body: MintKey, secret: string, now: UnixMs): KeyRow {
  const expiresAt = body.expires_at == null ? undefined : toUnixMs(body.expires_at);
  return {
    id: `ak_${randomBytes(16).toString('hex')}`,
    tenant_id: body.tenant_id,
    name: body.name ?? '',
    capabilities: body.capabilities,
    secret_hash: createHash('sha256').update(secret).digest('hex'),
    created_at: isoTime(now),
    expires_at: expiresAt === undefined ? null : isoTime(expiresAt),
    last_used_at: null,
    revoked: false,
    groups: groupsText(body.groups ?? []),
  };
}

function useOf({ id, lastUsedAt }: ResidentKey): KeyUse {
  return { id, last_used_at: lastUsedAt === undefined ? null : isoTime(lastUsedAt) };
}
