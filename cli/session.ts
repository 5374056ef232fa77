/** The context of a command: server, output, prompts and environment. */

import { Client } from '../client/src/index.js';
import {
  type Connection,
  type ConnectionOptions,
  connectionOf,
  NAMESPACE_DEFAULT,
} from './connection.js';
import { usageError } from './exit.js';
import type { Output } from './output.js';
import { profilesFile, readProfiles } from './profiles.js';
import type { Asker } from './prompt.js';

export interface SessionOptions extends ConnectionOptions {
  /** How long a request or a waiting command may take; undefined: the default. */
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

  /** @throws CommandError for an invalid option, environment or profile */
  get connection(): Connection {
    this.#connection ??= connectionOf(this.options, this.env, () =>
      readProfiles(this.profilesFile),
    );
    return this.#connection;
  }

  get profilesFile(): string {
    return profilesFile(this.env);
  }

  /** The namespace to which a command is restricted; undefined: every one. */
  get namespace(): string | undefined {
    return this.connection.namespace;
  }

  /** The namespace of a sequence that is given by its name. */
  get namespaceOfName(): string {
    return this.connection.namespace ?? NAMESPACE_DEFAULT;
  }

  /** Created on first use: not every command needs a server. */
  get client(): Client {
    this.#client ??= this.clientFor(this.connection.tenant);
    return this.#client;
  }

  clientFor(tenant: string | undefined): Client {
    const { url, apiKey } = this.connection;
    return new Client({ url, apiKey, tenant, timeoutMs: this.options.timeoutMs });
  }

  /** @throws CommandError if none is set */
  get tenant(): string {
    const { tenant } = this.connection;
    if (tenant !== undefined) return tenant;
    throw usageError(
      'no tenant is set',
      'Use --tenant NAME, set ENGINE_TENANT, or save it in a profile.',
    );
  }
}
