/**
 * A second isolation between tenants: reads for a tenant run as a role that sees only its rows. The migrations create
 * the policies. A start enables them if the engine has the rights it needs, and disables them otherwise: a role that
 * neither owns the tables nor bypasses the policies could not write (docs/operate/roles.md).
 */

import type pg from 'pg';
import { isDistributed } from './distributed.js';
import { SchemaError } from './migrate.js';
import { READER_ROLE, withClient } from './pool.js';
import { inTransaction } from './sql-script.js';
import type { Store } from './store.js';

/** `required`: the engine does not start without row security. */
export type RowSecurityMode = 'auto' | 'required' | 'off';

export interface RowSecurityOptions {
  readonly store: Store;
  readonly mode: RowSecurityMode;
  readonly connectionString: string;
  /** For the role that owns the tables; undefined if this start may not change them. */
  readonly ownerUrl: string | undefined;
}

interface Standing {
  readonly hasReader: boolean;
  readonly mayBeReader: boolean;
  readonly isExempt: boolean;
  readonly total: number;
  readonly enabled: number;
  readonly granted: number;
  readonly mayEnter: boolean;
  readonly isDistributed: boolean;
  /** Tables without a policy, as in a schema that was once distributed. */
  readonly unguarded: number;
}

/** Does not wait long for locked tables, such as by a backup: the next start tries again. */
const LOCK_TIMEOUT_MS = 3_000;
const POLICY = 'own_rows';

/**
 * @returns why there is none; undefined: there is row security
 * @throws SchemaError when the engine cannot work with the database, or row security is required
 */
export async function prepareRowSecurity(options: RowSecurityOptions): Promise<string | undefined> {
  const { store, mode, connectionString, ownerUrl } = options;
  const found = await withClient(session(connectionString), (client) => look(client, store));
  const lacking = mode === 'off' ? 'ENGINE_ROW_SECURITY is off' : lackingIn(found);
  const isWanted = lacking === undefined;
  const isSo = isWanted
    ? found.enabled === found.total && found.granted === found.total && found.mayEnter
    : found.enabled === 0;
  const failure = isSo ? undefined : await change(ownerUrl, isWanted);
  if (failure !== undefined && !isWanted && !found.isExempt) {
    throw new SchemaError(
      `row level security is on and keeps the role of DATABASE_URL from its tables: ${lacking}; ${failure}`,
    );
  }
  const without = lacking ?? failure;
  if (without !== undefined && mode === 'required') {
    throw new SchemaError(`ENGINE_ROW_SECURITY is required, and cannot be had: ${without}`);
  }
  return without;
}

function lackingIn(found: Standing): string | undefined {
  const { hasReader, mayBeReader, isExempt } = found;
  if (found.isDistributed)
    return 'Citus distributes the schema, and passes neither role nor setting on to other nodes';
  if (found.unguarded > 0) return `tables without a policy: ${found.unguarded}`;
  if (!hasReader) return `there is no role ${READER_ROLE}`;
  if (!mayBeReader) return `the role of DATABASE_URL is not a member of ${READER_ROLE}`;
  if (!isExempt) return 'the role of DATABASE_URL neither owns the tables nor has BYPASSRLS';
  return undefined;
}

/** @returns the reason of a failure */
async function change(ownerUrl: string | undefined, isOn: boolean): Promise<string | undefined> {
  if (ownerUrl === undefined) return 'ENGINE_RUN_MIGRATIONS is false';
  try {
    await withClient(session(ownerUrl), (client) => inTransaction(client, changes(isOn)));
    return undefined;
  } catch (error) {
    return `the tables cannot be changed: ${(error as Error).message}`;
  }
}

function changes(isOn: boolean): string[] {
  // The owner of the tables may not own their schema, and `public` is open to all.
  const enter = `
      if not has_schema_privilege('${READER_ROLE}', current_schema(), 'usage') then
        execute format('grant usage on schema %I to ${READER_ROLE}', current_schema());
      end if;`;
  const grant = `execute format('grant select on %s to ${READER_ROLE}', name);`;
  return [
    `set local lock_timeout = ${LOCK_TIMEOUT_MS}`,
    `do $$
    declare name regclass;
    begin
      ${isOn ? enter : ''}
      for name in
        select polrelid from pg_policy
        where polname = '${POLICY}' and pg_table_is_visible(polrelid) order by polrelid
      loop
        execute format('alter table %s ${isOn ? 'enable' : 'disable'} row level security', name);
        ${isOn ? grant : ''}
      end loop;
    end $$`,
  ];
}

const LOOK = `
  select r.oid is not null as "hasReader",
    coalesce(pg_has_role(current_user, r.oid, 'member'), false) as "mayBeReader",
    (select u.rolsuper or u.rolbypassrls from pg_roles u where u.rolname = current_user)
      or coalesce(bool_and(pg_has_role(current_user, c.relowner, 'usage')), false) as "isExempt",
    count(*)::integer as total,
    count(*) filter (where c.relrowsecurity)::integer as enabled,
    count(*) filter (where has_table_privilege(r.oid, c.oid, 'select'))::integer as granted,
    coalesce(has_schema_privilege(r.oid, current_schema(), 'usage'), false) as "mayEnter"
  from pg_policy p join pg_class c on c.oid = p.polrelid
    left join pg_roles r on r.rolname = '${READER_ROLE}'
  where p.polname = '${POLICY}' and pg_table_is_visible(c.oid)
  group by r.oid`;

const guarded = ({ tables }: Store) =>
  Object.values(tables)
    .filter(({ columns }) => 'tenant_id' in columns || 'instance_id' in columns)
    .map(({ name }) => name);

const UNGUARDED = `
  select count(*)::integer as unguarded from pg_class c
  where c.relname = any($1) and c.relkind = 'r' and pg_table_is_visible(c.oid)
    and not exists (select from pg_policy where polrelid = c.oid and polname = '${POLICY}')`;

async function look(client: pg.Client, store: Store): Promise<Standing> {
  const { rows } = await client.query<Standing>(LOOK);
  const without = await client.query<Pick<Standing, 'unguarded'>>(UNGUARDED, [guarded(store)]);
  const none = { hasReader: false, mayBeReader: false, isExempt: true, mayEnter: false };
  return {
    ...(rows[0] ?? { ...none, total: 0, enabled: 0, granted: 0 }),
    isDistributed: await isDistributed(client),
    unguarded: without.rows[0]?.unguarded ?? 0,
  };
}

function session(connectionString: string) {
  return { connectionString, applicationName: 'engine-row-security' };
}
