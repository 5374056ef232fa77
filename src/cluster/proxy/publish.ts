/**
 * What HAProxy reads, kept true to the directory of a cluster: files are replaced whole and only when they
 * change, and what a proxy that runs can take without a reload it is given.
 */

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { haproxyFiles, NO_STATES, STATES_FILE } from './haproxy.js';
import { AbsentError, HaproxyMaps, RuntimeError } from './haproxy-runtime.js';
import { checkedTopology, type ProxySettings, type Topology } from './topology.js';

export interface Published {
  /** Of those written, whose text is new. */
  readonly changed: readonly string[];
  /** There was no configuration, and so nobody who runs by it. */
  readonly isFirst: boolean;
  /** The proxy has to read files anew that it reads at its start alone, and was not told since they were written. */
  readonly needsReload: boolean;
  /** What stands in none of them, in sentences. */
  readonly leftOut: readonly string[];
}

/** There while files that were written wait for a reload: it is remembered when this command ends in between. */
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
   * Writes the files that are not as they should be.
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
      // Readers meet the old file or the new one, and those who watch see it come.
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

  /** The reload that was needed is done, or left to somebody else. */
  reloaded(): void {
    rmSync(this.#owed, { force: true });
  }

  /**
   * Gives a HAProxy that runs its maps. @returns false: it has no runtime socket
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

  /** Before a reload: the next process then knows from its first request on which engines are not ready. */
  async keepStates(): Promise<void> {
    if (this.#maps === undefined) return;
    try {
      writeFileSync(this.#states, await this.#maps.serverStates());
    } catch (error) {
      // Nobody runs who could know.
      if (!(error instanceof RuntimeError)) throw error;
    }
  }

  /** A process that is started later would take them for those of now. */
  #forgetStates(): void {
    if (textOf(this.#states) !== NO_STATES) writeFileSync(this.#states, NO_STATES);
  }

  get #owed(): string {
    return path.join(this.#settings.folder, OWED_FILE);
  }

  get #states(): string {
    return path.join(this.#settings.folder, STATES_FILE);
  }

  /** Whether the proxy that was given its maps still runs; true where none is given any. @throws RuntimeError */
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
