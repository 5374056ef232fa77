/**
 * Stands in for the handlers of a plan that wait or act outside, so that a replay has no effect: such a
 * step gives what its recording says. They are dispatched, sleeps and waits too, and whoever replays
 * answers them. Handlers that need nothing but their parameters are run as ever. The evaluator knows
 * nothing of it.
 */

import type { JsonObject } from '../../../src/base/json.js';
import type { StepOutcome } from '../../../src/core/builtin.js';
import type { Plan, PlanNode } from '../../../src/core/plan.js';
import type { StepNode, SubSequenceNode } from '../../../src/core/plan-nodes.js';
import { type Call, isSameCall, isSameRequest, placeOf, type RecordedCall } from './calls.js';
import {
  NotReplayable,
  type RecordedAnswer,
  type RecordedTry,
  type Recording,
} from './recording.js';

/** What a step gives that nothing is recorded of. */
const NOTHING: JsonObject = Object.freeze({});

/** A call at a place where another one was, or may have been, recorded. */
export interface OtherCall {
  readonly block: string;
  readonly place: string;
  /** Undefined: an event came, and who waited for it is not recorded. */
  readonly recorded: RecordedCall | undefined;
  readonly made: Call;
  /** It says the same as the step of the baseline, behind what nobody recorded: that may be why. */
  readonly isDoubtful: boolean;
}

/** Hands out a recording, step by step. */
export class Script {
  readonly recording: Recording;
  readonly #baseline: Plan;
  readonly #inputs: ReadonlyMap<string, string> | undefined;
  readonly otherCalls: OtherCall[] = [];
  /** Why it proves nothing that the ends agree: some step gave what nobody recorded. The first of them. */
  gap: string | undefined;

  /**
   * @param inputs what children were started with in the recorded run, by block and iteration; absent: what
   *   is replayed is that run, so that they are what it says
   */
  constructor(recording: Recording, baseline: Plan, inputs?: ReadonlyMap<string, string>) {
    this.recording = recording;
    this.#baseline = baseline;
    this.#inputs = inputs;
  }

  /**
   * What the recording says of this try, whatever it asks for; undefined when it says nothing.
   *
   * @throws NotReplayable when the step decides by more than is recorded
   */
  take(node: StepNode, iteration: string, attempt: number): RecordedTry | undefined {
    // What became of its gate says nothing of its handler, which was never called.
    if (this.hasExpired(node.id, iteration)) {
      this.#noteGap(node.id);
      return undefined;
    }
    const before = this.stepOf(node.id);
    const tries = this.recording.visits.get(node.id)?.get(iteration)?.tries ?? [];
    // Failures are those of a handler: another one might not have failed.
    const taken = (before?.handler === node.handler ? tries : tries.filter(isSuccess))[attempt];
    if (taken?.isKnown === false && choosesRetries(node)) {
      throw new NotReplayable(`how step ${node.id} failed before a retry is not recorded`);
    }
    return taken?.timedOut === true && node.retry === undefined ? forGood(taken) : taken;
  }

  /** The same, if it was recorded of this call; what it asks for is noted where it is another one. */
  takeFor(node: StepNode, iteration: string, attempt: number, made: Call): RecordedTry | undefined {
    const { visits, calls } = this.recording;
    const taken = this.take(node, iteration, attempt);
    const place = placeOf(node.id, iteration, attempt);
    const before = this.stepOf(node.id);
    const recorded = calls.get(place);
    // What came says nothing of who waited for it: the baseline is asked that.
    const isEvent = taken !== undefined && node.mode === 'event' && before?.mode === 'event';
    if (recorded === undefined && !isEvent) {
      // A sleep that failed is a failure of its own: it asks nobody.
      if (taken !== undefined && node.mode === 'sleep' && before?.mode === 'sleep') return taken;
      // Of a step that the run did not begin, not even that it loses a race is known.
      const isBegun = visits.get(node.id)?.has(iteration) === true || this.#wasBegun(node, before);
      if (taken !== undefined || !isBegun) this.#noteGap(node.id);
      return undefined;
    }
    if (recorded === undefined || !isSameCall(recorded, made)) {
      const isSaid = before !== undefined && isSameRequest(before, node);
      const isDoubtful = this.gap !== undefined && isSaid;
      this.otherCalls.push({ block: node.id, place, recorded, made, isDoubtful });
    }
    return taken;
  }

