/**
 * Reads of many actors in one query. What is asked for in one go, in a turn of the shard or by the
 * actors of one window of rows, is asked of the database when that has come to its end.
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

  /** @param load one query; answers in the order in which it was asked */
  constructor(load: (asks: readonly Ask[]) => Promise<readonly Value[]>) {
    this.#load = load;
  }

  read(ask: Ask): Promise<Value> {
    // A microtask: it comes behind everything that goes on by itself, and before anything else.
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
