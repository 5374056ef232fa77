/**
 * Batches lookups of tenants: while one batch is asked, later questions form the next one. Equal questions share an
 * answer, and the number of waiting questions is bounded.
 */

interface QuestionOptions<Answer> {
  /** Asks one batch; a tenant without an answer gets undefined. */
  readonly ask: (tenants: readonly string[]) => Promise<ReadonlyMap<string, Answer>>;
  readonly togetherMax: number;
  readonly waitingMax: number;
  readonly tooMany: () => Error;
}

export class CollectedQuestions<Answer> {
  readonly #options: QuestionOptions<Answer>;
  readonly #answers = new Map<string, Promise<Answer | undefined>>();
  /** In order of arrival, without the batch that is being asked. */
  readonly #waiting = new Map<
    string,
    { resolve(answer: Answer | undefined): void; reject(error: unknown): void }
  >();
  #isAsking = false;

  constructor(options: QuestionOptions<Answer>) {
    this.#options = options;
  }

  /** Rejects with the error of the batch. @throws the error of `tooMany` */
  about(tenant: string): Promise<Answer | undefined> {
    const pending = this.#answers.get(tenant);
    if (pending !== undefined) return pending;
    const { waitingMax, tooMany } = this.#options;
    if (this.#waiting.size >= waitingMax) throw tooMany();
    const answer = new Promise<Answer | undefined>((resolve, reject) => {
      this.#waiting.set(tenant, { resolve, reject });
    });
    this.#answers.set(tenant, answer);
    if (!this.#isAsking && this.#waiting.size === 1) queueMicrotask(() => this.#ask());
    return answer;
  }

  async #ask(): Promise<void> {
    const { ask, togetherMax } = this.#options;
    this.#isAsking = true;
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, togetherMax);
      for (const [tenant] of batch) this.#waiting.delete(tenant);
      try {
        const answers = await ask(batch.map(([tenant]) => tenant));
        for (const [tenant, { resolve }] of batch) resolve(answers.get(tenant));
      } catch (error) {
        for (const [, { reject }] of batch) reject(error);
      }
      for (const [tenant] of batch) this.#answers.delete(tenant);
    }
    this.#isAsking = false;
  }
}