  /**
   * What the recording says of the child of a block: what became of another sequence, another version or
   * another input says nothing.
   *
   * @param input as text
   */
  takeChild(node: SubSequenceNode, iteration: string, input: string): RecordedTry | undefined {
    const before = this.#baseline.nodes[this.#baseline.indexOf.get(node.id) ?? -1];
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

  /** What a person said at the gate of the step; undefined when nothing is recorded of it. */
  answerAt(block: string, iteration: string): RecordedAnswer | undefined {
    return this.recording.answers.get(block)?.get(iteration);
  }

  /** Whether nobody answered in time, in that pass, or in any. */
  hasExpired(block: string, iteration?: string): boolean {
    const expired = this.recording.expired.get(block);
    return iteration === undefined ? expired !== undefined : expired?.has(iteration) === true;
  }

  /** Whether the block had failed by the end. */
  hasFailed(block: string): boolean {
    return this.recording.failedBlocks.has(block);
  }

  /** Whether the run had begun the step, although nothing is recorded of it. */
  #wasBegun(node: StepNode, before: StepNode | undefined): boolean {
    // Tasks are recorded in any case.
    if (before?.handler !== node.handler || node.mode === 'external') return false;
    // Of passes before the last one it is not known.
    return before.loops.length > 0 || this.recording.cutOff.has(node.id);
  }

  /** The step of the baseline. */
  stepOf(block: string): StepNode | undefined {
    const node = this.#baseline.nodes[this.#baseline.indexOf.get(block) ?? -1];
    return node?.type === 'step' ? node : undefined;
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

function forGood(taken: RecordedTry): RecordedTry {
  const { outcome } = taken;
  return outcome.kind === 'success'
    ? taken
    : { ...taken, outcome: { ...outcome, retryable: false } };
}

function isSuccess({ outcome }: RecordedTry): boolean {
  return outcome.kind === 'success';
}

function choosesRetries({ retry }: StepNode): boolean {
  return retry?.retryIf !== undefined || (retry?.nonRetryableCodes.size ?? 0) > 0;
}

/** The same plan, none of whose steps waits or acts outside. */
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
    // What took too long is recorded as a failure; nothing else can be too late.
    ...WITHOUT_LIMITS,
    gate,
    checkOutput:
      checkOutput && ((output) => (output === NOTHING ? undefined : checkOutput(output))),
  };
}

/** That nobody answers in time is recorded, or it does not happen. */
function gateOf({ id, gate }: StepNode, script: Script): StepNode['gate'] {
  return gate && (script.hasExpired(id) ? gate : { ...gate, timeoutMs: null });
}

/** Of steps, whose failures are recorded. */
const WITHOUT_LIMITS = { timeoutMs: null, queueTimeoutMs: null, deadlineMs: null } as const;

/**
 * The same plan, whose steps are all dispatched and wait for an answer. Time goes on behind what is recorded,
 * so that only blocks time out that have failed.
 */
export function withoutHandlers(plan: Plan, script: Script): Plan {
  const nodes = plan.nodes.map((node): PlanNode => {
    if (node.type !== 'step') {
      return node.timeoutMs === null || script.hasFailed(node.id)
        ? node
        : { ...node, timeoutMs: null };
    }
    const mode = node.mode === 'external' ? 'external' : 'in_process';
    return { ...node, mode, pure: undefined, ...WITHOUT_LIMITS, gate: gateOf(node, script) };
  });
  return { ...plan, nodes };
}
