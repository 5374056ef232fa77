/**
 * The schema of an engine holds all of its tables, so that several engines share a database without affecting each
 * other (docs/operate/cells.md). It is checked, and created if need be, before anything else.
 */

import { SchemaError } from './migrate.js';
import { withClient } from './pool.js';
import { inTransaction } from './sql-script.js';

export interface EngineSchema {
  readonly name: string;
  /** Whether it is configured, and may be a new one beside others. */
  readonly isChosen: boolean;
  readonly mayCreate: boolean;
}

interface Standing {
  readonly role: string;
  readonly isThere: boolean;
  readonly isUsable: boolean;
  readonly current: string | null;
  readonly schemas: readonly string[];
}

/**
 * Ensures that the sessions of the engine use its schema, and creates it if need be.
 * @param connectionString from `inSchema`, like `ownerUrl`, which may be of another role
 * @throws SchemaError with advice
 */
export async function ensureSchema(
  connectionString: string,
  ownerUrl: string,
  { name, isChosen, mayCreate }: EngineSchema,
): Promise<void> {
  let found = await look(connectionString, name);
  if (!isChosen && found.schemas.length > 0 && !found.schemas.includes(name)) {
    throw new SchemaError(
      `the database has tables of an engine in ${found.schemas.join(', ')} and none in ${name}: ` +
        `set ENGINE_DB_SCHEMA to the schema of this engine, or to ${name} for a new cell`,
    );
  }
  if (!found.isThere) {
    if (!mayCreate) {
      throw new SchemaError(
        `the database has no schema ${name}: start once with ENGINE_RUN_MIGRATIONS=true, ` +
          'or make it as docs/operate/cells.md has it',
      );
    }
    await create(ownerUrl, name, found.role);
    found = await look(connectionString, name);
  }
  if (!found.isUsable) {
    throw new SchemaError(
      `the role ${found.role} of DATABASE_URL may not use the schema ${name}: ` +
        'docs/operate/cells.md has the grants',
    );
  }
  if (found.current !== name) {
    throw new SchemaError(
      `sessions of DATABASE_URL begin in the schema ${found.current}, not in ${name}: something ` +
        'between drops their settings, as poolers do; connect directly',
    );
  }
}

const LOOK = `
select current_user as role, current_schema() as current,
  to_regnamespace($1::text) is not null as "isThere",
  coalesce(has_schema_privilege(to_regnamespace($1::text), 'usage'), false) as "isUsable",
  array(
    select n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relname = 'engine_lease' and c.relkind = 'r' order by 1) as schemas`;

function look(connectionString: string, schema: string): Promise<Standing> {
  return withClient(session(connectionString), async (client) => {
    return (await client.query<Standing>(LOOK, [schema])).rows[0]!;
  });
}

/** SQLSTATEs when another engine creates the schema at the same time. */
const IS_THERE = new Set(['42P06', '23505']);

/** Creates the schema with the rights of docs/operate/cells.md. */
async function create(ownerUrl: string, schema: string, role: string): Promise<void> {
  try {
    await withClient(session(ownerUrl), async (client) => {
      const name = client.escapeIdentifier(schema);
      const user = client.escapeIdentifier(role);
      const defaults = `alter default privileges in schema ${name}`;
      await inTransaction(client, [
        `create schema ${name}`,
        `grant usage on schema ${name} to ${user}`,
        `${defaults} grant select, insert, update, delete on tables to ${user}`,
        `${defaults} grant usage on sequences to ${user}`,
      ]);
    });
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (IS_THERE.has(code ?? '')) return;
    if (code !== '42501') throw error;
    throw new SchemaError(
      `the schema ${schema} cannot be made: ${message}; docs/operate/cells.md has what it takes`,
    );
  }
}

function session(connectionString: string) {
  return { connectionString, applicationName: 'engine start' };
}
