/**
 * Actions that are sent some seconds after the user chose them, so that they can be taken back. Nothing is sent before,
 * and nothing is lost: what is held when the page is left is sent at once, and the browser asks before it leaves.
 */

export const HELD_MS = 5_000;

interface Held {
  readonly send: () => void;
  readonly onEnd: () => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

type Listener = () => void;

export class HeldActions {
  readonly #held = new Map<string, Held>();
  readonly #listeners = new Set<Listener>();

  /**
   * @param id holds one action; a second one for it is ignored
   * @param onEnd called once it is sent or taken back
   */
  hold(id: string, send: () => void, onEnd: () => void): void {
    if (this.#held.has(id)) return;
    const timer = setTimeout(() => this.#end(id)?.send(), HELD_MS);
    this.#held.set(id, { send, onEnd, timer });
    this.#tell();
  }

  has(id: string): boolean {
    return this.#held.has(id);
  }

  get size(): number {
    return this.#held.size;
  }

  /** @param id by default the last one */
  takeBack(id: string | undefined = [...this.#held.keys()].at(-1)): void {
    if (id !== undefined) this.#end(id);
  }

  sendAll(): void {
    for (const id of [...this.#held.keys()]) this.#end(id)?.send();
  }

  /** @returns a function that ends it */
  readonly subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  #end(id: string): Held | undefined {
    const held = this.#held.get(id);
    if (held === undefined) return undefined;
    clearTimeout(held.timer);
    this.#held.delete(id);
    held.onEnd();
    this.#tell();
    return held;
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
