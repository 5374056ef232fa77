/**
 * What is kept with an instance and changes nothing of its course: checkpoints and logged lines, as
 * JSON text. Reads only.
 *
 * Checkpoints are read from the end of their primary key. Lines are found by the primary key of their
 * table and sorted, all of one instance: a worker says itself when it wrote a line, so that no index
 * could have them in order.
 */

import { Conditions, type PageBounds, type Query } from './query.js';
import type { Page, Reader } from './reader.js';

interface CheckpointRow {
  readonly id: string;
  readonly instance_id: string;
  /** Null is the JSON value null. */
  readonly checkpoint_data: string | null;
  readonly created_at: string;
}

const CHEAPER = 'ask for a smaller offset and limit';
const CHEAPER_LOOKUP = 'try again later';

export class NoteReads {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** The newest `Checkpoint` records, newest first; fewer when they fill an answer. */
  async checkpoints(instanceId: string, limit: number): Promise<string> {
    const page = await this.#reader.page<CheckpointRow>({
      query: checkpointsQuery(instanceId, limit),
      toText: checkpointText,
      cheaper: CHEAPER_LOOKUP,
    });
    return page.text;
  }

  /** The newest `Checkpoint`; undefined when there is none. */
  async latestCheckpoint(instanceId: string): Promise<string | undefined> {
    const query = checkpointsQuery(instanceId, 1);
    const [row] = await this.#reader.rowsOf<CheckpointRow>(query, CHEAPER_LOOKUP);
    return row === undefined ? undefined : checkpointText(row);
  }

  /** `StepLogLine` records by their times, oldest first; equal times in the order of arrival. */
  lines(instanceId: string, bounds: PageBounds): Promise<Page> {
    return this.#reader.page<{ readonly line: string }>({
      query: linesQuery(instanceId, bounds),
      toText: (row) => row.line,
      cheaper: CHEAPER,
    });
  }
}

/** Newest first. */
export function checkpointsQuery(instanceId: string, limit: number): Query {
  const conditions = new Conditions();
  conditions.add(`instance_id = ${conditions.param(instanceId)}::uuid`);
  return conditions.query(
    `select id, instance_id, checkpoint_data, created_at from checkpoints ${conditions.where} ` +
      `order by id desc limit ${conditions.param(limit)}::bigint`,
  );
}

export function linesQuery(instanceId: string, bounds: PageBounds): Query {
  const conditions = new Conditions();
  conditions.add(`instance_id = ${conditions.param(instanceId)}::uuid`);
  return conditions.query(
    'select line from step_logs cross join lateral json_array_elements(entries) with ordinality ' +
      `as e(line, place) ${conditions.where} ` +
      `order by line ->> 'ts' collate "C", id, place ${conditions.page(bounds)}`,
  );
}

function checkpointText(row: CheckpointRow): string {
  return (
    `{"id":"${row.id}","instance_id":"${row.instance_id}"` +
    `,"checkpoint_data":${row.checkpoint_data},"created_at":"${row.created_at}"}`
  );
}
