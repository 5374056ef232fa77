/**
 * One direction of a port between two threads: what is posted arrives later, in its order, and not
 * at all when one of the two threads has died before. What arrives before anybody listens is kept.
 */

import type { Thread, World } from './world.js';

export class Pipe<Post> {
  readonly from: Thread;
  readonly to: Thread;
  readonly #world: World;
  #listener: ((post: Post) => void) | undefined;
  #inFlight: Post[] = [];
  #lastArrival = 0;
  #isClosed = false;

  constructor(world: World, from: Thread, to: Thread) {
    this.#world = world;
    this.from = from;
    this.to = to;
  }

  listen(listener: (post: Post) => void): void {
    this.#listener = listener;
    this.takeAll().forEach((post) => {
      this.post(post);
    });
  }

  post(post: Post): void {
    if (this.#isClosed || !this.from.isAlive) return;
    this.#inFlight.push(post);
    const at = this.#world.now + this.#world.latency(0.005, 0.3);
    this.#lastArrival = Math.max(at, this.#lastArrival);
    this.#world.at(this.#lastArrival, () => this.#arrive(), this.to);
  }

  /** What was posted and has not arrived: it does not arrive by itself any more. */
  takeAll(): Post[] {
    const posts = this.#inFlight;
    this.#inFlight = [];
    return posts;
  }

  close(): void {
    this.#isClosed = true;
    this.#inFlight = [];
  }

  #arrive(): void {
    if (this.#listener === undefined || this.#isClosed) return;
    const post = this.#inFlight.shift();
    if (post !== undefined) this.#listener(post);
  }
}
