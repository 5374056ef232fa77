/** Every name of a table of the code has its row in the documents, and nothing else has one. */

/**
 * The rows in the order of the names.
 * @param what such as `function`, for messages
 * @throws Error that lists the names without a row, and the rows without a name
 */
export function rowsFor<Row>(
  what: string,
  names: readonly string[],
  rows: Readonly<Record<string, Row>>,
): (readonly [name: string, row: Row])[] {
  const missing = names.filter((name) => !Object.hasOwn(rows, name));
  const superfluous = Object.keys(rows).filter((name) => !names.includes(name));
  if (missing.length > 0) throw new Error(`no text for the ${what} ${missing.join(', ')}`);
  if (superfluous.length > 0) throw new Error(`there is no ${what} ${superfluous.join(', ')}`);
  return names.map((name) => [name, rows[name]!]);
}

/** @throws Error when a text that readers need is missing */
export function said(text: unknown, what: string): string {
  if (typeof text !== 'string' || text.trim() === '') throw new Error(`no text for ${what}`);
  return text;
}
