/** Predicts what a retry runs again (docs/reference/explain.md). Mirrors `runs-again.ts`. */

import {
  CANCELLED,
  CATCH_LIST,
  COMPLETED,
  type Execution,
  FAILED,
  FINALLY_LIST,
  type ForEachRecord,
  type LoopRecord,
  type OpenRecord,
  type RouterRecord,
  type SagaRecord,
  type StepRecord,
  TRY_LIST,
  type TryCatchRecord,
} from '../../../schema/execution.js';
import {
  type ParentStands,
  REPEATS_MAX,
  RUNS_AGAIN_MAX,
  type RunsAgain,
  STAYS_MAX,
} from '../../../schema/explanation.js';
import { isEnded } from '../../../schema/states.js';
import { actsOutside, owesInChildren, owesWithin } from '../../../src/core/owed.js';
import { recordOf } from '../../../src/core/paths.js';
import type { NodePlace, Plan, PlanNode } from '../../../src/core/plan-nodes.js';
import type { Snapshot } from '../../../src/core/progress.js';
import { ExecutionWalk } from './execution-walk.js';
import { type RunsAgainFacts, summaryOf } from './retry-words.js';

type Kind = RunsAgainFacts['kind'];

/** The kind of blocks here, and whether a failure is caught or only loses a race. */
interface Place {
  readonly kind: Kind;
  readonly isCaught: boolean;
  /** Only blocks that owe clean-up run. */
  readonly isCleanUp?: boolean;
}

/** Whether the instance continues with a retry, also when it was paused after its failure. */
export function isRetried({ state, execution }: Snapshot): boolean {
  return state === 'failed' || (state === 'paused' && execution.f === 1);
}

export function runsAgain(plan: Plan, snapshot: Snapshot): RunsAgain {
  return previewOf(plan, snapshot).again;
}

/** Whether the parent still uses the result of the child. */
export function standsFor(plan: Plan, snapshot: Snapshot, child: string): ParentStands {
  const isOpen = Object.values(snapshot.execution.o).some(
    (record) => (record as Partial<StepRecord>).c === child,
  );
  if (isOpen && !isEnded(snapshot.state)) return 'waits';
  if (!isRetried(snapshot)) return isEnded(snapshot.state) ? 'ended' : 'went_on';
  return previewOf(plan, snapshot).children.has(child) ? 'takes' : 'ended';
}

/** The preview, and the children that are retried or have their results used. */
function previewOf(plan: Plan, { execution, runtime }: Snapshot) {
  const { j, a, e, s = 0 } = execution;
  const hooks = j?.f;
  if (hooks !== undefined) {
    const ends = hooks.l === 'on_cancel' ? 'cancelled' : 'failed';
    const own = plan.hooks?.[hooks.l];
    if (own === undefined) return new Preview(plan, hooks.e, false).result(ends);
    const preview = new Preview(own, hooks.e, runtime.dry_run === true);
    preview.list(own.roots, { kind: 'hook', isCaught: true });
    return preview.result(ends);
  }
  const preview = new Preview(plan, execution, runtime.dry_run === true);
  // A handover has dropped the failed hooks.
  if (e === CANCELLED) return preview.result('cancelled');
  if (a !== undefined) {
    preview.owed();
    const ends = a.y === undefined ? 'cancelled' : 'failed';
    return preview.result(execution.x === 1 ? ends : undefined);
  }
  const roots = plan.roots.filter((root) => root >= s);
  preview.list(roots, { kind: 'step', isCaught: false });
  return preview.result();
}

class Preview extends ExecutionWalk {
  readonly #isDryRun: boolean;
  readonly #blocks: RunsAgainFacts[] = [];
  #count = 0;
  readonly #children = new Set<string>();
  /** First index to end of the ranges of nodes that are reset. */
  readonly #forgotten = new Map<number, number>();
  /** After the clean-up the instance fails for its original reason. */
  #fails = false;

