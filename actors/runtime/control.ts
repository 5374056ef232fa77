/**
 * The control plane between the supervisor and its threads: rare calls over comlink. A comlink proxy never
 * settles when its peer dies, so every call has a deadline, and the end of the thread rejects all of them.
 */

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs';
import type { LogFormat } from '../../src/base/log-output.js';

export type Remote<Surface> = {
  readonly [Name in keyof Surface]: Surface[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

export interface ControlLink<Surface> {
  readonly remote: Remote<Surface>;
  readonly isOpen: boolean;
  close(reason: string): void;
}

export interface ThreadTask {
  readonly connectionString: string;
  /** Unique to the sessions of this thread. */
  readonly applicationName: string;
  readonly logLevel: string;
  readonly logFormat: LogFormat;
  readonly cell: string | undefined;
  readonly control: MessagePort;
  /** Continues the counters of the previous thread. */
  readonly meter: SharedArrayBuffer;
}

export function serveControl(surface: object, port: MessagePort): void {
  Comlink.expose(surface, nodeEndpoint(port));
}

/** @param patient calls without a deadline, such as those that wait for an unavailable database */
export function linkControl<Surface extends object>(
  port: MessagePort,
  deadlineMs: number,
  patient: readonly (keyof Surface & string)[] = [],
): ControlLink<Surface> {
  type Method = (...args: unknown[]) => Promise<unknown>;
  const proxy = Comlink.wrap(nodeEndpoint(port)) as Record<string, Method>;
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
      // A method of a comlink proxy is called without `this`.
      const method = proxy[name] as Method;
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

export function receiveAll<Message>(port: MessagePort): Message[] {
  const messages: Message[] = [];
  for (;;) {
    const received = receiveMessageOnPort(port) as { message: Message } | undefined;
    if (received === undefined) return messages;
    messages.push(received.message);
  }
}

/** Closes the control port once the reply to its current call is sent. */
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
