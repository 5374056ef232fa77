/**
 * The tables of the engine as the migrations define them, read from those very files: columns with
 * their types, keys, and what is unique. Only what a store needs that refuses what Postgres refuses.
 */

import { MIGRATIONS_DIR, readMigrations } from '../../src/db/migrate.js';

export type ColumnType =
  | 'uuid'
  | 'text'
  | 'smallint'
  | 'integer'
  | 'bigint'
  | 'boolean'
  | 'json'
  | 'timestamptz'
  | 'bytea';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly isRequired: boolean;
  /** Undefined when the column has none. */
  readonly defaultValue: boolean | number | string | undefined;
}

export interface Table {
  readonly name: string;
  readonly columns: ReadonlyMap<string, Column>;
  readonly key: readonly string[];
  /** Unique indexes beside the key: name → columns. */
  readonly unique: ReadonlyMap<string, readonly string[]>;
}

interface Draft {
  readonly name: string;
  readonly columns: Map<string, Column>;
  key: string[];
  readonly unique: Map<string, readonly string[]>;
}

const TYPES: ReadonlySet<string> = new Set<ColumnType>([
  'uuid',
  'text',
  'smallint',
  'integer',
  'bigint',
  'boolean',
  'json',
  'timestamptz',
  'bytea',
]);

/** @throws Error on a definition of a form that is not known here */
export function readTables(): ReadonlyMap<string, Table> {
  const tables = new Map<string, Draft>();
  for (const { sql } of readMigrations(MIGRATIONS_DIR)) {
    const text = sql.replace(/--.*$/gm, '');
    for (const [, name, body] of text.matchAll(/create table (\w+) \(\n([\s\S]*?)\n\)/g)) {
      tables.set(name!, readTable(name!, body!));
    }
    for (const [, name, column] of text.matchAll(/alter table (\w+) add column (.*);/g)) {
      const draft = found(tables, name!);
      const { name: columnName, ...rest } = readColumn(column!);
      draft.columns.set(columnName, { name: columnName, ...rest });
    }
    for (const [, index, name, columns] of text.matchAll(
      /create unique index (\w+) on (\w+) \(([^)]*)\)/g,
    )) {
      found(tables, name!).unique.set(index!, listOf(columns!.replaceAll(/ (desc|asc)\b/g, '')));
    }
  }
  return tables;
}

function found(tables: ReadonlyMap<string, Draft>, name: string): Draft {
  const draft = tables.get(name);
  if (draft === undefined) throw new Error(`a migration changes ${name} before it makes it`);
  return draft;
}

function readTable(name: string, body: string): Draft {
  const draft: Draft = { name, columns: new Map(), key: [], unique: new Map() };
  for (const line of body.split(/,\n/)) {
    const text = line.trim().replaceAll(/\s+/g, ' ');
    const key = /^primary key \((.*)\)$/.exec(text);
    if (key !== null) {
      draft.key = listOf(key[1]!);
      continue;
    }
    const column = readColumn(text);
    draft.columns.set(column.name, column);
    if (/ primary key\b/.test(text)) draft.key = [column.name];
  }
  if (draft.key.length === 0) throw new Error(`table ${name} has no key`);
  return draft;
}

function readColumn(text: string): Column {
  const [name, type] = text.trim().split(/\s+/);
  if (name === undefined || type === undefined || !TYPES.has(type)) {
    throw new Error(`column of unknown form: ${text}`);
  }
  return {
    name,
    type: type as ColumnType,
    isRequired: / (not null|primary key)\b/.test(text),
    defaultValue: readDefault(/ default (\S+)/.exec(text)?.[1]),
  };
}

function readDefault(text: string | undefined): Column['defaultValue'] {
  if (text === undefined || text === 'now()') return undefined;
  if (text.startsWith("'")) return text.slice(1, -1);
  return text === 'true' || text === 'false' ? text === 'true' : Number(text);
}

export function listOf(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}
