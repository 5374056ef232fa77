/**
 * Checks a definition before it is stored and collects all findings, each with its place
 * (docs/reference/definitions.md). Errors refuse the definition, warnings never do. Stored definitions are not checked
 * again.
 */

import type { TSchema } from '@sinclair/typebox';
import {
  BLOCK_TYPES,
  BLOCKS_MAX,
  type Block,
  HOOK_LISTS,
  HOOKS_MAX,
  ITEM_VAR_DEFAULT,
  type SagaBlock,
} from '../../../schema/blocks.js';
import type { CancelOnMember } from '../../../schema/cancel-on.js';
import {
  FINDINGS_MAX,
  type Finding,
  findingOf,
  isWithin,
  joinPath,
  type ShapeErrors,
  shownName,
} from '../../../schema/finding.js';
import { FLOW_KEYS, type FlowLimits } from '../../../schema/flow-limits.js';
import {
  BUILTIN_HANDLERS,
  type BuiltinName,
  HANDLER_PARAMS,
  isBuiltin,
} from '../../../schema/handlers.js';
import { type BlockPlace, walkDefinition } from '../../../schema/members.js';
import { COLLECTING_KINDS } from '../../../schema/pending-start.js';
import { misspelt, suggest } from '../../../schema/suggest.js';
import { clip } from '../../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../base/json.js';
import { type BlockCompiler, type ExpressionUse, guardOf, NO_SECRETS } from '../block-compiler.js';
import { kindOf } from '../blocks/kinds.js';
import { type CollectingMembers, collectingErrors } from '../collecting.js';
import { type Condition, parseCondition } from '../condition.js';
import { isRootedPath, ROOT_NAMES } from '../expression/scope.js';
import { compileKey, keyTemplateProblem } from '../key-params.js';
import type { Parsed } from '../parsed.js';
import type { SchemaCheck } from '../plan-nodes.js';
import { compileTemplate, type Template } from '../template.js';
import { type Copies, concurrencyOf, ONE_COPY, TreeRules } from '../tree-rules.js';
import { partialActions, whyNever } from './blocks.js';
import {
  correctedCondition,
  namesRoot,
  type Remarks,
  readExpression,
  readTemplate,
  templateMeant,
} from './texts.js';

export interface Findings {
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];
}

export interface LintOptions {
  /** The name of the definition in messages, such as `a sequence`. */
  readonly name: string;
  /** The errors that the validators found; absent: the shape is valid. */
  readonly shape?: ShapeErrors;
  /** Blocks outside of the definition that run before it. */
  readonly known?: ReadonlySet<string>;
  readonly checkParams?: (
    handler: BuiltinName,
    params: JsonObject,
  ) => readonly (Finding & { readonly isFatal: boolean })[];
}

/** @param value valid by the schema, except for `options.shape` */
export function lintDefinition(schema: TSchema, value: unknown, options: LintOptions): Findings {
  return new Lint(options).look(schema, value);
}

/** Before all blocks of the root list. */
const AT_CREATION = { block: {}, parent: undefined, list: 0, position: -1, depth: 1 } as const;
/** Members whose key is a template over a creation. */
const KEYED = [...FLOW_KEYS, ...COLLECTING_KINDS] as const;
const UNIQUE = 'has the instance id: no two instances have the same key';
const UNKNOWN = 'has the instance id, which is empty here: the instance does not exist yet';
const ID_IN_KEY: Readonly<Record<(typeof KEYED)[number], string>> = {
  concurrency: UNIQUE,
  throttle: UNIQUE,
  debounce: UNKNOWN,
  batch: UNKNOWN,
};
const NO_ERRORS: ShapeErrors = { found: [], extent: 'all' };
/** More than a definition of maximum size has outside of parameters. */
const BRACES_MAX = 20_000;
const IDS_COMPARED_MAX = 500;
const NO_TEMPLATE = compileTemplate(null);

