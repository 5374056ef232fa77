/**
 * A second, independent reading of what an instance does: the rules of blocks as programs, one per kind
 * of block, that run as processes in virtual time. It is written from the rules, shares
 * nothing with the evaluator but types, and is meant to be checked by reading it beside the tables.
 *
 * Where the rules leave the order within one instant open, and the order matters (a race
 * with two branches that move when it is decided), the model says `isDraw` and promises no more.
 */

import { createHash } from 'node:crypto';
import type {
  AbSplitBlock,
  Block,
  CancellationScopeBlock,
  ForEachBlock,
  LoopBlock,
  ParallelBlock,
  RaceBlock,
  RouterBlock,
  SagaBlock,
  StepBlock,
  SubSequenceBlock,
  TryCatchBlock,
} from '../../schema/blocks.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { End, Frame } from './model-frames.js';
import {
  forgetUnpaid,
  frameIn,
  hasFailedIn,
  hasProtected,
  isOnPurpose,
  isOver,
  isPaying,
  isUndone,
  leftIn,
  newFrame,
  owes,
  reopenList,
  unpaidIn,
} from './model-frames.js';
import { isCut, isUnseen, type Process, type Run, type Scope, scopeIn } from './model-processes.js';
import { backoff, collection, condition, redispatchWait, render } from './model-values.js';
import { isExternal, type Outcome, type Place, type Try, World } from './model-world.js';

/** How far a step has come. */
interface Progress {
  number: number;
  isAnswered: boolean;
}

type GateOf<B extends StepBlock> = NonNullable<B['wait_for_input']>;

export class Model extends World {
  readonly #kept = [...this.options.kept];
  #tookKeptIn = -1;

  // -------------------------------------------------------------- lists

  /** One after the other; the first that fails or is cut off ends the list. */
  *list(blocks: readonly Block[], place: Place): Run<End> {
    for (const block of blocks) {
      const frame = frameIn(place.frame, block);
      // Only after a retry: what completed or was skipped is not run again.
      if (isOver(place.frame, block)) continue;
      if (yield* this.isCutBeforeStart(place.scope)) return 'cancelled';
      if (place.onlyCleansUp && (block.type === 'step' || block.type === 'sub_sequence')) {
        frame.end = 'cancelled';
        return 'cancelled';
      }
      frame.isBegun = true;
      frame.end = yield* this.guarded(block, frame, { ...place, frame, reader: block.id });
      if (frame.end !== 'completed') yield* this.takeOver(frame, place);
      if (frame.end === 'completed') this.context.forgetError(block);
      if (isCut(place.scope) || frame.end === 'cancelled') return 'cancelled';
      if (frame.end === 'failed') return 'failed';
    }
    return 'completed';
  }

  /** Composites that had begun before a retry are not asked again. */
  *guarded(block: Block, frame: Frame, place: Place): Run<End> {
    if (block.when != null && frame.isIn !== true) {
      const holds = condition(block.when, this.context.view(place));
      if (holds === false) return 'skipped';
      if (holds === undefined) {
        if (block.type === 'step') return this.giveUp(block, place, 0, false);
        if (block.type === 'sub_sequence') this.context.errorRow(block, place, 0, false);
        return 'failed';
      }
    }
    if (block.type === 'step') return yield* this.timedStep(block, place);
    if (block.type === 'sub_sequence') return yield* this.child(block, place);
    frame.isIn = true;
    if (block.timeout == null) return yield* this.block(block, frame, place);
    // A scope around it is what the signal does not come through.
    const isScope = block.type === 'cancellation_scope';
    const around = isScope ? scopeIn(place.scope, 'signal') : place.scope;
    const scope = scopeIn(around);
    const run = this.block(block, frame, { ...place, scope });
    const end = yield* this.within(scope, this.now + block.timeout, run);
    if (scope.by !== 'limit') return end;
    if (!frame.owes) for (const one of unpaidIn(frame)) one.unpaid!.owe();
    // It goes on by itself, or only waits for what is inside.
    if (frame.owes) yield* this.untilClean(frame, place.scope);
    else yield* this.untilPaid(scope, place.scope);
    return 'failed';
  }

