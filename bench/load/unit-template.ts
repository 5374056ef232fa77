/**
 * The rows that one creation leaves in the database, as a pattern for more of them: read back from
 * an instance that the server created, so that the ceiling is measured with the very same rows
 * whatever a creation writes. Ids and times become new ones in every copy.
 */

import type pg from 'pg';
import type { IdGenerator } from '../../src/base/ids.js';
import { CELL_END, rowText } from '../../src/db/lines.js';
import { MUTATION_KINDS, type MutationKind } from '../../src/db/mutations.js';

/** Where the rows of a creation are, in the order in which a flush writes them. */
const SOURCES: readonly (readonly [kind: MutationKind, table: string, column: string])[] = [
  ['instance.insert', 'instances', 'id'],
  ['output.insert', 'block_outputs', 'instance_id'],
  ['snapshot.set', 'iteration_snapshots', 'instance_id'],
  ['audit.insert', 'audit_log', 'instance_id'],
  ['task.insert', 'worker_tasks', 'instance_id'],
  ['openTask.insert', 'open_tasks', 'instance_id'],
  ['timer.set', 'timers', 'instance_id'],
  ['deadLetter.set', 'dead_letters', 'instance_id'],
];

/** A time stands in quotes, or is a cell of a line. */
const UUID_OR_TIME = new RegExp(
  '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|' +
    `(?<=["${CELL_END}])\\d{4}-\\d\\d-\\d\\dT[\\d:.]+(?:Z|\\+00:00)(?=["${CELL_END}]|$)`,
  'g',
);

/** Text as it is, the number of an id, or the time. */
type Piece = string | number | typeof TIME;

const TIME = Symbol('time');

interface RowPattern {
  readonly kind: MutationKind;
  readonly pieces: readonly Piece[];
}

export class UnitTemplate {
  readonly rowsPerUnit: number;
  readonly bytesPerUnit: number;
  readonly #patterns: readonly RowPattern[];
  readonly #idsPerUnit: number;

  private constructor(patterns: readonly RowPattern[], idsPerUnit: number, bytes: number) {
    this.#patterns = patterns;
    this.#idsPerUnit = idsPerUnit;
    this.rowsPerUnit = patterns.length;
    this.bytesPerUnit = bytes;
  }

  /** @throws Error when the instance is not in the database */
  static async readFrom(db: pg.Client, instanceId: string): Promise<UnitTemplate> {
    const texts: [MutationKind, string][] = [];
    let sequenceId: string | undefined;
    for (const [kind, table, column] of SOURCES) {
      const { rows } = await db.query<{ row: string }>(
        `select row_to_json(t)::text as row from ${table} t where ${column} = $1::uuid`,
        [instanceId],
      );
      for (const { row } of rows) {
        const values = JSON.parse(row) as { sequence_id?: string };
        sequenceId ??= values.sequence_id;
        texts.push([kind, rowText(kind, values)]);
      }
    }
    if (sequenceId === undefined) throw new Error(`instance ${instanceId} has no row`);
    const numbers = new Map<string, number>();
    const patterns = texts.map(([kind, text]) => ({
      kind,
      pieces: split(text, sequenceId, numbers),
    }));
    const bytes = texts.reduce((sum, [, text]) => sum + Buffer.byteLength(text), 0);
    return new UnitTemplate(patterns, numbers.size, bytes);
  }

  /** The mutations of so many new units, as one unit has them. */
  render(units: number, ids: IdGenerator, time: string): (string | number)[] {
    const mutations: (string | number)[] = [];
    for (let unit = 0; unit < units; unit += 1) {
      const route = unit & 0xffff;
      const unitIds = Array.from({ length: this.#idsPerUnit }, () => ids.next(route));
      for (const { kind, pieces } of this.#patterns) {
        let row = '';
        for (const piece of pieces) {
          if (typeof piece === 'string') row += piece;
          else row += typeof piece === 'number' ? unitIds[piece] : time;
        }
        mutations.push(MUTATION_KINDS.indexOf(kind), `${unit}:${mutations.length}`, row);
      }
    }
    return mutations;
  }
}

/** @param numbers the ids met so far, which stand for the same new id in every row */
function split(text: string, sequenceId: string, numbers: Map<string, number>): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(UUID_OR_TIME)) {
    const [found] = match;
    if (found === sequenceId) continue;
    pieces.push(text.slice(from, match.index));
    from = match.index + found.length;
    if (found.includes('T')) {
      pieces.push(TIME);
      continue;
    }
    const number = numbers.get(found) ?? numbers.size;
    numbers.set(found, number);
    pieces.push(number);
  }
  pieces.push(text.slice(from));
  return pieces;
}
