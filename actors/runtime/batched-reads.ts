/** Reads of many actors in one query: what is asked for in a turn is asked of the database at its end. */

interface Reading<Value> {
  readonly resolve: (value: Value | undefined) => void;
  readonly reject: (error: unknown) => void;
}

const IDS_PER_QUERY = 500;

export class BatchedReads<Value> {
  readonly #load: (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>;
  #readings = new Map<string, Reading<Value>[]>();

  /** @param load one query; what it does not find is missing from its answer */
  constructor(load: (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>) {
    this.#load = load;
  }

  read(id: string): Promise<Value | undefined> {
    return new Promise((resolve, reject) => {
      const reading = { resolve, reject };
      const others = this.#readings.get(id);
      if (others === undefined) this.#readings.set(id, [reading]);
      else others.push(reading);
    });
  }

  /** Called at the end of each turn. */
  flush(): void {
    if (this.#readings.size === 0) return;
    const readings = [...this.#readings];
    this.#readings = new Map();
    for (let first = 0; first < readings.length; first += IDS_PER_QUERY) {
      this.#query(readings.slice(first, first + IDS_PER_QUERY));
    }
  }

  #query(readings: readonly (readonly [id: string, readers: readonly Reading<Value>[]])[]): void {
    this.#load(readings.map(([id]) => id)).then(
      (found) => {
        for (const [id, readers] of readings) {
          for (const { resolve } of readers) resolve(found.get(id));
        }
      },
      (error: unknown) => {
        for (const { reject } of readings.flatMap(([, readers]) => readers)) reject(error);
      },
    );
  }
}