  block(block: Block, frame: Frame, place: Place): Run<End> {
    switch (block.type) {
      case 'parallel':
        return this.parallel(block, place);
      case 'race':
        return this.race(block, frame, place);
      case 'router':
        return this.router(block, frame, place);
      case 'try_catch':
        return this.tryCatch(block, frame, place);
      case 'loop':
        return this.loop(block, frame, place);
      case 'for_each':
        return this.forEach(block, frame, place);
      case 'cancellation_scope':
        return this.scope(block, place);
      case 'saga':
        return this.saga(block, frame, place);
      case 'ab_split':
      case 'a_b_split':
        return this.split(block, frame, place);
      default:
        throw new Error('the model does not know this kind of block');
    }
  }

  // -------------------------------------------------------------- sequences of blocks, parallel, race

  *parallel({ branches }: ParallelBlock, place: Place): Run<End> {
    const ends = yield* this.allOf(branches.map((branch) => this.start(branch, place)));
    const isLeftAlone = place.onlyCleansUp === true && !isCut(place.scope);
    if (ends.includes('cancelled')) return isLeftAlone ? 'failed' : 'cancelled';
    return ends.includes('failed') ? 'failed' : 'completed';
  }

  *race(race: RaceBlock, frame: Frame, place: Place): Run<End> {
    const { branches, semantics } = race;
    const tell = (winner: number) => {
      const output = this.context.resultOf(branches[winner]!, frame, place) ?? null;
      this.context.row(race, place, 0, { winner, output });
    };
    // A branch with nothing to do, after a retry nothing left to do, finishes at once.
    const idle = branches.findIndex((branch) => branch.every((one) => isOver(place.frame, one)));
    if (idle >= 0) {
      tell(idle);
      return 'completed';
    }
    const scopes = branches.map(() => scopeIn(place.scope));
    const runners = branches.map((branch, i) =>
      this.start(branch, { ...place, scope: scopes[i]! }),
    );
    const result = yield* this.until(() => verdict(runners, semantics ?? 'first_to_resolve'));
    const moving = runners.filter((runner) => this.processes.isMoving(runner));
    if (result !== 'cancelled' && moving.length > 1) this.isDraw = true;
    const winners = runners.flatMap(({ end }, i) => (end === 'completed' ? [i] : []));
    if (result === 'completed' && winners.length > 1) this.isDraw = true;
    for (const scope of scopes) scope.by = 'race';
    // A branch that has failed before does not make the race fail.
    if (result === 'completed') for (const one of unpaidIn(frame)) one.unpaid!.owe();
    // It is decided in time, however long the losers take.
    if (race.timeout != null) this.processes.limited.delete(place.scope);
    // Losers may have finally lists to run.
    yield* this.allOf(runners);
    for (const scope of scopes) yield* this.untilPaid(scope);
    const tellLate = function* (this: Model): Run<End> {
      yield* this.until(() => !this.owesIn(scopes) || undefined);
      tell(winners[0]!);
      return 'completed';
    };
    if (result !== 'completed') return result;
    if (!this.owesIn(scopes)) tell(winners[0]!);
    else this.owe({ scope: place.scope, again: tellLate.bind(this) });
    return result;
  }

  // -------------------------------------------------------------- router

  /** Decided once, also for retries of the instance. */
  *router(block: RouterBlock, frame: Frame, place: Place): Run<End> {
    const routes = block.routes ?? [];
    frame.route ??= routes.findIndex((route) =>
      condition(route.condition, this.context.view(place)),
    );
    return yield* this.list(routes[frame.route]?.blocks ?? block.default ?? [], place);
  }

  // -------------------------------------------------------------- try_catch and scopes

