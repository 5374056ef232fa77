/** Rows of commit units as tests look at them: an object, whichever form their text has. */

import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { CELL_END, isLine, linesOf, NULL_CELL } from '../../src/db/lines.js';
import type { BaseType } from '../../src/db/table.js';
import { MUTATIONS } from './store.js';

/** @throws Error on a line that has not as many cells as the kind has columns */
export function readRow(kind: string, text: string): JsonObject {
  if (!isLine(text)) return JSON.parse(text) as JsonObject;
  const columns = linesOf(MUTATIONS[kind]!)?.columns ?? [];
  const cells = text.split(CELL_END);
  if (cells.length !== columns.length) throw new Error(`a line of ${kind} with other columns`);
  return Object.fromEntries(columns.map(({ name, type }, i) => [name, fromCell(type, cells[i]!)]));
}

/** What is no value of the type stays a text, as which it is refused. */
function fromCell(type: BaseType, cell: string): JsonValue {
  if (cell === NULL_CELL) return null;
  if (type === 'json') return JSON.parse(cell) as JsonValue;
  if (type === 'boolean') return cell === 'true' || (cell !== 'false' && cell);
  const isNumber = type === 'smallint' || type === 'integer' || type === 'bigint';
  return isNumber && /^-?\d+$/.test(cell) ? Number(cell) : cell;
}
