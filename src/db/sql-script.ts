/**
 * Splits SQL text, such as a migration, into statements, which are sent one by one: Citus forwards the text
 * of a query to other nodes, which accept a single statement (docs/operate/citus.md).
 */

import type pg from 'pg';

/** Runs all statements or none. When it rejects, the caller ends the connection, which rolls back. */
export async function inTransaction(
  client: pg.ClientBase,
  statements: readonly string[],
): Promise<void> {
  for (const text of ['begin', ...statements, 'commit']) await client.query(text);
}

/** A character within a name. */
const NAMED = String.raw`[\p{L}\p{N}_$]`;

/** A semicolon, or a token that may contain one. Block comments nest: see `commentEnd`. */
const MARKS = [
  ...[String.raw`--[^\n]*`, String.raw`/\*`, ';'],
  ...[`(?<!${NAMED})e'(?:\\\\.|''|[^'\\\\])*'`, `'(?:''|[^'])*'`, `"(?:""|[^"])*"`],
  String.raw`(?<!${NAMED})\$((?:[\p{L}_][\p{L}\p{N}_]*)?)\$.*?\$\1\$`,
].join('|');

/** Comments are removed, except inside dollar quotes. */
export function statementsIn(text: string): string[] {
  const statements: string[] = [];
  let statement = '';
  let at = 0;
  const marks = new RegExp(MARKS, 'gisu');
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    const [found] = mark;
    const isComment = found === '/*' || found.startsWith('--');
    if (found === '/*') marks.lastIndex = commentEnd(text, mark.index);
    statement += text.slice(at, mark.index) + (isComment ? ' ' : found === ';' ? '' : found);
    at = marks.lastIndex;
    if (found !== ';') continue;
    statements.push(statement.trim());
    statement = '';
  }
  statements.push((statement + text.slice(at)).trim());
  return statements.filter((one) => one !== '');
}

function commentEnd(text: string, from: number): number {
  const bounds = /\/\*|\*\//g;
  bounds.lastIndex = from;
  let depth = 0;
  for (let bound = bounds.exec(text); bound !== null; bound = bounds.exec(text)) {
    depth += bound[0] === '/*' ? 1 : -1;
    if (depth === 0) return bounds.lastIndex;
  }
  return text.length;
}