  constructor(plan: Plan, execution: Execution, isDryRun: boolean) {
    super(plan, execution);
    this.#isDryRun = isDryRun;
  }

  result(fixed?: RunsAgain['ends']): { again: RunsAgain; children: ReadonlySet<string> } {
    const { paths, count } = this.#stays();
    const ends = fixed ?? (this.#fails ? 'failed' : undefined);
    const again: RunsAgain = {
      blocks: this.#blocks.map((block) => ({ ...block, summary: summaryOf(block) })),
      blocks_count: this.#count,
      stays: paths,
      stays_count: count,
      repeats_effects: this.#blocks.some(({ repeats_effects }) => repeats_effects),
      ...(ends === undefined ? {} : { ends }),
    };
    return { again, children: this.#children };
  }

  /** Continues a list: its first open block, and later ones that have begun. */
  list(list: readonly number[], place: Place): void {
    let isFirst = true;
    for (const index of list) {
      const { d, k, o } = this.execution;
      if (this.isDone(index)) continue;
      const node = this.plan.nodes[index]!;
      const hasBegun = [d[index], k?.[index], o[index]].some((known) => known !== undefined);
      if (hasBegun) this.#node(node, place);
      else if (isFirst) this.#startsWith(node, place);
      isFirst = false;
    }
  }

  owed(): void {
    const { o } = this.execution;
    /** What is inside of a catch list that runs again was listed with it. */
    let listed = 0;
    for (const key of Object.keys(o)) {
      const node = this.plan.nodes[Number(key)]!;
      const record = o[node.index]!;
      if (record.z !== 1 || node.index < listed) continue;
      if (this.#failsThen(node)) this.#fails = true;
      if (node.type === 'saga') this.#compensations(node, (record as SagaRecord).n!);
      else if (this.#owesFinally(node, record as TryCatchRecord)) {
        this.list(node.lists[FINALLY_LIST]!, { kind: 'finally', isCaught: true });
      } else {
        this.list(node.lists[CATCH_LIST]!, { kind: 'step', isCaught: true });
        this.#finallyAgain(node);
        listed = node.end;
      }
    }
  }

  /** Else the catch list before it has failed. */
  #owesFinally({ lists }: NodePlace, { p }: TryCatchRecord): boolean {
    return p === FINALLY_LIST && !this.#isListDone(lists[FINALLY_LIST]!);
  }

  /** Whether the block or one around it fails after the clean-up, and no block handles it. */
  #failsThen({ index }: NodePlace): boolean {
    let hasFailed = false;
    for (let at = index; at >= 0; ) {
      const node = this.plan.nodes[at]!;
      const record = this.execution.o[at]!;
      hasFailed ||= record.o === 1 || record.j === FAILED;
      const above = this.plan.nodes[node.parent];
      const isTried = above?.type === 'try_catch' && node.branch === TRY_LIST;
      if (isTried || above?.type === 'race' || above?.kind.cleansUp(node.branch)) return false;
      at = node.parent;
    }
    return hasFailed;
  }

  #node(node: PlanNode, place: Place): void {
    if (node.kind.isLeaf) {
      this.#leaf(node, place);
      return;
    }
    if (place.isCleanUp === true && !owesWithin(this.run, node)) return;
    const before = this.#count;
    const kept = this.#keptOf(node);
    if (kept !== undefined || !node.kind.isKept) this.#inside(node, kept, place);
    if (this.#count === before) this.#startsWith(node, place);
  }

  #inside(node: PlanNode, kept: OpenRecord | undefined, place: Place): void {
    const { lists } = node;
    switch (node.type) {
      case 'try_catch':
        this.#tryCatch(node, kept as TryCatchRecord, place);
        break;
      case 'saga':
        this.#saga(node, kept as SagaRecord, place);
        break;
      case 'router':
      case 'ab_split':
        this.list(lists[(kept as RouterRecord).r]!, place);
        break;
      case 'loop':
      case 'for_each':
        for (const list of this.listsInFlight(node, kept as ForEachRecord)) this.list(list, place);
        break;
      default: {
        const inside = node.type === 'race' ? { ...place, isCaught: true } : place;
        for (const list of lists) this.list(list, inside);
      }
    }
  }

