/** The stored results as the page reads them: of each part the newest, whichever day and machine it is of. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Machine } from '../machine.js';
import type { ResultsFile, StoredPart } from '../report.js';
import type { Reached } from '../targets.js';

/** What every part has that the page shows. */
interface Results {
  readonly reached: Reached;
}

/** One part, where and when it was measured. */
export interface Stored<T = Results> {
  readonly name: string;
  readonly at: string;
  readonly commit: string | null;
  readonly machine: Machine;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly results: T;
}

export class StoredParts {
  readonly #parts: ReadonlyMap<string, Stored>;

  constructor(parts: readonly Stored[]) {
    const newest = new Map<string, Stored>();
    for (const part of parts) {
      const known = newest.get(part.name);
      if (known === undefined || known.at < part.at) newest.set(part.name, part);
    }
    this.#parts = newest;
  }

  /** @returns undefined: not measured */
  get<T>(name: string): Stored<T> | undefined {
    return this.#parts.get(name) as Stored<T> | undefined;
  }
}

/** Without runs that synced nothing, which measure nothing, and without results of an older form. */
export function readStored(folder: string): StoredParts {
  if (!existsSync(folder)) return new StoredParts([]);
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return new StoredParts(
    files.flatMap((file) => {
      const text = readFileSync(path.join(folder, file), 'utf8');
      const { machine, parts } = JSON.parse(text) as ResultsFile;
      return Object.entries(parts).flatMap(([name, part]) =>
        isShown(part) ? [{ ...part, name, machine }] : [],
      );
    }),
  );
}

function isShown(part: StoredPart): part is StoredPart & Stored {
  const { isDurable } = part.settings as { readonly isDurable?: boolean };
  return 'reached' in part.results && isDurable === true;
}
