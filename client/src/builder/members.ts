/** The members of blocks as the server takes them: conditions and templates as texts, and nothing that is undefined. */

import type { Block, StepBlock } from '../generated/types.js';
import { conditionText, refTo, rendered, type Untyped } from './expressions.js';
import type { BlockOptions, StepOptions } from './options.js';

const rootOf = (...path: readonly string[]) =>
  new Proxy(
    {},
    { get: (_, name) => (typeof name === 'string' ? refTo([...path, name]) : undefined) },
  );

export const ERROR = refTo<Untyped>(['data', '_error']);

/** One for all places: what may be named where is a matter of types. */
const SCOPE = {
  input: refTo(['data']),
  outputs: rootOf('outputs'),
  answers: rootOf('data'),
  config: refTo(['config']),
  runtime: refTo(['runtime']),
  instanceId: refTo(['instance_id']),
  secrets: refTo(['secrets']),
  error: ERROR,
} as const;

export function given(what: unknown): unknown {
  return typeof what === 'function' ? what(SCOPE) : what;
}

export const conditionOf = (condition: unknown) => conditionText(given(condition));

/** The block without members that are undefined. */
export function compact<T extends object>(block: T): T {
  return Object.fromEntries(
    Object.entries(block).filter(([, member]) => member !== undefined),
  ) as T;
}

export function headOf({ when, timeout }: BlockOptions<never, unknown>) {
  return { when: when && conditionOf(when), timeout };
}

/** The handlers of the engine: no worker is asked for them. */
export const BUILTIN_NAMES = [
  'noop',
  'log',
  'sleep',
  'wait_for_event',
  'http_request',
  'fail',
  'transform',
  'assert',
] as const;
const BUILTIN: ReadonlySet<string> = new Set(BUILTIN_NAMES);

/**
 * What a saga may have to take back, as far as a worker or another server does it in one step, ends before the signal
 * `cancel` takes effect, unless it says otherwise: one that was cut off halfway is never taken back.
 */
export function takenBack(action: readonly Block[]): readonly Block[] {
  const [only, ...others] = action;
  if (only?.type !== 'step' || others.length > 0) return action;
  const isOutside = !BUILTIN.has(only.handler) || only.handler === 'http_request';
  return isOutside ? [{ cancellable: false, ...only }] : action;
}

/** What is in a step before it is made. */
interface StepParts extends StepOptions<never, unknown, string, string, string> {
  readonly handler: string;
  readonly params?: unknown;
}

/**
 * The outputs of workers are not merged into the data, unless the step says so: then the input stays what its type
 * says.
 */
export function stepBlock(id: string, step: object): StepBlock {
  const { handler, params, retry, wait_for_input, on_deadline_breach, ...plain } =
    step as StepParts;
  const { when, timeout, ...others } = plain;
  return compact<StepBlock>({
    type: 'step',
    id,
    handler,
    params: paramsOf(handler, given(params)),
    ...headOf({ when, timeout }),
    ...(BUILTIN.has(handler) ? {} : { merge_output: false }),
    ...others,
    retry: retry && compact({ ...retry, retry_if: retry.retry_if && conditionOf(retry.retry_if) }),
    on_deadline_breach:
      on_deadline_breach &&
      compact({
        ...on_deadline_breach,
        params: rendered(given(on_deadline_breach.params)) as object,
      }),
    wait_for_input:
      wait_for_input &&
      compact({ ...wait_for_input, prompt: rendered(given(wait_for_input.prompt)) as string }),
  });
}

/** An assertion is told as a text that the handler reads. */
function paramsOf(handler: string, params: unknown): object | undefined {
  if (params === undefined) return undefined;
  if (handler !== 'assert') return rendered(params) as object;
  const { condition, ...others } = params as { readonly condition: unknown };
  return { condition: rendered(conditionText(condition)), ...(rendered(others) as object) };
}