/** Reads the blocks as the plan compiler does, and collects the findings of the kinds and its own. */
class Lint implements BlockCompiler {
  readonly #options: LintOptions;
  readonly #errors = new FindingList();
  readonly #warnings = new FindingList();
  readonly #places: BlockPlace[] = [];
  readonly #byId = new Map<string, BlockPlace>();
  /** The places of texts with braces that no kind has read as a template or condition. */
  readonly #braces = new Set<string>();
  #reader: BlockPlace | undefined;

  constructor(options: LintOptions) {
    this.#options = options;
  }

  look(schema: TSchema, value: unknown): Findings {
    const { name, shape = NO_ERRORS } = this.#options;
    for (const error of shape.found) this.#errors.add(() => error);
    if (shape.extent !== 'first') this.#walk(schema, value, name);
    if (shape.extent === 'all') this.#lookAtBlocks(shape.found, value);
    return { errors: this.#errors.all(), warnings: this.#warnings.all() };
  }

  #walk(schema: TSchema, value: unknown, name: string): void {
    walkDefinition(schema, value, name, {
      block: (place) => {
        if (this.#places.length <= BLOCKS_MAX) this.#places.push(place);
      },
      unknown: (describe) => this.#warnings.add(describe),
      text: (path, text) => {
        if (text.includes('{{') && this.#braces.size < BRACES_MAX) this.#braces.add(path);
      },
    });
    this.#takeHooks(value as JsonObject);
    this.#checkCollecting(value as JsonObject);
    this.#checkTree();
    this.#checkFlow(value as JsonObject);
    this.#checkSearchable(value as JsonObject);
  }

  /** Treats each list of hooks as blocks that run after the others. */
  #takeHooks(definition: JsonObject): void {
    if (!isJsonObject(definition)) return;
    for (const [number, name] of HOOK_LISTS.entries()) {
      const hooks = ownValue(definition, name);
      if (!Array.isArray(hooks)) continue;
      for (const [position, block] of hooks.slice(0, HOOKS_MAX).entries()) {
        if (!isJsonObject(block)) continue;
        const path = `${name}[${position}]`;
        const place = { parent: undefined, list: number + 1, position, depth: 1 };
        // Members that hooks do not support may be false, which counts as absent.
        const members = Object.entries(block).filter(([, member]) => member !== false);
        this.#places.push({ block: Object.fromEntries(members), path, ...place });
      }
    }
  }

  #checkFlow(definition: JsonObject): void {
    if (!isJsonObject(definition)) return;
    for (const member of FLOW_KEYS) {
      const limits = ownValue(definition, member);
      if (!isJsonObject(limits as JsonValue)) continue;
      const { burst, limit } = limits as JsonObject;
      if (typeof burst === 'number' && typeof limit === 'number' && burst > limit) {
        const path = `${member}.burst`;
        this.#errors.add(() => findingOf(path, `${path} must not be larger than ${member}.limit`));
      }
    }
  }