  #leaf(node: PlanNode, { kind, isCleanUp }: Place): void {
    if (isCleanUp === true && !owesWithin(this.run, node)) return;
    if (node.type !== 'sub_sequence') {
      this.#put(node, kind, []);
      return;
    }
    const child = this.#keptOf(node) as StepRecord | undefined;
    // A cancelled child is replaced by a new one.
    const isRetried = child?.k !== undefined;
    const isReplaced = child !== undefined && !isRetried && !this.#isDryRun;
    this.#put(node, 'child', isReplaced ? [this.pathOf(node)] : [], {
      ...(isRetried && { child_id: child.c! }),
      ...(isRetried && isCleanUp === true && { cleans_up: true as const }),
    });
  }

  /** Mirrors `resumed` of the kind. */
  #tryCatch(node: PlanNode, record: TryCatchRecord, place: Place): void {
    const { p, f, m, z } = record;
    const inFinally: Place = {
      kind: place.kind === 'compensation' ? place.kind : 'finally',
      isCaught: place.isCaught,
    };
    const inTry = { ...place, isCaught: true };
    const inCatch: Place = { kind: place.kind, isCaught: place.isCaught };
    const again = (branch: number) => {
      if (branch === TRY_LIST) this.list(node.lists[branch]!, inTry);
      else {
        const owing = node.lists[TRY_LIST]!;
        if (owesInChildren(this.run, owing)) this.list(owing, { ...inTry, isCleanUp: true });
        this.list(node.lists[branch]!, inCatch);
      }
    };
    if (p !== FINALLY_LIST) {
      again(m === undefined ? p : CATCH_LIST);
      return;
    }
    if (f === COMPLETED || (f === FAILED && z === 1 && this.#owesFinally(node, record))) {
      // The block ends with the outcome of its earlier lists.
      if (f === FAILED && !place.isCaught) this.#fails = true;
      this.list(node.lists[FINALLY_LIST]!, inFinally);
      return;
    }
    again(m === undefined ? TRY_LIST : CATCH_LIST);
    this.#finallyAgain(node);
  }

  /** The finally list runs once more after the list that is repeated. */
  #finallyAgain(node: PlanNode): void {
    for (const index of node.lists[FINALLY_LIST]!) {
      const block = this.plan.nodes[index]!;
      this.#forgotten.set(block.index, block.end);
      if (this.execution.d[index] === undefined) continue;
      this.#put(block, 'finally', this.#repeatsOf(block));
    }
  }

  #saga(node: PlanNode & { readonly type: 'saga' }, { f, n, l }: SagaRecord, place: Place): void {
    if (f === undefined || n === undefined) {
      this.list(node.lists[l]!, place);
      return;
    }
    const isCleaningUp = f === FAILED && this.#cleanUps(node.lists[2 * (n + 1)] ?? [], place);
    if (this.#compensations(node, n) || isCleaningUp) {
      if (!place.isCaught) this.#fails = true;
      return;
    }
    this.#forgotten.set(node.index + 1, node.end);
    const inLists = (isWanted: (list: number) => boolean) =>
      node.lists.flatMap((list, at) =>
        isWanted(at) ? list.flatMap((index) => this.#repeatsOf(this.plan.nodes[index]!)) : [],
      );
    const actions = inLists((at) => at % 2 === 0);
    // Compensations run only if an action fails again.
    this.#put(node, 'saga', actions.length > 0 ? actions : inLists((at) => at % 2 === 1));
  }

  /** Runs only the clean-up inside the failed action. */
  #cleanUps(list: readonly number[], place: Place): boolean {
    const failed = list.find((index) => !this.isDone(index));
    const node = failed === undefined ? undefined : this.plan.nodes[failed]!;
    if (node === undefined || !owesWithin(this.run, node)) return false;
    this.#node(node, { ...place, isCaught: true, isCleanUp: true });
    return true;
  }

  /** Runs open compensations up to step `n`. Returns whether there are any. */
  #compensations({ steps, lists }: PlanNode & { readonly type: 'saga' }, n: number): boolean {
    let isOwed = false;
    for (let step = Math.min(n, steps.length - 1); step >= 0; step -= 1) {
      const [action, compensation] = [lists[2 * step]!, lists[2 * step + 1]!];
      if (!this.#isListDone(action) || this.#isListDone(compensation)) continue;
      isOwed = true;
      this.list(compensation, { kind: 'compensation', isCaught: true });
    }
    return isOwed;
  }

  #startsWith(node: PlanNode, { kind, isCleanUp }: Place): void {
    if (isCleanUp === true) return;
    if (kind === 'step' && !node.kind.isLeaf) this.#put(node, 'block', []);
    else this.#put(node, node.type === 'sub_sequence' ? 'child' : kind, []);
  }

  #put(
    node: NodePlace,
    kind: Kind,
    repeats: readonly string[],
    more: Pick<RunsAgainFacts, 'child_id' | 'cleans_up'> = {},
  ): void {
    this.#count += 1;
    if (more.child_id !== undefined) this.#children.add(more.child_id);
    const repeats_effects = repeats.length > 0;
    // Blocks that repeat effects are always listed.
    if (this.#blocks.length >= RUNS_AGAIN_MAX && !repeats_effects) return;
    this.#blocks.push({
      kind,
      block_id: node.id,
      path: this.pathOf(node),
      repeats: repeats.slice(0, REPEATS_MAX),
      repeats_effects,
      ...more,
    });
  }

  /** The paths of inner blocks with effects that completed, now or in an earlier iteration. */
  #repeatsOf({ index, end }: NodePlace): string[] {
    if (this.#isDryRun) return [];
    const found = new Set<string>();
    for (const node of this.plan.nodes.slice(index, end)) {
      const done = this.execution.d[node.index];
      if (node.kind.isLeaf) {
        const isOver = done?.[0] === COMPLETED || (done?.[3] as StepRecord | undefined)?.c;
        if (isOver && actsOutside(node)) found.add(this.pathOf(node));
      } else if (node.kind.repeats !== 'never' && node.type !== 'saga') {
        const { i = 0 } = recordOf(this.execution, node.index) as Partial<LoopRecord>;
        const acts = this.plan.nodes.slice(node.index, node.end).some(actsOutside);
        if ((i > 0 || done?.[0] === COMPLETED) && acts) found.add(this.pathOf(node));
      }
    }
    return [...found];
  }

  #stays(): { readonly paths: string[]; readonly count: number } {
    const { nodes } = this.plan;
    const paths: string[] = [];
    let count = 0;
    for (let i = 0; i < nodes.length; ) {
      const node = nodes[i]!;
      const forgotten = this.#forgotten.get(i);
      if (forgotten !== undefined) i = forgotten;
      else if (this.#isInEmptySlot(node)) i = node.end;
      else if (this.execution.d[i]?.[0] === COMPLETED) {
        if (paths.length < STAYS_MAX) paths.push(this.pathOf(node));
        count += 1;
        i = node.end;
      } else i += 1;
    }
    return { paths, count };
  }

  #isInEmptySlot({ parent, branch }: NodePlace): boolean {
    const { s } = (this.before.o[parent] ?? {}) as Partial<ForEachRecord>;
    return s !== undefined && (s[branch] ?? -1) < 0;
  }

  #isListDone(list: readonly number[]): boolean {
    return list.every((index) => this.isDone(index));
  }

  #keptOf({ index }: NodePlace): OpenRecord | undefined {
    const { d, k, o } = this.execution;
    return d[index]?.[3] ?? k?.[index] ?? o[index];
  }
}
