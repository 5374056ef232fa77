/** Replays an ended run with another version of its sequence and compares end state, steps and calls. Pure. */

import type { ChangedCall, Divergence } from '../../../schema/release.js';
import type { Plan } from '../../../src/core/plan.js';
import { differingMembers, isSameCall, isSameRequest, stepNamed } from './calls.js';
import { NotReplayable, type RecordedRun, type Recording, recordingOf } from './recording.js';
import { Rerun, type RerunOptions } from './rerun.js';
import { Script } from './stand-ins.js';

export type Verdict =
  | { readonly kind: 'match' }
  | { readonly kind: 'divergence'; readonly divergence: Divergence }
  /** The run could not be replayed, or the replay proves nothing. */
  | { readonly kind: 'inconclusive'; readonly reason: string };

/** Maximum ids per list of a divergence, because divergences are stored. */
const IDS_MAX = 200;

/** @param baseline the plan of the run */
export function replay(
  candidate: Plan,
  baseline: Plan,
  run: RecordedRun,
  options: RerunOptions,
): Verdict {
  try {
    const recording = recordingOf(run, baseline);
    const rerunOf = (plan: Plan, inputs?: ReadonlyMap<string, string>) => {
      const rerun = new Rerun('end', plan, new Script(recording, baseline, inputs), run, options);
      rerun.run();
      return rerun;
    };
    // Only a replay of the run's own plan yields the inputs of children.
    const hasChildren = candidate.nodes.some(({ type }) => type === 'sub_sequence');
    let control: Rerun | null | undefined = hasChildren ? rerunOf(baseline) : undefined;
    const rerun = rerunOf(candidate, control?.childInputs);
    const controlOf = () => {
      if (control === undefined) control = carriedOut(() => rerunOf(baseline)) ?? null;
      return control ?? undefined;
    };
    return verdictOn(run, recording, rerun, callsOf(rerun, controlOf), controlOf);
  } catch (error) {
    if (error instanceof NotReplayable) return inconclusive(error.message);
    throw error;
  }
}

export function inconclusive(reason: string): Verdict {
  return { kind: 'inconclusive', reason };
}

/**
 * The calls that differ because of the candidate. The baseline is replayed as a control: if it does not repeat its own
 * call, the call depends on time or unrecorded data, and is returned as a doubt instead.
 */
function callsOf({ plan, script, executed }: Rerun, controlOf: () => Rerun | undefined) {
  const changed: ChangedCall[] = [];
  let doubt: string | undefined;
  // A step that is now evaluated in place makes no call.
  for (const block of new Set(executed.map((step) => step.block))) {
    const mode = script.stepOf(block)?.mode ?? 'pure';
    const isCall = mode !== 'pure' && mode !== 'sleep';
    if (isCall && stepNamed(plan, block)?.mode === 'pure') {
      changed.push({ block_id: block, member: 'handler' });
    }
  }
  if (script.otherCalls.length === 0) return { changed, doubt };
  const isSame = (block: string) => isSameRequest(script.stepOf(block), stepNamed(plan, block));
  const control = controlOf()?.calls;
  for (const { block, place, recorded, made, isDoubtful } of script.otherCalls) {
    const repeated = control?.get(place);
    if (script.stepOf(block)?.handler !== made.handler) {
      changed.push({ block_id: block, member: 'handler' });
      continue;
    }
    // An unrecorded call is compared with the baseline's.
    const isRepeated = repeated && (recorded === undefined || isSameCall(recorded, repeated));
    if (!isRepeated || isDoubtful) doubt ??= doubtAt(block);
    else {
      const members = differingMembers(repeated, made);
      // An equal hash proves nothing if the requests of the steps differ.
      if (members.length === 0 && !isSame(block)) doubt ??= doubtAt(block);
      changed.push(...members.map((member) => ({ block_id: block, member })));
    }
  }
  // A step in a loop may differ in the same way in every iteration.
  const distinct = new Map(changed.map((one) => [JSON.stringify(one), one]));
  return { changed: [...distinct.values()], doubt };
}

function doubtAt(block: string): string {
  return `the call of step ${block} depends on time or on what nobody recorded`;
}

/** Undefined when the run cannot be replayed. */
function carriedOut(run: () => Rerun): Rerun | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof NotReplayable) return undefined;
    throw error;
  }
}

function verdictOn(
  run: RecordedRun,
  { succeeded, failed }: Recording,
  rerun: Rerun,
  { changed, doubt }: ReturnType<typeof callsOf>,
  controlOf: () => Rerun | undefined,
): Verdict {
  const { snapshot, script } = rerun;
  const executed = new Set(rerun.executed.map(({ block }) => block));
  const isSameEnd = snapshot.state === run.state;
  const isRecorded = (id: string) => succeeded.has(id) || failed.has(id);
  const added = idsOf(
    executed,
    (id) => !isRecorded(id) && !(hasOnlyFailed(rerun, id) && hasOnlyFailed(controlOf(), id)),
  );
  // Missing failed steps matter only if the end states agree.
  const recorded = isSameEnd ? [...succeeded, ...failed] : succeeded;
  const removed = idsOf(recorded, (id) => !executed.has(id));
  const calls = changed.filter(({ block_id }) => isCompared(block_id));
  if (!isSameEnd || added.length > 0 || removed.length > 0 || calls.length > 0) {
    const divergence: Divergence = {
      instance_id: run.id,
      recorded_state: run.state,
      replayed_state: snapshot.state,
      blocks_added: added.slice(0, IDS_MAX),
      blocks_removed: removed.slice(0, IDS_MAX),
      ...(calls.length === 0 ? {} : { calls_changed: calls.slice(0, IDS_MAX) }),
    };
    return { kind: 'divergence', divergence };
  }
  const reason = doubt ?? script.gap;
  return reason === undefined ? { kind: 'match' } : inconclusive(reason);
}

/**
 * A worker's step in a loop leaves no record if its parameters cannot be rendered. If the baseline fails the same way,
 * the candidate has not added the step.
 */
function hasOnlyFailed(rerun: Rerun | undefined, id: string): boolean {
  const own = rerun?.executed.filter(({ block }) => block === id) ?? [];
  return own.length > 0 && own.every(({ hasFailed }) => hasFailed);
}

function idsOf(ids: Iterable<string>, counts: (id: string) => boolean): string[] {
  return [...ids].filter((id) => isCompared(id) && counts(id)).sort();
}

/** Names that begin with `_` are reserved for the engine. */
function isCompared(block: string): boolean {
  return !block.startsWith('_');
}
