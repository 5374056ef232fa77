/**
 * Schemas of the libraries themselves in front of and behind handlers: what conforms, what does not,
 * what they change, and what the compiler makes of them.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Static, Type } from '@sinclair/typebox';
import { TypeCompiler } from '@sinclair/typebox/compiler';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { type Client, type JsonObject, type Task, Worker } from '../../client/src/index.js';
import { eventually, step, useSharedApi } from '../helpers/api.js';
import { runWorker } from '../helpers/workers.js';

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>) => undefined;

const api = useSharedApi();

const Charge = z.object({
  order: z.string().min(1),
  cents: z.coerce.number().int().positive(),
  currency: z.enum(['EUR', 'USD']).default('EUR'),
});
const Receipt = z.strictObject({ receipt: z.string() });
const Parcel = Type.Object({ parcel: Type.String({ minLength: 1 }) });

function world() {
  const tenant = api.tenant();
  return {
    place: { url: api.url, tenant: tenant.name },
    /** The output of a step with the handler, or the message of its failure. */
    outcome: async (handler: string, params: object) => {
      const id = await tenant.run([step('a', handler, { params })]);
      await eventually(async () =>
        assert.match((await tenant.instance(id)).state, /completed|failed/),
      );
      const [task] = (await tenant.tasks(handler)).filter(({ instance_id }) => instance_id === id);
      return task?.error_message ?? (await tenant.outputsOf(id)).a;
    },
  };
}

test('a schema of zod gives its defaults and conversions to the handler, and refuses what does not conform', async (t) => {
  const { place, outcome } = world();
  await runWorker(t, place, {
    handlers: {
      charge: {
        params: Charge,
        run: ({ params }) => ({ paid: `${params.cents} ${params.currency}` }),
      },
    },
  });
  assert.deepEqual(await outcome('charge', { order: 'A', cents: '12' }), { paid: '12 EUR' });
  const text = String(await outcome('charge', { order: '', cents: -1, currency: 'GBP' }));
  assert.match(text, /^the params are not valid: \/order: .*; \/cents: .*; \/currency: /);
});

test('a schema of zod holds what the handler returns against what it promised', async (t) => {
  const { place, outcome } = world();
  const known = z.object({ order: z.string().refine(async (it) => it.startsWith('A'), 'unknown') });
  await runWorker(t, place, {
    handlers: {
      charge: { output: Receipt, run: ({ params }) => params as z.infer<typeof Receipt> },
      lookUp: { params: known, run: ({ params }) => ({ found: params.order }) },
    },
  });
  assert.deepEqual(await outcome('charge', { receipt: 'r-1' }), { receipt: 'r-1' });
  assert.match(String(await outcome('charge', { receipt: 'r-1', card: '4111' })), /output .*card/);
  assert.deepEqual(await outcome('lookUp', { order: 'A-1' }), { found: 'A-1' });
  assert.match(String(await outcome('lookUp', { order: 'B-1' })), /\/order: unknown/);
});

test('the small form of zod, and what TypeBox compiles, do the same', async (t) => {
  const { place, outcome } = world();
  await runWorker(t, place, {
    handlers: {
      small: {
        params: mini.object({ cents: mini.number() }),
        run: ({ params }) => ({ twice: params.cents * 2 }),
      },
      compiled: { params: TypeCompiler.Compile(Parcel), run: (it) => ({ sent: it.params.parcel }) },
    },
  });
  assert.deepEqual(await outcome('small', { cents: 2 }), { twice: 4 });
  assert.match(String(await outcome('small', { cents: 'x' })), /\/cents: /);
  assert.deepEqual(await outcome('compiled', { parcel: 'p' }), { sent: 'p' });
  assert.match(String(await outcome('compiled', { parcel: '' })), /\/parcel: Expected/);
});

test('a schema with parse() holds outputs, and may change them', async (t) => {
  const { place, outcome } = world();
  const parcel = {
    parse(value: unknown): { parcel: string } {
      const { parcel: name } = value as { parcel?: unknown };
      if (typeof name !== 'string') throw new Error('parcel: expected a text');
      return { parcel: name.toUpperCase() };
    },
  };
  await runWorker(t, place, {
    handlers: {
      pack: { output: parcel, run: ({ params }) => params as unknown as { parcel: string } },
    },
  });
  assert.deepEqual(await outcome('pack', { parcel: 'p-1' }), { parcel: 'P-1' });
  assert.match(String(await outcome('pack', {})), /output .*expected a text/);
});

/** Types come from schemas, annotations and type parameters. Compiled, and never called. */
export function typed(client: Client) {
  new Worker(client, {
    handlers: {
      plain: (task) => same<typeof task.params, JsonObject>(true),
      annotated: async (task: Task<{ cents: number }>) => ({ cents: task.params.cents }),
      charge: {
        params: Charge,
        output: Receipt,
        run: async (task, ctx) => {
          same<typeof task.params, { order: string; cents: number; currency: 'EUR' | 'USD' }>(true);
          ctx.log.info(task.params.order);
          return { receipt: task.params.order };
        },
      },
      ship: {
        params: TypeCompiler.Compile(Parcel),
        run: (task) => same<typeof task.params, Static<typeof Parcel>>(true),
      },
    },
  });
  new Worker<{ charge: { cents: number } }>(client, {
    handlers: { charge: (task) => ({ cents: task.params.cents }) },
  });
  new Worker(client, {
    handlers: {
      // @ts-expect-error the parameter is `cents`
      misspelt: { params: Charge, run: (task) => ({ cents: task.params.cnets }) },
    },
  });
  new Worker(client, {
    handlers: {
      // @ts-expect-error the output is `receipt`
      misspelt: { output: Receipt, run: () => ({ reciept: 'r' }) },
    },
  });
  // @ts-expect-error an output is an object
  new Worker(client, { handlers: { text: () => 'done' } });
  // @ts-expect-error a schema of TypeBox judges nothing before it is compiled
  new Worker(client, { handlers: { bare: { params: Parcel, run: () => ({}) } } });
  // @ts-expect-error every handler that is named has to be there
  new Worker<{ charge: object; ship: object }>(client, { handlers: { charge: () => ({}) } });
  // @ts-expect-error the option is `concurrency`
  new Worker(client, { handlers: { plain: () => ({}) }, concurency: 3 });
}
