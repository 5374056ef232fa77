/**
 * Every route of the table × every sort of key × own, foreign and missing tenant × own, foreign and
 * unknown ids. What has to come out is stated here by itself, from `docs/authorization.md`, and
 * not taken from the product; a route that the helper cannot make a request to fails the sweep.
 * What is not there and what is another tenant's are answered alike: status, text and headers.
 *
 * First all that has to be refused, with the rows of both tenants compared before and after; then the rest.
 *
 * Cost: 6 s, since it asks every route with every sort of key.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import { ROUTES, type Route } from '../../schema/routes.js';
import { beforeWith, eventually, step, useSharedApi } from '../helpers/api.js';
import { type Client, expectStatus, type Reply } from '../helpers/client.js';
import { continuityOf } from '../helpers/continuity.js';
import { isDeep } from '../helpers/depth.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import {
  makeCredential,
  makeEndpoint,
  makeLimits,
  makePendingStart,
  makeRateLimit,
  makeSchedule,
  makeSubscription,
  makeThings,
  makeTrigger,
  namedBy,
  namesTenant,
  noThings,
  requestTo,
  type Things,
} from '../helpers/route-requests.js';
import { snapshotOf } from '../helpers/table-rows.js';

// ---------------------------------------------------------------- the rules

/** Neither key nor tenant. */
const PUBLIC =
  /^\/(health\/(live|ready)|info|api-docs\/openapi\.json|swagger-ui(\/\{file\})?|approvals\/by-link\/\{token\})$/;

/** A key and no tenant. */
const TENANTLESS = /^\/(metrics|api-keys|cells|tenants|webhooks\/(outbox|deliveries))(\/|$)/;

/** A batch names its tenant in each item, the change feed in its query. */
const NAMES_ITS_TENANT = /^\/(instances\/batch|changes(\/stream)?)$/;

/** No key of a tenant. */
const ROOT_ONLY = /^\/(api-keys|cells|tenants|webhooks\/(outbox|deliveries))(\/|$)/;

/** As `docs/authorization.md` has it. */
const ALLOWS: Readonly<Record<string, (method: string, path: string) => boolean>> = {
  operator: () => true,
  worker: (_, path) => path.startsWith('/workers') || path === '/handlers',
  device: (_, path) => path.startsWith('/mobile'),
  publisher: (_, path) => /^\/(releases|plugins|sequences)/.test(path),
  approver: (_, path) =>
    /^\/approvals(\/\{id\})?$/.test(path) || /^\/instances\/.*\/signals$/.test(path),
  auditor: (method, path) => method === 'GET' || path === '/cron/preview',
};

type Whose = 'own' | 'foreign' | 'unknown';

interface Caller {
  readonly name: string;
  readonly key: string | null;
  /** Of a key of the tenant; undefined: the root key, or a key that is none. */
  readonly capabilities: readonly string[] | undefined;
  readonly isValid: boolean;
}

/** One request of the sweep. */
interface Case {
  readonly route: Route;
  readonly method: string;
  readonly caller: Caller;
  readonly header: 'own' | 'foreign' | 'missing';
  readonly ids: Whose;
  /** The tenant that the body names, where it names one. */
  readonly named: 'own' | 'foreign';
}

function isAllowed({ capabilities }: Caller, { method, path }: Route): boolean {
  if (capabilities === undefined) return true;
  return !ROOT_ONLY.test(path) && capabilities.some((word) => ALLOWS[word]?.(method, path));
}

/** What has to come out; `served` is everything that is not about who asks. */
type Verdict = 401 | 403 | 404 | 'no tenant' | 'open' | 'served';

function verdictOn({ route, caller, header, ids, named }: Case): Verdict {
  const { path } = route;
  if (PUBLIC.test(path)) return 'open';
  if (!caller.isValid) return 401;
  // Whoever has a key may ask what it is good for.
  if (path === '/whoami') return 'served';
  if (!isAllowed(caller, route)) return 403;
  const { capabilities } = caller;
  if (TENANTLESS.test(path)) return isThere(route, ids) ? 'served' : 404;
  if (header === 'missing' && !NAMES_ITS_TENANT.test(path)) return 'no tenant';
  if (header === 'foreign' && capabilities !== undefined) return 403;
  const tenant = header === 'missing' ? (capabilities === undefined ? named : 'own') : header;
  if (namesTenant(route) && named !== tenant) return 403;
  return namedBy(route) !== undefined && ids !== tenant ? 404 : 'served';
}

/** Whose a thing is does not matter to the server; of webhooks there are none in this test. */
function isThere(route: Route, ids: Whose): boolean {
  const kind = namedBy(route);
  if (kind === 'webhook' || kind === 'delivery') return false;
  // A tenant is there by its name alone.
  return kind === undefined || kind === 'tenant' || ids !== 'unknown';
}

