/**
 * Two servers with a database each, which trust one another’s keys, and a sequence that acts outside
 * on its way: in the process of the server and through a worker. What was done outside is counted.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Execution } from '../../schema/continuity.js';
import type { Handoff, HandoffAccepted, OwnershipGrant } from '../../schema/handoff.js';
import { createKeyring, type Keyring } from '../../src/core/sealing/keys.js';
import { type Api, type Json, newHandler, startApi, step, type Tenant } from './api.js';
import { accepted, type Bundle, exported, imported } from './capsules.js';
import { expectStatus, type Reply } from './client.js';
import { type Continuity, continuityOf } from './continuity.js';
import { serve } from './loopback.js';

export interface Side {
  readonly api: Api;
  readonly keyring: Keyring;
  /** What the server was started with. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Pair {
  readonly a: Side;
  readonly b: Side;
  /** Where steps post to; the paths in the order in which they came. */
  readonly sink: { readonly url: string; readonly seen: string[] };
  stop(): Promise<void>;
}

const MASTERS = { a: 'a1'.repeat(32), b: 'b2'.repeat(32) } as const;

export async function startPair(): Promise<Pair> {
  const keyrings = {
    a: createKeyring(Buffer.from(MASTERS.a, 'hex')),
    b: createKeyring(Buffer.from(MASTERS.b, 'hex')),
  };
  const start = async (own: 'a' | 'b', other: 'a' | 'b'): Promise<Side> => {
    const { id, publicKey } = keyrings[other].signing;
    const env = {
      ENGINE_SHARDS: '2',
      ENGINE_ALLOW_INTERNAL_URLS: 'true',
      ENGINE_ENCRYPTION_KEY: MASTERS[own],
      ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON: JSON.stringify({ [id]: publicKey }),
    };
    return { api: await startApi({ env }), keyring: keyrings[own], env };
  };
  const seen: string[] = [];
  const sink = await serve((request, response) => {
    seen.push(request.url ?? '');
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
  });
  const a = await start('a', 'b');
  const b = await start('b', 'a');
  return {
    a,
    b,
    sink: { url: sink.url, seen },
    stop: async () => {
      sink.stop();
      await a.api.stop();
      await b.api.stop();
    },
  };
}

/** One of the two servers as the tenant sees it. */
export interface Place {
  readonly tenant: Tenant;
  readonly continuity: Continuity;
  /** Its own runtime, which both servers know with its key. */
  readonly runtime: string;
}

export type Places = { readonly a: Place; readonly b: Place };

/** A tenant on both servers, and an execution that is half done on the first. */
export interface Journey extends Places {
  /** The instance on the first server, and the execution. */
  readonly id: string;
  readonly handler: string;
  /** What the steps of this journey posted, in order. */
  posted(): string[];
}

/** The blocks of every journey, in order: each must have one output at its end. */
const JOURNEY_BLOCKS = ['before', 'there', 'here', 'after', 'end'];

/** A tenant on both servers. */
export async function startPlaces({ a, b }: Pick<Pair, 'a' | 'b'>): Promise<Places> {
  const name = `t-${randomUUID()}`;
  const place = (tenant: Tenant): Place => {
    return { tenant, continuity: continuityOf(tenant), runtime: randomUUID() };
  };
  const places = { a: place(a.api.tenant(name)), b: place(b.api.tenant(name)) };
  await announce(places, { a, b });
  return places;
}

/** One that is exported to the other server already. */
export async function startSent(pair: Pair) {
  const journey = await startJourney(pair);
  const { a, b, id } = journey;
  return { journey, a, b, id, bundle: await send(id, a, b) };
}

/** `before` and `there` are done on the first server; `here`, `after` and `end` are still to come. */
export async function startJourney({ a, b, sink }: Pair): Promise<Journey> {
  const places = await startPlaces({ a, b });
  const { tenant } = places.a;
  const { name } = tenant;
  const handler = newHandler();
  const post = (id: string) => {
    const params = { url: `${sink.url}/${name}/${id}`, method: 'POST', body: {} };
    return step(id, 'http_request', { params });
  };
  const id = randomUUID();
  const definition = tenant.definition(
    [
      post('before'),
      step('there', handler, { params: { n: 1 } }),
      step('here', handler, { params: { from: '{{outputs.there.said}}' } }),
      post('after'),
      step('end', 'noop'),
    ],
    { id },
  );
  await storeOnBoth(places, definition);
  const instance = await tenant.create(id);
  const task = await tenant.task(handler);
  await tenant.signal(instance, 'pause');
  await tenant.complete(task, { said: 'on the first' });
  await tenant.until(instance, 'paused');
  await places.a.continuity.enrol(instance, places.a.runtime);
  const posted = () => sink.seen.filter((path) => path.startsWith(`/${name}/`));
  return { ...places, id: instance, handler, posted };
}

