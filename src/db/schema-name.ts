/** Names of schemas of Postgres, as the engine takes them. */

/** Plain, so that it needs no quotes anywhere: of 63 characters at most, as Postgres keeps them. */
const PLAIN_NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** What Postgres has for itself. */
const NAME_OF_POSTGRES = /^(pg_|information_schema$)/;

/** A schema of the database. */
export const isSchemaName = (value: string): boolean =>
  PLAIN_NAME.test(value) && !NAME_OF_POSTGRES.test(value);
