/** What the programs of the model leave behind and read again: the data, the outputs, the rows. */

import type { Block, ForEachBlock } from '../../schema/blocks.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { listsOf } from './block-trees.js';
import type { Frame } from './model-frames.js';
import { render, type View } from './model-values.js';

/** What is around a block: loops with their counters, the for_each blocks among them, and who has caught something. */
export interface Iteration {
  readonly iteration: readonly number[];
  readonly layers: readonly Layer[];
  readonly loops: readonly LoopPlace[];
  /** The try_catch or saga whose error it sees. */
  readonly caught?: Frame;
  /** The block itself. */
  readonly reader?: string;
}

/** A loop, for_each or saga: the pass that it is at, and what that has come to. */
interface LoopPlace {
  readonly block: Block;
  readonly number: number;
  readonly frame: Frame;
}

/** A for_each: its item and the number of that, by their names. */
export interface Layer {
  readonly names: JsonObject;
  /** Where items run side by side. */
  readonly lane?: Lane;
}

/** What all items of a for_each see that run side by side: the data as they were, and changes from outside since. */
export interface ItemsSeen {
  readonly block: ForEachBlock;
  /** The items that the for_each itself is in. */
  readonly around: readonly Lane[];
  data: JsonObject;
  /** Of each key, the last item in their order that has changed it. */
  readonly last: Map<string, number>;
}

/** What an item that runs beside others sees of its own. */
export interface Lane {
  readonly body: readonly Block[];
  readonly item: number;
  readonly items: ItemsSeen;
  readonly outputs: Map<string, ModelRow>;
  /** What it has merged, and what people have said. */
  own: JsonObject;
}

const lanesOf = ({ layers }: Pick<Iteration, 'layers'>): Lane[] =>
  layers.flatMap(({ lane }) => lane ?? []);

/** Of the items: they hide what is merged or changed under them. */
const namesIn = ({ layers }: Pick<Iteration, 'layers'>): JsonObject =>
  Object.assign({}, ...layers.map(({ names }) => names)) as JsonObject;

export interface ModelRow {
  readonly block: string;
  readonly iteration: string;
  readonly number: number;
  readonly attempt: number;
  readonly output: JsonValue;
  readonly isError: boolean;
  /** The passes in which it was left. */
  readonly loops?: readonly LoopPlace[];
}

export class Context {
  data: JsonObject;
  rows: ModelRow[] = [];
  /** What `context.data._error` was set to in the last instant in which it was. */
  errors: JsonObject[] = [];
  #errorsAt = 0;
  /** Counts the events that were taken in. */
  instant = 0;
  /** What was collected, or an item saw, depends on the order of branches within one instant. */
  isTie = false;
  readonly #instants = new Map<ModelRow, number>();
  readonly #outputs = new Map<string, ModelRow>();
  /** What loops say of their passes: no outputs. */
  readonly #notes = new Set<ModelRow>();
  readonly #rowCounts = new Map<string, number>();
  readonly #lanes = new Set<Lane>();
  /** For_each blocks whose items are at work, or may be after a retry. */
  readonly #atItems = new Set<ItemsSeen>();

  constructor(data: JsonObject) {
    this.data = data;
  }

  view(place: Iteration): View {
    const seen = lanesOf(place).at(-1);
    const data = seen === undefined ? this.data : { ...seen.items.data, ...seen.own };
    const names = namesIn(place);
    const error = this.#errorAt(place);
    return {
      data: { ...data, ...names, ...(error === undefined ? {} : { _error: error }) },
      outputs: this.#outputsAt(place),
    };
  }

