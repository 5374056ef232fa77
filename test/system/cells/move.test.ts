/** A tenant is moved to another cell and back: what waits goes on there, and nothing happens twice. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Changes } from '../../../schema/change.js';
import { eventually, step } from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';
import { isDeep } from '../../helpers/depth.js';
import { type CellName, TwoCells } from '../../helpers/moving.js';
import { MovingLoad } from '../../helpers/moving-load.js';
import { canary, look, move as moveRelease } from '../../helpers/releases.js';

for (const databases of isDeep ? ([1, 2] as const) : ([2] as const)) {
  describe(`between cells in ${databases === 1 ? 'one database' : 'two databases'}`, () => {
    let cells: TwoCells;
    before(async () => {
      cells = await TwoCells.start(databases);
    });
    after(() => cells?.stop());

    test('instances that wait for workers, timers, signals, events and slots go on in the other cell', async () => {
      const name = 'acme & co';
      await cells.place(name, 'east');
      const east = cells.tenant('east', name);
      const west = cells.tenant('west', name);
      const waits = await east.sequence([step('a', 'acme.work'), step('b', 'noop')]);
      const waiting = await east.create(waits);
      const keyed = await east.create(waits, { idempotency_key: 'once' });
      const held = (await east.poll('acme.work', { limit: 1 }))[0]!;
      const slept = await east.run([step('nap', 'noop', { delay: { duration: 3_000 } })]);
      const event = await east.run([step('e', 'wait_for_event', { params: { name: 'paid' } })]);
      const gate = await east.run([step('g', 'noop', { wait_for_input: { prompt: 'go?' } })]);
      const slots = { concurrency_key: 'k', max_concurrency: 1 };
      const blocks = await east.sequence([step('s', 'acme.slot')]);
      const first = await east.create(blocks, slots);
      const second = await east.create(blocks, slots);
      await east.until(first, 'waiting');
      const release = await canary(east, 50);

      const { move } = await cells.move(name, 'west');
      assert.equal(move.state, 'done');
      assert.deepEqual(await cells.rows('east', name), {});
      assert.equal((await east.get(`/instances/${waiting}`)).status, 421);

      // The claim of before the move is still its worker's.
      await west.complete(held, { by: 'the first worker' });
      await west.complete(await west.task('acme.work'), { by: 'the second worker' });
      const again = await west.post<{ deduplicated: boolean }>(
        '/instances',
        west.creation(waits, { idempotency_key: 'once' }),
      );
      assert.equal(again.body.deduplicated, true);
      await west.post('/events', { event_name: 'paid', producer_event_id: 'e1' });
      await west.signal(gate, 'custom:human_input:g', { value: 'yes' });
      await west.complete(await west.task('acme.slot'));
      await west.complete(await west.task('acme.slot'));
      for (const id of [waiting, keyed, slept, event, gate, first, second]) {
        await west.until(id, 'completed');
      }
      assert.equal((await look(west, release)).state, 'canary');
      assert.equal((await moveRelease(west, release, 'promote')).state, 'promoted');
    });

    test('schedules fire once at each of their times, and cursors of the change feed go on', async () => {
      const name = 'ticking';
      await cells.place(name, 'east');
      const sequence = await cells.tenant('east', name).sequence([step('a', 'noop')]);
      const cron = { cron_expr: '* * * * * *', sequence_id: sequence, namespace: 'test' };
      const body = { ...cron, tenant_id: name };
      expectStatus(await cells.tenant('east', name).post('/cron', body), 201);
      const changes = async (cell: CellName, cursor = '') => {
        const query = cursor === '' ? '' : `&cursor=${cursor}`;
        const client = cells.tenant(cell, name);
        return expectStatus(await client.get<Changes>(`/changes?limit=1000${query}`), 200);
      };
      const seen: string[] = [];
      let cursor = '';
      const read = async (cell: CellName) => {
        const page = await changes(cell, cursor);
        cursor = page.next_cursor ?? cursor;
        for (const { id } of page.changes) seen.push(id);
      };
      for (const to of ['west', 'east', 'west'] as const) {
        const from = to === 'west' ? 'east' : 'west';
        const before = seen.length;
        await eventually(async () => {
          await read(from);
          assert.ok(seen.length > before, 'it fires');
        });
        await cells.move(name, to);
        await read(to);
      }
      await eventually(async () => {
        const before = seen.length;
        await read('west');
        assert.ok(seen.length > before, 'it still fires');
      });
      const all: string[] = [];
      for (let at = ''; ; ) {
        const page = await changes('west', at);
        for (const { id } of page.changes) all.push(id);
        if (!page.has_more) break;
        at = page.next_cursor!;
      }
      assert.deepEqual(seen, all.slice(0, seen.length), 'nothing was skipped or told twice');
      const { rows } = await cells.query<{ fires: number; instances: number }>(
        'west',
        `select count(distinct idempotency_key)::int as fires, count(*)::int as instances
         from west.instances where tenant_id = '${name}'`,
      );
      assert.equal(rows[0]?.fires, rows[0]?.instances);
    });

    test('keys of the tenant work in its new cell at once, and limits hold there', async () => {
      const name = 'keyed';
      await cells.place(name, 'east');
      await cells.tenant('east', name).sequence([step('a', 'noop')]);
      const minting = { tenant_id: name, name: 'k', capabilities: ['auditor'] };
      const { secret } = expectStatus(
        await cells.east.root.post<{ secret: string }>('/api-keys', minting),
        201,
      );
      const limits = { schedules_max: 7 };
      const set = await cells.east.root.put(`/tenants/${name}/limits`, limits);
      assert.equal(set.status, 200, set.text);
      const another = await cells.east.root.post<{ id: string; secret: string }>(
        '/api-keys',
        minting,
      );
      const { id: revoked, secret: revokedSecret } = expectStatus(another, 201);
      expectStatus(await cells.east.root.delete(`/api-keys/${revoked}`), 204);
      await cells.move(name, 'west');
      const key = cells.tenant('west', name).with({ apiKey: secret });
      expectStatus(await key.get('/changes'), 200);
      const revokedThere = cells.tenant('west', name).with({ apiKey: revokedSecret });
      expectStatus(await revokedThere.get('/changes'), 401);
      const kept = await cells.west.root.get<object>(`/tenants/${name}/limits`);
      assert.deepEqual(kept.body, set.body);

      // Whoever still brings a key to the old cell is led on, although that knows nothing of it any more.
      const ofOld = async () => {
        const old = cells.tenant('east', name).with({ apiKey: secret });
        const reply = await old.get<{ cell?: string }>('/changes');
        return [reply.status, reply.body.cell];
      };
      assert.deepEqual(await ofOld(), [421, 'west']);
      await cells.east.restart();
      assert.deepEqual(await ofOld(), [421, 'west']);
      await cells.move(name, 'east');
      const home = cells.tenant('east', name).with({ apiKey: secret });
      expectStatus(await home.get('/changes'), 200);
    });

    test('what is acknowledged while the tenant goes there and back is so, once', async () => {
      const name = 'busy';
      await cells.place(name, 'east');
      const load = new MovingLoad(cells, name, 'east');
      await load.start();
      for (const to of ['west', 'east'] as const) await cells.move(name, to);
      load.stopCreating();
      await load.end();
      assert.deepEqual(await cells.rows('west', name), {});
    });
  });
}
