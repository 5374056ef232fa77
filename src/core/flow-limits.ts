/** The limits of a sequence by keys: compiled once, rendered at each creation. Pure. */

import {
  type FLOW_KEYS,
  type FlowLimits,
  SEQUENCE_KEY_PREFIX,
  type WhenFull,
} from '../../schema/flow-limits.js';
import type { JsonObject } from '../base/json.js';
import { EMPTY_SCOPE } from './expression/scope.js';
import { compileKey, type KeyTemplate, renderKey } from './key-params.js';
import { type Parsed, parsing, Refusal } from './parsed.js';

interface KeyPlan {
  /** Undefined: one key for all instances. */
  readonly key: KeyTemplate | undefined;
  readonly limit: number;
}

export interface ConcurrencyPlan extends KeyPlan {
  readonly whenFull: WhenFull;
}

export interface ThrottlePlan extends KeyPlan {
  readonly perMs: number;
  readonly burst: number;
}

export interface FlowPlan {
  readonly concurrency: ConcurrencyPlan | undefined;
  readonly throttle: ThrottlePlan | undefined;
}

/** Undefined without limits. */
export function compileFlow({ concurrency, throttle }: FlowLimits): FlowPlan | undefined {
  if (concurrency == null && throttle == null) return undefined;
  return {
    concurrency:
      concurrency == null
        ? undefined
        : {
            key: templateOf('concurrency', concurrency.key),
            limit: concurrency.limit,
            whenFull: concurrency.when_full ?? 'queue',
          },
    throttle:
      throttle == null
        ? undefined
        : {
            key: templateOf('throttle', throttle.key),
            limit: throttle.limit,
            perMs: throttle.per_ms,
            burst: throttle.burst ?? throttle.limit,
          },
  };
}

const templateOf = (member: (typeof FLOW_KEYS)[number], key: string | null | undefined) =>
  key == null ? undefined : compileKey(`${member}.key`, key);

/** What a key is rendered from: the creation, before there is an instance. */
export interface Creating {
  readonly id: string;
  readonly namespace: string;
  readonly data: JsonObject;
  readonly config: JsonObject;
}

/** The keys of one instance, which it keeps for life. */
export interface FlowKeys {
  readonly concurrency_key: string | null;
  readonly max_concurrency: number | null;
  readonly throttle_key: string | null;
}

export const NO_FLOW_KEYS: FlowKeys = {
  concurrency_key: null,
  max_concurrency: null,
  throttle_key: null,
};

/** Names the member without a key, and why; null: there is a key for each. */
export function keyProblem(
  flow: FlowPlan,
  sequence: string | null,
  creating: Creating,
): string | null {
  const parsed = flowKeysOf(flow, sequence, creating);
  return parsed.ok ? null : parsed.message;
}

/** Keys name the sequence, so that all its versions share them, and no other sequence or caller does. */
export function flowKeysOf(
  { concurrency, throttle }: FlowPlan,
  sequence: string | null,
  creating: Creating,
): Parsed<FlowKeys> {
  return parsing(() => ({
    concurrency_key: concurrency === undefined ? null : keyOf(concurrency, sequence, creating),
    max_concurrency: concurrency?.limit ?? null,
    throttle_key: throttle === undefined ? null : keyOf(throttle, sequence, creating),
  }));
}

function keyOf({ key }: KeyPlan, sequence: string | null, creating: Creating): string {
  const [namespace, name] = [creating.namespace, sequence ?? ''].map(encodeURIComponent);
  const whole = `${SEQUENCE_KEY_PREFIX}${namespace}/${name}`;
  if (key === undefined) return whole;
  const { id, data, config } = creating;
  const rendered = renderKey(key, { ...EMPTY_SCOPE, data, config, instanceId: id });
  if (!rendered.ok) throw new Refusal(rendered.message);
  return `${whole}:${rendered.value}`;
}
