/**
 * All live keys of tenants, in the memory of the front thread, the only one that authorises: a removed key is refused
 * by the next request. Keys are looked up by the digest of their secrets: a comparison byte by byte reveals nothing,
 * since a caller cannot choose the digest of a guess.
 */

import { CAPABILITIES, type Capability } from '../../schema/route-row.js';
import { conflict, type EngineError, unavailable } from '../base/errors.js';
import { groupsIn } from '../base/groups.js';
import type { UnixMs } from '../base/time.js';

export interface LiveKeyRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly capabilities: string;
  readonly groups: string;
  readonly secret_hash: string;
  readonly last_used_at: string | null;
  readonly expires_at: string | null;
}

export interface ResidentKey {
  readonly id: string;
  /** Hexadecimal SHA-256 of the secret. */
  readonly digest: string;
  readonly tenant: string;
  readonly name: string;
  readonly capabilities: number;
  /** For which it answers approvals. */
  readonly groups: readonly string[];
  readonly expiresAt: UnixMs | undefined;
  lastUsedAt: UnixMs | undefined;
  /** Called when the key is revoked or expired. */
  bound: Set<() => void> | undefined;
}

export interface KeyRegistryDeps {
  readonly now: () => UnixMs;
  readonly keysMax: number;
  /** The error while the keys are not loaded. */
  readonly refusal: () => EngineError | undefined;
}

/** Keys per query: some 2 MB. */
const LOAD_PAGE_ROWS = 5_000;
const NOT_LOADED = unavailable('ENG_STARTING', 'the engine is starting');

const BIT: ReadonlyMap<string, number> = new Map(CAPABILITIES.map((word, at) => [word, 1 << at]));

export function capabilityBits(capabilities: readonly Capability[]): number {
  let bits = 0;
  for (const word of capabilities) bits |= BIT.get(word) ?? 0;
  return bits;
}

export function capabilitiesOf(bits: number): readonly Capability[] {
  return CAPABILITIES.filter((word) => (bits & capabilityBits([word])) !== 0);
}

/** Reads a page of live keys, ordered by id. */
type LiveKeys = (after: string, limit: number) => Promise<LiveKeyRow[]>;

export class KeyRegistry {
  readonly #deps: KeyRegistryDeps;
  readonly #byDigest = new Map<string, ResidentKey>();
  readonly #byId = new Map<string, ResidentKey>();
  #used = new Set<ResidentKey>();
  readonly #minting = new Set<string>();
  #isLoaded = false;

  constructor(deps: KeyRegistryDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Loads the table. Rejects like every read. */
  async load(live: LiveKeys): Promise<void> {
    for (const row of await pages(live)) {
      const key = residentKey(row);
      if (!this.#isExpired(key)) this.#put(key);
    }
    this.#isLoaded = true;
  }

  /** Loads the keys of one tenant again; keys without a row are dropped. Rejects like every read. */
  async reload(tenant: string, live: LiveKeys): Promise<void> {
    const found = await pages(live);
    const own = found.filter((row) => row.tenant_id === tenant).map(residentKey);
    const kept = new Set(own.map(({ id }) => id));
    for (const key of [...this.#byId.values()]) {
      if (key.tenant === tenant && !kept.has(key.id)) this.#drop(key);
    }
    for (const key of own) if (!this.#byId.has(key.id) && !this.#isExpired(key)) this.#put(key);
  }

  /** Marks the key as used; undefined: not live. @throws EngineError 503 before the keys are loaded */
  use(digest: string): ResidentKey | undefined {
    if (!this.#isLoaded) throw this.#deps.refusal() ?? NOT_LOADED;
    const key = this.#byDigest.get(digest);
    if (key === undefined) return undefined;
    if (this.#isExpired(key)) {
      this.#drop(key);
      return undefined;
    }
    key.lastUsedAt = this.#deps.now();
    this.#used.add(key);
    return key;
  }

  /** Reserves room for a key that is being stored, until `add` or `release`. @throws EngineError 409 without room */
  reserve(id: string): void {
    const isFull = () => this.#byId.size + this.#minting.size >= this.#deps.keysMax;
    if (isFull()) this.dropExpired();
    if (isFull()) {
      throw conflict(`there are ${this.#deps.keysMax} keys; revoke some that are not needed`);
    }
    this.#minting.add(id);
  }

  release(id: string): void {
    this.#minting.delete(id);
  }

  /** Makes the key valid, unless it was revoked before the response to its creation was sent. */
  add(row: LiveKeyRow): void {
    if (this.#minting.delete(row.id)) this.#put(residentKey(row));
  }

  /** Revokes the key. @returns undefined when it was not live */
  remove(id: string): ResidentKey | undefined {
    this.#minting.delete(id);
    const key = this.#byId.get(id);
    if (key !== undefined) this.#drop(key);
    return key;
  }

  /** Expired keys are refused anyway; this frees their memory and ends their streams. */
  dropExpired(): void {
    for (const key of this.#byId.values()) if (this.#isExpired(key)) this.#drop(key);
  }

  /** Calls `then` once the key is revoked or expired, possibly at once. @returns a function that cancels this */
  whenGone(key: ResidentKey, then: () => void): () => void {
    if (this.#byId.get(key.id) !== key) {
      then();
      return () => {};
    }
    key.bound ??= new Set();
    key.bound.add(then);
    return () => key.bound?.delete(then);
  }

  find(id: string): ResidentKey | undefined {
    return this.#byId.get(id);
  }

  takeUsed(): ResidentKey[] {
    const used = [...this.#used];
    this.#used.clear();
    return used;
  }

  /** Returns keys whose use could not be stored to the next `takeUsed`. */
  restoreUsed(keys: readonly ResidentKey[]): void {
    for (const key of keys) if (this.#byId.get(key.id) === key) this.#used.add(key);
  }

  /** The instant of the expiry itself is too late (docs/authorization.md). */
  #isExpired({ expiresAt }: ResidentKey): boolean {
    return expiresAt !== undefined && expiresAt <= this.#deps.now();
  }

  #put(key: ResidentKey): void {
    this.#byDigest.set(key.digest, key);
    this.#byId.set(key.id, key);
  }

  #drop(key: ResidentKey): void {
    this.#byDigest.delete(key.digest);
    this.#byId.delete(key.id);
    this.#used.delete(key);
    const bound = key.bound ?? [];
    key.bound = undefined;
    for (const then of bound) then();
  }
}

async function pages(live: LiveKeys): Promise<LiveKeyRow[]> {
  const found: LiveKeyRow[] = [];
  for (;;) {
    const rows = await live(found.at(-1)?.id ?? '', LOAD_PAGE_ROWS);
    for (const row of rows) found.push(row);
    if (rows.length < LOAD_PAGE_ROWS) return found;
  }
}

function residentKey(row: LiveKeyRow): ResidentKey {
  return {
    id: row.id,
    digest: row.secret_hash,
    tenant: row.tenant_id,
    name: row.name,
    capabilities: capabilityBits(JSON.parse(row.capabilities) as Capability[]),
    groups: groupsIn(row.groups),
    expiresAt: row.expires_at === null ? undefined : Date.parse(row.expires_at),
    lastUsedAt: row.last_used_at === null ? undefined : Date.parse(row.last_used_at),
    bound: undefined,
  };
}
