/**
 * The control plane between the supervisor and its threads: rare calls over comlink. A proxy never settles
 * when its peer dies, so every call has a deadline, and the end of the thread rejects all of them.
 */

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs';
import type { LogFormat } from '../../src/base/log-output.js';

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
  close(reason: string): void;
}

/** What the supervisor passes to every thread. */
export interface ThreadTask {
  readonly connectionString: string;
  /** Names the sessions of this thread, and of no other. */
  readonly applicationName: string;
  readonly logLevel: string;
  readonly logFormat: LogFormat;
  /** The name of the cell in log lines, if any. */
  readonly cell: string | undefined;
  readonly control: MessagePort;
  /** Of the previous thread, whose counters this one continues. */
  readonly meter: SharedArrayBuffer;
}

export function serveControl(surface: object, port: MessagePort): void {
  Comlink.expose(surface, nodeEndpoint(port));
}

/** @param patient calls without the limit, such as waiting for an unavailable database */
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

/** The messages in the port that are not delivered yet. */
export function receiveAll<Message>(port: MessagePort): Message[] {
  const messages: Message[] = [];
  for (;;) {
    const received = receiveMessageOnPort(port) as { message: Message } | undefined;
    if (received === undefined) return messages;
    messages.push(received.message);
  }
}

/** Closes the control port of a thread when the reply to its current call has left. */
export function closeAfterReply(port: MessagePort, closed: () => void): void {
  setImmediate(() => {
    port.close();
    closed();
  });
}

function moved(argument: unknown): unknown {
  return argument instanceof globalThis.MessagePort
    ? Comlink.transfer(argument, [argument])
    : argument;
}
