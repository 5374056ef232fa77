/**
 * Questions about tenants that are asked together: one of many at a time, and whoever comes meanwhile is in the
 * next one. Those about one tenant share an answer. How many may wait is bounded.
 */

export interface GatheredOptions<Answer> {
  /** One question; who is missing in its answer is given undefined. */
  readonly ask: (tenants: readonly string[]) => Promise<ReadonlyMap<string, Answer>>;
  /** Of one question. */
  readonly togetherMax: number;
  readonly waitingMax: number;
  /** What is thrown when too many wait. */
  readonly tooMany: () => Error;
}

interface Asked<Answer> {
  readonly answer: Promise<Answer | undefined>;
  readonly resolve: (answer: Answer | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export class Gathered<Answer> {
  readonly #options: GatheredOptions<Answer>;
  /** By tenant, in the order in which they came; those that are being asked about are not among them. */
  readonly #waiting = new Map<string, Asked<Answer>>();
  readonly #asking = new Map<string, Asked<Answer>>();

  constructor(options: GatheredOptions<Answer>) {
    this.#options = options;
  }

  /** Rejects with what the question rejected with. @throws what `tooMany` gives */
  about(tenant: string): Promise<Answer | undefined> {
    const asked = this.#asking.get(tenant) ?? this.#waiting.get(tenant);
    if (asked !== undefined) return asked.answer;
    const { waitingMax, tooMany } = this.#options;
    if (this.#waiting.size >= waitingMax) throw tooMany();
    const made = newAsked<Answer>();
    this.#waiting.set(tenant, made);
    if (this.#asking.size === 0 && this.#waiting.size === 1) queueMicrotask(() => this.#next());
    return made.answer;
  }

  #next(): void {
    if (this.#asking.size > 0) return;
    for (const [tenant, asked] of this.#waiting) {
      if (this.#asking.size >= this.#options.togetherMax) break;
      this.#waiting.delete(tenant);
      this.#asking.set(tenant, asked);
    }
    if (this.#asking.size > 0) void this.#ask();
  }

  async #ask(): Promise<void> {
    try {
      const answers = await this.#options.ask([...this.#asking.keys()]);
      for (const [tenant, { resolve }] of this.#asking) resolve(answers.get(tenant));
    } catch (error) {
      for (const { reject } of this.#asking.values()) reject(error);
    }
    this.#asking.clear();
    this.#next();
  }
}

function newAsked<Answer>(): Asked<Answer> {
  let resolve: Asked<Answer>['resolve'] = () => undefined;
  let reject: Asked<Answer>['reject'] = () => undefined;
  const answer = new Promise<Answer | undefined>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { answer, resolve, reject };
}
