/** The call of a step: handler and parameters. A recorded result is evidence for the same call only. Pure. */

import { isJsonObject, type JsonValue, ownValue } from '../../../src/base/json.js';
import { sleepDuration } from '../../../src/core/builtin.js';
import type { Plan, PlanNode, StepNode } from '../../../src/core/plan-nodes.js';
import { canonicalJson, canonicalSha256 } from '../../../src/core/sealing/canonical-json.js';

export type Call = { readonly handler: string; readonly params: JsonValue };

/** Calls of in-process handlers are recorded as a hash only. */
export type RecordedCall = Call | { readonly sha256: string };
const MEMBERS_MAX = 20;

export function nodeNamed({ nodes, indexOf }: Plan, block: string): PlanNode | undefined {
  return nodes[indexOf.get(block) ?? -1];
}

export function stepNamed(plan: Plan, block: string): StepNode | undefined {
  const node = nodeNamed(plan, block);
  return node?.type === 'step' ? node : undefined;
}

/** Identifies one attempt of a step in one iteration. */
export function placeOf(block: string, iteration: string, attempt: number): string {
  return `${block}/${iteration}/${attempt}`;
}

/** A sleep is compared by its duration, regardless of the notation. */
export function callOf({ handler }: Pick<StepNode, 'handler'>, params: JsonValue): Call {
  const duration = handler === 'sleep' ? sleepDuration(params) : undefined;
  return { handler, params: duration?.ok === true ? sleepOf(duration.value) : params };
}

export function sleepOf(ms: JsonValue): JsonValue {
  return { duration_ms: ms };
}

export function isSameCall(recorded: RecordedCall, { handler, params }: Call): boolean {
  if ('sha256' in recorded) return recorded.sha256 === canonicalSha256({ handler, params });
  return recorded.handler === handler && canonicalJson(recorded.params) === canonicalJson(params);
}

/** Whether both steps exist and have the same unrendered request. */
export function isSameRequest(a: StepNode | undefined, b: StepNode | undefined): boolean {
  if (a === undefined || b === undefined || a.handler !== b.handler) return false;
  return JSON.stringify(a.params) === JSON.stringify(b.params);
}

/** Paths such as `params.body.amount`; `handler` when it differs; `params` when only hashes are known. */
export function differingMembers(recorded: RecordedCall, made: Call): string[] {
  if ('sha256' in recorded) return ['params'];
  if (recorded.handler !== made.handler) return ['handler'];
  const paths: string[] = [];
  collect('params', recorded.params, made.params, paths);
  return paths.slice(0, MEMBERS_MAX);
}

function collect(
  path: string,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  paths: string[],
): void {
  if (paths.length >= MEMBERS_MAX) return;
  if (before === undefined || after === undefined) {
    paths.push(path);
    return;
  }
  if (canonicalJson(before) === canonicalJson(after)) return;
  if (isJsonObject(before) && isJsonObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    for (const name of [...names].sort()) {
      collect(`${path}.${name}`, ownValue(before, name), ownValue(after, name), paths);
    }
    return;
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [i, item] of before.entries()) collect(`${path}.${i}`, item, after[i], paths);
    return;
  }
  paths.push(path);
}
