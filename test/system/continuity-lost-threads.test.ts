/**
 * Executions on two shards and a real database, on a clock that is put forward: what two of them decide at
 * once, what a death in the middle leaves, and what time alone puts in order.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, describe, test } from 'node:test';
import { ContinuityRows } from '../../actors/continuity/rows.js';
import { OUTPUT_ROWS } from '../../actors/instance/output-tables.js';
import { eventually, type Json, step } from '../helpers/api.js';
import { capabilities, soon } from '../helpers/continuity.js';
import { type Answer, type LocalShards, startShards } from '../helpers/shards.js';

const HASH = 'ab'.repeat(32);
const MINUTE_MS = 60_000;

let shards: LocalShards;
/** Runs once, after the next read of the head of a chain. */
let afterHead: (() => Promise<void>) | undefined;

class HookedRows extends ContinuityRows {
  override async one<Name extends Parameters<ContinuityRows['one']>[0]>(
    name: Name,
    ...values: readonly (string | number)[]
  ) {
    const row = await super.one(name, ...values);
    if (name !== 'provenanceHead') return row;
    const then = afterHead;
    afterHead = undefined;
    await then?.();
    return row;
  }
}

afterEach(() => shards.stop());

async function open(): Promise<void> {
  shards = await startShards((pool) => new HookedRows(pool));
}

/** An instance that is paused before its first step, on that shard. */
async function paused(shard: number): Promise<string> {
  const sequence = await shards.sequence([step('a', 'noop')]);
  const id = await shards.create(sequence, shard, { next_fire_at: soon() });
  await shards.get('instances.patchState', id, { state: 'paused' });
  return id;
}

async function rows(text: string, ...values: unknown[]): Promise<Json[]> {
  return (await shards.sql.query<Json>(text, values)).rows;
}

const enrol = (id: string) =>
  shards.ask('continuity.create', '', { instance_id: id, runtime_id: randomUUID() });

const append = (id: string) =>
  shards.ask('continuity.appendProvenance', id, { kind: 'model_selected', payload_sha256: HASH });

const executionOf = async (id: string): Promise<Json> => {
  const [row] = await rows(
    'select state, epoch::integer as epoch, version::integer as version, owner_runtime_id, ' +
      'current_instance_id from continuity_executions where continuity_id = $1',
    id,
  );
  assert.ok(row);
  return row;
};

const fenceOf = async (id: string) =>
  ((await rows('select fence from instances where id = $1', id))[0]?.fence as Json | null)
    ?.reason ?? null;

const handoffOf = async (id: string) =>
  (await rows('select state from handoffs where id = $1', id))[0]?.state;

/** An enrolled instance on that shard and a handoff of it that is asked for. */
async function requested(shard: number) {
  const id = await paused(shard);
  assert.equal((await enrol(id)).status, 201);
  const registration = { capabilities: capabilities() };
  const { runtime_id } = await shards.get('runtimes.register', '', registration);
  return { id, destination: String(runtime_id), handoff: await handOver(id, String(runtime_id)) };
}

async function handOver(id: string, destination_runtime_id: string): Promise<string> {
  const seen = await shards.get('continuity.preview', id, { destination_runtime_id });
  const { placement_decision_id, preview_sha256 } = seen;
  const body = { placement_decision_id, preview_sha256, destination_runtime_id };
  return String((await shards.get('handoffs.create', '', body)).id);
}

const exporting = (handoff: string) =>
  shards.ask('handoffs.export', handoff, { capture_checkpoint: true, expires_in_seconds: 600 });

/** Such a handoff, exported; the capsule is good for ten minutes. */
async function exported(shard: number) {
  const from = await requested(shard);
  const { status, body } = await exporting(from.handoff);
  assert.equal(status, 200, JSON.stringify(body));
  return { ...from, capsule: body.capsule as Json, payload_base64: body.payload_base64 };
}

/** Such a handoff, and the instance that was imported from its capsule on that shard. */
async function imported(shard: number, destinationShard: number) {
  const { capsule, payload_base64, ...from } = await exported(shard);
  const instance = `${randomUUID().slice(0, -1)}${destinationShard}`;
  await shards.get('capsules.import', '', {
    destination_runtime_id: from.destination,
    expected_epoch: 0,
    destination_instance_id: instance,
    capsule,
    payload_base64,
  });
  return { ...from, instance };
}