  /** Paths that begin with a root are looked up in context.data like any others. */
  #checkSearchable(definition: JsonObject): void {
    const searchable = isJsonObject(definition) ? ownValue(definition, 'searchable') : undefined;
    if (!Array.isArray(searchable)) return;
    for (const [index, path] of searchable.entries()) {
      if (typeof path !== 'string' || !isRootedPath(path)) continue;
      const message = `${clip(path)} is looked up in context.data, as data.${clip(path)}`;
      this.#warn(`searchable[${index}]`, message, path.slice(path.indexOf('.') + 1));
    }
  }

  #checkCollecting(definition: JsonObject): void {
    if (!isJsonObject(definition)) return;
    for (const error of collectingErrors(definition)) this.#errors.add(() => error);
  }

  #lookAtBlocks(errors: readonly Finding[], definition: unknown): void {
    const unsound = this.#unsound(errors);
    for (const place of this.#places) this.#lookAt(place, !unsound.has(place));
    if (!errors.some(isOfCreationKeys)) this.#lookAtCreationKeys(definition);
    if (errors.length === 0) this.#lookAtSagas();
    for (const path of this.#braces) {
      if ([...unsound].some((place) => isWithin(path, place.path))) continue;
      this.#warn(path, 'has braces, and is no place for a template: it stays as it is');
    }
  }

  /** They are rendered before the first block. */
  #lookAtCreationKeys(definition: unknown): void {
    if (!isJsonObject(definition as JsonValue)) return;
    const { cancel_on, ...keyed } = definition as CancelOnMember & FlowLimits & CollectingMembers;
    for (const [index, { key }] of (cancel_on ?? []).entries()) {
      if (key == null) continue;
      this.#lookAtKey(`cancel_on[${index}]`, key);
      if (!isRootedPath(key)) continue;
      this.warn('key', 'has no template: only events with this key cancel', templateMeant(key));
    }
    for (const member of KEYED) {
      const key = keyed[member]?.key;
      if (key == null) continue;
      this.#lookAtKey(member, key);
      if (namesRoot(key, 'instance_id')) this.warn('key', ID_IN_KEY[member]);
      if (key.includes('{{')) continue;
      this.warn('key', 'has no template: all instances have this key', templateMeant(key));
    }
  }

  #lookAtKey(path: string, key: string): void {
    this.#reader = { ...AT_CREATION, path };
    this.template(key, 'key');
    const problem = keyTemplateProblem(compileKey(this.#at('key'), key));
    if (problem !== undefined) this.refuse('key', problem);
  }

  #lookAtSagas(): void {
    for (const { block, path } of this.#places) {
      if (block.type !== 'saga') continue;
      for (const { member, step, done, failing } of partialActions(block as unknown as SagaBlock)) {
        const [first, second] = [clip(done), clip(failing)];
        const where = first === second ? `${second} fails in a later iteration` : `${second} fails`;
        this.#warn(
          `${path}.${member}`,
          `when ${where}, what ${first} has done is not compensated, since step ${clip(step)} has not completed, and ` +
            'a retry does it again: give each a step of its own, or take it back in a try_catch inside the action',
        );
      }
    }
  }

  #checkTree(): void {
    const rules = new TreeRules();
    const reported = new Set<string>();
    const report = (path: string, problem: string | undefined) => {
      if (problem === undefined || reported.has(problem)) return;
      reported.add(problem);
      this.#errors.add(() => findingOf(path, problem));
    };
    for (const place of this.#places) {
      const { block, path, depth } = place;
      if (typeof block.id === 'string') {
        if (!this.#byId.has(block.id)) this.#byId.set(block.id, place);
        const exceeded = rules.exceededBy(copiesAround(place));
        const loop = this.#byId.get(exceeded?.id ?? '');
        if (loop !== undefined) report(`${loop.path}.concurrency`, exceeded?.problem);
        report(`${path}.id`, rules.problemOf(block.id, depth));
      }
      const typed = block as unknown as Block;
      if (!BLOCK_TYPES.includes(typed.type)) continue;
      for (const own of kindOf(typed).names(typed)) {
        report(`${path}.${own.path}`, rules.claim(own.id, `${typed.type} step`));
      }
    }
  }

  /** The blocks with errors in members of their own. */
  #unsound(errors: readonly Finding[]): Set<BlockPlace> {
    const unsound = new Set<BlockPlace>();
    for (const { path } of errors) {
      let inmost: BlockPlace | undefined;
      for (const place of this.#places) if (isWithin(path, place.path)) inmost = place;
      if (inmost !== undefined) unsound.add(inmost);
    }
    return unsound;
  }

  #lookAt(place: BlockPlace, isSound: boolean): void {
    this.#reader = place;
    const { block, path } = place;
    if (block.type === 'step' && typeof block.handler === 'string') {
      const { handler, on_deadline_breach: breach } = block;
      const meant = isBuiltin(handler) ? undefined : misspelt(handler, BUILTIN_HANDLERS);
      if (meant !== undefined) {
        const message = `the handler ${clip(handler)} is left to external workers`;
        this.#warn(`${path}.handler`, message, meant);
      }
      this.#checkCall(block, path);
      if (isJsonObject(breach)) this.#checkCall(breach, `${path}.on_deadline_breach`);
    }
    if (!isSound) return;
    const typed = block as unknown as Block;
    guardOf(typed, this);
    kindOf(typed).compile(typed, this);
  }

  #checkCall({ handler, params: raw }: JsonObject, path: string): void {
    const params = raw ?? {};
    if (typeof handler !== 'string' || !isBuiltin(handler) || !isJsonObject(params)) return;
    this.#checkParamNames(handler, params, `${path}.params`);
    for (const problem of this.#options.checkParams?.(handler, params) ?? []) {
      const { isFatal, ...finding } = problem;
      const place = { path: `${path}.${finding.path}`, message: `${path}.${finding.message}` };
      (isFatal ? this.#errors : this.#warnings).add(() => ({ ...finding, ...place }));
    }
  }

  #checkParamNames(handler: BuiltinName, params: JsonObject, path: string): void {
    const { properties, additionalProperties } = HANDLER_PARAMS[handler];
    if (additionalProperties === true) return;
    const known = Object.keys(properties);
    for (const key of Object.keys(params)) {
      if (known.includes(key)) continue;
      this.#warnings.add(() => {
        const list = known.length === 0 ? 'which has none' : `which has ${known.join(', ')}`;
        const message = `${shownName(key)} is no parameter of ${handler}, ${list}`;
        return findingOf(joinPath(path, key), message, suggest(key, known));
      });
    }
  }

  #warn(path: string, message: string, suggestion?: string): void {
    this.#warnings.add(() => findingOf(path, message, suggestion));
  }

  /** The path of a member of the block that is being read. */
  #at(member: string): string {
    return `${this.#reader!.path}.${member}`;
  }

  warn(member: string, message: string, suggestion?: string): void {
    this.#warn(this.#at(member), message, suggestion);
  }

  refuse(member: string, message: string): void {
    const path = this.#at(member);
    this.#errors.add(() => findingOf(path, message));
  }

  expression(text: string, use: ExpressionUse): Parsed<Condition> {
    const path = this.#at(use.member);
    this.#braces.delete(path);
    const parsed = parseCondition(text);
    if (parsed.ok) {
      readExpression(parsed.value.expression, this.#remarksAt(path, use.isRepeated === true));
    } else {
      const message = `does not parse and ${use.unparsed}: ${parsed.message}`;
      this.#warnings.add(() => findingOf(path, message, correctedCondition(text)));
    }
    return parsed;
  }

  template(value: JsonValue, member: string, use?: 'call'): Template {
    if (use !== 'call' && compileTemplate(value).hasSecrets) this.refuse(member, NO_SECRETS);
    this.#readStrings(value, this.#at(member));
    return NO_TEMPLATE;
  }

  /** Checked by the validators. */
  outputSchema(): SchemaCheck {
    return () => undefined;
  }

  reads(): void {}

  #readStrings(value: JsonValue, path: string): void {
    if (typeof value === 'string') {
      if (!value.includes('{{')) return;
      this.#braces.delete(path);
      if (!this.#warnings.isOver) readTemplate(value, this.#remarksAt(path, false));
    } else if (typeof value === 'object' && value !== null) {
      const items = Array.isArray(value) ? value.entries() : Object.entries(value);
      for (const [key, item] of items) {
        // Paths are built only for values that may contain a template.
        const isRead = typeof item === 'string' ? item.includes('{{') : typeof item === 'object';
        if (isRead) this.#readStrings(item, joinPath(path, key));
      }
    }
  }

  #remarksAt(path: string, isRepeated: boolean): Remarks {
    return {
      note: (message, guess) => this.#warnings.add(() => findingOf(path, message, guess?.())),
      reference: (root, block) => this.#checkReference(path, root, block, isRepeated),
      unknownRoot: (root) =>
        this.#warnings.add(() => {
          const message = `will fail: unknown template root "${clip(root)}"`;
          return findingOf(path, message, this.#rootMeantBy(root));
        }),
      dataPath: ([first = '', block]) => {
        if (block === undefined || !this.#byId.has(block)) return;
        const root = misspelt(first, ['outputs', 'steps']);
        if (root !== undefined)
          this.#warn(path, `${clip(first)} is looked up in context.data`, root);
      },
      bareText: (text) => {
        const [first = ''] = text.split('.', 1);
        if (first === text || !this.#items().includes(first)) return;
        this.#warn(path, `compares with the text "${clip(text)}"`, `data.${clip(text)}`);
      },
    };
  }

  #checkReference(path: string, root: string, id: string, isRepeated: boolean): void {
    const target = this.#byId.get(id);
    const named = `${root}.${clip(id)}`;
    if (target === undefined) {
      if (this.#options.known?.has(id) === true) return;
      this.#warnings.add(() => {
        const ids = [...this.#byId.keys()].slice(0, IDS_COMPARED_MAX);
        const message = `${named} is always null: there is no block ${clip(id)}`;
        return findingOf(path, message, misspelt(id, ids));
      });
      return;
    }
    // A reply is rendered when the step has what it waited for.
    if (target === this.#reader && isWithin(path, this.#at('reply'))) return;
    const reason = whyNever(this.#reader as BlockPlace, target, isRepeated);
    if (reason !== undefined) {
      this.#warn(path, `${named} is always null here: block ${clip(id)} ${reason}`);
    }
  }

  #rootMeantBy(root: string): string | undefined {
    if (this.#items().includes(root)) return `data.${root}`;
    if (this.#byId.has(root)) return `outputs.${root}`;
    return misspelt(root, ROOT_NAMES) ?? (/^[\w-]{1,64}$/.test(root) ? `data.${root}` : undefined);
  }

  /** The names of the item and index variables of the loops around the block. */
  #items(): string[] {
    const names: string[] = [];
    for (let at = this.#reader; at !== undefined; at = at.parent) {
      if (at.block.type !== 'for_each') continue;
      names.push(String(ownValue(at.block, 'item_var') ?? ITEM_VAR_DEFAULT));
      const index = ownValue(at.block, 'index_var');
      if (typeof index === 'string') names.push(index);
    }
    return names;
  }
}

const isOfCreationKeys = ({ path }: Finding) =>
  ['cancel_on', ...KEYED].some((member) => isWithin(path, member));

function copiesAround({ parent }: BlockPlace): Copies {
  let { id, times } = ONE_COPY;
  for (let at = parent; at !== undefined; at = at.parent) {
    const slots = at.block.type === 'for_each' ? concurrencyOf(at.block.concurrency) : 1;
    if (slots > 1) id ??= String(at.block.id);
    times *= slots;
  }
  return { id, times };
}

const COUNTED_MAX = 10_000;

export class FindingList {
  readonly #found: Finding[] = [];
  #omitted = 0;

  get isOver(): boolean {
    return this.#omitted >= COUNTED_MAX;
  }

  /** @param describe called only for findings that are listed: suggestions are expensive */
  add(describe: () => Finding): void {
    if (this.#found.length < FINDINGS_MAX) this.#found.push(describe());
    else this.#omitted += 1;
  }

  /** The last finding has the number of omitted findings. */
  all(): Finding[] {
    if (this.#omitted === 0) return this.#found;
    const more = this.isOver ? `more than ${COUNTED_MAX}` : String(this.#omitted);
    return [...this.#found, { path: '', message: `and ${more} more` }];
  }
}
