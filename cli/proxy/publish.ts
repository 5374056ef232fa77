/**
 * Keeps the files of HAProxy equal to the directory of a cluster: a file is replaced as a whole, and only when it
 * changes. Updates that need no reload are sent to the running process.
 */

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { haproxyFiles, NO_STATES, STATES_FILE } from './haproxy.js';
import { AbsentError, HaproxyMaps, RuntimeError } from './haproxy-runtime.js';
import { checkedTopology, type ProxySettings, type Topology } from './topology.js';

export interface Published {
  /** Files with a new text. */
  readonly changed: readonly string[];
  /** There was no configuration, so no process runs with one. */
  readonly isFirst: boolean;
  /** Files that the proxy reads only at its start were written, and it has not been reloaded since. */
  readonly needsReload: boolean;
  /** What the files leave out, in sentences. */
  readonly leftOut: readonly string[];
}

/** Exists while written files wait for a reload, also after this command has ended. */
const OWED_FILE = 'reload.owed';

export class ProxyPublisher {
  readonly #settings: ProxySettings;
  readonly #maps: HaproxyMaps | undefined;

  constructor(settings: ProxySettings) {
    this.#settings = settings;
    const { socket } = settings;
    if (socket !== undefined) this.#maps = new HaproxyMaps(socket);
  }

  /**
   * Writes the files whose text has changed.
   *
   * @throws TopologyError before anything is written
   */
  write(given: Topology): Published {
    const topology = checkedTopology(given, this.#settings);
    const { folder } = this.#settings;
    mkdirSync(folder, { recursive: true });
    if (this.#maps !== undefined && textOf(this.#states) === undefined) this.#forgetStates();
    const changes = haproxyFiles(topology, this.#settings).flatMap((file) => {
      const before = textOf(path.join(folder, file.name));
      return before === file.text ? [] : [{ ...file, isNew: before === undefined }];
    });
    const isFirst = changes.some((file) => file.isNew && !file.isMap);
    if (!isFirst && changes.some(({ isMap }) => !isMap)) writeFileSync(this.#owed, '');
    for (const { name, text } of changes) {
      const place = path.join(folder, name);
      // Renamed, so that a reader sees either the old file or the new one.
      writeFileSync(`${place}.new`, text);
      renameSync(`${place}.new`, place);
    }
    return {
      changed: changes.map(({ name }) => name),
      isFirst,
      needsReload: textOf(this.#owed) !== undefined,
      leftOut: topology.leftOut,
    };
  }

  /** The pending reload is done, or left to the operator. */
  reloaded(): void {
    rmSync(this.#owed, { force: true });
  }

  /**
   * Updates the maps of the running HAProxy. @returns false without a runtime socket
   *
   * @throws RuntimeError
   */
  async apply(given: Topology): Promise<boolean> {
    if (this.#maps === undefined) return false;
    try {
      await this.#maps.apply(checkedTopology(given, this.#settings));
    } catch (error) {
      if (error instanceof AbsentError) this.#forgetStates();
      throw error;
    }
    this.#forgetStates();
    return true;
  }

  /** Called before a reload, so that the next process starts with the states of the engines. */
  async keepStates(): Promise<void> {
    if (this.#maps === undefined) return;
    try {
      writeFileSync(this.#states, await this.#maps.serverStates());
    } catch (error) {
      // No HAProxy process is running.
      if (!(error instanceof RuntimeError)) throw error;
    }
  }

  /** A process that is started later would take them for current. */
  #forgetStates(): void {
    if (textOf(this.#states) !== NO_STATES) writeFileSync(this.#states, NO_STATES);
  }

  get #owed(): string {
    return path.join(this.#settings.folder, OWED_FILE);
  }

  get #states(): string {
    return path.join(this.#settings.folder, STATES_FILE);
  }

  /** Whether the process that got the maps still runs; true without a runtime socket. @throws RuntimeError */
  isSame(): Promise<boolean> {
    return this.#maps?.isSame() ?? Promise.resolve(true);
  }
}

function textOf(place: string): string | undefined {
  try {
    return readFileSync(place, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
