/**
 * A server is killed at every commit on the way of an execution from one server to another. What the
 * caller does then is what the documentation says; there is never more than one owner, no output is
 * lost, and nothing is done twice outside.
 */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import type { Handoff } from '../../schema/handoff.js';
import type { Api } from '../helpers/api.js';
import { type Bundle, exported, importing } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';
import { killAt, type Moment } from '../helpers/commit-points.js';
import { byDepth } from '../helpers/depth.js';
import {
  accepting,
  assertFenced,
  claiming,
  finish,
  type Journey,
  type Landed,
  land,
  type Pair,
  send,
  startJourney,
  startPair,
} from '../helpers/two-engines.js';

let pair: Pair;

before(async () => {
  pair = await startPair();
});
after(() => pair.stop());

/** An answer that is lost with what it says committed is the harder case. */
const MOMENTS: readonly Moment[] = byDepth(['after'], ['before', 'after']);

/** How many instances of the execution may run, on both servers together. */
async function owners({ id }: Journey): Promise<number> {
  const counts = await Promise.all([pair.a.api, pair.b.api].map((api) => unfenced(api, id)));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function unfenced({ database }: Api, execution: string): Promise<number> {
  const client = new pg.Client(database.connectionString);
  await client.connect();
  try {
    const { rows } = await client.query<{ count: number }>(
      'select count(*)::int as count from instances ' +
        'where (id = $1 or continuity_id = $1) and fence is null',
      [execution],
    );
    return rows[0]?.count ?? 0;
  } finally {
    await client.end();
  }
}

/** The rest of the way, of an execution that has a capsule; every step of it can be asked again. */
async function goOn(journey: Journey, bundle: Bundle): Promise<void> {
  const { a, b } = journey;
  await arrive(journey, await land(bundle, a, b));
}

async function arrive(journey: Journey, { instance }: Landed): Promise<void> {
  assert.equal(await owners(journey), 1);
  await assertFenced(journey.a, journey.id);
  await finish(journey, journey.b, instance);
}

/** As the documentation has it: what is not exported is exported, what has no capsule begins anew. */
async function bundleAfter(journey: Journey, { id }: Handoff): Promise<Bundle> {
  const { a, b } = journey;
  const handoff = await a.continuity.getHandoff(id);
  if (handoff.state === 'requested') return exported(a.continuity, handoff);
  if (handoff.state === 'exported') {
    expectStatus(await a.continuity.act(id, 'export', { capture_checkpoint: true }), 409);
    expectStatus(await a.continuity.act(id, 'revoke'), 200);
  }
  return send(journey.id, a, b);
}

describe('a kill of the first server', () => {
  for (const moment of MOMENTS) {
    for (const [table, what] of [
      ['handoffs', 'the fence of an export'],
      ['artifacts', 'the capsule of an export'],
    ] as const) {
      test(`${moment} the commit of ${what} leaves one owner`, async () => {
        const journey = await startJourney(pair);
        const { a, b, id } = journey;
        const handoff = await a.continuity.handoff(id, b.runtime);
        await killAt(moment, pair.a.api, table, () => exported(a.continuity, handoff));
        assert.ok((await owners(journey)) <= 1);
        await goOn(journey, await bundleAfter(journey, handoff));
      });
    }

    test(`${moment} the commit of an acceptance leaves one owner`, async () => {
      const journey = await startJourney(pair);
      const { a, b, id } = journey;
      const bundle = await send(id, a, b);
      const imported = expectStatus(await importing(b.tenant, bundle), 201);
      const { instance_id, import_receipt } = imported;
      const accept = () => accepting(a, bundle.handoff.id, instance_id, import_receipt);
      await killAt(moment, pair.a.api, 'continuity_locations', accept);
      assert.equal(await owners(journey), 0);
      await goOn(journey, bundle);
    });
  }
});

describe('a kill of the second server', () => {
  for (const moment of MOMENTS) {
    test(`${moment} the commit of an import leaves one owner`, async () => {
      const journey = await startJourney(pair);
      const { a, b, id } = journey;
      const bundle = await send(id, a, b);
      await killAt(moment, pair.b.api, 'capsule_imports', () => importing(b.tenant, bundle));
      assert.equal(await owners(journey), 0);
      await goOn(journey, bundle);
    });

    test(`${moment} the commit of a claim leaves one owner`, async () => {
      const journey = await startJourney(pair);
      const { a, b, id } = journey;
      const bundle = await send(id, a, b);
      const { instance_id, import_receipt } = expectStatus(await importing(b.tenant, bundle), 201);
      const accepted = expectStatus(
        await accepting(a, bundle.handoff.id, instance_id, import_receipt),
        200,
      );
      const claim = () => claiming(b, accepted.ownership_grant);
      await killAt(moment, pair.b.api, 'continuity_locations', claim);
      assert.equal(await owners(journey), moment === 'before' ? 0 : 1);
      await goOn(journey, bundle);
    });
  }
});
