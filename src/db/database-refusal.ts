/**
 * Explains in one line why the database of DATABASE_URL cannot be used, with what to do. For permanent
 * errors only: the engine waits for an unavailable server.
 */

import { ConfigError } from '../base/config-error.js';
import { hostUrlsOf } from './database-url.js';

/** By SQLSTATE or its class; the server's message follows. */
const ADVICE: readonly (readonly [sqlState: RegExp, text: string])[] = [
  [/^28P01$/, 'refuses the password: set user and password in DATABASE_URL'],
  [/^28/, 'refuses this user: set another one in DATABASE_URL, or allow it in pg_hba.conf'],
  [/^3D000$/, 'does not exist: create it (createdb), or set another one in DATABASE_URL'],
  [
    /^42501$/,
    'does not give this user the rights it needs: let it own the database, or see docs/operate/roles.md',
  ],
  [/^25006$/, 'only reads: DATABASE_URL must name the primary server, not a replica'],
];

const CLIENT_ADVICE: readonly (readonly [message: RegExp, text: string])[] = [
  [/password must be a/, 'asks for a password: set it in DATABASE_URL'],
  [/does not support SSL/, 'speaks no TLS: leave sslmode out of DATABASE_URL'],
  [
    /is a standby|no host is the primary/,
    'only reads: DATABASE_URL must name the primary server, or all of them',
  ],
  [/certificate/, 'has a certificate that is not trusted: see sslmode and sslrootcert'],
];

const OTHERWISE = 'cannot be used: look at DATABASE_URL';

/** @param variable the name of the variable with the connection string */
export function databaseRefusal(
  connectionString: string,
  error: Error,
  variable = 'DATABASE_URL',
): ConfigError {
  const { code = '' } = error as { code?: string };
  const [, advice] =
    ADVICE.find(([sqlState]) => sqlState.test(code)) ??
    CLIENT_ADVICE.find(([message]) => message.test(error.message)) ??
    [];
  const reason = code === '' ? error.message : `${error.message}, ${code}`;
  const text = (advice ?? OTHERWISE).replaceAll('DATABASE_URL', variable);
  return new ConfigError(`${placeOf(connectionString)} ${text} (${reason})`, { cause: error });
}

function placeOf(connectionString: string): string {
  const urls = hostUrlsOf(connectionString);
  if (!urls.every((url) => URL.canParse(url))) return 'the database';
  const hosts = urls.map((url) => new URL(url).host || 'this machine');
  return `the database ${new URL(urls[0]!).pathname.slice(1)} on ${hosts.join(', ')}`;
}
