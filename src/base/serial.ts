/** Runs tasks with the same key one after the other, in the order of arrival. */

import { unavailable } from './errors.js';

/** Waiting tasks per key. Further ones are refused, since their callers would not wait so long. */
const WAITING_MAX = 1_000;

export class Serial {
  readonly #lines = new Map<string, { tail: Promise<unknown>; length: number }>();

  /** @throws EngineError 503 when too many tasks wait; otherwise the error of the task */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key) ?? { tail: Promise.resolve(), length: 0 };
    if (line.length > WAITING_MAX) throw unavailable('ENG_OVERLOADED', 'too many requests wait');
    this.#lines.set(key, line);
    line.length += 1;
    const result = line.tail.then(work);
    line.tail = result
      .catch(() => undefined)
      .then(() => {
        line.length -= 1;
        if (line.length === 0) this.#lines.delete(key);
      });
    return result;
  }
}
