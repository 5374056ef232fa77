/**
 * Stands in for every handler of a plan, built-in ones too, so that a replay has no effect:
 * a step gives what its recording says. Steps that the evaluator runs in place still do; all others
 * are dispatched, sleeps and waits too, and whoever replays answers them. The evaluator knows nothing of it.
 */

import type { PureContext, PureHandler, StepOutcome } from '../builtin.js';
import type { JsonObject, JsonValue } from '../json.js';
import type { Plan, PlanNode } from '../plan.js';
import type { StepNode, SubSequenceNode } from '../plan-nodes.js';
import {
  NotReplayable,
  type RecordedAnswer,
  type RecordedTry,
  type Recording,
  type Visit,
} from './recording.js';

/** What a step gives that nothing is recorded of. */
const NOTHING: JsonObject = Object.freeze({});

/** Hands out a recording, step by step. */
export class Script {
  readonly #recording: Recording;
  readonly #baseline: Plan;
  readonly #inputs: ReadonlyMap<string, string> | undefined;
  /** Of steps that stand in more or fewer loops than they did: the visits that have not begun. */
  readonly #moved = new Map<string, Visit[]>();
  readonly #begun = new Map<string, Visit | undefined>();
  /** Some step gave what nobody recorded: that the ends agree proves nothing. */
  hasGaps = false;

  /**
   * @param inputs what children were started with in the recorded run, by block and iteration; absent: what
   *   is replayed is that run, so that they are what it says
   */
  constructor(recording: Recording, baseline: Plan, inputs?: ReadonlyMap<string, string>) {
    this.#recording = recording;
    this.#baseline = baseline;
    this.#inputs = inputs;
  }

  /**
   * What the recording says of this try, undefined when it says nothing. Every try is asked for once,
   * in order.
   *
   * @throws NotReplayable when the step decides by more than is recorded
   */
  take(node: StepNode, iteration: string, attempt: number): RecordedTry | undefined {
    // What became of its gate says nothing of its handler, which was never called.
    if (this.hasExpired(node.id, iteration)) {
      this.hasGaps = true;
      return undefined;
    }
    const before = this.#stepOf(node.id);
    const visit =
      before === undefined || before.loops.length === node.loops.length
        ? this.#recording.visits.get(node.id)?.get(iteration)
        : this.#nextVisit(node.id, attempt);
    const tries = visit?.tries ?? [];
    // Failures are those of a handler: another one might not have failed.
    const taken = (before?.handler === node.handler ? tries : tries.filter(isSuccess))[attempt];
    // Of a step that the run did not begin, not even that it loses a race is known.
    if (taken === undefined && visit === undefined && !this.#wasBegun(node, before)) {
      this.hasGaps = true;
    }
    if (taken?.isKnown === false && choosesRetries(node)) {
      throw new NotReplayable(`how step ${node.id} failed before a retry is not recorded`);
    }
    return taken?.timedOut === true && node.retry === undefined ? forGood(taken) : taken;
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
    const visit = isSame ? this.#recording.visits.get(node.id)?.get(iteration) : undefined;
    const taken = visit?.tries.at(-1);
    const wasBegun = isSame && (node.loops.length > 0 || this.#recording.cutOff.has(node.id));
    if (taken === undefined && !wasBegun) this.hasGaps = true;
    return taken;
  }

  /** What a person said at the gate of the step; undefined when nothing is recorded of it. */
  answerAt(block: string, iteration: string): RecordedAnswer | undefined {
    return this.#recording.answers.get(block)?.get(iteration);
  }

  /** Whether nobody answered in time, in that pass, or in any. */
  hasExpired(block: string, iteration?: string): boolean {
    const expired = this.#recording.expired.get(block);
    return iteration === undefined ? expired !== undefined : expired?.has(iteration) === true;
  }

  /** Whether the run had begun the step, although nothing is recorded of it. */
  #wasBegun(node: StepNode, before: StepNode | undefined): boolean {
    // Tasks are recorded in any case.
    if (before?.handler !== node.handler || node.mode === 'external') return false;
    // Of passes before the last one it is not known.
    return before.loops.length > 0 || this.#recording.cutOff.has(node.id);
  }

  /**
   * A step without effect that failed, and was cut off while it waited for its next try, leaves no
   * trace: it is really asked.
   */
  retryOf(node: StepNode, params: JsonValue, context: PureContext): StepOutcome | undefined {
    const before = this.#stepOf(node.id);
    if (before?.handler !== node.handler || before.retry === undefined) return undefined;
    const outcome = node.pure?.(params, context);
    return outcome?.kind === 'failure' && outcome.retryable ? outcome : undefined;
  }

  #stepOf(block: string): StepNode | undefined {
    const node = this.#baseline.nodes[this.#baseline.indexOf.get(block) ?? -1];
    return node?.type === 'step' ? node : undefined;
  }

  /** The paths of its passes mean nothing here: they are taken in their order. */
  #nextVisit(block: string, attempt: number): Visit | undefined {
    const left = this.#moved.get(block) ?? [...(this.#recording.visits.get(block)?.values() ?? [])];
    this.#moved.set(block, left);
    if (attempt === 0) this.#begun.set(block, left.shift());
    return this.#begun.get(block);
  }

  outcomeOf(taken: RecordedTry | undefined): StepOutcome {
    if (taken !== undefined) return taken.outcome;
    this.hasGaps = true;
    return { kind: 'success', output: NOTHING };
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

/** The same plan, none of whose steps calls a handler. */
export function withStandIns(plan: Plan, script: Script): Plan {
  const nodes = plan.nodes.map(
    (node): PlanNode => (node.type === 'step' ? standIn(node, script) : node),
  );
  return { ...plan, nodes };
}

function standIn(node: StepNode, script: Script): StepNode {
  const { checkOutput } = node;
  const pure: PureHandler = (params, context) => {
    // The section of the engine has the number of the present try.
    const attempt = Number(context.scope.runtime.attempt);
    const taken = script.take(node, context.iteration, attempt);
    const retried = taken === undefined ? script.retryOf(node, params, context) : undefined;
    return retried ?? script.outcomeOf(taken);
  };
  return {
    ...node,
    mode: node.mode === 'sleep' || node.mode === 'event' ? 'in_process' : node.mode,
    pure: node.mode === 'pure' ? pure : undefined,
    // What took too long is recorded as a failure; nothing else can be too late.
    timeoutMs: null,
    gate: gateOf(node, script),
    checkOutput:
      checkOutput && ((output) => (output === NOTHING ? undefined : checkOutput(output))),
  };
}

/** That nobody answers in time is recorded, or it does not happen. */
function gateOf({ id, gate }: StepNode, script: Script): StepNode['gate'] {
  return gate && (script.hasExpired(id) ? gate : { ...gate, timeoutMs: null });
}

/** The same plan, whose steps are all dispatched and wait for an answer. */
export function withoutHandlers(plan: Plan, script: Script): Plan {
  const nodes = plan.nodes.map((node): PlanNode => {
    if (node.type !== 'step') return node;
    const mode = node.mode === 'external' ? 'external' : 'in_process';
    return { ...node, mode, pure: undefined, timeoutMs: null, gate: gateOf(node, script) };
  });
  return { ...plan, nodes };
}
