/**
 * Reads of an instance that the front thread answers by itself: none of them shows what was true before
 * a change that somebody has been told of, whichever way it was made and told. Each instance is read
 * twice before its change, so that its record is kept; that it is, is counted.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import type { ApprovalPage } from '../../schema/approval.js';
import type { TaskInstance } from '../../schema/instance.js';
import type { Json, Tenant } from '../helpers/api.js';
import { eventually, newHandler, sleep, step, testsOf, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { migrate, resumeFrom } from '../helpers/edits.js';
import { apply, moving, plan, rollBack } from '../helpers/migrations.js';

const api = useSharedApi('quick');
const test = testsOf(api);

const DAY_MS = 86_400_000;
const LONG = [sleep('rest', DAY_MS)];

async function keptReads(): Promise<number> {
  const { text } = await api.root.with({ prefix: '' }).get('/metrics');
  return Number(/^engine_instance_reads_kept_total (\d+)$/m.exec(text)?.[1]);
}

const READS = 3;

/** Reads it until it is answered from what is kept: the change comes behind that. */
async function known(tenant: Tenant, id: string): Promise<TaskInstance> {
  return eventually(async () => {
    const first = await tenant.instance(id);
    const before = await keptReads();
    for (let n = 0; n < READS; n++) assert.deepEqual(await tenant.instance(id), first);
    assert.ok((await keptReads()) >= before + READS, 'the record is not kept');
    return first;
  });
}

/** The instance as the database has it, of which nobody was told yet. */
async function stored(tenant: Tenant, id: string): Promise<TaskInstance> {
  const reply = await tenant.get<TaskInstance[]>(`/instances?limit=1000`);
  const found = expectStatus(reply, 200).find((one) => one.id === id);
  assert.ok(found);
  return found;
}

interface Change {
  readonly title: string;
  readonly blocks?: readonly Json[];
  /** Where it stands when it is read first; a worker has to do its step then. Default: asleep. */
  readonly from?: string;
  readonly make: (of: Of) => Promise<unknown>;
  /** What the next read has to show. */
  readonly shows: (now: TaskInstance, before: TaskInstance) => unknown;
}

const state = (wanted: string) => (now: TaskInstance) => assert.equal(now.state, wanted);

type Of = { readonly tenant: Tenant; readonly id: string; readonly handler: string };

/** A change by one request, of the tenant that has this instance only. */
const asking =
  (method: 'PATCH' | 'POST', path: string, body: Json) =>
  async ({ tenant, id }: Of) => {
    const at = path.replace('ID', id);
    const asked = path.includes('bulk') ? { filter: { tenant_id: tenant.name }, ...body } : body;
    expectStatus(await tenant.request(method, `/instances/${at}`, { body: asked }), 200);
  };

const CHANGES: readonly Change[] = [
  {
    title: 'a signal that changes its context',
    make: ({ tenant, id }) => tenant.signal(id, 'update_context', { told: 7 }),
    shows: (now) => assert.equal((now.context.data as Json).told, 7),
  },
  {
    title: 'another state',
    make: ({ tenant, id }) => tenant.move(id, 'cancelled'),
    shows: state('cancelled'),
  },
  {
    title: 'another context',
    make: asking('PATCH', 'ID/context', { context: { config: { mark: 1 } } }),
    shows: (now) => assert.deepEqual(now.context.config, { mark: 1 }),
  },
  {
    title: 'states of many',
    make: asking('PATCH', 'bulk/state', { state: 'cancelled' }),
    shows: state('cancelled'),
  },
  {
    title: 'other times of many',
    from: 'scheduled',
    make: asking('PATCH', 'bulk/reschedule', { offset_secs: 60 }),
    shows: (now, before) => assert.notEqual(now.next_fire_at, before.next_fire_at),
  },
  {
    title: 'the answer of a worker',
    from: 'waiting',
    make: async ({ tenant, handler }) => tenant.complete(await tenant.task(handler), { done: 1 }),
    shows: state('completed'),
  },
  {
    title: 'an exchange of results',
    from: 'waiting',
    make: async ({ tenant, handler }) => {
      const { id: task_id, claim_epoch, worker_id } = await tenant.task(handler);
      const body = { worker_id, results: [{ kind: 'complete', task_id, claim_epoch, output: {} }] };
      expectStatus(await tenant.post('/workers/tasks/exchange', body), 200);
    },
    shows: state('completed'),
  },
  {
    title: 'the answer of a person',
    blocks: [step('ask', 'noop', { wait_for_input: { store_as: 'decision' } })],
    from: 'waiting',
    make: async ({ tenant }) => {
      const approval = await eventually(async () => {
        const { items } = expectStatus(await tenant.get<ApprovalPage>('/approvals'), 200);
        assert.equal(items.length, 1);
        return items[0]?.id;
      });
      expectStatus(await tenant.post(`/approvals/${approval}`, { value: 'yes' }), 200);
    },
    shows: (now) => assert.equal((now.context.data as Json).decision, 'yes'),
  },
  {
    title: 'going back to a block',
    blocks: [step('first', 'noop')],
    from: 'completed',
    make: ({ tenant, id }) => resumeFrom(tenant, id, 'first'),
    shows: (now, before) => assert.ok(now.updated_at > before.updated_at),
  },
];