  /** Its own block's; of others nothing is seen. */
  #errorAt({ caught }: Iteration): JsonObject | null | undefined {
    if (caught !== undefined) return caught.error ?? null;
    return this.data._error === undefined ? undefined : null;
  }

  #outputsAt(place: Iteration): JsonObject {
    const seen: [string, JsonValue][] = [];
    const known = [this.#outputs, ...lanesOf(place).map(({ outputs }) => outputs)];
    for (const id of new Set(known.flatMap((outputs) => [...outputs.keys()]))) {
      const lane = lanesOf(place).findLast(({ body }) => idsIn(body).includes(id));
      const row = lane === undefined ? this.#outputs.get(id) : lane.outputs.get(id);
      if (row !== undefined && this.#isSeen(row, place)) seen.push([id, row.output]);
    }
    return Object.fromEntries(seen);
  }

  /**
   * Of the loops around both: in an item, or a run of a saga, only what came of that; in a loop what the
   * latest pass gave, until the block begins, or is passed by, in this one.
   */
  #isSeen({ block, loops = [], isError }: ModelRow, { loops: here, reader }: Iteration): boolean {
    const apart = here.findIndex((loop, i) => loop.block.id !== loops[i]?.block.id);
    const common = here.slice(0, apart < 0 ? here.length : apart);
    if (common.length === 0) return true;
    if (isError) return false;
    const other = common.findIndex(({ number }, i) => number !== loops[i]!.number);
    if (other < 0) return true;
    if (common.slice(other).some((loop) => loop.block.type !== 'loop')) return false;
    const around = common.at(-1)!;
    return !hasCome(listsOf(around.block), around.frame, block, reader);
  }

  /** As it is seen outside of all blocks. */
  rendered(params: JsonObject): JsonValue {
    return render(params, this.view({ iteration: [], layers: [], loops: [] }));
  }

  /** What lies over the data: the items, and what was caught. */
  itemsOf(place: Iteration): JsonObject | null {
    const error = place.caught?.error;
    if (place.layers.length === 0 && error === undefined) return null;
    const names = namesIn(place);
    return error === undefined ? names : { ...names, _error: error };
  }

  beginItems(block: ForEachBlock, place: Iteration): ItemsSeen {
    const { data } = this.view(place);
    const items = { block, around: lanesOf(place), data: { ...data }, last: new Map() };
    this.#atItems.add(items);
    return items;
  }

  endItems(items: ItemsSeen): void {
    this.#atItems.delete(items);
  }

  laneIn({ body }: ForEachBlock, item: number, items: ItemsSeen): Lane {
    const lane = { body, item, items, outputs: new Map(), own: {} };
    this.#lanes.add(lane);
    return lane;
  }

  /**
   * The row of a try. What is shown as its attempt is the try, and inside of loops the number of the
   * block's row, which counts on over all iterations.
   */
  row(block: Block, place: Iteration, number: number, output: JsonValue): void {
    this.store(block, place, { number, output, isError: false });
  }

  errorRow(block: Block, place: Iteration, number: number, retryable: boolean): void {
    const output = { __error__: true, retryable };
    this.store(block, place, { number, output, isError: true });
  }

  /** What a loop says of its passes. */
  note(block: Block, place: Iteration, attempt: number, output: JsonObject): void {
    const row = { number: 0, attempt, output, isError: false };
    this.#notes.add(this.store(block, place, row, block.type === 'for_each'));
  }

  /** The last output of each item, from the rows that there are. */
  collectedRow(block: ForEachBlock, place: Iteration, count: number): void {
    const inside = new Set(idsIn(block.body));
    const output = Array.from({ length: count }, (_, item) => {
      const path = [...place.iteration, item];
      const last = this.rows.findLast(
        (row) =>
          inside.has(row.block) &&
          !row.isError &&
          !this.#notes.has(row) &&
          `${row.iteration}.`.startsWith(`${path.join('.')}.`),
      );
      if (last !== undefined && this.#hasTwin(last, block.body)) this.isTie = true;
      return last?.output ?? null;
    });
    this.store(block, place, { number: 0, attempt: count, output, isError: false });
  }

  /** Whether a block in another branch has left a row in the same instant. */
  #hasTwin(row: ModelRow, body: readonly Block[]): boolean {
    const instant = this.#instants.get(row);
    return this.rows.some(
      (other) =>
        this.#instants.get(other) === instant &&
        other.iteration.split('.')[0] === row.iteration.split('.')[0] &&
        areBeside(body, other.block, row.block),
    );
  }

  /** The output of the last block of the list that has one. */
  resultOf(list: readonly Block[], { inside }: Frame, place: Iteration): JsonValue | undefined {
    for (const block of list.toReversed()) {
      const frame = inside.get(block.id);
      if (frame?.end !== 'completed') continue;
      const found = this.#resultOfBlock(block, frame, place);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #resultOfBlock(block: Block, frame: Frame, place: Iteration): JsonValue | undefined {
    const own = this.view(place).outputs[block.id];
    const inner = () => this.resultOf(listsOf(block).flat(), frame, place);
    switch (block.type) {
      case 'step':
      case 'sub_sequence':
      case 'race':
        return own;
      case 'for_each':
        return frame.items === undefined ? undefined : own;
      case 'ab_split':
        return inner() ?? own;
      case 'try_catch': {
        const isCaught = block.try_block.some(({ id }) => frame.inside.get(id)?.end === 'failed');
        const [tried, caught, last] = listsOf(block);
        return this.resultOf([...tried!, ...(isCaught ? caught! : []), ...last!], frame, place);
      }
      default:
        return inner();
    }
  }

  store(
    { id }: Block,
    place: Iteration,
    row: Omit<ModelRow, 'block' | 'iteration' | 'attempt'> & { readonly attempt?: number },
    isProgress = false,
  ): ModelRow {
    const { iteration } = place;
    const count = this.#rowCounts.get(id) ?? 0;
    this.#rowCounts.set(id, count + 1);
    const attempt = iteration.length === 0 ? (row.attempt ?? row.number) : count;
    const stored = { block: id, iteration: iteration.join('.'), ...row, attempt };
    this.rows.push({ ...stored });
    const kept: ModelRow = { ...stored, loops: place.loops };
    this.#instants.set(this.rows.at(-1)!, this.instant);
    if (!isProgress) {
      this.#outputs.set(id, kept);
      for (const { outputs } of lanesOf(place)) outputs.set(id, kept);
    }
    return this.rows.at(-1)!;
  }

  /** What a person said: no output, and the number of the row to come. */
  answerRow({ id }: Block, { iteration }: Iteration, output: JsonObject): void {
    const attempt = iteration.length === 0 ? 0 : (this.#rowCounts.get(id) ?? 0);
    const row = { block: `${id}?`, iteration: iteration.join('.'), number: 0, attempt, output };
    this.rows.push({ ...row, isError: false });
  }

  /**
   * Shallow: top-level keys replace those of the data. In an item that runs beside others they are its own,
   * and become part of the data unless an item behind it has said other.
   *
   * @param place absent: somebody outside of the instance
   */
  merge(values: JsonObject, place?: Pick<Iteration, 'layers'>): void {
    this.#mergeIn(values, place === undefined ? [] : lanesOf(place));
  }

  #mergeIn(values: JsonObject, lanes: readonly Lane[], by?: ForEachBlock): void {
    for (const items of this.#atItems) {
      const isInside = lanes.every((lane, i) => items.around[i] === lane);
      const isBeside = by === undefined || !idsIn([by]).includes(items.block.id);
      if (!isInside || !isBeside) continue;
      // What an item around it has merged stays its own.
      const own = items.around.slice(lanes.length).map((lane) => lane.own);
      const isSeen = (key: string) =>
        items.last.has(key) || !own.some((merged) => Object.hasOwn(merged, key));
      const seen = Object.entries(values).filter(([key]) => isSeen(key));
      items.data = { ...items.data, ...Object.fromEntries(seen) };
    }
    const lane = lanes.at(-1);
    if (lane === undefined) {
      this.data = { ...this.data, ...values };
      return;
    }
    lane.own = { ...lane.own, ...values };
    const { last, block } = lane.items;
    const taken = Object.entries(values).filter(([key]) => (last.get(key) ?? -1) <= lane.item);
    for (const [key] of taken) last.set(key, lane.item);
    this.#mergeIn(Object.fromEntries(taken), lanes.slice(0, -1), block);
  }

  noteError(frame: Frame, error: JsonObject): void {
    if (this.#errorsAt !== this.instant) this.errors = [];
    else this.isTie = true;
    this.#errorsAt = this.instant;
    this.errors.push(error);
    frame.error = error;
    this.data = { ...this.data, _error: error };
  }

  /** What was caught in the blocks, also by the loser of a race, is dealt with: it is shown no more. */
  forgetError(...blocks: readonly Block[]): void {
    const { block_id } = (this.data._error ?? {}) as { readonly block_id?: string };
    if (block_id === undefined || !idsIn(blocks).includes(block_id)) return;
    const { _error: _, ...rest } = this.data;
    this.data = rest;
  }

  /** The blocks are to run once more: outside of loops their rows give way. */
  repeat(blocks: readonly Block[], { iteration }: Iteration): void {
    if (iteration.length > 0) return;
    const ids = new Set(idsIn(blocks));
    this.rows = this.rows.filter(({ block }) => !ids.has(block.replace('?', '')));
    for (const id of ids) {
      this.#outputs.delete(id);
      this.#rowCounts.delete(id);
    }
  }

  /** For a retry of the instance. */
  dropErrors(): void {
    this.rows = this.rows.filter(({ isError }) => !isError);
    const isKept = (output: JsonValue | undefined) =>
      typeof output !== 'object' || output === null || !('__error__' in output);
    for (const [id, { output }] of this.#outputs) if (!isKept(output)) this.#outputs.delete(id);
    for (const { outputs } of this.#lanes) {
      for (const [id, { output }] of outputs) if (!isKept(output)) outputs.delete(id);
    }
  }
}

/** Whether the pass has come to the block, or has gone by it; what a block sees of itself stays for all its tries. */
function hasCome(
  lists: readonly (readonly Block[])[],
  { inside }: Frame,
  id: string,
  reader: string | undefined,
  isOpen = (_: number) => true,
): boolean {
  const at = lists.findIndex((list) => idsIn(list).includes(id));
  const list = lists[at] ?? [];
  const place = list.findIndex((block) => idsIn([block]).includes(id));
  const block = list[place]!;
  const frame = inside.get(block.id);
  if (frame?.end !== undefined) return true;
  if (frame?.isBegun !== true) {
    const isEnded = list
      .slice(0, place)
      .some((one) => ['failed', 'cancelled'].includes(inside.get(one.id)?.end ?? ''));
    return isEnded || !isOpen(at);
  }
  if (block.id === id) return id !== reader;
  return hasCome(listsOf(block), frame, id, reader, (list) => mayRun(block, frame, list));
}

/** Whether the block that is under way may still come to blocks of that list. */
function mayRun(block: Block, { list, route, undoes }: Frame, at: number): boolean {
  const { type } = block;
  if (type === 'try_catch') return at >= ['try', 'catch', 'finally'].indexOf(list ?? 'try');
  if (type === 'saga') return undoes === undefined || at % 2 === 1;
  return route === undefined || at === (route < 0 ? listsOf(block).length - 1 : route);
}

export function idsIn(blocks: readonly Block[]): string[] {
  return blocks.flatMap((block) => [block.id, ...idsIn(listsOf(block).flat())]);
}

/** Whether the two blocks stand in different branches of a parallel or a race. */
function areBeside(blocks: readonly Block[], one: string, other: string): boolean {
  return blocks.some((block) => {
    const lists = listsOf(block);
    const at = (id: string) => lists.findIndex((list) => idsIn(list).includes(id));
    const [a, b] = [at(one), at(other)];
    if (a < 0 || b < 0) return false;
    if (a === b) return areBeside(lists[a]!, one, other);
    return block.type === 'parallel' || block.type === 'race';
  });
}
