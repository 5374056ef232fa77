/**
 * What steps take and give. A program says it once for its own handlers, and gives the type to `sequence` and
 * to its `Worker`; the handlers of the engine are here (docs/reference/handlers.md).
 */

import type { HandlerFunction, HandlerWithSchemas, Output } from '../worker/handlers.js';
import type { Primitive, Term, Untyped, Value } from './expressions.js';

/** What a handler takes and gives, as JSON. */
export interface HandlerType {
  readonly params?: unknown;
  readonly output?: unknown;
}

/** The handlers of a program by their names: `{ charge: { params: {…}, output: {…} } }`. */
export type HandlerTypes<H> = { readonly [K in keyof H]: HandlerType };

/**
 * What does the work of the handlers: `new Worker(client, { handlers: {…} satisfies WorkerHandlers<Handlers> })`. One
 * that is missing, takes something else or gives something else does not compile.
 */
export type WorkerHandlers<H extends HandlerTypes<H>> = {
  readonly [K in keyof H]:
    | HandlerFunction<H[K]['params'], Given<H[K]['output']>>
    | HandlerWithSchemas<H[K]['params'], Given<H[K]['output']>>;
};
type Given<O> = unknown extends O ? Output : O;

/** Of a program that does not say which handlers it has. */
export interface AnyHandlers {
  readonly [name: string]: { readonly params: Untyped; readonly output: Untyped };
}

type LogParams = { readonly message?: unknown; readonly level?: 'debug' | 'info' | 'warn' };

/** Those of the engine that are steps like any other; `transform` and `wait_for_event` have methods of their own. */
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
      /** Null when it cannot be read; `body_problem` says why, and of what was replaced in it. */
      readonly body: string | null;
      readonly body_problem?: string;
      /** There when the answer says that it is JSON. */
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

/** Where parameters take a condition. */
interface Condition {
  readonly isCondition: true;
}

type BuiltinName = keyof BuiltinHandlers;

/** The names of the engine's own handlers that a step may name. */
export type HandlerName<H> = (keyof H & string) | BuiltinName;

type TypeOf<H, K> = K extends BuiltinName ? BuiltinHandlers[K] : K extends keyof H ? H[K] : never;

/** What a handler takes. */
export type ParamsOf<H, K> =
  TypeOf<H, K> extends { readonly params?: infer P } ? P : Record<never, never>;

/** What a handler gives. */
export type OutputOf<H, K> = TypeOf<H, K> extends { readonly output: infer O } ? O : Untyped;

/** A value, or what the engine makes of a template: here, or in any place within. */
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

/** What becomes of JSON with templates in it. */
export type Rendered<P> =
  P extends Value<infer T>
    ? T
    : P extends Primitive
      ? P
      : { readonly [K in keyof P]: Rendered<P[K]> };
