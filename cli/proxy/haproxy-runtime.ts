/**
 * Updates the maps of a running HAProxy through its runtime socket, without a reload and without closing connections.
 * A few changed entries are set one by one. Many, or maps of an unknown process, are replaced in one transaction for
 * each map, so that a request sees either the old map or the new one.
 */

import { connect } from 'node:net';
import { BUCKETS_MAP, backendOf, mapText, TENANTS_MAP, tenantEntries } from './haproxy.js';
import { bucketCells, type Topology } from './topology.js';

export class RuntimeError extends Error {
  override readonly name = 'RuntimeError';
}

/** No HAProxy process is running. */
export class AbsentError extends RuntimeError {}

type Entries = ReadonlyMap<string, string>;

/** Many times the duration of a command in a busy process. */
const ANSWER_TIMEOUT_MS = 30_000;
/** A command with its entries must fit a buffer of HAProxy: 16 KiB by default. */
const COMMAND_BYTES_MAX = 8_192;
/** Each uses its own connection: some tens of milliseconds in sum. */
const SINGLE_CHANGES_MAX = 500;
/** The codes of a missing socket, and of one that a process left behind. */
const ABSENT = ['ENOENT', 'ECONNREFUSED'];
const PID = /^Pid: (\d+)$/m;
const PREPARED = /New version created: (\d+)/;

export class HaproxyMaps {
  readonly #socket: string;
  /** The entries of the process, by map; empty when unknown. */
  readonly #applied = new Map<string, Entries>();
  /** Of the process with these entries. */
  #pid: string | undefined;

  /** @param socket its path */
  constructor(socket: string) {
    this.#socket = socket;
  }

  /**
   * @param topology checked
   * @throws RuntimeError when the socket does not answer, or HAProxy lacks a backend of a cell and must be reloaded
   */
  async apply(topology: Topology): Promise<void> {
    try {
      const pid = await this.#askPid();
      if (pid !== this.#pid) this.#applied.clear();
      const known = new Set((await this.#ask('show backend')).split('\n'));
      const missing = topology.cells.find(({ name }) => !known.has(backendOf(name)));
      if (missing !== undefined) {
        throw new RuntimeError(`HAProxy does not know the cell ${missing.name} yet: reload it`);
      }
      const [tenants, buckets] = [new Map(tenantEntries(topology)), new Map(bucketCells(topology))];
      // Tenants that stop following their bucket are mapped before its cell changes, others are removed afterwards.
      const before = this.#applied.get(TENANTS_MAP);
      await this.#bring(TENANTS_MAP, new Map([...(before ?? []), ...tenants]));
      await this.#bring(BUCKETS_MAP, buckets);
      await this.#bring(TENANTS_MAP, tenants);
      this.#pid = pid;
    } catch (error) {
      this.#pid = undefined;
      throw error;
    }
  }

  /**
   * Whether the process that got the maps still runs. A new process has read the files, perhaps before the last change.
   *
   * @throws RuntimeError
   */
  async isSame(): Promise<boolean> {
    return (await this.#askPid()) === this.#pid;
  }

  /** Which servers are up, in the format of a server-state file. @throws RuntimeError */
  serverStates(): Promise<string> {
    return this.#ask('show servers state');
  }

  async #askPid(): Promise<string | undefined> {
    return PID.exec(await this.#ask('show info'))?.[1];
  }

  async #bring(map: string, wanted: Entries): Promise<void> {
    const applied = this.#applied.get(map);
    const changes = applied && changesBetween(applied, wanted);
    if (changes === undefined || changes.length > SINGLE_CHANGES_MAX) {
      await this.#replace(map, [...wanted]);
    } else {
      for (const [key, value] of changes) await this.#change(map, key, value);
    }
    this.#applied.set(map, wanted);
  }

  /** Also correct if the change was already made. */
  async #change(map: string, key: string, value: string | undefined): Promise<void> {
    if (value === undefined) await this.#ask(`del map ${map} ${key}`);
    else if ((await this.#ask(`set map ${map} ${key} ${value}`)).trim() !== '') {
      await this.#tell(map, `add map ${map} ${key} ${value}`);
    }
  }

  async #replace(map: string, entries: readonly (readonly [string, string])[]): Promise<void> {
    const [, version] = PREPARED.exec(await this.#ask(`prepare map ${map}`)) ?? [];
    if (version === undefined) throw new RuntimeError(`HAProxy has no map ${map}`);
    for (const piece of pieces(entries)) {
      await this.#tell(map, `add map @${version} ${map} <<\n${piece}`);
    }
    await this.#tell(map, `commit map @${version} ${map}`);
  }

  async #tell(map: string, command: string): Promise<void> {
    const answer = (await this.#ask(command)).trim();
    if (answer !== '') throw new RuntimeError(`HAProxy refuses a change of ${map}: ${answer}`);
  }

  /** Sends one command on its own connection, which HAProxy closes after the answer. */
  #ask(command: string): Promise<string> {
    const path = this.#socket;
    return new Promise((resolve, reject) => {
      const socket = connect(path);
      let answer = '';
      socket.setEncoding('utf8').setTimeout(ANSWER_TIMEOUT_MS);
      socket.on('data', (text) => {
        answer += text;
      });
      socket.once('end', () => resolve(answer));
      socket.once('timeout', () => socket.destroy(new Error('it does not answer')));
      socket.once('error', ({ message, code = '' }: NodeJS.ErrnoException) => {
        const Failure = ABSENT.includes(code) ? AbsentError : RuntimeError;
        reject(new Failure(`HAProxy is not reached at ${path}: ${message}`));
      });
      socket.write(`${command}\n`);
    });
  }
}

/** Changed keys with their new values; undefined: removed. */
export function changesBetween(
  before: Entries,
  after: Entries,
): readonly (readonly [string, string | undefined])[] {
  const changed = [...after].filter(([key, value]) => before.get(key) !== value);
  const gone = [...before.keys()].filter((key) => !after.has(key));
  return [...changed, ...gone.map((key) => [key, undefined] as const)];
}

/** Splits entries to fit a command, which ends with an empty line. */
function* pieces(entries: readonly (readonly [string, string])[]): Generator<string> {
  let piece = '';
  for (const entry of entries) {
    const line = mapText([entry]);
    if (piece.length + line.length > COMMAND_BYTES_MAX) {
      yield piece;
      piece = '';
    }
    piece += line;
  }
  if (piece !== '') yield piece;
}
