/**
 * The roles of the embedded server, checked at each start, so that the engine is no superuser: one role owns and
 * migrates the tables, another reads and writes rows (docs/operate/roles.md).
 */

import { createHmac } from 'node:crypto';
import { DEFAULT_SCHEMA } from '../db/database-url.js';
import { READER_ROLE, withClient } from '../db/pool.js';

export interface RoleUrls {
  readonly owner: string;
  readonly engine: string;
}

const OWNER = 'engine_owner';
const ENGINE = 'engine';

/**
 * Creates the roles and the schema, and transfers tables that a superuser owned in older versions. @param
 * superuserUrl its password derives the passwords of the roles
 */
export async function ensureRoles(
  superuserUrl: string,
  schema: string = DEFAULT_SCHEMA,
): Promise<RoleUrls> {
  const superuser = new URL(superuserUrl);
  const urlOf = (role: string) => {
    const url = new URL(superuserUrl);
    url.username = role;
    url.password = createHmac('sha256', superuser.password).update(role).digest('hex');
    return url;
  };
  const [owner, engine] = [urlOf(OWNER), urlOf(ENGINE)];
  await withClient(
    { connectionString: superuserUrl, applicationName: 'engine roles' },
    async (client) => {
      await client.query('begin');
      for (const role of [OWNER, ENGINE, READER_ROLE]) await client.query(roleSql(role));
      for (const { username, password } of [owner, engine]) {
        await client.query(`alter role ${username} with login password '${password}'`);
      }
      await client.query(grantsSql(schema));
      await client.query('commit');
    },
  );
  return { owner: owner.href, engine: engine.href };
}

function roleSql(role: string): string {
  return `
    do $$ begin
      if not exists (select from pg_roles where rolname = '${role}') then
        create role ${role};
      end if;
    end $$;
    alter role ${role} with nologin nosuperuser nocreatedb nocreaterole noreplication nobypassrls`;
}

function grantsSql(schema: string): string {
  return `
  create schema if not exists "${schema}";
  alter role ${ENGINE} with bypassrls;
  grant ${READER_ROLE} to ${ENGINE};
  do $$
  declare name regclass;
  begin
    for name in
      select c.oid from pg_class c
      where c.relnamespace = '${schema}'::regnamespace and c.relkind in ('r', 'p', 'v')
        and c.relowner <> '${OWNER}'::regrole
    loop
      execute format('alter table %s owner to ${OWNER}', name);
    end loop;
  end $$;
  grant usage, create on schema "${schema}" to ${OWNER};
  grant usage on schema "${schema}" to ${ENGINE};
  grant select, insert, update, delete on all tables in schema "${schema}" to ${ENGINE};
  grant usage on all sequences in schema "${schema}" to ${ENGINE};
  alter default privileges for role ${OWNER} in schema "${schema}"
    grant select, insert, update, delete on tables to ${ENGINE};
  alter default privileges for role ${OWNER} in schema "${schema}" grant usage on sequences to ${ENGINE}`;
}
