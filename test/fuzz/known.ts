/** Ids that the server gave, by what they are ids of, so that later requests reach something. */

import { randomUUID } from 'node:crypto';
import type { Json } from '../helpers/api.js';
import type { Answer, Operation } from '../helpers/contract.js';
import { type Draft, kindOfPath, MARK, TENANT_MARK } from './arbitrary.js';

/** Old ones make room: what was made last is what is alive. */
const KEPT_MAX = 60;
/** One mark in so many names nothing that exists. */
const UNKNOWN_EVERY = 11;

/** What lies below these paths has an id of this kind in its answers. */
const KIND_OF_ANSWER: Readonly<Record<string, string>> = {
  sequences: 'sequences',
  instances: 'instances',
  workers: 'tasks',
  cron: 'cron',
  releases: 'releases',
  'api-keys': 'apikeys',
  webhooks: 'webhooks',
  credentials: 'credentials',
  events: 'events',
  approvals: 'approvals',
};

/** What is gone may be made again under the same id at any moment. */
const CHOSEN_BY_CALLERS: ReadonlySet<string> = new Set(['credentials']);

export class KnownIds {
  readonly #ids = new Map<string, string[]>();
  readonly #gone = new Map<string, string[]>();

  add(kind: string, id: string): void {
    const others = (this.#ids.get(kind) ?? []).filter((known) => known !== id);
    this.#ids.set(kind, [...others.slice(1 - KEPT_MAX), id]);
  }

  /** The one that the number picks; a new one when there is none, and now and then anyway. */
  pick(kind: string, number: number): string {
    const ids = this.#ids.get(kind) ?? [];
    const isUnknown = number % UNKNOWN_EVERY === 0;
    return (isUnknown ? undefined : ids[number % Math.max(1, ids.length)]) ?? randomUUID();
  }

  /** Only one that exists; undefined when there is none. */
  existing(kind: string, number: number): string | undefined {
    const ids = this.#ids.get(kind) ?? [];
    return ids[number % Math.max(1, ids.length)];
  }

  /** One that was deleted by a request that succeeded. */
  gone(kind: string, number: number): string | undefined {
    const ids = this.#gone.get(kind) ?? [];
    return ids[number % Math.max(1, ids.length)];
  }

  /** Keeps what a success tells of. */
  learn({ method, path }: Operation, params: Draft['params'], { status, text }: Answer): void {
    if (status >= 300) return;
    const [, first = ''] = path.split('/');
    // A dry run is answered 200, and leaves what there is.
    const isGone = method === 'DELETE' && status === 204;
    if (isGone && params.id !== undefined) this.#forget(kindOfPath(path), params.id);
    const kind = path.startsWith('/webhooks/outbox') ? 'outbox' : KIND_OF_ANSWER[first];
    if (kind === undefined || path.split('/').length > 4 || !/^[[{]/.test(text)) return;
    const body = JSON.parse(text) as Json | Json[];
    const list = Array.isArray(body) ? body : Array.isArray(body.items) ? body.items : [body];
    for (const item of list as Json[]) {
      if (typeof item.id === 'string' && isOf(kind, item)) this.add(kind, item.id);
      if (typeof item.slug === 'string') this.add('triggers', item.slug);
      if (typeof item.delivery_id === 'string') this.add('deliveries', item.delivery_id);
    }
  }

  /** Puts ids and the tenant where their marks are. */
  fill<T>(value: T, tenant: string): T {
    return this.#fill(value, tenant) as T;
  }

  #fill(value: unknown, tenant: string): unknown {
    if (typeof value === 'string') return this.#text(value, tenant);
    if (Array.isArray(value)) return value.map((item) => this.#fill(item, tenant));
    if (typeof value !== 'object' || value === null) return value;
    const members = Object.entries(value);
    return Object.fromEntries(members.map(([key, inner]) => [key, this.#fill(inner, tenant)]));
  }

  #text(text: string, tenant: string): string {
    if (text === TENANT_MARK) return tenant;
    const [, kind, number] = MARK.exec(text) ?? [];
    return kind === undefined ? text : this.pick(kind, Number(number));
  }

  #forget(kind: string, id: string): void {
    this.#ids.set(
      kind,
      (this.#ids.get(kind) ?? []).filter((known) => known !== id),
    );
    if (CHOSEN_BY_CALLERS.has(kind)) return;
    this.#gone.set(kind, [...(this.#gone.get(kind) ?? []).slice(-KEPT_MAX), id]);
  }
}

/**
 * Below the path of instances there are also nodes, outputs and the like, which have ids too; and
 * with tasks that are over nothing can be done.
 */
function isOf(kind: string, item: Json): boolean {
  if (kind === 'tasks') return item.state === 'pending' || item.state === 'claimed';
  // Below the path of a release there are its decisions.
  if (kind === 'releases') return 'state' in item;
  // And below that of a subscription its deliveries.
  if (kind === 'webhooks') return 'events' in item;
  if (kind === 'instances') return !('instance_id' in item) && !('block_id' in item);
  return true;
}
