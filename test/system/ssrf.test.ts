/**
 * Server-side request forgery (targets: no connection over at least 200 vectors): what a workflow
 * may name, be answered by a name server or be redirected to. Through the running server, whose
 * network is one of its own, and at the guard that webhooks are sent through as well. A sink counts
 * the connections, which must not happen; and the controls show that it can be reached.
 */

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import {
  BlockedAddressError,
  checkUrl,
  guardedLookup,
  isPublicAddress,
  type Resolver,
} from '../../src/handlers/address-guard.js';
import { type Api, eventually, startApi, step, type Tenant } from '../helpers/api.js';
import { byDepth } from '../helpers/depth.js';
import {
  type NameVector,
  nameVectors,
  PUBLIC_ADDRESS,
  rebindingVectors,
  redirectVectors,
  type UrlVector,
  urlVectors,
} from '../helpers/ssrf-vectors.js';

const NETWORK = new URL('../helpers/network.child.js', import.meta.url).href;
const VECTORS_MIN = 200;
/** What must be: no retry, and a reason that names the guard. */
const REFUSAL = /^(?:BLOCKED_URL|BLOCKED_ADDRESS|UNRESOLVABLE_HOST)$/;
/** The public server, under its name. */
const OUTSIDE = 'outside.test';

const names: readonly NameVector[] = [
  ...nameVectors(),
  ...rebindingVectors(),
  { kind: 'control', name: OUTSIDE, answers: [[PUBLIC_ADDRESS]] },
];

describe('the guard, which requests of workflows and webhooks share', () => {
  test('no URL that says where it leads passes, of at least 200', () => {
    const vectors = urlVectors(9);
    assert.ok(distinct(vectors) >= VECTORS_MIN, `${distinct(vectors)} vectors`);
    const passed = vectors.filter(({ url }) => checkUrl(url, isPublicAddress).ok);
    // A name that is none has to be looked up before it is found to lead nowhere.
    assert.deepEqual(passed.map(({ url }) => new URL(url).hostname).filter(canBeAddress), []);
  });

  test('no redirect to such a URL passes', () => {
    const base = new URL(`http://${OUTSIDE}/`);
    const passed = redirectVectors(9).filter(({ url }) => checkUrl(url, isPublicAddress, base).ok);
    assert.deepEqual(
      passed.map(({ url }) => url),
      ['http://alone-7.test:9/'],
    );
  });

  test('no name that answers such an address is connected to', async () => {
    for (const { name, answers } of nameVectors()) {
      await assert.rejects(lookUp(name, resolverOf(answers)), BlockedAddressError, name);
    }
  });

  test('a name that changes its answers passes as long as they are public', async () => {
    for (const { name, answers } of rebindingVectors()) {
      const resolve = resolverOf(answers);
      assert.deepEqual(await lookUp(name, resolve), [PUBLIC_ADDRESS]);
      await assert.rejects(lookUp(name, resolve), BlockedAddressError, name);
    }
  });
});

/** All of them pass the guard by itself. No list repeats itself every third time. */
const some = <T>(vectors: readonly T[]): T[] => vectors.filter((_, at) => at % byDepth(3, 1) === 0);

