/**
 * What an instance waits for goes with it from one server to another: it is ended there and nowhere else, in the
 * version that the instance began with or in the next one. What cannot go says so.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { Approval } from '../../../schema/approval.js';
import type { MigratedInstance, MigrationFinding } from '../../../schema/continuity.js';
import type { EventReceipt } from '../../../schema/event.js';
import type { TaskInstance } from '../../../schema/instance.js';
import { eventually, type Json, newHandler, sleep, step } from '../../helpers/api.js';
import { exported } from '../../helpers/capsules.js';
import { expectStatus } from '../../helpers/client.js';
import type { Pair, Place, Places } from '../../helpers/two-engines.js';
import { land, send, startPlaces, storeOnBoth } from '../../helpers/two-engines.js';

const WEEK_MS = 7 * 86_400_000;

let pair: Pair;

const noop = (id: string) => step(id, 'noop');

/** Versions of one name on both servers; resolves with their ids, in order. */
async function versions(places: Places, ...lists: (readonly Json[])[]): Promise<string[]> {
  const ids = lists.map(() => randomUUID());
  const name = `s-${randomUUID()}`;
  for (const [at, blocks] of lists.entries()) {
    const more = { id: ids[at], name, version: at + 1 };
    await storeOnBoth(places, places.a.tenant.definition(blocks, more));
  }
  return ids;
}

/** By the one request; resolves with the state, which it keeps. */
async function migrate({ tenant }: Place, id: string, version: number): Promise<string> {
  const body = { version, approved: true };
  const reply = await tenant.post<MigratedInstance>(`/instances/${id}/migrate`, body);
  const { migrated, state } = expectStatus(reply, 200);
  assert.equal(migrated, true, reply.text);
  return state;
}

/** From the preview to an instance that goes on there. */
async function handOver({ a, b }: Places, id: string): Promise<string> {
  assert.equal((await a.continuity.preview(id, b.runtime)).compatible, true);
  const { handoff, instance } = await land(
    await send(id, a, b, { capture_checkpoint: true }),
    a,
    b,
  );
  expectStatus(await a.continuity.act(handoff.id, 'resume'), 200);
  await b.tenant.move(instance, 'scheduled');
  return instance;
}

const asked = async ({ tenant }: Place): Promise<Approval[]> =>
  expectStatus(await tenant.get<{ items: Approval[] }>('/approvals'), 200).items;

const answer = ({ tenant }: Place, id: string | undefined) =>
  tenant.post(`/approvals/${id}`, { value: 'yes' });

async function matchedBy({ tenant }: Place, name: string): Promise<number> {
  const body = {
    event_name: name,
    producer_event_id: randomUUID(),
    payload: { from: tenant.name },
  };
  return expectStatus(await tenant.post<EventReceipt>('/events', body), 201).matched;
}

async function dueAt(side: 'a' | 'b', instance: string): Promise<Date | undefined> {
  const text = 'select fire_at from timers where instance_id = $1';
  return (await pair[side].api.sql.query(text, [instance])).rows[0]?.fire_at;
}

/** One wait of one instance, from before it is handed over until it is ended. */
interface Wait {
  readonly state: string;
  readonly blocks: readonly Json[];
  /** What the same step is in a version in which it is over at once, if nobody can end it otherwise. */
  readonly ended?: readonly Json[];
  /** Before the handoff; resolves with what has to fail on the source afterwards. */
  readonly before: (places: Places, id: string) => Promise<() => Promise<void>>;
  readonly end: (places: Places, instance: string) => Promise<void>;
}

