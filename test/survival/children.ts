/** Parents and children, which hear of each other although the message was lost. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { TaskInstance } from '../../schema/instance.js';
import { type Api, eventually, newHandler, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { subject } from '../helpers/survival.js';

export const children = subject();
const { survives } = children;

/** Both wait: the child for a worker, the parent for the child. */
async function family(tenant: Tenant) {
  const handler = newHandler();
  await tenant.sequence([step('ask', handler)], { name: handler });
  const block = { type: 'sub_sequence', id: 'child', sequence_name: handler };
  const parent = await tenant.run([block, step('after', 'noop')]);
  const child = await eventually(async () => {
    const path = `/instances/${parent}/children`;
    const [one] = expectStatus(await tenant.get<TaskInstance[]>(path), 200);
    assert.ok(one !== undefined);
    return one.id;
  });
  await tenant.until(child, 'waiting');
  await tenant.until(parent, 'waiting');
  return { parent, child, handler };
}

/** Of long ago: what is younger is left to its hint. */
const noteId = () => `01950000-0000-7000-8000-${randomUUID().slice(-12)}`;

const insertNote = ({ sql }: Api, to: string, from: string, word: string) =>
  sql.query('insert into kin_notes (to_id, from_id, id, word) values ($1, $2, $3, $4)', [
    to,
    from,
    noteId(),
    word,
  ]);

const notesTo = async ({ sql }: Api, ...to: string[]) =>
  (await sql.query('select * from kin_notes where to_id = any($1)', [to])).rows;

survives(
  'a parent continues at the end of its child after the server was killed',
  async (tenant) => {
    const { parent, child, handler } = await family(tenant);
    return async () => {
      await tenant.complete(await tenant.task(handler));
      await tenant.until(child, 'completed');
      await tenant.until(parent, 'completed');
    };
  },
);

survives(
  'a child with an open refund refunds before its parent charges again, behind a kill',
  async (tenant) => {
    const [pay, undo, ship] = [newHandler(), newHandler(), newHandler()];
    const steps = [
      { id: 'pay', action: step('charge', pay), compensation: step('refund', undo) },
      { id: 'send', action: step('ship', ship) },
    ];
    await tenant.sequence([{ type: 'saga', id: 'trip', steps }], { name: pay });
    const buy = { type: 'sub_sequence', id: 'child', sequence_name: pay };
    const parent = await tenant.run([{ type: 'saga', id: 's', steps: [{ id: 'b', action: buy }] }]);
    await tenant.complete(await tenant.task(pay));
    for (const handler of [ship, undo]) await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(parent, 'failed');
    return async () => {
      expectStatus(await tenant.post(`/instances/${parent}/retry`), 200);
      await tenant.complete(await tenant.task(undo));
      await tenant.until(parent, 'failed');
      assert.deepEqual(await tenant.poll(pay), []);
    };
  },
);

survives(
  'a message between parent and child whose notification was lost is found at the start',
  async (tenant, api) => {
    const [up, down] = [await family(tenant), await family(tenant)];
    /** An instance that is not there any more. */
    const gone = noteId();
    return {
      whileDown: async () => {
        await api.sql.query("update instances set state = 'cancelled' where id = $1", [up.child]);
        await insertNote(api, up.parent, up.child, 'cancelled');
        await insertNote(api, down.child, down.parent, 'cancel');
        await insertNote(api, gone, gone, 'cancel');
      },
      check: async () => {
        const { failure } = await tenant.until(up.parent, 'failed');
        assert.equal(failure?.code, 'child_failed');
        await tenant.until(down.child, 'cancelled');
        await eventually(async () =>
          assert.deepEqual(await notesTo(api, up.parent, down.child, gone), []),
        );
      },
    };
  },
);