describe('A read behind a change shows it', () => {
  for (const { title, blocks, from = 'running', make, shows } of CHANGES) {
    test(title, async () => {
      const [tenant, handler] = [api.tenant(), newHandler()];
      const fire = from === 'scheduled' ? { next_fire_at: '2100-01-01T00:00:00.000Z' } : {};
      const id = await tenant.run(
        blocks ?? (from === 'waiting' ? [step('work', handler)] : LONG),
        fire,
      );
      await tenant.until(id, from);
      const before = await known(tenant, id);
      await make({ tenant, id, handler });
      shows(await tenant.instance(id), before);
    });
  }

  test('what a list shows of what nobody asked for: a timer, an event', async (tenant) => {
    const name = `e-${randomUUID()}`;
    const slept = await tenant.run([sleep('rest', 700)]);
    const waited = await tenant.run([step('wait', 'wait_for_event', { params: { name } })]);
    await tenant.until(waited, 'waiting');
    await known(tenant, waited);
    await known(tenant, slept);
    const event = {
      tenant_id: tenant.name,
      event_name: name,
      producer_event_id: name,
      payload: {},
    };
    expectStatus(await tenant.post('/events', event), 201);
    for (const id of [slept, waited]) {
      await eventually(async () => {
        const listed = await stored(tenant, id);
        const read = await tenant.instance(id);
        assert.ok(read.updated_at >= listed.updated_at, 'a read is older than a list');
        assert.equal(read.state, 'completed');
      });
    }
  });

  test('a list that shows a change is never ahead of a read behind it', async (tenant) => {
    const id = await tenant.run(LONG);
    await tenant.until(id, 'running');
    let isOver = false;
    const change = async () => {
      for (let n = 1; n <= 30; n++) await tenant.signal(id, 'update_context', { n });
      isOver = true;
    };
    const look = async () => {
      while (!isOver) {
        const listed = ((await stored(tenant, id)).context.data as Json).n ?? 0;
        const read = ((await tenant.instance(id)).context.data as Json).n ?? 0;
        assert.ok(Number(read) >= Number(listed), `${read} was read behind ${listed}`);
      }
    };
    await Promise.all([change(), look()]);
  });

  test('another version of its sequence', async (tenant) => {
    const name = `s-${randomUUID()}`;
    const blocks = [step('work', newHandler())];
    const id = await tenant.create(await tenant.sequence(blocks, { name }));
    await tenant.until(id, 'waiting');
    await known(tenant, id);
    const next = await tenant.sequence(blocks, { name, version: 2 });
    await migrate(tenant, id, next);
    assert.equal((await tenant.instance(id)).sequence_id, next);
  });

  test('a migration of its execution, and its way back', async (tenant) => {
    const subject = await moving(tenant);
    const before = await known(tenant, subject.id);
    const { id: migration } = await plan(tenant, subject);
    await apply(tenant, migration);
    assert.equal((await known(tenant, subject.id)).sequence_id, subject.to);
    await rollBack(tenant, migration);
    assert.equal((await tenant.instance(subject.id)).sequence_id, before.sequence_id);
  });
});

