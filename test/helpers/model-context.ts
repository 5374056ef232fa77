/** What the programs of the model leave behind and read again: the data, the outputs, the rows. */

import type { Block, ForEachBlock } from '../../schema/blocks.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { listsOf } from './block-trees.js';
import type { Frame } from './model-frames.js';
import { render, type View } from './model-values.js';

/** The loops around a block: their counters, and the for_each blocks among them. */
export interface Iteration {
  readonly iteration: readonly number[];
  readonly layers: readonly Layer[];
}

/** A for_each: its item and the number of that, by their names. */
export interface Layer {
  readonly names: JsonObject;
  /** Where items run side by side. */
  readonly lane?: Lane;
}

/** What an item that runs beside others sees of its own. */
export interface Lane {
  readonly body: readonly Block[];
  /** The blocks inside. */
  readonly ids: ReadonlySet<string>;
  readonly outputs: Map<string, JsonValue>;
  /** What its steps have merged, latest last. */
  merged: { readonly block: string; readonly output: JsonObject }[];
  /** Its latest error, and what people have said. */
  over: JsonObject;
}

/** A block that has read what is of its lanes, or has left its error there. */
interface Touch {
  readonly instant: number;
  readonly block: string;
  readonly lanes: readonly Lane[];
  readonly isError: boolean;
}

function lanesOf({ layers }: Iteration): Lane[] {
  return layers.flatMap(({ lane }) => lane ?? []);
}

export interface ModelRow {
  readonly block: string;
  readonly iteration: string;
  readonly number: number;
  readonly attempt: number;
  readonly output: JsonValue;
  readonly isError: boolean;
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
  #outputs: JsonObject = {};
  /** What loops say of their passes: no outputs. */
  readonly #notes = new Set<ModelRow>();
  readonly #rowCounts = new Map<string, number>();
  readonly #lanes = new Set<Lane>();
  #touches: Touch[] = [];

  constructor(data: JsonObject) {
    this.data = data;
  }

  view(place: Iteration): View {
    const outputs = { ...this.#outputs };
    for (const { ids, outputs: own } of lanesOf(place)) {
      for (const id of ids) delete outputs[id];
      for (const [id, output] of own) outputs[id] = output;
    }
    return { data: { ...this.data, ...this.itemsOf(place) }, outputs };
  }

  /** As it is seen outside of all blocks. */
  rendered(params: JsonObject): JsonValue {
    return render(params, this.view({ iteration: [], layers: [] }));
  }

  /** What lies over the data. */
  itemsOf(place: Iteration): JsonObject | null {
    const lanes = lanesOf(place);
    const items: JsonObject = {};
    for (const { names, lane } of place.layers) {
      const next = lane && lanes[lanes.indexOf(lane) + 1];
      for (const { block, output } of lane?.merged ?? []) {
        if (next?.ids.has(block) !== true) Object.assign(items, output);
      }
      Object.assign(items, lane?.over, names);
    }
    return place.layers.length === 0 ? null : items;
  }

  /** The same for a step that is given out. */
  itemsFor({ id }: Block, place: Iteration): JsonObject | null {
    this.#touch(id, lanesOf(place), false);
    return this.itemsOf(place);
  }

  laneIn({ body }: ForEachBlock): Lane {
    const lane = {
      body,
      ids: new Set(idsIn(body)),
      outputs: new Map(),
      merged: [],
      over: {},
    };
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
    this.#notes.add(this.store(block, place, { number: 0, attempt, output, isError: false }));
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
  ): ModelRow {
    const { iteration } = place;
    const count = this.#rowCounts.get(id) ?? 0;
    this.#rowCounts.set(id, count + 1);
    const attempt = iteration.length === 0 ? (row.attempt ?? row.number) : count;
    const stored = { block: id, iteration: iteration.join('.'), ...row, attempt };
    this.rows.push(stored);
    this.#instants.set(stored, this.instant);
    this.#outputs = { ...this.#outputs, [id]: row.output };
    for (const { outputs } of lanesOf(place)) outputs.set(id, row.output);
    return stored;
  }

  /** What a person said: no output, and the number of the row to come. */
  answerRow({ id }: Block, { iteration }: Iteration, output: JsonObject): void {
    const attempt = iteration.length === 0 ? 0 : (this.#rowCounts.get(id) ?? 0);
    const row = { block: `${id}?`, iteration: iteration.join('.'), number: 0, attempt, output };
    this.rows.push({ ...row, isError: false });
  }

  /** Shallow: top-level keys replace those of the data. */
  merge(values: JsonObject): void {
    this.data = { ...this.data, ...values };
  }

  /** Of a step. */
  mergeOutput({ id }: Block, place: Iteration, output: JsonObject): void {
    this.merge(output);
    for (const lane of lanesOf(place)) {
      lane.merged = [...lane.merged.filter(({ block }) => block !== id), { block: id, output }];
      const over = Object.entries(lane.over).filter(([key]) => !Object.hasOwn(output, key));
      lane.over = Object.fromEntries(over);
    }
  }

  /** What is no output of a step, for the item that it came about in. */
  mergeOwn(place: Iteration, values: JsonObject): void {
    this.merge(values);
    const lane = lanesOf(place).at(-1);
    if (lane !== undefined) lane.over = { ...lane.over, ...values };
  }

  noteError(error: JsonObject, now: number, place: Iteration): void {
    if (this.#errorsAt !== now) this.errors = [];
    this.#errorsAt = now;
    this.errors.push(error);
    const lane = lanesOf(place).at(-1);
    if (lane !== undefined) this.#touch(error.block_id as string, [lane], true);
    this.mergeOwn(place, { _error: error });
  }

  #touch(block: string, lanes: readonly Lane[], isError: boolean): void {
    const { instant } = this;
    this.#touches = this.#touches.filter((touch) => touch.instant === instant);
    for (const other of this.#touches) {
      if (!isError && !other.isError) continue;
      const common = lanes.filter((lane) => other.lanes.includes(lane));
      if (common.some(({ body }) => areBeside(body, other.block, block))) this.isTie = true;
    }
    this.#touches.push({ instant, block, lanes, isError });
  }

  /** For a retry of the instance. */
  dropErrors(): void {
    this.rows = this.rows.filter(({ isError }) => !isError);
    const isKept = (output: JsonValue | undefined) =>
      typeof output !== 'object' || output === null || !('__error__' in output);
    const kept = Object.entries(this.#outputs).filter(([, output]) => isKept(output));
    this.#outputs = Object.fromEntries(kept);
    for (const { outputs } of this.#lanes) {
      for (const [id, output] of outputs) if (!isKept(output)) outputs.delete(id);
    }
  }
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