// ---------------------------------------------------------------- the world

const IN_FLIGHT = 8;

let things: Record<Whose, Things>;
let callers: Caller[];

const api = useSharedApi();
const own = api.tenant();
const foreign = api.tenant();

beforeWith(api, async () => {
  things = {
    own: await makeThings(api, own),
    foreign: await makeThings(api, foreign),
    unknown: noThings(own.name),
  };
  callers = await makeCallers();
});

async function makeCallers(): Promise<Caller[]> {
  const mint = async (more: object) => {
    const body = { tenant_id: own.name, capabilities: ['operator'], ...more };
    return expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
  };
  const revoked = await mint({});
  expectStatus(await api.root.delete(`/api-keys/${revoked.id}`), 204);
  const expired = await mint({ expires_at: '2001-01-01T00:00:00Z' });
  const refused = { capabilities: undefined, isValid: false };
  const made: Caller[] = [
    { name: 'nobody', key: null, ...refused },
    { name: 'a wrong key', key: `sk_${'0'.repeat(64)}`, ...refused },
    { name: 'a revoked key', key: revoked.secret, ...refused },
    { name: 'an expired key', key: expired.secret, ...refused },
    { name: 'root', key: DEFAULT_API_KEY, capabilities: undefined, isValid: true },
  ];
  const sets = [...Object.keys(ALLOWS).map((word) => [word]), ['worker', 'approver']];
  for (const capabilities of sets) {
    const key = (await mint({ capabilities })).secret;
    made.push({ name: capabilities.join(' and '), key, capabilities, isValid: true });
  }
  return made;
}

function* allCases(): Generator<Case> {
  for (const route of Object.values(ROUTES)) {
    // Proves itself by its signature, whoever sends it: `triggers.test.ts`.
    if (route.id === 'triggers.receive') continue;
    for (const caller of callers) {
      // Who asks is looked at first: to whom a route is closed, it is whatever the request names.
      const isAll = isDeep || (caller.isValid && isAllowed(caller, route));
      const headers: Case['header'][] = isAll ? ['own', 'foreign', 'missing'] : ['own'];
      const ids: Whose[] = isAll && namedBy(route) ? ['own', 'foreign', 'unknown'] : ['own'];
      const names: Case['named'][] = isAll && namesTenant(route) ? ['own', 'foreign'] : ['own'];
      for (const header of headers) {
        for (const whose of ids) {
          for (const named of names) {
            const it = { route, method: route.method, caller, header, ids: whose, named };
            yield it;
            // HEAD is a GET without the body: with one tenant for each caller and id is enough.
            if (route.method === 'GET' && header === 'own') yield { ...it, method: 'HEAD' };
          }
        }
      }
    }
  }
}

const textOf = ({ route, method, caller, header, ids, named }: Case): string =>
  `${method} ${route.path} by ${caller.name}, ${header} tenant, ${ids} ids, body of ${named}`;

/** The query names the tenant that the request must not reach. */
function ask(it: Case, what: Things): Promise<Reply<{ error?: string }>> {
  const { route, method, caller, header, named } = it;
  const name = { own: own.name, foreign: foreign.name };
  // A list of keys belongs to the tenant that its query names.
  const queried = header === 'foreign' || TENANTLESS.test(route.path) ? 'own' : 'foreign';
  const { path, body } = requestTo(route, what, name[named], name[queried]);
  const client: Client = api.root.with({
    apiKey: caller.key,
    tenant: header === 'missing' ? null : name[header],
  });
  return client.request(method, path, body === undefined ? {} : { body });
}