  /** A retry goes on in the list that failed or was cut off, and no try list runs behind its catch list. */
  *tryCatch(block: TryCatchBlock, frame: Frame, place: Place): Run<End> {
    const last = block.finally_block ?? [];
    const hasRun = () => last.every((one) => isOver(frame, one));
    const isCleanUpOnly =
      frame.list === 'finally' &&
      (frame.result === 'completed' ||
        (frame.result === 'failed' && frame.hasNotCleanedUp && !hasRun()));
    const startAnew = () => {
      this.context.repeat(last, place);
      for (const { id } of last) frame.inside.delete(id);
      frame.list = frame.error === undefined ? 'try' : 'catch';
    };
    if (frame.list === 'finally' && !isCleanUpOnly) startAnew();
    frame.list ??= 'try';
    delete frame.hasNotCleanedUp;
    const caught = { ...place, caught: frame, onlyCleansUp: false };
    if (frame.list === 'try') {
      frame.result = yield* this.list(block.try_block, place);
      if (frame.result === 'failed') {
        const failed = block.try_block.filter(({ id }) => frame.inside.get(id)?.end === 'failed');
        const failed_blocks = failed.map(({ id }) => id);
        this.context.noteError(frame, { failed_blocks, source: 'try_catch', block_id: block.id });
        forgetUnpaid(frame);
        frame.list = 'catch';
      }
    }
    const runCatch = function* (this: Model, scope: Scope): Run<End> {
      const end = yield* this.list(block.catch_block, { ...caught, isCatching: true, scope });
      // What `fail` hands on was taken care of.
      const [at] = leftIn(block.catch_block, frame);
      frame.isUndone = at !== undefined && !isOnPurpose(at, end === 'failed');
      return end;
    }.bind(this);
    const runLast = function* (this: Model): Run<End> {
      const scope = scopeIn(place.scope, 'all');
      const end = yield* this.list(last, { ...caught, isCatching: false, scope });
      if (end === 'failed') frame.hasNotCleanedUp = true;
      return end;
    }.bind(this);
    const isProtected = () =>
      (place.isInScope === true && this.isCancelled) || hasProtected(block.catch_block);
    const isCatchOwed = () => frame.result === 'failed' && frame.isUndone === true && isProtected();
    /** What failed to clean up; behind a catch list that is done again, the finally list once more. */
    const pay = function* (): Run<End> {
      delete frame.hasNotCleanedUp;
      if (frame.list === 'finally' && hasRun()) startAnew();
      if (frame.list === 'catch') {
        yield* inner();
        dropErrors();
        reopenList(frame, block.catch_block);
        frame.result = yield* runCatch(scopeIn(place.scope, 'all'));
        if (frame.result === 'failed' && frame.isUndone) return 'failed';
        frame.list = 'finally';
      } else reopenList(frame, last);
      if ((yield* runLast()) === 'failed' || isCatchOwed()) return 'failed';
      frame.end = endOf(true);
      if (frame.end === 'completed') forget();
      return 'completed';
    };
    // Under a cancel to clean up is to complete, but not in a catch list, which may be done again; a loser is cancelled.
    const endOf = (isCleaned: boolean): End => {
      if (block.timeout != null && place.scope.by === 'limit') return 'failed';
      const isWhole = isCleaned && this.isCancelled && place.isCatching !== true;
      return frame.result === 'cancelled' && isWhole ? 'completed' : frame.result!;
    };
    const inner = () => this.until(() => ![...frame.inside.values()].some(owes) || undefined);
    const forget = () => this.context.forgetError(block);
    const dropErrors = () => this.context.dropErrors();
    if (frame.list === 'catch') {
      frame.result = yield* runCatch(place.scope);
      if (isCut(place.scope)) {
        const hasFailed = hasFailedIn(block.catch_block, frame);
        if (hasFailed && frame.isUndone && isProtected()) {
          // The finally list comes behind it.
          this.noteOwed(place, frame, [], pay);
          return 'cancelled';
        }
      } else if (frame.result === 'failed' && frame.isUndone && isUnseen(place.scope)) {
        yield* this.later(place, frame, [], pay);
        return frame.owes ? 'cancelled' : frame.end!;
      }
    }
    frame.list = 'finally';
    const isCleaning = !hasRun();
    const hasFailed = (yield* runLast()) === 'failed';
    const owe = () => this.noteOwed(place, frame, [], pay);
    if (isUnseen(place.scope) && (hasFailed || isCatchOwed())) {
      yield* this.later(place, frame, [], pay);
    } else if (hasFailed) {
      frame.unpaid = { isOwed: () => true, owe };
      return 'failed';
    } else if (frame.result === 'failed') frame.unpaid = { isOwed: isCatchOwed, owe };
    return endOf(isCleaning);
  }