/** @param definition with an id, since a capsule names its sequence by that */
export async function storeOnBoth({ a, b }: Places, definition: Json): Promise<void> {
  for (const { tenant } of [a, b]) expectStatus(await tenant.post('/sequences', definition), 201);
}

/** Registers both runtimes on both servers; they are live for some minutes. */
async function announce({ a, b }: Places, sides: Pick<Pair, 'a' | 'b'>): Promise<void> {
  for (const { continuity } of [a, b]) {
    for (const [{ runtime: runtime_id }, { keyring }] of [
      [a, sides.a],
      [b, sides.b],
    ] as const) {
      const capsule_signing_public_key = keyring.signing.publicKey;
      await continuity.runtime({ runtime_id, capsule_signing_public_key });
    }
  }
}

/** From a preview on the server that owns the execution to its capsule. */
export const send = async (id: string, from: Place, to: Place, body?: Json): Promise<Bundle> =>
  exported(from.continuity, await from.continuity.handoff(id, to.runtime), body);

export interface Landed {
  readonly handoff: Handoff;
  readonly instance: string;
  readonly execution: Execution;
}

/** Imports the capsule there, accepts here, claims there. */
export async function land(bundle: Bundle, from: Place, to: Place): Promise<Landed> {
  const { instance_id: instance, import_receipt } = await imported(to.tenant, bundle);
  const { handoff, ownership_grant } = await accepted(
    from.continuity,
    bundle.handoff.id,
    instance,
    { import_receipt },
  );
  return { handoff, instance, execution: expectStatus(await claiming(to, ownership_grant), 200) };
}

export const claiming = (
  { tenant }: Place,
  ownership_grant: OwnershipGrant | undefined,
): Promise<Reply<Execution & { error: string }>> =>
  tenant.post('/continuity/executions/claim', { ownership_grant });

export const accepting = (
  { continuity }: Place,
  handoff: string,
  destination_instance_id: string,
  import_receipt?: unknown,
): Promise<Reply<HandoffAccepted & { error: string }>> =>
  continuity.act(handoff, 'accept', { destination_instance_id, import_receipt });

/** Runs the instance on, as the last owner, and checks that every step was done exactly once. */
export async function finish(journey: Journey, place: Place, instance: string): Promise<void> {
  const { tenant } = place;
  await tenant.move(instance, 'scheduled');
  const task = await tenant.task(journey.handler);
  assert.deepEqual(task.params, { from: 'on the first' });
  await tenant.complete(task, { said: 'on the last' });
  await tenant.until(instance, 'completed');
  assert.deepEqual(await tenant.rowsOf(instance), JOURNEY_BLOCKS);
  const { there, here } = await tenant.outputsOf(instance);
  assert.deepEqual([there?.said, here?.said], ['on the first', 'on the last']);
  const seen = journey.posted().map((path) => path.split('/').at(-1));
  assert.deepEqual(seen, ['before', 'after']);
}

/** Everything that would change or advance an instance is refused. */
export async function assertFenced({ tenant }: Place, id: string): Promise<void> {
  const state = (to: string) => tenant.patch(`/instances/${id}/state`, { state: to });
  expectStatus(await state('scheduled'), 409);
  expectStatus(await state('cancelled'), 409);
  expectStatus(await tenant.patch(`/instances/${id}/context`, { context: { data: {} } }), 409);
  for (const signal_type of ['resume', 'cancel', 'custom:go']) {
    expectStatus(await tenant.post(`/instances/${id}/signals`, { signal_type }), 409);
  }
  expectStatus(await tenant.post(`/instances/${id}/retry`, {}), 409);
  expectStatus(await tenant.post(`/instances/${id}/resume-from/before`, {}), 409);
  const blocks = [step('more', 'noop')];
  expectStatus(await tenant.post(`/instances/${id}/inject-blocks`, { blocks }), 409);
  assert.equal((await tenant.instance(id)).state, 'paused');
}
