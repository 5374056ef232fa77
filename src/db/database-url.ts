/**
 * The URL of a database contains the schema of the engine as a session setting, so that no connection can
 * lack it: statements name no schema.
 */

/** Used without ENGINE_DB_SCHEMA. */
export const DEFAULT_SCHEMA = 'public';
/** Names that need no quotes, and that Postgres does not truncate. */
const PLAIN_NAME = /^[a-z_][a-z0-9_]{0,62}$/;
/** Names reserved by Postgres. */
const NAME_OF_POSTGRES = /^(pg_|information_schema$)/;

export const isSchemaName = (value: string): boolean =>
  PLAIN_NAME.test(value) && !NAME_OF_POSTGRES.test(value);

/** The same database, with sessions that use the tables of one schema only. */
export function inSchema(connectionString: string, schema: string): string {
  return withSettings(connectionString, `-c search_path=${schema}`);
}

/** Adds settings of the sessions. @param more as in `options` */
export function withSettings(connectionString: string, more: string): string {
  const { base, query } = partsOf(connectionString);
  const given = query.get('options') ?? '';
  query.set('options', `${given} ${more}`.trimStart());
  // Not every URL parser reads + as a space.
  return `${base}?${query.toString().replaceAll('+', '%20')}`;
}

/** With this parameter other clients of Postgres select one of several servers. */
const WHICH_SERVER = 'target_session_attrs';

export function whichServer(connectionString: string): string | undefined {
  return partsOf(connectionString).query.get(WHICH_SERVER) ?? undefined;
}

/** Splits a URL with several hosts, separated by commas. */
export function hostUrlsOf(connectionString: string): readonly string[] {
  const [, before = '', hosts = '', behind = ''] = PLACE.exec(connectionString) ?? [];
  if (!hosts.includes(',')) return [connectionString];
  return hosts.split(',').map((host) => `${before}${host}${behind}`);
}

/** Before the hosts, the hosts, and the rest. */
const PLACE = /^(\w+:\/\/(?:[^@/]*@)?)([^/?]*)(.*)$/s;

/** Separates the session settings: `pg` would let them replace those of the engine. */
export function splitSettings(connectionString: string): {
  readonly url: string;
  readonly settings: string;
} {
  const { base, query } = partsOf(connectionString);
  const settings = query.get('options') ?? '';
  for (const name of ['options', WHICH_SERVER]) query.delete(name);
  return { url: query.size === 0 ? base : `${base}?${query}`, settings };
}

/** `URL` rejects URLs without a host. */
function partsOf(connectionString: string) {
  const at = connectionString.indexOf('?');
  if (at < 0) return { base: connectionString, query: new URLSearchParams() };
  const query = new URLSearchParams(connectionString.slice(at + 1));
  return { base: connectionString.slice(0, at), query };
}