  /** What is cut off and cannot clean up owes that to a retry; what is around it goes on to clean up. */
  *cleanUp(
    place: Place,
    frame: Frame,
    blocks: readonly Block[],
    run: (shielded: Scope) => Run<End>,
    later = run,
  ): Run<End> {
    const { scope } = place;
    const end = yield* run(scopeIn(scope, 'all'));
    const again = () => later(scopeIn(scope, 'all'));
    if (end !== 'failed') return end;
    if (isUnseen(scope)) return yield* this.later(place, frame, blocks, again);
    const owe = () => this.noteOwed(place, frame, blocks, again);
    frame.unpaid = { isOwed: () => true, owe };
    return end;
  }

  /** What had failed to clean up in it, as long as its failure told of that, is owed once nobody hears of it. */
  *takeOver(frame: Frame, { scope }: Place): Run<void> {
    if (!isUnseen(scope) || frame.owes) return;
    const unpaid = unpaidIn(frame);
    for (const one of unpaid) one.unpaid!.owe();
    if (unpaid.length > 0) yield* this.untilClean(frame, scope);
  }

  /** What is not cut off itself waits for it. */
  *later(place: Place, frame: Frame, blocks: readonly Block[], run: () => Run<End>): Run<End> {
    const owed = this.noteOwed(place, frame, blocks, run);
    yield* this.untilClean(frame, place.scope);
    return owed.end;
  }

  /** Until nothing is owed in it, or it is cut off, and what is around it goes on without. */
  *untilClean(frame: Frame, scope: Scope): Run<void> {
    yield* this.until(() => !owes(frame) || (isCut(scope) && !isPaying(frame)) || undefined);
  }

  noteOwed(
    { scope }: Place,
    frame: Frame,
    blocks: readonly Block[],
    run: () => Run<End>,
  ): { readonly end: End } {
    const owed: { end: End } = { end: 'completed' };
    frame.owes = true;
    delete frame.unpaid;
    const again = function* (): Run<End> {
      reopenList(frame, blocks);
      owed.end = yield* run();
      if (owed.end !== 'failed') frame.owes = false;
      return owed.end;
    };
    this.owe({ scope, again, frame });
    return owed;
  }

  /** The signal does not come through. */
  scope({ blocks }: CancellationScopeBlock, place: Place): Run<End> {
    const scope = scopeIn(place.scope, 'signal');
    return this.list(blocks, { ...place, scope, isInScope: true });
  }

