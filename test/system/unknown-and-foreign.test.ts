/**
 * What one server asks of its database for a stranger, read by a proxy between them.
 *
 * Cost: 20 s, since it watches the statements of a server of its own.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { ROUTES, type Route } from '../../schema/routes.js';
import { type Api, startApi, type Tenant } from '../helpers/api.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import type { Things } from '../helpers/route-requests.js';
import { makeThings, namedBy, noThings, requestTo } from '../helpers/route-requests.js';
import { type StatementTap, tapStatements } from '../helpers/statements.js';

let database: TestDatabase;
let tap: StatementTap;
let api: Api;
let stranger: Tenant;
let theirs: Things;

before(async () => {
  database = await createTestDatabase();
  tap = await tapStatements(database.connectionString);
  api = await startApi({
    database: { ...database, connectionString: tap.url },
    env: {
      ENGINE_SHARDS: '1',
      ENGINE_WORKER_REAPER_STALE_SECS: '3600',
      ENGINE_ENCRYPTION_KEY: 'e5'.repeat(32),
    },
  });
  stranger = api.tenant();
  theirs = await makeThings(api, api.tenant());
});

after(async () => {
  await api?.stop();
  await tap?.stop();
  await database?.drop();
});

/** What they name is no tenant's, or a tenant. */
const TENANTLESS = /^\/(api-keys|tenants|webhooks\/(outbox|deliveries))(\/|$)/;

const routes = Object.values(ROUTES).filter(
  (route) =>
    namedBy(route) !== undefined &&
    !TENANTLESS.test(route.path) &&
    // Proves itself by its signature, whoever sends it: `triggers.test.ts`.
    route.id !== 'triggers.receive',
);

/**
 * Of reads side by side the first one may give the answer, and the others are seen soon after it. What looks
 * different is asked for again, and given longer.
 */
const UNDER_WAY_MS = [10, 100, 1_000];

/** Found by the tenant who asks and a name, some in memory: another one's are never met. */
const OF_TENANT = new Set<keyof Things | undefined>(['rateLimit', 'endpoint']);

/** What is looked for in place of what is there and not the caller's (`actors/runtime/unknown-id.ts`). */
const NOBODY = /00000000-0000-0000-0000-\d*[1-9]/;

/** Of nothing: many have it. */
const DIGEST = '0'.repeat(64);

type Counts = Record<string, number>;

/** How often each statement was sent that was given one of the ids, by a stranger who asks twice. */
async function asked(route: Route, things: Things, waitMs: number): Promise<Counts> {
  const { method, path, body } = requestTo(route, things, stranger.name, stranger.name);
  tap.take();
  for (let times = 0; times < 2; times += 1) {
    const reply = await stranger.request(method, path, body === undefined ? {} : { body });
    assert.equal(reply.status, 404, `${method} ${path} ${reply.text}`);
  }
  await pause(waitMs);
  const ids = Object.values(things).filter((id) => typeof id === 'string' && id !== DIGEST);
  const counts: Counts = {};
  for (const { text, given } of tap.take()) {
    if (!NOBODY.test(given) && !ids.some((id) => given.includes(id))) continue;
    counts[text] = (counts[text] ?? 0) + 1;
  }
  return counts;
}

/** What is asked for a thing that is not there. @throws when it is not the same for the thing that is */
async function askedAlike(route: Route, things: Things): Promise<Counts> {
  let unknown: Counts = {};
  let foreign: Counts = {};
  for (const waitMs of UNDER_WAY_MS) {
    unknown = await asked(route, noThings(randomUUID()), waitMs);
    foreign = await asked(route, things, waitMs);
    if (isDeepStrictEqual(foreign, unknown)) return unknown;
  }
  assert.deepEqual(foreign, unknown, `${route.method} ${route.path}`);
  return unknown;
}

// The time would tell them apart otherwise. The routes are those of the table, so a new one is among them.
for (const state of ['in memory', 'in its rows only']) {
  test(`a thing of another tenant that lies ${state} is looked for like one that is not there, by every route that names one`, async () => {
    if (state !== 'in memory') await api.restart('SIGTERM');
    for (const route of routes) {
      const unknown = await askedAlike(route, theirs);
      if (namedBy(route) === 'instance') {
        await askedAlike(route, { ...theirs, instance: theirs.execution });
      }
      if (!OF_TENANT.has(namedBy(route)))
        assert.notDeepEqual(unknown, {}, `${route.path} is looked for`);
    }
  });
}