describe('A record that is kept is given to nobody else', () => {
  test('an instance whose sequence was deleted is gone, and so is one that retention removed', async (tenant) => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const ids = await Promise.all(Array.from({ length: 4 }, () => tenant.create(sequence)));
    for (const id of ids) {
      await tenant.until(id, 'completed');
      await known(tenant, id);
    }
    expectStatus(await tenant.delete(`/sequences/${sequence}`), 204);
    for (const id of ids) {
      await eventually(async () => {
        assert.equal((await tenant.get(`/instances/${id}`)).status, 404);
      });
    }
  });

  test('an instance that is made anew under the id of one that is gone is read as it is', async (tenant) => {
    const idempotency_key = randomUUID();
    const first = await tenant.sequence([step('a', 'noop')]);
    const id = await tenant.create(first, { idempotency_key });
    await tenant.until(id, 'completed');
    await known(tenant, id);
    expectStatus(await tenant.delete(`/sequences/${first}`), 204);
    const second = await tenant.sequence(LONG);
    await eventually(async () => {
      assert.equal(await tenant.create(second, { idempotency_key }), id);
    });
    const { sequence_id } = await tenant.instance(id);
    assert.equal(sequence_id, second);
  });

  test('other tenants get 404, whoever has no key or a revoked one 401, whoever may not read 403', async (tenant) => {
    const id = await tenant.run(LONG);
    await tenant.until(id, 'running');
    const mint = async (...capabilities: string[]) => {
      const body = { tenant_id: tenant.name, capabilities };
      return expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
    };
    const [operator, approver] = [await mint('operator'), await mint('approver')];
    const statusBy = async (apiKey: string | null, name = tenant.name) =>
      (await api.root.with({ apiKey, tenant: name }).get(`/instances/${id}`)).status;
    await known(tenant, id);
    assert.equal(await statusBy(operator.secret), 200);
    assert.equal(await statusBy(approver.secret), 403);
    assert.equal(await statusBy(null), 401);
    assert.equal((await api.tenant().get(`/instances/${id}`)).status, 404);
    assert.equal((await api.tenant().get(`/instances/${id.toUpperCase()}`)).status, 404);
    assert.equal((await tenant.get(`/instances/${id.toUpperCase()}`)).status, 200);
    expectStatus(await api.root.delete(`/api-keys/${operator.id}`), 204);
    assert.equal(await statusBy(operator.secret), 401);
  });
});

test('with many concurrent readers and writers of an instance, no read goes back in time or misses an acknowledged write', async (tenant) => {
  const sequence = await tenant.sequence(LONG);
  const ids = await Promise.all(Array.from({ length: 4 }, () => tenant.create(sequence)));
  for (const id of ids) await tenant.until(id, 'running');
  const WRITERS = 4;
  const acknowledged = new Map(ids.map((id) => [id, new Array<number>(WRITERS).fill(0)]));
  let writing = WRITERS;
  const numbersIn = ({ context }: TaskInstance) =>
    Array.from({ length: WRITERS }, (_, w) => Number((context.data as Json)[`w${w}`] ?? 0));
  const write = async (writer: number) => {
    for (let n = 1; n <= 20; n++) {
      for (const id of ids) {
        await tenant.signal(id, 'update_context', { [`w${writer}`]: n });
        acknowledged.get(id)![writer] = n;
        const own = numbersIn(await tenant.instance(id))[writer]!;
        assert.ok(own >= n, `writer ${writer} read ${own} behind its ${n}`);
      }
    }
    writing -= 1;
  };
  const read = async () => {
    const seen = new Map(ids.map((id) => [id, new Array<number>(WRITERS).fill(0)]));
    while (writing > 0) {
      for (const id of ids) {
        const least = acknowledged.get(id)!.map((n, w) => Math.max(n, seen.get(id)![w]!));
        const found = numbersIn(await tenant.instance(id));
        assert.ok(
          found.every((n, w) => n >= least[w]!),
          `${found} was read behind ${least}`,
        );
        seen.set(id, found);
      }
    }
  };
  const before = await keptReads();
  await Promise.all([
    ...Array.from({ length: WRITERS }, (_, w) => write(w)),
    ...Array.from({ length: 6 }, read),
  ]);
  assert.ok((await keptReads()) > before, 'no read was answered from what is kept');
});