  /** Each run of it is a pass. What completed is taken back unless all did. */
  *saga(block: SagaBlock, frame: Frame, place: Place): Run<End> {
    const listOf = (one: Block | readonly Block[] | null | undefined) => [one ?? []].flat();
    const isDone = (list: readonly Block[]) => list.every((one) => isOver(frame, one));
    const isOwed = ({ action, compensation }: SagaBlock['steps'][number]) =>
      isDone(listOf(action)) && !isDone(listOf(compensation));
    const { undoes } = frame;
    const failed = undoes?.end === 'failed' ? listOf(block.steps[undoes.from]!.action) : [];
    const left = failed.filter(({ id }) => isUndone(frame.inside.get(id)));
    const isCleaningUp = left.length > 0;
    if (
      undoes !== undefined &&
      !isCleaningUp &&
      !block.steps.slice(0, undoes.from + 1).some(isOwed)
    ) {
      frame.passes += 1;
      frame.inside.clear();
      delete frame.undoes;
      delete frame.error;
    }
    frame.isInPass = true;
    const pass = { ...inPass(place, frame, block), isCatching: false };
    const error = { source: 'saga', block_id: block.id };
    for (const [i, { id, action }] of block.steps.entries()) {
      const isLeft = isCleaningUp && i === undoes!.from;
      if (frame.undoes !== undefined && !isLeft) continue;
      const list = isLeft ? left : listOf(action);
      const ran = yield* this.list(list, isLeft ? { ...pass, onlyCleansUp: true } : pass);
      const end = isLeft && ran === 'cancelled' && !isCut(place.scope) ? 'failed' : ran;
      if (end === 'failed') this.context.noteError(frame, { failed_step: id, ...error });
      if (end === 'cancelled') frame.error = { failed_step: null, ...error };
      if (end === 'cancelled' || (end !== 'completed' && !isLeft)) frame.undoes = { end, from: i };
    }
    if (frame.undoes === undefined) return 'completed';
    const { from } = frame.undoes;
    // One that a retry goes on with is not being cut off any more.
    const end = undoes === frame.undoes ? 'failed' : frame.undoes.end;
    const undone = block.steps.slice(0, from + 1).toReversed();
    const takeBack = function* (this: Model, scope: Scope, isLate = false): Run<End> {
      let result: End = 'completed';
      for (const { action, compensation } of undone) {
        const hasRun = listOf(compensation).some(({ id }) => frame.inside.get(id)?.end);
        if (!isDone(listOf(action)) || (isLate && hasRun)) continue;
        const undo = { ...pass, caught: frame, scope, onlyCleansUp: false };
        const ended = yield* this.list(listOf(compensation), undo);
        if (ended !== 'completed') result = 'failed';
      }
      return result;
    };
    const compensations = undone.flatMap(({ compensation }) => listOf(compensation));
    const take = takeBack.bind(this);
    const taken = yield* this.cleanUp(place, frame, compensations, take);
    frame.isUndone = taken === 'failed';
    // An action may complete with what is cleaned up inside, and is taken back then.
    const isOwing = () => [...frame.inside.values()].some(owes);
    if (isOwing()) {
      frame.owes = true;
      const again = function* (this: Model): Run<End> {
        yield* this.until(() => (!isOwing() && frame.isPaying !== true) || undefined);
        // Until then what is around it waits.
        const takeLate = function* (scope: Scope): Run<End> {
          const late = yield* take(scope, true);
          frame.owes = false;
          return late;
        };
        return yield* this.cleanUp(place, frame, compensations, takeLate, take);
      };
      this.owe({ scope: place.scope, again: again.bind(this) });
    }
    return end;
  }

  /** By a hash of the two ids, and once. */
  *split(block: AbSplitBlock, frame: Frame, place: Place): Run<End> {
    if (frame.route === undefined) {
      const bytes = createHash('sha256')
        .update(this.options.instanceId.replaceAll('-', ''), 'hex')
        .update('\0' + block.id)
        .digest();
      const shares = block.variants.flatMap(({ weight }, i) => Array<number>(weight).fill(i));
      const share = BigInt(`0x${bytes.subarray(0, 8).toString('hex')}`) % BigInt(shares.length);
      frame.route = shares[Number(share)]!;
      const { name: variant } = block.variants[frame.route]!;
      this.context.row(block, place, 0, { variant, variant_index: frame.route });
    }
    return yield* this.list(block.variants[frame.route]!.blocks, place);
  }

  // -------------------------------------------------------------- loops

  *loop(block: LoopBlock, frame: Frame, place: Place): Run<End> {
    const max = block.max_iterations ?? 1_000;
    for (;;) {
      if (!frame.isInPass) {
        frame.inside.clear();
        const goesOn =
          frame.passes < max && condition(block.condition, this.context.view(place)) === true;
        if (!goesOn) return 'completed';
        frame.isInPass = true;
      }
      const end = yield* this.list(block.body, inPass(place, frame, block));
      if (end !== 'completed') return end;
      frame.isInPass = false;
      frame.passes += 1;
      this.context.note(block, place, frame.passes, { _iterations: frame.passes });
      if (yield* this.isCutBeforeStart(place.scope)) return 'cancelled';
    }
  }