const WAITS: Readonly<Record<string, () => Wait>> = {
  'a question to a person is answered on the other server, and no longer on the first': () => ({
    state: 'waiting',
    blocks: [step('w', 'noop', { wait_for_input: { prompt: 'Pay?', timeout: 600_000 } })],
    before: async ({ a }) => {
      const [approval] = await asked(a);
      assert.equal(approval?.prompt, 'Pay?');
      return async () => {
        assert.deepEqual(await asked(a), []);
        expectStatus(await answer(a, approval?.id), 409);
      };
    },
    end: async ({ b }, instance) => {
      const [approval, ...others] = await eventually(async () => {
        const open = await asked(b);
        assert.equal(open.length, 1);
        return open;
      });
      assert.deepEqual([approval?.instance_id, approval?.prompt, others], [instance, 'Pay?', []]);
      expectStatus(await answer(b, approval?.id), 200);
    },
  }),
  'an event that comes to the other server ends the wait, one that comes to the first does not':
    () => {
      const name = `event-${randomUUID()}`;
      return {
        state: 'waiting',
        blocks: [step('w', 'wait_for_event', { params: { name } })],
        before:
          async ({ a }) =>
          async () =>
            assert.equal(await matchedBy(a, name), 0),
        end: async ({ b }) => {
          await eventually(async () => assert.equal(await matchedBy(b, name), 1));
        },
      };
    },
  'a queued task is offered by the other server, and by the first no more': () => {
    const handler = newHandler();
    return {
      state: 'waiting',
      blocks: [step('w', handler)],
      before:
        async ({ a }) =>
        async () =>
          assert.deepEqual(await a.tenant.poll(handler), []),
      end: async ({ b }, instance) => {
        const task = await b.tenant.task(handler);
        assert.equal(task.instance_id, instance);
        await b.tenant.complete(task);
      },
    };
  },
  'a sleep ends on the other server, at the moment at which it would have ended on the first':
    () => {
      let due: Date | undefined;
      return {
        state: 'running',
        blocks: [sleep('w', WEEK_MS)],
        ended: [sleep('w', 1)],
        before: async ({ a }, id) => {
          due = await dueAt('a', id);
          assert.ok(due !== undefined);
          return async () => {
            assert.equal(await dueAt('a', id), undefined);
            assert.equal((await a.tenant.instance(id)).state, 'paused');
          };
        },
        end: async (_, instance) => {
          assert.deepEqual(await dueAt('b', instance), due);
        },
      };
    },
};

