/** What a command is given to work with: the server, the output, the person, the world around. */

import { Client } from '../client/src/index.js';
import { type Connection, type ConnectionOptions, connectionOf } from './connection.js';
import { usageError } from './exit.js';
import type { Output } from './output.js';
import { profilesFile, readProfiles } from './profiles.js';
import type { Asker } from './prompt.js';

export interface SessionOptions extends ConnectionOptions {
  /** How long an answer may take, and a command that waits may wait; undefined: not said. */
  readonly timeoutMs?: number | undefined;
}

export class Session {
  readonly out: Output;
  readonly asker: Asker;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  readonly options: SessionOptions;
  #connection: Connection | undefined;
  #client: Client | undefined;

  constructor(given: {
    readonly out: Output;
    readonly asker: Asker;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
    readonly options: SessionOptions;
  }) {
    this.out = given.out;
    this.asker = given.asker;
    this.env = given.env;
    this.signal = given.signal;
    this.options = given.options;
  }

  /** @throws CommandError when options, environment and profiles do not say where the server is */
  get connection(): Connection {
    this.#connection ??= connectionOf(this.options, this.env, () =>
      readProfiles(this.profilesFile),
    );
    return this.#connection;
  }

  get profilesFile(): string {
    return profilesFile(this.env);
  }

  /** Made when it is first asked for: not every command needs a server. */
  get client(): Client {
    this.#client ??= this.clientFor(this.connection.tenant);
    return this.#client;
  }

  clientFor(tenant: string | undefined): Client {
    const { url, apiKey } = this.connection;
    return new Client({ url, apiKey, tenant, timeoutMs: this.options.timeoutMs });
  }

  /** @throws CommandError when none is known */
  get tenant(): string {
    const { tenant } = this.connection;
    if (tenant !== undefined) return tenant;
    throw usageError(
      'which tenant is meant was not said',
      'Give --tenant NAME, set ENGINE_TENANT, or keep it in a profile.',
    );
  }
}
