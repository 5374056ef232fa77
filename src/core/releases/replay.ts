/**
 * Whether an ended run of one version of a sequence comes to the same with another version: it is run
 * again with what was recorded of it, and compared by its end and by the steps on the way. Pure.
 */

import type { Divergence } from '../../../schema/release.js';
import type { Plan } from '../plan.js';
import { NotReplayable, type RecordedRun, type Recording, recordingOf } from './recording.js';
import { Rerun, type RerunOptions } from './rerun.js';
import { Script } from './stand-ins.js';

export type Verdict =
  | { readonly kind: 'match' }
  | { readonly kind: 'divergence'; readonly divergence: Divergence }
  /** The replay could not be carried out, or shows nothing. */
  | { readonly kind: 'inconclusive'; readonly reason: string };

/** Ids of one divergence in each of its lists: summaries are stored and listed. */
const IDS_MAX = 200;

/**
 * @param candidate the plan that the run is replayed with
 * @param baseline the plan that the run had
 */
export function replay(
  candidate: Plan,
  baseline: Plan,
  run: RecordedRun,
  options: RerunOptions,
): Verdict {
  try {
    const recording = recordingOf(run, baseline);
    const inputs = inputsOf(candidate, baseline, run, recording, options);
    const script = new Script(recording, baseline, inputs);
    const rerun = new Rerun('end', candidate, script, run, options);
    rerun.run();
    return verdictOn(run, recording, rerun);
  } catch (error) {
    if (error instanceof NotReplayable) return { kind: 'inconclusive', reason: error.message };
    throw error;
  }
}

/**
 * What the run started its children with, which nothing but its own plan says: that is replayed first where
 * it matters.
 */
function inputsOf(
  candidate: Plan,
  baseline: Plan,
  run: RecordedRun,
  recording: Recording,
  options: RerunOptions,
): ReadonlyMap<string, string> | undefined {
  if (!candidate.nodes.some(({ type }) => type === 'sub_sequence')) return undefined;
  const rerun = new Rerun('end', baseline, new Script(recording, baseline), run, options);
  rerun.run();
  return rerun.childInputs;
}

function verdictOn(run: RecordedRun, recording: Recording, rerun: Rerun): Verdict {
  const { snapshot, script } = rerun;
  const { succeeded, failed } = recording;
  const executed = new Set(rerun.executed.map(({ block }) => block));
  const isSameEnd = snapshot.state === run.state;
  const added = idsOf(executed, (id) => !succeeded.has(id) && !failed.has(id));
  // A step that only failed is missed where the ends agree; where they do not, that says it.
  const recorded = isSameEnd ? [...succeeded, ...failed] : succeeded;
  const removed = idsOf(recorded, (id) => !executed.has(id));
  if (!isSameEnd || added.length > 0 || removed.length > 0) {
    const divergence: Divergence = {
      instance_id: run.id,
      recorded_state: run.state,
      replayed_state: snapshot.state,
      blocks_added: added.slice(0, IDS_MAX),
      blocks_removed: removed.slice(0, IDS_MAX),
    };
    return { kind: 'divergence', divergence };
  }
  if (!script.hasGaps) return { kind: 'match' };
  return { kind: 'inconclusive', reason: 'a step did what nobody has recorded' };
}

/** Names that begin with `_` are ours. */
function idsOf(ids: Iterable<string>, counts: (id: string) => boolean): string[] {
  return [...ids].filter((id) => !id.startsWith('_') && counts(id)).sort();
}
