/**
 * The control plane between the supervisor and its threads: rare calls over comlink. A proxy never settles
 * when its peer dies, so every call has a deadline, and the end of the thread rejects all of them.
 */

import type { MessagePort } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs';

/** Every method of a control surface as a promise; ports among the arguments are transferred. */
export type Remote<Surface> = {
  readonly [Name in keyof Surface]: Surface[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

export interface ControlLink<Surface> {
  readonly remote: Remote<Surface>;
  /** False once the thread is known to be gone. */
  readonly isOpen: boolean;
  /** Rejects pending calls and closes the port. */
  close(reason: string): void;
}

/** Serves a thread's control surface on its port. */
export function serveControl(surface: object, port: MessagePort): void {
  Comlink.expose(surface, nodeEndpoint(port));
}

/**
 * @param deadlineMs limit of a call
 * @param patient calls without a limit, such as waiting for an unavailable database
 */
export function linkControl<Surface extends object>(
  port: MessagePort,
  deadlineMs: number,
  patient: readonly (keyof Surface & string)[] = [],
): ControlLink<Surface> {
  const proxy = Comlink.wrap(nodeEndpoint(port)) as Record<
    string,
    (...args: unknown[]) => Promise<unknown>
  >;
  const pending = new Set<(error: Error) => void>();
  let isOpen = true;
  const call = (name: string, args: unknown[]) =>
    new Promise<unknown>((resolve, reject) => {
      const giveUp = () => reject(new Error(`${name}: no answer in time`));
      const isPatient = (patient as readonly string[]).includes(name);
      const timer = isPatient ? undefined : setTimeout(giveUp, deadlineMs);
      const settle = () => {
        clearTimeout(timer);
        pending.delete(fail);
      };
      const fail = (error: Error) => {
        settle();
        reject(error);
      };
      pending.add(fail);
      // Comlink proxies have no `this`; the method is looked up per call and kept by the closure.
      const method = proxy[name] as (...args: unknown[]) => Promise<unknown>;
      method(...args.map(moved)).then((value) => {
        settle();
        resolve(value);
      }, fail);
    });
  const remote = new Proxy({} as Remote<Surface>, {
    get:
      (_target, name) =>
      (...args: unknown[]) =>
        call(String(name), args),
  });
  return {
    remote,
    get isOpen() {
      return isOpen;
    },
    close(reason) {
      isOpen = false;
      for (const fail of [...pending]) fail(new Error(reason));
      port.close();
    },
  };
}

function moved(argument: unknown): unknown {
  return argument instanceof globalThis.MessagePort
    ? Comlink.transfer(argument, [argument])
    : argument;
}