const accept = (handoff: string, destination_instance_id: string) =>
  shards.ask('handoffs.accept', handoff, { destination_instance_id });

const eventuallyOwned = (id: string) =>
  eventually(async () => {
    assert.deepEqual([(await executionOf(id)).state, await fenceOf(id)], ['owned', null]);
  });

describe('an execution', () => {
  test('that is asked for twice at once is created once, wherever its instance is', async () => {
    await open();
    for (const shard of [0, 1]) {
      const id = await paused(shard);
      const answers = await Promise.all([enrol(id), enrol(id)]);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409]);
      assert.equal((await executionOf(id)).version, 0);
    }
  });

  test('is not changed by who decided on an older version of it', async () => {
    await open();
    const id = await paused(0);
    await enrol(id);
    afterHead = async () => {
      await rows('update continuity_executions set version = version + 1');
    };
    assert.equal((await append(id)).status, 409);
    const chain = 'select kind from provenance_entries where continuity_id = $1';
    assert.deepEqual(await rows(chain, id), [{ kind: 'execution_created' }]);
    assert.equal((await append(id)).status, 201);
    assert.equal((await rows(chain, id)).length, 2);
  });

  for (const when of ['before', 'after'] as const) {
    test(`is there as a whole or not at all when its shard dies ${when} the commit of its order`, async () => {
      await open();
      const id = await paused(0);
      const replaced = shards.killAtUnits(0, when);
      assert.equal((await enrol(id)).status, 503);
      await replaced;
      const isThere = when === 'after';
      const counts = await rows(
        'select (select count(*)::integer from continuity_executions) as executions, ' +
          '(select count(*)::integer from continuity_locations) as locations, ' +
          '(select count(*)::integer from provenance_entries) as entries, ' +
          '(select count(continuity_id)::integer from instances) as instances',
      );
      const count = isThere ? 1 : 0;
      const all = { executions: count, locations: count, entries: count, instances: count };
      assert.deepEqual(counts, [all]);
      assert.equal((await enrol(id)).status, isThere ? 409 : 201);
    });
  }
});

describe('a handoff', () => {
  test('that nobody takes up gives its execution back when the capsule has come to its end', async () => {
    await open();
    const { id, handoff } = await exported(1);
    const patch = () => shards.ask('instances.patchState', id, { state: 'scheduled' });
    assert.equal((await patch()).status, 409);
    shards.advance(9 * MINUTE_MS);
    assert.equal((await patch()).status, 409);
    shards.advance(MINUTE_MS);
    await eventuallyOwned(id);
    assert.equal(await handoffOf(handoff), 'expired');
    assert.equal((await executionOf(id)).epoch, 0);
    assert.equal((await patch()).status, 200);
    await shards.until(id, 'completed');
  });

  test('that is accepted too late is expired, and frees its execution', async () => {
    await open();
    const { id, handoff, instance } = await imported(0, 1);
    // Nobody is there to notice while the clock goes on.
    await rows('delete from timers');
    await shards.replace(0);
    shards.advance(11 * MINUTE_MS);
    assert.equal((await accept(handoff, instance)).status, 409);
    assert.equal(await handoffOf(handoff), 'expired');
    const { state, epoch } = await executionOf(id);
    assert.deepEqual([state, epoch, await fenceOf(id)], ['owned', 0, null]);
    assert.equal(await fenceOf(instance), 'imported');
  });

  for (const moment of ['before', 'after'] as const) {
    test(`whose revocation was cut off ${moment} its commit is revoked and given back, or neither`, async () => {
      await open();
      const { id, handoff } = await exported(0);
      const replaced = shards.killAtUnits(0, moment);
      assert.equal((await shards.ask('handoffs.revoke', handoff)).status, 503);
      await replaced;
      const seen = [await handoffOf(handoff), (await executionOf(id)).state, await fenceOf(id)];
      const kept = ['exported', 'transferring', 'transferring'];
      assert.deepEqual(seen, moment === 'before' ? kept : ['revoked', 'owned', null]);
      const again = await shards.ask('handoffs.revoke', handoff);
      assert.equal(again.status, moment === 'before' ? 200 : 409);
      assert.deepEqual([(await executionOf(id)).state, await fenceOf(id)], ['owned', null]);
    });
  }

  test('that an earlier engine revoked gives its execution back in the end, also when nobody asks', async () => {
    await open();
    const { id, handoff } = await exported(0);
    // It left the execution to whoever came next.
    await rows("update handoffs set state = 'revoked' where id = $1", handoff);
    shards.advance(10 * MINUTE_MS);
    await eventuallyOwned(id);
    assert.equal(await handoffOf(handoff), 'revoked');
  });

  test('whose export was cut off has failed, and its execution goes on', async () => {
    await open();
    const { id, destination, handoff } = await requested(0);
    const replaced = shards.killAtUnits(0, 'after');
    assert.equal((await exporting(handoff)).status, 503);
    await replaced;
    // What was sent is committed, though not always by the time that its sender is replaced.
    await eventually(async () => {
      const found = [await handoffOf(handoff), await fenceOf(id)];
      assert.deepEqual(found, ['quiescing', 'transferring']);
    });
    await handOver(id, destination);
    const [failed] = await rows('select state, failure_code from handoffs where id = $1', handoff);
    assert.deepEqual(failed, { state: 'failed', failure_code: 'CAPSULE_EXPORT_FAILED' });
    assert.deepEqual([(await executionOf(id)).state, await fenceOf(id)], ['owned', null]);
  });

  test('whose export was cut off lets its instance go on in the end, also when nobody asks', async () => {
    await open();
    const { id, handoff } = await requested(1);
    const replaced = shards.killAtUnits(1, 'after');
    await exporting(handoff);
    await replaced;
    shards.advance(10 * MINUTE_MS);
    await eventuallyOwned(id);
    assert.equal(await handoffOf(handoff), 'failed');
  });

  for (const victim of [0, 1, 'writer'] as const) {
    for (const when of ['before', 'after'] as const) {
      const who = victim === 'writer' ? 'the writer' : `shard ${victim}`;
      test(`comes to one owner, who does everything once, wherever ${who} dies ${when} a commit`, async () => {
        await open();
        for (let skip = 0; ; skip++) {
          const replaced =
            victim === 'writer'
              ? shards.killWriterAtUnits(when, skip)
              : shards.killAtUnits(victim, when, skip);
          await wholeHandoff();
          if (shards.spare(victim)) {
            assert.ok(skip > 2, 'there is something to interrupt');
            return;
          }
          await replaced;
        }
      });
    }
  }
});

