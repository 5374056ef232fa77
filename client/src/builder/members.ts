/**
 * Renders the members of blocks in the form that the server accepts: conditions and templates as text, undefined
 * members omitted.
 */

import type { Block, StepBlock } from '../generated/types.js';
import { conditionText, refTo, rendered, type Untyped } from './expressions.js';
import type { BlockOptions, StepOptions } from './options.js';

const rootOf = (...path: readonly string[]) =>
  new Proxy(
    {},
    { get: (_, name) => (typeof name === 'string' ? refTo([...path, name]) : undefined) },
  );

export const ERROR = refTo<Untyped>(['data', '_error']);

/** One scope for all places: types restrict what is available where. */
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

/** @param more what is available in this place only */
export function given(what: unknown, more: object = {}): unknown {
  return typeof what === 'function' ? what({ ...SCOPE, ...more }) : what;
}

export const conditionOf = (condition: unknown) => conditionText(given(condition));

/** The block without undefined members. */
export function compact<T extends object>(block: T): T {
  return Object.fromEntries(
    Object.entries(block).filter(([, member]) => member !== undefined),
  ) as T;
}

export function headOf({ when, timeout }: BlockOptions<never, unknown>) {
  return { when: when && conditionOf(when), timeout };
}

/** Built-in handlers, which run without a worker. */
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
 * Makes an action with a compensation finish before the signal `cancel` takes effect, unless set explicitly: an action
 * that was interrupted halfway is never compensated.
 */
export function takenBack(action: readonly Block[]): readonly Block[] {
  const [only, ...others] = action;
  if (only?.type !== 'step' || others.length > 0) return action;
  const isOutside = !BUILTIN.has(only.handler) || only.handler === 'http_request';
  return isOutside ? [{ cancellable: false, ...only }] : action;
}

/** The parts of a step before it is rendered. */
interface StepParts extends StepOptions<never, unknown, string, string, string> {
  readonly handler: string;
  readonly params?: unknown;
}

/** Outputs of workers are not merged into the data unless the step says so, so that the input keeps its type. */
export function stepBlock(id: string, step: object): StepBlock {
  const { handler, params, retry, wait_for_input, on_deadline_breach, ...more } = step as StepParts;
  const { rate_limit_key, reply, ...plain } = more;
  const taken =
    handler === 'wait_for_event'
      ? refTo(['outputs', id])
      : refTo(['data', wait_for_input?.store_as ?? id]);
  const { when, timeout, ...others } = plain;
  return compact<StepBlock>({
    type: 'step',
    id,
    handler,
    params: paramsOf(handler, given(params)),
    ...headOf({ when, timeout }),
    ...(BUILTIN.has(handler) ? {} : { merge_output: false }),
    ...others,
    rate_limit_key: rendered(given(rate_limit_key)) as string | undefined,
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
    reply: rendered(given(reply, { taken })) as StepBlock['reply'],
  });
}

/** An assertion is passed as text, which the handler evaluates. */
function paramsOf(handler: string, params: unknown): object | undefined {
  if (params === undefined) return undefined;
  if (handler !== 'assert') return rendered(params) as object;
  const { condition, ...others } = params as { readonly condition: unknown };
  return { condition: rendered(conditionText(condition)), ...(rendered(others) as object) };
}
