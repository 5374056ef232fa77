/**
 * Collects questions about tenants: one batch is asked at a time, and questions that arrive meanwhile form the next
 * batch. Equal questions share an answer. The number that waits is bounded.
 */

export interface QuestionOptions<Answer> {
  /** Asks one batch; a tenant without an answer gets undefined. */
  readonly ask: (tenants: readonly string[]) => Promise<ReadonlyMap<string, Answer>>;
  /** Of one batch. */
  readonly togetherMax: number;
  readonly waitingMax: number;
  /** Thrown when too many wait. */
  readonly tooMany: () => Error;
}

interface Asked<Answer> {
  readonly answer: Promise<Answer | undefined>;
  readonly resolve: (answer: Answer | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export class CollectedQuestions<Answer> {
  readonly #options: QuestionOptions<Answer>;
  /** By tenant, in the order of arrival, without the batch that is being asked. */
  readonly #waiting = new Map<string, Asked<Answer>>();
  readonly #asking = new Map<string, Asked<Answer>>();

  constructor(options: QuestionOptions<Answer>) {
    this.#options = options;
  }

  /** Rejects with what the batch rejected with. @throws the error of `tooMany` */
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