/** Asks until it is answered one of these. */
const asking = (statuses: readonly number[], ask: () => Promise<Answer>): Promise<Answer> =>
  eventually(async () => {
    const answer = await ask();
    assert.ok(statuses.includes(answer.status), JSON.stringify(answer));
    return answer;
  });

/** From the enrolment to the end, by a caller who asks again whatever was not answered. */
async function wholeHandoff(): Promise<void> {
  const id = await eventually(() => paused(0));
  await asking([201, 409], () => enrol(id));
  const registration = { capabilities: capabilities() };
  const register = () => shards.ask('runtimes.register', '', registration);
  const destination = String((await asking([201], register)).body.runtime_id);
  const { handoff, bundle } = await eventually(async () => {
    const made = await handOver(id, destination);
    const answer = await exporting(made);
    if (answer.status === 200) return { handoff: made, bundle: answer.body };
    // The capsule is lost, if there is one: it is taken back, and the next try makes another one.
    await asking([200, 409], () => shards.ask('handoffs.revoke', made));
    return assert.fail(JSON.stringify(answer));
  });
  const body = {
    destination_runtime_id: destination,
    expected_epoch: 0,
    destination_instance_id: `${randomUUID().slice(0, -1)}1`,
    capsule: bundle.capsule,
    payload_base64: bundle.payload_base64,
  };
  const taken = await asking([201], () => shards.ask('capsules.import', '', body));
  const instance = String(taken.body.instance_id);
  await asking([200, 409], () => accept(handoff, instance));
  await asking([200, 409], () => shards.ask('handoffs.resume', handoff));
  assert.ok(['resumed', 'completed'].includes(String(await handoffOf(handoff))));
  await eventually(async () => {
    assert.equal((await shards.ask('instances.get', instance)).body.state, 'completed');
  });
  const { state, epoch, current_instance_id } = await executionOf(id);
  assert.deepEqual([state, epoch, current_instance_id], ['owned', 1, instance]);
  const outputs = `select instance_id from ${OUTPUT_ROWS} o where instance_id = any($1)`;
  assert.deepEqual(await rows(outputs, [id, instance]), [{ instance_id: instance }]);
  assert.ok(['transferring', 'moved'].includes(String(await fenceOf(id))));
}
