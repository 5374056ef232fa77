/** Runs a definition in this process, without a server: for unit tests of definitions. */

import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Outputs, SequenceRef } from '../client/run.js';
import type { CreateSequence, Failure, InstanceState, JsonValue } from '../generated/types.js';
import { durationMs } from './duration.js';
import { findServer } from './find-server.js';

/** A sequence of the builder, or a definition as JSON. */
export type Runnable<Input, Results extends object> =
  | (SequenceRef<Input, Results> & { readonly definition: object })
  | { readonly name?: string; readonly blocks: readonly object[] };

/** What a function in place of a handler gets besides the parameters. */
export interface HandlerCall {
  readonly blockId: string;
  /** From 0. */
  readonly attempt: number;
  /** Counters of the enclosing loops, such as `2.0`; '' outside of loops. */
  readonly iteration: string;
  readonly data: Readonly<Record<string, JsonValue>>;
  readonly config: Readonly<Record<string, JsonValue>>;
  /** The virtual time. */
  readonly now: Date;
}

/**
 * In place of a worker, or of `http_request`. What it returns is the output. An error is retried as the step says, unless
 * its member `retryable` is false, as with `FatalError`.
 */
// biome-ignore lint/suspicious/noExplicitAny: tests know what their steps pass
export type StubbedHandler = (params: any, call: HandlerCall) => unknown;

/** When it arrives, counted from the start: milliseconds, or text such as `2h`. Default: 0. */
interface Arriving {
  readonly after?: number | string;
  readonly payload?: unknown;
}

export interface RunDefinitionOptions<Input = object> {
  /** The input of a creation. With `batch`, the instance has the list of this item. */
  readonly data?: Input;
  /** With `batch`, in place of `data`: the inputs of several creations. */
  readonly items?: readonly Input[];
  readonly config?: object;
  readonly handlers?: Readonly<Record<string, StubbedHandler>>;
  /** By block: what a person answers, as the value or as `{value, comment}`. */
  readonly answers?: Readonly<Record<string, string | object>>;
  readonly signals?: readonly (Arriving & { readonly signal_type: string })[];
  readonly events?: readonly (Arriving & {
    readonly event_name: string;
    readonly correlation_key?: string | number;
  })[];
  /** By name: the definitions of child sequences, or functions from their input to their outputs by block. */
  readonly children?: Readonly<
    Record<string, { readonly blocks: readonly object[] } | ((input: object) => unknown)>
  >;
  /** The time at the start. Default: the time of the machine. */
  readonly now?: Date | string;
  readonly timezone?: string;
}

export interface DefinitionRun<Results extends object = Outputs> {
  /** Of the ended instance, or that in which it waits for what does not come. */
  readonly state: InstanceState;
  /** The last output of each block that has one, by block id. */
  readonly outputs: Results;
  readonly failure: Failure | null;
  readonly data: Readonly<Record<string, JsonValue>>;
  /** The calls of handlers, in order, also those of children. */
  readonly calls: readonly {
    readonly blockId: string;
    readonly handler: string;
    readonly iteration: string;
    readonly attempt: number;
    readonly params: Readonly<Record<string, JsonValue>>;
    readonly at: Date;
  }[];
  /** The `reply` of each step that took a signal or an answer and has one, in order. */
  readonly replies: readonly JsonValue[];
  /** The virtual time at the end: waits take no time. */
  readonly now: Date;
}

/**
 * Runs a definition with the server's own evaluator, in virtual time and without a database.
 *
 * @throws Error if the definition or the input is invalid, if a handler or child is missing, or if the package
 * `durable-workflow-engine` is not installed
 */
export async function run<Input, Results extends object = Outputs>(
  sequence: Runnable<Input, Results>,
  options: RunDefinitionOptions<NoInfer<Input>> = {},
): Promise<DefinitionRun<Results>> {
  const { runDefinition } = await loadTrial();
  const { data = {}, items, config = {}, handlers = {}, answers = {}, children = {} } = options;
  const { signals = [], events = [], now = new Date(), timezone = 'UTC' } = options;
  const arrivals = [...signals, ...events].map(({ after = 0, ...arrival }) => ({
    ...arrival,
    afterMs: durationMs(after),
  }));
  const started = new Date(now).getTime();
  if (Number.isNaN(started)) throw new TypeError('now is not a valid time');
  const found = Object.entries(children).map(([name, child]) => [
    name,
    typeof child === 'function' ? child : definitionOf(child),
  ]);
  return (await runDefinition(definitionOf(sequence), {
    ...(items !== undefined && { items: plain(items) }),
    ...{ data: plain(data), config: plain(config), handlers, answers, arrivals, timezone },
    children: Object.fromEntries(found),
    now: started,
  })) as DefinitionRun<Results>;
}

/** As it would be sent. */
const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

function definitionOf(sequence: object): CreateSequence {
  const definition = 'definition' in sequence ? (sequence.definition as object) : sequence;
  return { name: 'test', version: 1, ...definition } as CreateSequence;
}

interface TrialModule {
  runDefinition(definition: CreateSequence, options: object): Promise<unknown>;
}

let loaded: Promise<TrialModule> | undefined;

/** From the server's package, whose bundle has the evaluator. */
function loadTrial(): Promise<TrialModule> {
  loaded ??= import(pathToFileURL(path.join(path.dirname(findServer()), 'trial.js')).href);
  return loaded;
}
