/** Sessions of the writer that move or delete the same tasks of the old tables at the same time. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import pg from 'pg';
import { WRITER_SETTINGS } from '../../src/db/statements.js';
import { eventually } from '../helpers/api.js';
import { useSession } from '../helpers/database.js';
import { STATEMENTS } from '../helpers/store.js';
import { STORE_AS_BEFORE } from '../helpers/tasks-before.js';

const { client, database } = useSession();
const [INSTANCE, FIRST, SECOND] = ['a', 'b', 'c'].map(
  (end) => `01950000-0000-7000-8000-00000000000${end}`,
) as [string, string, string];

beforeEach(async () => {
  await client.query('truncate worker_tasks, worker_tasks_before, open_tasks');
  await client.query(
    `insert into worker_tasks (id, instance_id, tenant_id, block_id, node, iteration, handler_name, params, attempt,
       priority, rank, state, claim_epoch, checkpoint_seq, history, created_at)
     select id, $1, 't', 'a', 0, '', 'h', '{}', 0, 1, 2, 'pending', 0, 0, '[]', now() from unnest($2::uuid[]) id`,
    [INSTANCE, [FIRST, SECOND]],
  );
  await client.query(STORE_AS_BEFORE);
});

/** Two sessions, each in a transaction. */
async function sessions(t: { after(fn: () => unknown): void }): Promise<[Session, Session]> {
  return [await session(), await session()];

  async function session(): Promise<Session> {
    const own = new pg.Client({ connectionString: database.connectionString });
    await own.connect();
    t.after(() => own.end());
    await own.query(WRITER_SETTINGS);
    await own.query('begin');
    const { rows } = await own.query<{ pid: number }>('select pg_backend_pid() as pid');
    return {
      run: async (kind, ...given) => {
        await own.query(STATEMENTS[kind]!.text, [JSON.stringify(given)]);
      },
      commit: async () => {
        await own.query('commit');
      },
      waits: () =>
        eventually(async () => {
          const blocked = 'select cardinality(pg_blocking_pids($1)) > 0 as is';
          assert.ok((await client.query(blocked, [rows[0]?.pid])).rows[0].is);
        }),
    };
  }
}

interface Session {
  run(kind: string, ...rows: readonly object[]): Promise<void>;
  commit(): Promise<void>;
  waits(): Promise<void>;
}

const move = (session: Session, ...ids: readonly string[]) =>
  session.run('taskBefore.move', ...ids.map((id) => ({ id })));

async function left(): Promise<unknown> {
  const { rows } = await client.query(
    `select (select count(*) from worker_tasks)::int as now,
      (select count(*) from worker_tasks_before)::int as before, (select count(*) from open_tasks)::int as open`,
  );
  return rows[0];
}

test('a deletion of the instance while its tasks are moved leaves none of them', async (t) => {
  const [mover, purger] = await sessions(t);
  await move(mover, FIRST, SECOND);
  const deletion = (async () => {
    await purger.run('taskBefore.drop', { instance_id: INSTANCE });
    await purger.run('instance.delete', { id: INSTANCE });
    await purger.commit();
  })();
  await purger.waits();
  await mover.commit();
  await deletion;
  assert.deepEqual(await left(), { now: 0, before: 0, open: 0 });
});

test('two sessions that move the same tasks in another order do not wait for each other', async (t) => {
  const [one, other] = await sessions(t);
  await client.query('begin');
  await client.query('select from worker_tasks_before where id = $1 for update', [SECOND]);
  const moves = [move(one, SECOND, FIRST).then(() => one.commit())];
  await one.waits();
  moves.push(move(other, FIRST, SECOND).then(() => other.commit()));
  await other.waits();
  await client.query('commit');
  await Promise.all(moves);
  assert.deepEqual(await left(), { now: 2, before: 0, open: 0 });
});

test('a change of a task that another session is moving is made on the moved row', async (t) => {
  const [mover, owner] = await sessions(t);
  await move(mover, FIRST);
  const claim = { worker_id: 'w', claim_epoch: 1, lost_claims: 0, checkpoint_seq: 0 };
  const change = (async () => {
    await move(owner, FIRST);
    await owner.run('task.claim', { id: FIRST, state: 'claimed', ...claim });
    await owner.commit();
  })();
  await owner.waits();
  await mover.commit();
  await change;
  const { rows } = await client.query('select state, worker_id, rank from worker_tasks');
  assert.deepEqual(rows, [{ state: 'claimed', worker_id: 'w', rank: 2 }]);
});
