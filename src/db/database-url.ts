/**
 * The URL of a database includes the schema of the engine as a setting of its sessions, since statements name
 * none, so that no connection can forget it.
 */

/** Of an engine without ENGINE_DB_SCHEMA. */
export const DEFAULT_SCHEMA = 'public';

/** Needs no quotes, and is not truncated by Postgres. */
const PLAIN_NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** Reserved by Postgres. */
const NAME_OF_POSTGRES = /^(pg_|information_schema$)/;

export const isSchemaName = (value: string): boolean =>
  PLAIN_NAME.test(value) && !NAME_OF_POSTGRES.test(value);

/** The URL of the same database, whose sessions use the tables of one schema only. */
export function inSchema(connectionString: string, schema: string): string {
  return withSettings(connectionString, `-c search_path=${schema}`);
}

/** The URL of the same database, with more settings of its sessions. @param more as in `options` */
export function withSettings(connectionString: string, more: string): string {
  const { base, query } = partsOf(connectionString);
  const given = query.get('options') ?? '';
  query.set('options', `${given} ${more}`.trimStart());
  // Not every parser of such URLs reads + as a space.
  return `${base}?${query.toString().replaceAll('+', '%20')}`;
}

/** Selects one of several servers in other clients of Postgres. */
const WHICH_SERVER = 'target_session_attrs';

export function whichServer(connectionString: string): string | undefined {
  return partsOf(connectionString).query.get(WHICH_SERVER) ?? undefined;
}

/** The URL of each host of a URL that names several, separated by commas. */
export function hostUrlsOf(connectionString: string): readonly string[] {
  const [, before = '', hosts = '', behind = ''] = PLACE.exec(connectionString) ?? [];
  if (!hosts.includes(',')) return [connectionString];
  return hosts.split(',').map((host) => `${before}${host}${behind}`);
}

/** The part before the hosts, the hosts, and the rest. */
const PLACE = /^(\w+:\/\/(?:[^@/]*@)?)([^/?]*)(.*)$/s;

/** Separates the session settings of a URL, which `pg` would let replace those of the engine. */
export function splitSettings(connectionString: string): {
  readonly url: string;
  readonly settings: string;
} {
  const { base, query } = partsOf(connectionString);
  const settings = query.get('options') ?? '';
  for (const name of ['options', WHICH_SERVER]) query.delete(name);
  return { url: query.size === 0 ? base : `${base}?${query}`, settings };
}

/** By hand: `URL` rejects URLs without a host. */
function partsOf(connectionString: string) {
  const at = connectionString.indexOf('?');
  if (at < 0) return { base: connectionString, query: new URLSearchParams() };
  const query = new URLSearchParams(connectionString.slice(at + 1));
  return { base: connectionString.slice(0, at), query };
}
