/**
 * Replaces the handlers of a plan that wait or have external effects, so that a replay has none: their steps, including
 * sleeps and waits, are dispatched, and the replay answers with recorded results. Handlers that depend only on their
 * parameters run normally.
 */

import type { JsonObject } from '../../../src/base/json.js';
import type { StepOutcome } from '../../../src/core/builtin.js';
import type { Plan, PlanNode, StepNode, SubSequenceNode } from '../../../src/core/plan-nodes.js';
import {
  type Call,
  isSameCall,
  isSameRequest,
  nodeNamed,
  placeOf,
  type RecordedCall,
  stepNamed,
} from './calls.js';
import {
  NotReplayable,
  type RecordedAnswer,
  type RecordedTry,
  type Recording,
} from './recording.js';

const NOTHING: JsonObject = Object.freeze({});

/** A call that differs from the recorded one, or may differ. */
export interface OtherCall {
  readonly block: string;
  readonly place: string;
  /** Undefined for an event, whose waiter is not recorded. */
  readonly recorded: RecordedCall | undefined;
  readonly made: Call;
  /** Unrecorded data may explain the difference, because the request is the same as in the baseline. */
  readonly isDoubtful: boolean;
}

export class Script {
  readonly recording: Recording;
  readonly #baseline: Plan;
  readonly #inputs: ReadonlyMap<string, string> | undefined;
  readonly otherCalls: OtherCall[] = [];
  /** The first step with an unrecorded output. Equal end states then prove nothing. */
  gap: string | undefined;

  /** @param inputs of recorded children, by block and iteration; undefined for a replay of the baseline */
  constructor(recording: Recording, baseline: Plan, inputs?: ReadonlyMap<string, string>) {
    this.recording = recording;
    this.#baseline = baseline;
    this.#inputs = inputs;
  }

  /** The recorded result, whatever the call. @throws NotReplayable when a retry needs an unrecorded failure */
  take(node: StepNode, iteration: string, attempt: number): RecordedTry | undefined {
    // The handler behind an expired gate was never called.
    if (this.hasExpired(node.id, iteration)) {
      this.#noteGap(node.id);
      return undefined;
    }
    const before = this.stepOf(node.id);
    const tries = this.recording.visits.get(node.id)?.get(iteration)?.tries ?? [];
    // Another handler might not have failed.
    const taken = (
      before?.handler === node.handler
        ? tries
        : tries.filter(({ outcome }) => outcome.kind === 'success')
    )[attempt];
    if (taken?.isKnown === false && choosesRetries(node)) {
      throw new NotReplayable(`how step ${node.id} failed before a retry is not recorded`);
    }
    return taken?.timedOut === true && node.retry === undefined ? permanent(taken) : taken;
  }

  /** The recorded result. A call that differs is added to `otherCalls`. */
  takeFor(node: StepNode, iteration: string, attempt: number, made: Call): RecordedTry | undefined {
    const { visits, calls } = this.recording;
    const taken = this.take(node, iteration, attempt);
    const place = placeOf(node.id, iteration, attempt);
    const before = this.stepOf(node.id);
    const recorded = calls.get(place);
    // An event does not record its waiter, so the step of the baseline is compared.
    const isEvent = taken !== undefined && node.mode === 'event' && before?.mode === 'event';
    if (recorded === undefined && !isEvent) {
      // A sleep that failed made no call.
      if (taken !== undefined && node.mode === 'sleep' && before?.mode === 'sleep') return taken;
      // A step that the run did not begin has no known result; it might even win a race.
      const isBegun = visits.get(node.id)?.has(iteration) === true || this.#wasBegun(node, before);
      if (taken !== undefined || !isBegun) this.#noteGap(node.id);
      return undefined;
    }
    if (recorded === undefined || !isSameCall(recorded, made)) {
      const isDoubtful = this.gap !== undefined && isSameRequest(before, node);
      this.otherCalls.push({ block: node.id, place, recorded, made, isDoubtful });
    }
    return taken;
  }

