/** Whether the page is being left: requests are then sent so that they outlive it. */

/** The user may stay after all: then requests are as usual again. */
const LEAVING_MS = 1_000;

let leaving = 0;

export const isLeaving = () => leaving > 0;

/** @param send starts requests, in this task or its microtasks */
export function leave(send: () => void): void {
  leaving += 1;
  setTimeout(() => {
    leaving -= 1;
  }, LEAVING_MS);
  send();
}

/** Requests with `keepalive` have bodies of up to 64 KiB in all. */
export const leavingFetch: typeof fetch = (input, init) =>
  fetch(input, isLeaving() ? { ...init, keepalive: true } : init);