  *forEach(block: ForEachBlock, frame: Frame, place: Place): Run<End> {
    const itemVar = block.item_var ?? 'item';
    const namesOf = (items: readonly JsonValue[], item: number): JsonObject => ({
      [itemVar]: items[item]!,
      ...(block.index_var == null ? {} : { [block.index_var]: item }),
    });
    const row = (items: readonly JsonValue[]) =>
      this.context.note(block, place, frame.passes, {
        _index: frame.passes,
        _total: items.length,
        _item_var: itemVar,
      });
    if (frame.items === undefined) {
      const value = collection(block.collection, this.context.view(place)) ?? [];
      if (!Array.isArray(value) || value.length > (block.max_iterations ?? 1_000)) {
        // It has not begun.
        frame.isIn = false;
        return 'failed';
      }
      if (value.length === 0) return 'completed';
      frame.items = [...value];
      row(frame.items);
    }
    const { items } = frame;
    if ((block.concurrency ?? 1) > 1) {
      const end = yield* this.sideBySide(block, frame, place, {
        count: items.length,
        namesOf: (item) => namesOf(items, item),
        row: () => row(items),
      });
      if (end === 'completed') this.context.collectedRow(block, place, items.length);
      return end;
    }
    for (;;) {
      if (!frame.isInPass) frame.inside.clear();
      frame.isInPass = true;
      const layers = [...place.layers, { names: namesOf(items, frame.passes) }];
      const pass = { ...inPass(place, frame, block), layers };
      const end = yield* this.list(block.body, pass);
      if (end !== 'completed') return end;
      frame.isInPass = false;
      frame.passes += 1;
      if (frame.passes === items.length) {
        this.context.collectedRow(block, place, items.length);
        return 'completed';
      }
      row(items);
      if (yield* this.isCutBeforeStart(place.scope)) return 'cancelled';
    }
  }

  /** Items begin in order; those at work go on when one has failed, and no other begins. */
  *sideBySide(
    block: ForEachBlock,
    frame: Frame,
    place: Place,
    { count, namesOf, row }: { count: number; namesOf(item: number): JsonObject; row(): void },
  ): Run<End> {
    const { context } = this;
    let failedIn = -1;
    let tookIn = -1;
    frame.itemsSeen ??= context.beginItems(block, place);
    const items = frame.itemsSeen;
    const take = () => {
      if (frame.next >= count) return undefined;
      tookIn = context.instant;
      // Which came first is open.
      if (failedIn === context.instant) this.isDraw = true;
      if (failedIn >= 0) return undefined;
      frame.lanes.set(frame.next, {
        frame: newFrame(),
        lane: context.laneIn(block, frame.next, items),
      });
      frame.next += 1;
      return frame.next - 1;
    };
    const slot = function* (this: Model, first: number): Run<End> {
      for (let item: number | undefined = first; item !== undefined; item = take()) {
        const { frame: inside, lane } = frame.lanes.get(item)!;
        const layers = [...place.layers, { names: namesOf(item), lane }];
        const iteration = [...place.iteration, item];
        const loops = [...place.loops, { block, number: item, frame: inside }];
        const end = yield* this.list(block.body, {
          ...place,
          frame: inside,
          iteration,
          layers,
          loops,
        });
        if (end !== 'completed') {
          failedIn = context.instant;
          if (tookIn === context.instant) this.isDraw = true;
          return end;
        }
        frame.lanes.delete(item);
        frame.passes += 1;
        if (frame.passes < count) row();
      }
      return 'completed';
    };
    const begun = [...frame.lanes.keys()];
    while (begun.length < block.concurrency!) {
      const item = take();
      if (item === undefined) break;
      begun.push(item);
    }
    tookIn = -1;
    const ends = yield* this.allOf(
      begun.map((item) => this.processes.spawn(slot.call(this, item))),
    );
    if (!ends.some((end) => end !== 'completed')) context.endItems(items);
    if (ends.includes('cancelled')) return 'cancelled';
    return ends.includes('failed') ? 'failed' : 'completed';
  }

  // -------------------------------------------------------------- children

  *child(block: SubSequenceBlock, place: Place): Run<End> {
    const params = render((block.input ?? {}) as JsonObject, this.context.view(place));
    this.dispatched.set(`child:${block.id}/${place.iteration.join('.')}`, { params, items: null });
    const limit = block.timeout == null ? undefined : this.now + block.timeout;
    const cut = () => isCut(place.scope);
    const end = yield* this.hear('child', { block, place }, { cut, limit });
    if (end === 'cut') return 'cancelled';
    if (end === 'limit') return 'failed';
    if (end.output === undefined) {
      this.context.errorRow(block, place, 0, false);
      return 'failed';
    }
    this.context.row(block, place, 0, end.output);
    return 'completed';
  }

