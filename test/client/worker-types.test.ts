/** What the compiler makes of handlers: a misspelt parameter or output does not compile. Nothing here is run. */

import { test } from 'node:test';
import { type Static, Type } from '@sinclair/typebox';
import { TypeCompiler } from '@sinclair/typebox/compiler';
import {
  type Client,
  type JsonObject,
  type StandardSchema,
  type Task,
  Worker,
} from '../../client/src/index.js';

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>) => undefined;

interface Charge {
  readonly order: string;
  readonly cents: number;
}

/** As zod and others declare theirs. */
declare const charge: StandardSchema<Charge>;
declare const receipt: { parse(value: unknown): { receipt: string } };
declare const client: Client;
const Parcel = Type.Object({ parcel: Type.String() });

/** Compiled, and never called. */
export function typed() {
  new Worker(client, {
    handlers: {
      plain: async (task) => {
        same<typeof task.params, JsonObject>(true);
        return { attempt: task.attempt };
      },
      annotated: async (task: Task<Charge>) => ({ cents: task.params.cents }),
      checked: {
        params: charge,
        output: receipt,
        run: async (task, ctx) => {
          same<typeof task.params, Charge>(true);
          ctx.log.info(task.params.order);
          return { receipt: 'r' };
        },
      },
      compiled: {
        params: TypeCompiler.Compile(Parcel),
        run: (task) => {
          same<typeof task.params, Static<typeof Parcel>>(true);
        },
      },
      nothing: () => undefined,
    },
  });
  new Worker<{ charge: Charge }>(client, {
    handlers: { charge: (task) => ({ cents: task.params.cents }) },
  });
}

export function refused() {
  new Worker(client, {
    handlers: {
      // @ts-expect-error the parameter is `cents`
      misspelt: { params: charge, run: (task) => ({ cents: task.params.cnets }) },
    },
  });
  new Worker(client, {
    handlers: {
      // @ts-expect-error the output is `receipt`
      misspelt: { output: receipt, run: () => ({ reciept: 'r' }) },
    },
  });
  new Worker(client, {
    handlers: {
      // @ts-expect-error an output is an object
      text: () => 'done',
    },
  });
  // @ts-expect-error every handler that is named has to be there
  new Worker<{ charge: Charge; ship: Charge }>(client, { handlers: { charge: () => ({}) } });
  // @ts-expect-error the option is `concurrency`
  new Worker(client, { handlers: { plain: () => ({}) }, concurency: 3 });
}

test('types of parameters and outputs come from schemas, annotations and type parameters', () => {
  // The compiler has judged them.
});
