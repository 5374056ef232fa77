/**
 * All tables, and all kinds of mutations with their statements. Every thread builds the same store, so the
 * index of a kind identifies it between threads. Pure.
 */

import type { Mutation } from './mutation.js';
import {
  BEGIN,
  COMMIT,
  FENCE,
  FORGET_FLUSHES,
  type Forms,
  formsOf,
  gateForms,
  LANE_FLUSHES,
  LANES,
  type Statement,
} from './statements.js';
import type { Table } from './table.js';

/** The mutations of a room, in the order in which a batch runs them. */
type RoomStore = readonly Readonly<Record<string, Mutation>>[];

export interface Kind extends Pick<Mutation, 'merge' | 'group'> {
  readonly mutation: Mutation;
  readonly forms: Forms;
  /** The statement when it is the gate of a unit. */
  readonly gate: (Forms & { readonly isOfBatches: boolean }) | undefined;
}

export type Kinds = readonly Kind[];

export interface Store {
  readonly tables: Readonly<Record<string, Table>>;
  /**
   * The order in which a batch runs the statements. It makes one statement per kind equivalent to running
   * the units one after the other:
   * - a row is inserted before it is updated, and deleted after it was inserted;
   * - of several snapshots of one row the last one wins (`latest`);
   * - kinds for which neither holds are barriers: their unit is a batch of its own.
   *
   * Only barriers touch tables of two rooms, so the order of the rooms does not matter.
   */
  readonly kinds: Kinds;
  readonly statements: readonly Statement[];
}

export function storeOf(rooms: readonly RoomStore[]): Store {
  const mutations = rooms.flat().flatMap((of) => Object.values(of));
  const tables = [...new Set([LANES, LANE_FLUSHES, ...mutations.map(({ table }) => table)])];
  for (const [place, mutation] of mutations.entries()) mutation.place = place;
  const kinds = mutations.map((mutation) => kindOf(mutation, tables));
  return {
    tables: Object.fromEntries(tables.map((table) => [table.name, table])),
    kinds,
    statements: [BEGIN, COMMIT, FENCE, FORGET_FLUSHES, ...kinds.flatMap(statementsOf)],
  };
}

function kindOf(mutation: Mutation, tables: readonly Table[]): Kind {
  const gate = mutation.does === 'insert' ? mutation.gate : undefined;
  return {
    mutation,
    merge: mutation.merge,
    group: mutation.group,
    forms: formsOf(mutation, tables),
    gate: gate && {
      ...gateForms(mutation as Mutation & { does: 'insert' }, gate),
      isOfBatches: gate.isOfBatches === true,
    },
  };
}

function statementsOf({ forms, gate }: Kind): Statement[] {
  return [forms, ...(gate === undefined ? [] : [gate])].flatMap(({ objects, lines }) =>
    [objects, lines, lines?.ofCells].filter((statement) => statement !== undefined),
  );
}

export function statementsText({ statements }: Store): string {
  const parts = statements.map(({ name, text }) => `-- ${name}\n${text.trim()};\n`);
  return `-- What the writer sends; npm run generate writes this file.\n\n${parts.join('\n')}`;
}