describe('http_request in the running server', () => {
  let api: Api | undefined;
  let tenant: Tenant;
  let sequenceId: string;
  const sink = counting((_request, response) => response.end('sink'));
  /** `/go/<status>/<target>` redirects; anything else is answered. Each on a connection of its own. */
  const outside = counting((request, response) => {
    const [, status, target] = /^\/go\/(\d+)\/(.*)$/.exec(request.url ?? '') ?? [];
    response.setHeader('connection', 'close');
    if (target !== undefined) {
      // Whatever the target is made of goes out as the bytes of its UTF-8.
      const bytes = Buffer.from(decodeURIComponent(target));
      response.setHeader('location', bytes.toString('latin1'));
    }
    response.writeHead(Number(status ?? 200)).end('outside');
  });

  before(async () => {
    await Promise.all([sink.listen(), outside.listen()]);
    const answers = Object.fromEntries(names.map(({ name, answers }) => [name, answers]));
    api = await startApi({
      env: {
        ENGINE_SHARDS: '1',
        NODE_OPTIONS: `--import=${NETWORK}`,
        NETWORK_NAMES: JSON.stringify(answers),
      },
    });
    tenant = api.tenant();
    const params = { url: '{{context.data.url}}' };
    sequenceId = await tenant.sequence([step('a', 'http_request', { params })]);
  });
  after(async () => {
    await api?.stop();
    await Promise.all([sink.close(), outside.close()]);
  });

  /** The addresses that the server has begun to connect to so far. */
  const connections = () =>
    (api?.engine.logs() ?? []).flatMap(({ msg, address }) =>
      msg === 'connecting' ? [address] : [],
    );

  /** Runs one instance for each URL; resolves with the rows of its step in the same order. */
  async function request(urls: readonly string[]): Promise<Outcome[]> {
    const created = urls.map((url) => tenant.create(sequenceId, { context: { data: { url } } }));
    const ids = await Promise.all(created);
    return Promise.all(ids.map((id) => outcomeOf(id)));
  }

  async function outcomeOf(id: string): Promise<Outcome> {
    return eventually(async () => {
      const { state } = await tenant.instance(id);
      assert.ok(state === 'completed' || state === 'failed', state);
      const [row] = await tenant.outputs(id);
      return { ...(row?.output as Partial<Outcome> | undefined), state };
    });
  }

  async function allRefused(vectors: readonly UrlVector[]): Promise<void> {
    const outcomes = await request(vectors.map(({ url }) => url));
    const wrong = outcomes.flatMap((outcome, index) => {
      const { state, retryable, details } = outcome;
      const isRefused = state === 'failed' && retryable === false;
      if (isRefused && REFUSAL.test(details?.code ?? '')) return [];
      return [`${vectors[index]?.kind} ${vectors[index]?.url}: ${JSON.stringify(outcome)}`];
    });
    assert.deepEqual(wrong, []);
    assert.equal(sink.connections(), 0);
  }

  test('the public server is reached by name and by address, and the connection is seen', async () => {
    const before = connections().length;
    const port = outside.port();
    const urls = [`http://${OUTSIDE}:${port}/`, `http://${PUBLIC_ADDRESS}:${port}/`];
    for (const outcome of await request(urls)) assert.equal(outcome.state, 'completed');
    assert.deepEqual(connections().slice(before), [PUBLIC_ADDRESS, PUBLIC_ADDRESS]);
    assert.equal(outside.connections(), 2);
  });

  test('no URL that says where it leads makes a connection', async () => {
    const before = connections().length;
    const vectors = some(urlVectors(sink.port()));
    await allRefused(vectors);
    assert.ok(distinct(vectors) >= VECTORS_MIN, `${distinct(vectors)} vectors`);
    assert.deepEqual(connections().slice(before), []);
  });

  test('no name that leads inside makes a connection', async () => {
    const before = connections().length;
    const port = sink.port();
    await allRefused(
      some(nameVectors()).map(({ kind, name }) => ({ kind, url: `http://${name}:${port}/` })),
    );
    assert.deepEqual(connections().slice(before), []);
  });

  test('a name that leads inside at the second look-up makes one connection, to the outside', async () => {
    const before = connections().length;
    const urls = rebindingVectors().map(({ name }) => `http://${name}:${outside.port()}/`);
    for (const { state } of await request(urls)) assert.equal(state, 'completed');
    await allRefused(urls.map((url) => ({ kind: 'rebinding', url })));
    assert.deepEqual(
      connections().slice(before),
      urls.map(() => PUBLIC_ADDRESS),
    );
  });

  test('no redirect of a public server leads inside', async () => {
    const before = connections().length;
    const statuses = [301, 302, 303, 307, 308];
    const vectors = some(redirectVectors(sink.port())).map(({ kind, url }, index) => {
      const status = statuses[index % statuses.length];
      const target = encodeURIComponent(url);
      return { kind, url: `http://${OUTSIDE}:${outside.port()}/go/${status}/${target}` };
    });
    await allRefused(vectors);
    const made = connections().slice(before);
    assert.deepEqual([...new Set(made)], [PUBLIC_ADDRESS]);
    assert.equal(made.length, vectors.length);
  });
});

interface Outcome {
  readonly state: string;
  readonly retryable?: boolean;
  readonly details?: { readonly code?: string };
}

/** A server on every address of this machine that counts the connections it gets. */
function counting(answer: Parameters<typeof createServer>[1]) {
  const server: Server = createServer(answer);
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  return {
    listen: () =>
      new Promise<void>((resolve) => {
        server.listen(0, '0.0.0.0', resolve);
      }),
    port: () => (server.address() as AddressInfo).port,
    connections: () => connections,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function distinct(vectors: readonly UrlVector[]): number {
  return new Set(vectors.map(({ url }) => url)).size;
}

/** Whether a host could be read as an address by anybody: it has no letters but hexadecimal ones. */
function canBeAddress(hostname: string): boolean {
  return /^[\d.a-fx:[\]]+$/i.test(hostname) && !hostname.endsWith('..');
}

function resolverOf(answers: NameVector['answers']): Resolver {
  let turn = 0;
  return async () => {
    const addresses = answers[Math.min(turn, answers.length - 1)] ?? [];
    turn += 1;
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };
}

function lookUp(hostname: string, resolve: Resolver): Promise<string[]> {
  return new Promise((fulfil, reject) => {
    guardedLookup(resolve, isPublicAddress)(hostname, { all: true }, (error, found) => {
      if (error !== null) reject(error);
      else fulfil(typeof found === 'string' ? [found] : found.map(({ address }) => address));
    });
  });
}
