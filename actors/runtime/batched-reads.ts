/**
 * Reads the rows of many actors in one query: requests of one turn of the shard, or of one window of rows,
 * are collected until it ends.
 */

interface Reading<Ask, Value> {
  readonly ask: Ask;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

const ASKS_PER_QUERY = 500;

export class BatchedReads<Ask, Value> {
  readonly #load: (asks: readonly Ask[]) => Promise<readonly Value[]>;
  #readings: Reading<Ask, Value>[] = [];

  /** @param load one query; its results are in the order of the requests */
  constructor(load: (asks: readonly Ask[]) => Promise<readonly Value[]>) {
    this.#load = load;
  }

  read(ask: Ask): Promise<Value> {
    // A microtask: it runs after everything already scheduled, and before any other event.
    if (this.#readings.length === 0) queueMicrotask(() => this.#flush());
    return new Promise((resolve, reject) => this.#readings.push({ ask, resolve, reject }));
  }

  #flush(): void {
    const readings = this.#readings;
    this.#readings = [];
    for (let first = 0; first < readings.length; first += ASKS_PER_QUERY) {
      void this.#query(readings.slice(first, first + ASKS_PER_QUERY));
    }
  }

  async #query(readings: readonly Reading<Ask, Value>[]): Promise<void> {
    try {
      const values = await this.#load(readings.map(({ ask }) => ask));
      for (const [at, { resolve }] of readings.entries()) resolve(values[at] as Value);
    } catch (error) {
      for (const { reject } of readings) reject(error);
    }
  }
}
