/**
 * The client that every session of the engine is opened with: it serves on the primary of a database and on no
 * standby. A standby may be behind, so that what is read there may be no longer true, and says nothing about
 * what was committed. Where a URL names several hosts, the primary is found among them
 * (docs/operate/availability.md).
 *
 * A server tells by itself whether it is a standby while a session begins, so that to look costs nothing.
 */

import pg from 'pg';

export interface PrimaryConfig extends pg.ClientConfig {
  /** A URL for each host of the database, one of which is the primary. */
  readonly hostUrls: readonly string[];
}

type Place = Pick<pg.Client, 'host' | 'port'>;

/** Postgres says this code itself where it takes no sessions because it recovers. */
const CANNOT_CONNECT_NOW = '57P03';

/** How long a host may take to say what it is, when the primary is looked for. */
const LOOK_MS = 2_000;

/** Refusals that another host would answer alike: of the user, and of the database. */
const REFUSED = /^(28|3D)/;

/** By the hosts of a URL, the one that was the primary when a session last began. */
const lastPrimaries = new Map<string, Place>();

export class PrimaryClient extends pg.Client {
  readonly #config: PrimaryConfig;
  #isStandby = false;

  constructor(config: PrimaryConfig) {
    super({ ...config, connectionString: config.hostUrls[0] });
    this.#config = config;
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'in_hot_standby') this.#isStandby = parameterValue === 'on';
    });
  }

  override connect(): Promise<pg.Client>;
  override connect(
    callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void),
  ): void;
  override connect(
    callback?: (error: never, client: never) => void,
  ): Promise<pg.Client> | undefined {
    const opened = this.#open();
    if (callback === undefined) return opened;
    const tell = callback as (error: unknown, client?: pg.Client) => void;
    opened.then((client) => tell(null, client), tell);
    return undefined;
  }

  async #open(): Promise<pg.Client> {
    const { hostUrls } = this.#config;
    const hosts = hostUrls.length > 1 ? hostUrls.join(' ') : undefined;
    try {
      if (hosts !== undefined) {
        Object.assign(this, lastPrimaries.get(hosts) ?? (await findPrimary(this.#config)));
        // Whoever gave it up meanwhile must not be left with a session.
        if (this.connection.stream.destroyed) throw new Error('Connection terminated');
      }
      await super.connect();
      if (this.#isStandby) throw this.#refusal();
    } catch (error) {
      // Whoever tries again looks at all of them.
      if (hosts !== undefined) lastPrimaries.delete(hosts);
      throw error;
    }
    if (hosts !== undefined) lastPrimaries.set(hosts, { host: this.host, port: this.port });
    return this;
  }

  #refusal(): Error {
    void this.end();
    return cannotConnect(`${this.host}:${this.port} is a standby, not the primary`);
  }
}

/** Asks all hosts at once, so that one that is silent keeps nobody waiting. @throws Error when none is the primary */
async function findPrimary(config: PrimaryConfig): Promise<Place> {
  const failures: Error[] = [];
  const asked = config.hostUrls.map(async (url): Promise<Place> => {
    const client = new PrimaryClient({
      ...config,
      hostUrls: [url],
      connectionTimeoutMillis: LOOK_MS,
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
    } catch (error) {
      failures.push(error as Error);
      throw error;
    }
    void client.end();
    return { host: client.host, port: client.port };
  });
  try {
    return await Promise.any(asked);
  } catch {
    const refused = failures.find((error) => REFUSED.test((error as { code?: string }).code ?? ''));
    const reasons = failures.map(({ message }) => message).join('; ');
    throw refused ?? cannotConnect(`no host is the primary: ${reasons}`);
  }
}

function cannotConnect(message: string): Error {
  return Object.assign(new Error(message), { code: CANNOT_CONNECT_NOW });
}
