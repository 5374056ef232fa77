/** Which instances changed lately, and so which reads are behind. It reads no clock: times are handed in. */

/** A read that was begun this soon after a change may not show all that comes of it. */
const SETTLED_MS = 1500;

/** Only few instances are watched; others that changed need not be remembered for long. */
const REMEMBERED_MAX = 10_000;

export class Changes {
  #last = Number.NEGATIVE_INFINITY;
  readonly #byInstance = new Map<string, number>();

  /** @param at Unix milliseconds */
  note(instanceId: string, at: number): void {
    this.#last = at;
    this.#byInstance.delete(instanceId);
    this.#byInstance.set(instanceId, at);
    if (this.#byInstance.size <= REMEMBERED_MAX) return;
    const [oldest] = this.#byInstance.keys();
    if (oldest !== undefined) this.#byInstance.delete(oldest);
  }

  /**
   * @param scope one instance, all of them (`'all'`), or undefined for a read that follows no changes
   * @param readAt when the read was begun, in Unix milliseconds
   */
  isBehind(scope: string | undefined, readAt: number): boolean {
    if (scope === undefined) return false;
    const changedAt = scope === 'all' ? this.#last : this.#byInstance.get(scope);
    return changedAt !== undefined && readAt < changedAt + SETTLED_MS;
  }
}