/** A few at a time. */
async function forAll(cases: readonly Case[], check: (it: Case) => Promise<void>): Promise<void> {
  const left = cases[Symbol.iterator]();
  const work = async () => {
    for (const it of left) {
      try {
        await check(it);
      } catch (error) {
        const { message } = error as Error;
        throw new Error(`${textOf(it)}: ${message}`, { cause: error });
      }
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
}

/** The text of a refusal without the ids that it was asked about. */
function plain(text: string, { sequence, sequenceName, ...rest }: Things): string {
  return [sequenceName, sequence, ...Object.values(rest)].reduce<string>(
    (left, id) => (typeof id === 'string' ? left.replaceAll(id, 'ID') : left),
    text,
  );
}

/** All of an answer that somebody may see, without the ids that were asked about and what differs for each request. */
function answerOf({ status, headers, text }: Reply<unknown>, what: Things): string {
  const { date: _, 'x-request-id': __, 'content-length': ___, ...shown } = headers;
  const heads = Object.entries(shown).map(([name, value]) => `${name}: ${value}`);
  return [status, ...heads.sort(), plain(text, what)].join('\n');
}

// ---------------------------------------------------------------- the sweep

const rowsOfBoth = () => snapshotOf(api.database.connectionString, [own.name, foreign.name]);

test('every request without permission is refused with the same message, and changes nothing', async () => {
  const cases = [...allCases()].filter(
    (it) => typeof verdictOn(it) === 'number' || verdictOn(it) === 'no tenant',
  );
  const start = await rowsOfBoth();
  const unknownAnswers = new Map<string, string>();
  const foreignAnswers = new Map<string, string>();
  await forAll(cases, async (it) => {
    const verdict = verdictOn(it);
    // Long lists of one tenant side by side are refused while others ask.
    const reply = await eventually(async () => {
      const answer = await ask(it, things[it.ids]);
      assert.notEqual(answer.status, 429, answer.text);
      return answer;
    });
    assert.equal(reply.status, verdict === 'no tenant' ? 400 : verdict, reply.text);
    if (verdict === 404) {
      const answers = it.ids === 'unknown' ? unknownAnswers : foreignAnswers;
      answers.set(textOf({ ...it, ids: 'unknown' }), answerOf(reply, things[it.ids]));
    }
    if (it.method === 'HEAD') return;
    const { error = '' } = reply.body;
    if (verdict === 401) assert.equal(error, 'unauthorized: a valid x-api-key is required');
    if (verdict === 'no tenant') assert.match(error, /x-tenant-id is required/);
    if (verdict === 403) assert.match(error, /^forbidden: /);
  });
  for (const [what, answer] of foreignAnswers) {
    assert.equal(answer, unknownAnswers.get(what), `${what}: not as for an unknown id`);
  }
  assert.ok(foreignAnswers.size > 100, 'few things of other tenants were asked for');
  assert.deepEqual(await rowsOfBoth(), start);
});

/** What one request uses up is made anew for each. */
async function thingsFor({ route, ids }: Case): Promise<Things> {
  const what = things[ids];
  const owner = ids === 'own' ? own : foreign;
  switch (route.id) {
    case 'sequences.delete':
      return { ...what, sequence: await owner.sequence([step('a', 'noop')]) };
    case 'rateLimits.delete':
      return { ...what, rateLimit: await makeRateLimit(owner) };
    case 'continuity.preview':
      // Runtimes live for some minutes only.
      return { ...what, runtime: (await continuityOf(owner).runtime()).runtime_id };
    case 'webhooks.unsubscribe':
      return { ...what, subscription: await makeSubscription(owner) };
    case 'triggers.delete':
      return { ...what, trigger: await makeTrigger(owner, what.sequenceName) };
    case 'workerEndpoints.delete':
      return { ...what, endpoint: await makeEndpoint(owner) };
    case 'credentials.delete':
      return { ...what, credential: await makeCredential(owner) };
    case 'tenantLimits.delete':
      return { ...what, tenant: await makeLimits(api, randomUUID()) };
    case 'pendingStarts.start':
    case 'pendingStarts.drop':
      return { ...what, pendingStart: await makePendingStart(owner) };
    case 'cron.delete':
      return { ...what, schedule: await makeSchedule(owner, what.sequence) };
    default:
      return what;
  }
}

const KEPT_FROM_OTHERS = (
  'tenant sequence instance task handler schedule release key pendingStart approval execution checkpoint runtime ' +
  'placement handoff migration'
).split(' ') as (keyof Things)[];

test('every permitted request is served, and shows nothing of another tenant', async () => {
  const cases = [...allCases()].filter(
    (it) => verdictOn(it) === 'served' || verdictOn(it) === 'open',
  );
  await forAll(cases, async (it) => {
    // A stream does not end: its head says all.
    if (it.method === 'GET' && it.route.contentType === 'text/event-stream') return;
    const reply = await ask(it, await thingsFor(it));
    assert.ok(reply.status < 500, `${reply.status} ${reply.text}`);
    if (verdictOn(it) === 'open') return;
    assert.ok(![401, 403, 404].includes(reply.status), `${reply.status} ${reply.text}`);
    assert.doesNotMatch(reply.text, /x-tenant-id/);
    if (ROOT_ONLY.test(it.route.path)) return;
    const { capabilities } = it.caller;
    if (it.header === 'missing' && capabilities === undefined) return;
    const isOwn = it.header === 'own' || capabilities !== undefined;
    const other = isOwn ? things.foreign : things.own;
    for (const kind of KEPT_FROM_OTHERS) {
      assert.ok(!reply.text.includes(String(other[kind])), `shows the ${kind} of another tenant`);
    }
  });
});

test('the sweep covers every route and every verdict', () => {
  const cases = [...allCases()];
  assert.ok(cases.length > 3_500, `${cases.length} cases`);
  const verdicts = new Set(cases.map((it) => String(verdictOn(it))));
  assert.deepEqual([...verdicts].sort(), ['401', '403', '404', 'no tenant', 'open', 'served']);
});
