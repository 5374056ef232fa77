/** What rooms store as tests name it: kinds of mutations by their names, with their statements. */

import { STORE } from '../../actors/shard/store.js';
import type { Mutation } from '../../src/db/mutation.js';
import type { Forms, Statement } from '../../src/db/statements.js';
import type { Kind } from '../../src/db/store.js';

export const { tables: TABLES, kinds: KINDS } = STORE;

/** By their places. */
export const MUTATION_KINDS: readonly string[] = KINDS.map(({ mutation }) => mutation.kind);

type ByKind<Value> = Readonly<Record<string, Value>>;

function byKind<Value>(of: (kind: Kind) => Value | undefined): ByKind<Value> {
  return Object.fromEntries(
    KINDS.flatMap((kind) => {
      const value = of(kind);
      return value === undefined ? [] : [[kind.mutation.kind, value] as const];
    }),
  );
}

export const MUTATIONS: ByKind<Mutation> = byKind(({ mutation }) => mutation);

const statements = (form: keyof Forms, of: 'forms' | 'gate'): ByKind<Statement> =>
  byKind((kind) => kind[of]?.[form]);

export const STATEMENTS = statements('objects', 'forms');
export const LINE_STATEMENTS = statements('lines', 'forms');
export const GATED_STATEMENTS = statements('objects', 'gate');
export const GATED_LINE_STATEMENTS = statements('lines', 'gate');