  // -------------------------------------------------------------- steps and tries

  *timedStep(block: StepBlock, place: Place): Run<End> {
    const at: Progress = { number: 0, isAnswered: false };
    if (block.deadline == null) return yield* this.step(block, place, at);
    const unless = block.cancellable === false ? 'signal' : undefined;
    const scope: Scope = { ...scopeIn(place.scope), unless };
    const run = this.step(block, { ...place, scope }, at);
    const end = yield* this.within(scope, this.now + block.deadline, run);
    if (scope.by !== 'limit') return end;
    const _elapsed_ms = this.now - scope.limit! + block.deadline;
    const output = { _error: 'sla_deadline_breached', _deadline_ms: block.deadline, _elapsed_ms };
    this.context.store(block, place, { number: at.number, output, isError: true });
    return 'failed';
  }

  *step(block: StepBlock, place: Place, at: Progress): Run<End> {
    const cut = () => isCut(place.scope, block.cancellable === false ? 'signal' : undefined);
    const delay = block.delay?.duration ?? 0;
    if (delay > 0 && (yield* this.defer(cut, this.now + delay)) === 'cut') return 'cancelled';
    for (let number = 0; ; number += 1) {
      at.number = number;
      const result = yield* this.attempt({ block, place, number, cut }, at);
      if (result === 'cut') return 'cancelled';
      if (result === 'unanswered') return this.escalate(block, place);
      if (result !== 'timeout' && result.kind === 'success') {
        this.context.row(block, place, number, result.output);
        if (isExternal(block)) {
          this.context.merge(result.output as JsonObject, place);
        }
        return 'completed';
      }
      const isRetryable = result === 'timeout' || result.retryable;
      if (!isRetryable || !this.hasAnotherTry(block, number, result === 'timeout')) {
        return this.giveUp(block, place, number, isRetryable);
      }
      at.number = number + 1;
      const wait = block.retry == null ? redispatchWait(number) : backoff(block.retry, number);
      if (wait > 0 && (yield* this.defer(cut, this.now + wait)) === 'cut') return 'cancelled';
    }
  }

  /** A failure without a policy is tried again without limit, with one as often as it says. */
  hasAnotherTry(block: StepBlock, number: number, isTimeout: boolean): boolean {
    if (block.retry != null) return number + 1 < block.retry.max_attempts;
    return isExternal(block) && !isTimeout && this.options.unpoliciedRetry === 'redispatch';
  }

  giveUp(block: StepBlock, place: Place, number: number, retryable: boolean): End {
    // The error of an external step stands on its task.
    if (!isExternal(block)) this.context.errorRow(block, place, number, retryable);
    return 'failed';
  }

  /** The gates of a step from the rate limit on; a try that is lost with its process runs again. */
  *attempt(one: Try, at: Progress): Run<Outcome | 'timeout' | 'cut' | 'unanswered'> {
    const { block, place, cut } = one;
    // A permit is used up by a try that has begun.
    let needsPermit = block.rate_limit_key != null;
    for (;;) {
      if ((yield* this.wait({ due: this.now, cut })) === 'cut') return 'cut';
      if (needsPermit && (yield* this.isCutAtLimit(one))) return 'cut';
      if (block.wait_for_input && !at.isAnswered) {
        const result = yield* this.gate(one);
        if (result !== 'answered') return result;
        at.isAnswered = true;
      }
      const params = render(
        (block.params ?? {}) as JsonObject,
        this.context.view(place),
      ) as JsonObject;
      const limit = block.timeout == null ? undefined : this.now + block.timeout;
      switch (block.handler) {
        case 'noop':
          return { kind: 'success', output: {} };
        case 'transform':
          return { kind: 'success', output: params };
        case 'fail':
          return { kind: 'failure', retryable: params.retryable === true };
        case 'wait_for_event':
          return yield* this.event(one, params, limit);
        case 'sleep':
          return yield* this.sleep(params.duration_ms as number, limit, cut);
        default: {
          // The time of a worker counts from its claim.
          const { queue_timeout: queued } = block;
          const claimBy = queued == null ? undefined : this.now + queued;
          const until = isExternal(block) ? claimBy : limit;
          const result = yield* this.handOut(one, params, until);
          if (result !== 'lost' && result !== 'not begun') return result;
          needsPermit = block.rate_limit_key != null && result === 'lost';
        }
      }
    }
  }

