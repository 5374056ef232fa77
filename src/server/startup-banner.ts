/** What a newcomer at a terminal needs once the server is ready: what to open, and a call that works. */

import type { Palette } from '../base/log-text.js';

/** What the log says of an engine that is ready, and where a newcomer goes from there. */
export interface ReadyFacts {
  /** Of the server, without a path. */
  readonly url: string;
  /** The folder of the embedded database; undefined with DATABASE_URL. */
  readonly database: string | undefined;
  /** Where the root key lies, when it was generated. */
  readonly keyFile: string | undefined;
  readonly insecureAuth: boolean;
  readonly hasDashboard: boolean;
}

/** Each line begins with what it is about; those that are copied stand alone. */
export function startupBanner(facts: ReadyFacts, paint: Palette): string {
  const { url, database, keyFile, insecureAuth, hasDashboard } = facts;
  const key = keyFile === undefined ? '' : `-H "x-api-key: $(cat '${keyFile}')" \\\n    `;
  const rows: readonly (readonly [string, string])[] = [
    ['Ready', paint.bold(paint.green(url))],
    ...(hasDashboard ? [['Dashboard', `${url}/ui`] as const] : []),
    ['API', `${url}/swagger-ui`],
    ...(database === undefined ? [] : [['Database', database] as const]),
    ...(keyFile === undefined ? [] : [['Root key', keyFile] as const]),
    ...(insecureAuth ? [['Keys', paint.yellow('none is checked (--insecure-auth)')] as const] : []),
    ['Stop', 'Ctrl-C'],
  ];
  const table = rows.map(([name, text]) => `  ${paint.dim(name.padEnd(NAME_WIDTH))}${text}`);
  const call = `  curl -s ${key}-H 'x-tenant-id: demo' ${url}/api/v1/instances`;
  return `\n${table.join('\n')}\n\n  ${paint.dim('Try:')}\n${call}\n\n`;
}

const NAME_WIDTH = 11;

/** The address to open: a server that listens everywhere is found here. */
export function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
