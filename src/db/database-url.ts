/**
 * The URL of a database says in which schema its sessions find their tables. Statements name no schema: which one
 * is meant is a setting of the session, and travels with the URL to whoever connects, so that nobody can
 * forget to say it.
 */

/** Of an engine without ENGINE_DB_SCHEMA. */
export const DEFAULT_SCHEMA = 'public';

/** Plain, so that it needs no quotes anywhere: of 63 characters at most, as Postgres keeps them. */
const PLAIN_NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** What Postgres has for itself. */
const NAME_OF_POSTGRES = /^(pg_|information_schema$)/;

/** A schema of the database. */
export const isSchemaName = (value: string): boolean =>
  PLAIN_NAME.test(value) && !NAME_OF_POSTGRES.test(value);

/** The URL of the same database, whose sessions find the tables of one schema and no others. */
export function inSchema(connectionString: string, schema: string): string {
  return withSettings(connectionString, `-c search_path=${schema}`);
}

/** The URL of the same database, whose sessions have more settings. @param more as in the option of that name */
export function withSettings(connectionString: string, more: string): string {
  const { base, query } = partsOf(connectionString);
  const given = query.get('options') ?? '';
  query.set('options', `${given} ${more}`.trimStart());
  // Not every reader of such URLs takes + for a space.
  return `${base}?${query.toString().replaceAll('+', '%20')}`;
}

/** How other clients of Postgres are told which of several servers is meant. */
const WHICH_SERVER = 'target_session_attrs';

/** Undefined when the URL does not say it. */
export function whichServer(connectionString: string): string | undefined {
  return partsOf(connectionString).query.get(WHICH_SERVER) ?? undefined;
}

/** The URL of each host of a URL that names several, separated by commas. */
export function hostUrlsOf(connectionString: string): readonly string[] {
  const [, before = '', hosts = '', behind = ''] = PLACE.exec(connectionString) ?? [];
  if (!hosts.includes(',')) return [connectionString];
  return hosts.split(',').map((host) => `${before}${host}${behind}`);
}

/** What stands before the hosts, the hosts, and what stands behind them. */
const PLACE = /^(\w+:\/\/(?:[^@/]*@)?)([^/?]*)(.*)$/s;

/** What a URL asks of its sessions, apart from it: `pg` would let that replace the settings of the engine. */
export function splitSettings(connectionString: string): {
  readonly url: string;
  readonly settings: string;
} {
  const { base, query } = partsOf(connectionString);
  const settings = query.get('options') ?? '';
  for (const name of ['options', WHICH_SERVER]) query.delete(name);
  return { url: query.size === 0 ? base : `${base}?${query}`, settings };
}

/** By hand: `URL` does not take those without a host. */
function partsOf(connectionString: string) {
  const at = connectionString.indexOf('?');
  if (at < 0) return { base: connectionString, query: new URLSearchParams() };
  const query = new URLSearchParams(connectionString.slice(at + 1));
  return { base: connectionString.slice(0, at), query };
}
