/** Readers of the change feed as clients write them, and what they have to see. */

import assert from 'node:assert/strict';
import type { Changes } from '../../schema/change.js';
import type { AuditEntry, TaskInstance } from '../../schema/instance.js';
import { eventually, type SharedApi, type Tenant } from './api.js';
import { expectStatus } from './client.js';
import { DEFAULT_API_KEY } from './engine.js';
import { type EventReader, openEvents } from './event-stream.js';

/** One page; `query` without `?`. */
export const changesOf = async (tenant: Pick<Tenant, 'get'>, query = ''): Promise<Changes> =>
  expectStatus(await tenant.get<Changes>(`/changes?${query}`), 200);

/** All that there is, in pages of this size. */
export async function allChanges(tenant: Tenant, limit = 500): Promise<AuditEntry[]> {
  const reader = new PageReader(limit);
  await reader.drain(tenant);
  return reader.seen;
}

/** Goes on where it was, also when an answer did not come. */
export class PageReader {
  readonly seen: AuditEntry[] = [];
  readonly #limit: number;
  #cursor = '';

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Reads to the present end. */
  async drain(tenant: Pick<Tenant, 'get'>): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const page = await changesOf(tenant, `limit=${this.#limit}&cursor=${this.#cursor}`);
      assert.ok(page.changes.length <= this.#limit);
      this.seen.push(...page.changes);
      this.#cursor = page.next_cursor ?? this.#cursor;
      hasMore = page.has_more;
    }
  }
}

export interface StreamOptions {
  readonly query?: string;
  readonly lastEventId?: string;
  readonly method?: 'GET' | 'HEAD';
}

export function openChanges(
  api: Pick<SharedApi, 'url'>,
  tenant: string | undefined,
  { query = '', lastEventId, method = 'GET' }: StreamOptions = {},
): Promise<EventReader> {
  return openEvents({
    url: `${api.url}/api/v1/changes/stream?${query}`,
    headers: {
      'x-api-key': DEFAULT_API_KEY,
      ...(tenant === undefined ? {} : { 'x-tenant-id': tenant }),
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    method,
  });
}

/** Follows the feed, and connects again with the last id whenever it is cut off. */
export class StreamReader {
  readonly seen: AuditEntry[] = [];
  readonly #api: Pick<SharedApi, 'url'>;
  readonly #tenant: string;
  #lastEventId: string | undefined;
  #reader: EventReader | undefined;
  #taken = 0;
  #isClosed = false;

  constructor(api: Pick<SharedApi, 'url'>, tenant: string) {
    this.#api = api;
    this.#tenant = tenant;
  }

  /** Resolves when the stream is open. */
  async open(): Promise<void> {
    const lastEventId = this.#lastEventId;
    const options = lastEventId === undefined ? {} : { lastEventId };
    const reader = await openChanges(this.#api, this.#tenant, options);
    assert.equal(reader.status, 200, reader.text);
    this.#reader = reader;
    this.#taken = 0;
    const again = () => this.#again(reader);
    reader.ended.then(again, again);
    await reader.until(({ lastEventId: id }) => id !== '').catch(() => undefined);
  }

  /** Resolves when it has seen so many. */
  async until(count: number): Promise<void> {
    await eventually(() => {
      this.#take();
      assert.ok(this.seen.length >= count, `${this.seen.length} of ${count} changes`);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#reader?.close();
  }

  #take(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    for (const { event, data, id } of reader.events.slice(this.#taken)) {
      assert.equal(event, 'change');
      const entry = data as unknown as AuditEntry;
      assert.deepEqual(JSON.parse(Buffer.from(id ?? '', 'base64url').toString()), {
        created_at: entry.created_at,
        id: entry.id,
      });
      this.seen.push(entry);
    }
    this.#taken = reader.events.length;
    if (reader.lastEventId !== '') this.#lastEventId = reader.lastEventId;
  }

  #again(reader: EventReader): void {
    if (this.#isClosed || this.#reader !== reader) return;
    this.#take();
    this.#reader = undefined;
    void eventually(() => (this.#isClosed ? undefined : this.open()));
  }
}

/** The audits of all instances of the tenant in the order of the feed. */
export async function auditOf(tenant: Tenant): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (let offset = 0, isMore = true; isMore; offset += 200) {
    const list = await tenant.get<TaskInstance[]>(`/instances?limit=200&offset=${offset}`);
    const instances = expectStatus(list, 200);
    isMore = instances.length === 200;
    // One after the other: long reads of one tenant side by side are refused while others ask.
    for (const { id } of instances) {
      const audit = await tenant.get<AuditEntry[]>(`/instances/${id}/audit`);
      const newestFirst = expectStatus(audit, 200);
      assert.ok(newestFirst.length < 200, 'more than an audit shows');
      entries.push(...newestFirst);
    }
  }
  return entries.sort((a, b) =>
    a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : a.id < b.id ? -1 : 1,
  );
}

/** @throws AssertionError that says what is missing, what came twice, and what is out of order */
export function assertSame(seen: readonly AuditEntry[], expected: readonly AuditEntry[]): void {
  const ids = (entries: readonly AuditEntry[]) =>
    entries.map(({ created_at, id }) => `${created_at} ${id}`);
  const seenIds = ids(seen);
  const known = new Set(seenIds);
  assert.equal(known.size, seenIds.length, 'an entry came twice');
  const missing = ids(expected).filter((id) => !known.has(id));
  assert.deepEqual(missing, [], `${missing.length} of ${expected.length} entries were skipped`);
  assert.deepEqual(seenIds, ids(expected));
  assert.deepEqual(seen, expected);
}
