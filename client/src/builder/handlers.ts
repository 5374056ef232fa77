/**
 * The parameter and output types of handlers. A program declares those of its own handlers once and passes the type to
 * `sequence` and to its `Worker`; those of built-in handlers are here (docs/reference/handlers.md).
 */

import type { HandlerFunction, HandlerWithSchemas, Output } from '../worker/handlers.js';
import type { Primitive, Term, Untyped, Value } from './expressions.js';

/** The parameters and the output of a handler, as JSON. */
export interface HandlerType {
  readonly params?: unknown;
  readonly output?: unknown;
}

/** The handlers of a program by name: `{ charge: { params: {…}, output: {…} } }`. */
export type HandlerTypes<H> = { readonly [K in keyof H]: HandlerType };

/**
 * The implementations of the handlers: `new Worker(client, { handlers: {…} satisfies WorkerHandlers<Handlers> })`. A
 * handler that is missing or has other types does not compile.
 */
export type WorkerHandlers<H extends HandlerTypes<H>> = {
  readonly [K in keyof H]:
    | HandlerFunction<H[K]['params'], Given<H[K]['output']>>
    | HandlerWithSchemas<H[K]['params'], Given<H[K]['output']>>;
};
type Given<O> = unknown extends O ? Output : O;

/** For a program that does not declare its handlers. */
export interface AnyHandlers {
  readonly [name: string]: { readonly params: Untyped; readonly output: Untyped };
}

type LogParams = { readonly message?: unknown; readonly level?: 'debug' | 'info' | 'warn' };

/** Built-in handlers used as ordinary steps; `transform` and `wait_for_event` have their own methods. */
export interface BuiltinHandlers {
  readonly noop: {
    readonly params?: { readonly [name: string]: never };
    readonly output: Record<never, never>;
  };
  readonly log: { readonly params?: LogParams; readonly output: { readonly message: Untyped } };
  readonly sleep: {
    readonly params?: { readonly duration_ms?: number };
    readonly output: { readonly slept_ms: number };
  };
  readonly http_request: {
    readonly params: {
      readonly url: string;
      readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD';
      readonly headers?: { readonly [name: string]: string };
      readonly body?: unknown;
      readonly timeout_ms?: number;
    };
    readonly output: {
      readonly status: number;
      readonly headers: { readonly [name: string]: string };
      /** Null if it cannot be read; `body_problem` then has the reason, also for characters that were replaced. */
      readonly body: string | null;
      readonly body_problem?: string;
      /** Set if the response declares JSON. */
      readonly json?: Untyped;
    };
  };
  readonly fail: {
    readonly params?: { readonly message?: unknown; readonly retryable?: boolean };
    readonly output: never;
  };
  readonly assert: {
    readonly params: { readonly condition: Condition; readonly message?: unknown };
    readonly output: { readonly condition: string; readonly passed: true };
  };
}

/** Where parameters include a condition. */
interface Condition {
  readonly isCondition: true;
}

type BuiltinName = keyof BuiltinHandlers;

/** The names of handlers that a step may use. */
export type HandlerName<H> = (keyof H & string) | BuiltinName;

type TypeOf<H, K> = K extends BuiltinName ? BuiltinHandlers[K] : K extends keyof H ? H[K] : never;

/** The parameters of a handler. */
export type ParamsOf<H, K> =
  TypeOf<H, K> extends { readonly params?: infer P } ? P : Record<never, never>;

/** The output of a handler. */
export type OutputOf<H, K> = TypeOf<H, K> extends { readonly output: infer O } ? O : Untyped;

/** A value, or a template that produces it: as a whole, or at any depth. */
export type Templated<T> = unknown extends T
  ? AnyTemplated
  : [T] extends [Condition]
    ? Term<unknown>
    : Value<T> | Literal<T>;

type Literal<T> = T extends Primitive | undefined
  ? T
  : { readonly [K in keyof T]: Templated<T[K]> };

/** Any JSON with templates in it. */
export type AnyTemplated =
  | Primitive
  | undefined
  | Value<unknown>
  | readonly AnyTemplated[]
  | { readonly [name: string]: AnyTemplated };

/** The type of JSON after its templates are filled in. */
export type Rendered<P> =
  P extends Value<infer T>
    ? T
    : P extends Primitive
      ? P
      : { readonly [K in keyof P]: Rendered<P[K]> };