  /** Undefined for another sequence, version or input. @param input as text */
  takeChild(node: SubSequenceNode, iteration: string, input: string): RecordedTry | undefined {
    const before = nodeNamed(this.#baseline, node.id);
    const isSame =
      before?.type === 'sub_sequence' &&
      before.sequenceName === node.sequenceName &&
      before.version === node.version &&
      before.loops.length === node.loops.length &&
      (this.#inputs === undefined || this.#inputs.get(`${node.id}/${iteration}`) === input);
    const visit = isSame ? this.recording.visits.get(node.id)?.get(iteration) : undefined;
    const taken = visit?.tries.at(-1);
    const wasBegun = isSame && (node.loops.length > 0 || this.recording.cutOff.has(node.id));
    if (taken === undefined && !wasBegun) this.#noteGap(node.id);
    return taken;
  }

  answerAt(block: string, iteration: string): RecordedAnswer | undefined {
    return this.recording.answers.get(`${block}/${iteration}`);
  }

  /** @param iteration default: any */
  hasExpired(block: string, iteration?: string): boolean {
    const expired = this.recording.expired.get(block);
    return iteration === undefined ? expired !== undefined : expired?.has(iteration) === true;
  }

  hasFailed(block: string): boolean {
    return this.recording.failedBlocks.has(block);
  }

  /** Whether the run may have begun the step without a record. */
  #wasBegun(node: StepNode, before: StepNode | undefined): boolean {
    // Worker tasks are always recorded.
    if (before?.handler !== node.handler || node.mode === 'external') return false;
    // The execution does not show earlier iterations.
    return before.loops.length > 0 || this.recording.cutOff.has(node.id);
  }

  stepOf(block: string): StepNode | undefined {
    return stepNamed(this.#baseline, block);
  }

  outcomeOf(block: string, taken: RecordedTry | undefined): StepOutcome {
    if (taken !== undefined) return taken.outcome;
    this.#noteGap(block);
    return { kind: 'success', output: NOTHING };
  }

  #noteGap(block: string): void {
    this.gap ??= `step ${block} makes a call that nobody recorded`;
  }
}

function permanent(taken: RecordedTry): RecordedTry {
  const { outcome } = taken;
  if (outcome.kind === 'success') return taken;
  return { ...taken, outcome: { ...outcome, retryable: false } };
}

function choosesRetries({ retry }: StepNode): boolean {
  return retry?.retryIf !== undefined || (retry?.nonRetryableCodes.size ?? 0) > 0;
}

/** The plan for a replay to the end. */
export function withStandIns(plan: Plan, script: Script): Plan {
  const nodes = plan.nodes.map(
    (node): PlanNode => (node.type === 'step' ? standIn(node, script) : node),
  );
  return { ...plan, nodes };
}

function standIn(node: StepNode, script: Script): StepNode {
  const { checkOutput } = node;
  const gate = gateOf(node, script);
  if (node.mode === 'pure') return { ...node, gate };
  return {
    ...node,
    mode: node.mode === 'sleep' || node.mode === 'event' ? 'in_process' : node.mode,
    // The recording has timeouts as failures.
    ...WITHOUT_LIMITS,
    gate,
    checkOutput:
      checkOutput && ((output) => (output === NOTHING ? undefined : checkOutput(output))),
  };
}

/** A gate expires only if the recording has the expiry. */
function gateOf({ id, gate }: StepNode, script: Script): StepNode['gate'] {
  return gate && (script.hasExpired(id) ? gate : { ...gate, timeoutMs: null });
}

const WITHOUT_LIMITS = { timeoutMs: null, queueTimeoutMs: null, deadlineMs: null } as const;

/** The plan for a replay to a position: all steps are dispatched, and only blocks that failed in the run may time out. */
export function withoutHandlers(plan: Plan, script: Script): Plan {
  const nodes = plan.nodes.map((node): PlanNode => {
    if (node.type !== 'step') {
      return script.hasFailed(node.id) ? node : { ...node, timeoutMs: null };
    }
    const mode = node.mode === 'external' ? 'external' : 'in_process';
    return { ...node, mode, pure: undefined, ...WITHOUT_LIMITS, gate: gateOf(node, script) };
  });
  return { ...plan, nodes };
}