export function describeWaits(pairOf: () => Pair): void {
  before(() => {
    pair = pairOf();
  });

  for (const [title, make] of Object.entries(WAITS)) {
    test(`${title}, with a migration before and behind the handoff`, async () => {
      const { state, blocks, ended = blocks, before: begin, end } = make();
      const places = await startPlaces(pair);
      const { a, b } = places;
      const first = [noop('a'), ...blocks];
      const third = [noop('a'), ...ended, noop('new'), noop('newer')];
      const [v1, v2, v3] = await versions(places, first, [...first, noop('new')], third);
      const id = await a.tenant.create(v1!);
      await a.tenant.until(id, state);
      await a.continuity.enrol(id, a.runtime);

      assert.equal(await migrate(a, id, 2), state);
      const fails = await begin(places, id);
      const instance = await handOver(places, id);
      await b.tenant.until(instance, state);
      assert.equal((await b.tenant.instance(instance)).sequence_id, v2);
      await fails();
      if (ended === blocks) assert.equal(await migrate(b, instance, 3), state);
      await end(places, instance);
      if (ended !== blocks) await migrate(b, instance, 3);
      assert.equal((await b.tenant.until(instance, 'completed')).sequence_id, v3);
      const rows = new Set(await b.tenant.rowsOf(instance));
      assert.deepEqual([...rows], ['a', 'w', 'new', 'newer']);
    });
  }

  test('an instance of the dead letter queue goes over to a mended version and then to another server, where its retry runs it', async () => {
    const places = await startPlaces(pair);
    const { a, b } = places;
    const [bad, good] = [newHandler(), newHandler()];
    const [v1, v2] = await versions(
      places,
      [noop('a'), step('b', bad)],
      [noop('a'), step('b', good)],
    );
    const id = await a.tenant.create(v1!);
    await a.tenant.fail(await a.tenant.task(bad), 'no');
    await a.tenant.until(id, 'failed');
    assert.equal(await migrate(a, id, 2), 'failed');
    assert.deepEqual(await a.tenant.deadLetters(), [id]);
    await a.continuity.enrol(id, a.runtime);
    const instance = await handOver(places, id);
    const task = await b.tenant.task(good);
    assert.equal(task.instance_id, instance);
    await b.tenant.complete(task);
    const { sequence_id } = await b.tenant.until(instance, 'completed');
    assert.equal(sequence_id, v2);
    assert.deepEqual(await b.tenant.rowsOf(instance), ['a', 'b']);
    assert.deepEqual(await a.tenant.deadLetters(), []);
    expectStatus(await a.tenant.post(`/instances/${id}/retry`, {}), 409);
  });

  describe('an instance with an open child', () => {
    interface Family {
      readonly places: Places;
      readonly parent: string;
      readonly handlers: { readonly first: string; readonly child: string; readonly last: string };
    }

    /** A parent that waits for a worker, then for a child which waits for one, and then again. */
    async function family(): Promise<Family> {
      const places = await startPlaces(pair);
      const { tenant, continuity, runtime } = places.a;
      const handlers = { first: newHandler(), child: newHandler(), last: newHandler() };
      const name = `child-${randomUUID()}`;
      const childBlocks = [step('work', handlers.child)];
      await storeOnBoth(places, tenant.definition(childBlocks, { id: randomUUID(), name }));
      const [sequence] = await versions(places, [
        step('first', handlers.first),
        { type: 'sub_sequence', id: 'call', sequence_name: name },
        step('last', handlers.last),
      ]);
      const parent = await tenant.create(sequence!);
      await tenant.until(parent, 'waiting');
      await continuity.enrol(parent, runtime);
      return { places, parent, handlers };
    }

    /** The child, once it waits for its worker. */
    async function childOf({ places: { a }, parent, handlers }: Family): Promise<string> {
      await a.tenant.complete(await a.tenant.task(handlers.first));
      const child = await eventually(async () => {
        const path = `/instances/${parent}/children`;
        const [one] = expectStatus(await a.tenant.get<TaskInstance[]>(path), 200);
        assert.ok(one !== undefined);
        return one.id;
      });
      await a.tenant.until(child, 'waiting');
      return child;
    }

    const creating = ({ a, b }: Places, id: string) =>
      a.continuity
        .preview(id, b.runtime)
        .then((seen) =>
          a.tenant.post<{ error: string }>('/continuity/handoffs', a.continuity.creation(seen)),
        );

    test('stays: preview, creation and export say which child, and what would change that', async () => {
      const world = await family();
      const { places, parent, handlers } = world;
      const { a, b } = places;
      const early = await a.continuity.handoff(parent, b.runtime);
      const child = await childOf(world);

      const { compatible, findings } = await a.continuity.preview(parent, b.runtime);
      assert.equal(compatible, false);
      const finding = findings.find(({ code }) => code === 'KIN_STAYS');
      assert.equal(finding?.status, 'fail');
      assert.match(String(finding?.summary), new RegExp(`waits for its child ${child}`));
      assert.match(String(finding?.remedy), /let the child end, or cancel it/);
      const created = await creating(places, parent);
      assert.match(expectStatus(created, 409).error, new RegExp(`KIN_STAYS: .*${child}`));
      const reply = await a.continuity.act<{ error: string; findings: MigrationFinding[] }>(
        early.id,
        'export',
        { capture_checkpoint: true },
      );
      const [told, ...others] = expectStatus(reply, 409).findings;
      assert.deepEqual(others, []);
      const found = [told?.code, told?.block_id, told?.summary, told?.remedy];
      assert.deepEqual(found, ['KIN_STAYS', 'call', finding?.summary, finding?.remedy]);
      assert.equal((await a.continuity.getHandoff(early.id)).state, 'requested');
      assert.equal((await a.continuity.execution(parent)).state, 'owned');

      await a.tenant.complete(await a.tenant.task(handlers.child));
      await a.tenant.until(child, 'completed');
      await a.tenant.until(parent, 'waiting');
      await eventually(async () => {
        assert.equal((await a.continuity.preview(parent, b.runtime)).compatible, true);
      });
      const bundle = await exported(a.continuity, early);
      const { instance } = await land(bundle, a, b);
      await b.tenant.move(instance, 'scheduled');
      await b.tenant.complete(await b.tenant.task(handlers.last));
      await b.tenant.until(instance, 'completed');
      assert.deepEqual(await b.tenant.rowsOf(instance), ['first', 'call', 'last']);
    });
  });
}