  /** Asked once, for as long as something may run. */
  *gate({ block, place, cut }: Try): Run<'cut' | 'unanswered' | 'answered'> {
    const { timeout, store_as } = block.wait_for_input as Exclude<GateOf<StepBlock>, false>;
    const late = timeout == null ? undefined : this.now + timeout;
    const said = yield* this.hear('said', { block, place }, { cut, late });
    if (said === 'cut') return 'cut';
    if (said === 'limit') return 'unanswered';
    const { value } = said;
    const answered_at = new Date(this.now).toISOString();
    this.context.answerRow(block, place, { value, answered_by: null, answered_at });
    this.context.merge({ [store_as ?? block.id]: value }, place);
    return (yield* this.wait({ due: this.now, cut })) === 'cut' ? 'cut' : 'answered';
  }

  /** Nobody has answered in time. */
  escalate(block: StepBlock, place: Place): End {
    const gate = block.wait_for_input as Exclude<GateOf<StepBlock>, false>;
    if (gate.escalation_handler == null) return this.giveUp(block, place, 0, false);
    this.context.row(block, place, 0, {
      _escalated: true,
      _escalation_handler: gate.escalation_handler,
      _timeout_seconds: gate.timeout! / 1_000,
    });
    return 'completed';
  }

  /** What was sent before is taken first. */
  *event(
    one: Try,
    params: JsonObject,
    limit: number | undefined,
  ): Run<Outcome | 'timeout' | 'cut'> {
    // Which of several steps has taken it is open.
    if (this.#tookKeptIn === this.context.instant) this.isDraw = true;
    if (this.#kept.length > 0) {
      this.#tookKeptIn = this.context.instant;
      return { kind: 'success', output: this.#kept.shift()! };
    }
    const { timeout_ms } = params;
    const own = typeof timeout_ms === 'number' ? this.now + timeout_ms : undefined;
    const until = Math.min(limit ?? Infinity, own ?? Infinity);
    const wait = { cut: one.cut, limit: until === Infinity ? undefined : until };
    const word = yield* this.hear('event', one, wait);
    if (word === 'cut') return 'cut';
    return word === 'limit' ? 'timeout' : { kind: 'success', output: word.payload };
  }

  /** Each dispatch takes a token; to be put off consumes no try. */
  *isCutAtLimit(one: Try): Run<boolean> {
    const { cut } = one;
    for (;;) {
      const answer = yield* this.ask(one);
      if (answer === 'cut') return true;
      if (typeof answer === 'number' && (yield* this.defer(cut, answer)) === 'cut') return true;
      if ((yield* this.wait({ due: this.now, cut })) === 'cut') return true;
      if (answer === 'granted') return false;
    }
  }

  /** A timer that holds the state `running`. */
  *sleep(
    duration: number,
    limit: number | undefined,
    cut: () => boolean,
  ): Run<Outcome | 'timeout' | 'cut'> {
    const wait = { due: this.now + duration, late: limit, cut, as: 'active' } as const;
    const result = yield* this.wait(wait);
    if (result === 'cut') return 'cut';
    return result === 'limit' ? 'timeout' : { kind: 'success', output: { slept_ms: duration } };
  }
}

/** Which result the branches that have ended give their race; undefined: none yet. */
function verdict(
  branches: readonly Process<End>[],
  semantics: 'first_to_resolve' | 'first_to_succeed',
): End | undefined {
  const ends = branches.map(({ end }) => end);
  if (ends.includes('completed')) return 'completed';
  if (semantics === 'first_to_resolve' && ends.includes('failed')) return 'failed';
  if (ends.includes(undefined)) return undefined;
  return ends.includes('cancelled') ? 'cancelled' : 'failed';
}

function inPass(place: Place, frame: Frame, block: Block): Place {
  const { passes: number } = frame;
  return {
    ...place,
    iteration: [...place.iteration, number],
    loops: [...place.loops, { block, number, frame }],
  };
}
