/** The compiler for linting: it reports what blocks read, with paths, and passes on what the kinds find wrong. */

import { BLOCK_TYPES, type Block } from '../../../schema/blocks.js';
import { joinPath } from '../../../schema/finding.js';
import type { BlockPlace } from '../../../schema/members.js';
import type { JsonObject, JsonValue } from '../../base/json.js';
import { type BlockCompiler, type ExpressionUse, guardOf, NO_SECRETS } from '../block-compiler.js';
import type { NamedPart } from '../blocks/kind.js';
import { kindOf } from '../blocks/kinds.js';
import { type Condition, parseCondition } from '../condition.js';
import type { Parsed } from '../parsed.js';
import type { SchemaCheck } from '../plan-nodes.js';
import { compileTemplate, type Template } from '../template.js';

export interface BlockVisitor {
  warn(path: string, message: string, suggestion?: string): void;
  refuse(path: string, message: string): void;
  condition(path: string, text: string, parsed: Parsed<Condition>, use: ExpressionUse): void;
  /** A string with braces in a value that may have templates. */
  template(path: string, text: string): void;
}

/** Reads a block that is valid but for the blocks in it. */
export function readBlock({ block, path }: BlockPlace, visitor: BlockVisitor): void {
  const typed = block as unknown as Block;
  const reader = new BlockReader(path, visitor);
  guardOf(typed, reader);
  kindOf(typed).compile(typed, reader);
}

/** The parts of a block whose names count as ids; the block may not be valid. */
export function namesIn(block: JsonObject): readonly NamedPart[] {
  const typed = block as unknown as Block;
  return BLOCK_TYPES.includes(typed.type) ? kindOf(typed).names(typed) : [];
}

class BlockReader implements BlockCompiler {
  readonly #path: string;
  readonly #visitor: BlockVisitor;

  constructor(path: string, visitor: BlockVisitor) {
    this.#path = path;
    this.#visitor = visitor;
  }

  warn(member: string, message: string, suggestion?: string): void {
    this.#visitor.warn(this.#at(member), message, suggestion);
  }

  refuse(member: string, message: string): void {
    this.#visitor.refuse(this.#at(member), message);
  }

  expression(text: string, use: ExpressionUse): Parsed<Condition> {
    const parsed = parseCondition(text);
    this.#visitor.condition(this.#at(use.member), text, parsed, use);
    return parsed;
  }

  template(value: JsonValue, member: string, use?: 'call'): Template {
    if (use !== 'call' && compileTemplate(value).hasSecrets) this.refuse(member, NO_SECRETS);
    this.#strings(value, this.#at(member));
    return NO_TEMPLATE;
  }

  outputSchema(): SchemaCheck {
    return () => undefined;
  }

  reads(): void {}

  noteEffect(): void {}

  #at(member: string): string {
    return `${this.#path}.${member}`;
  }

  #strings(value: JsonValue, path: string): void {
    if (typeof value === 'string') {
      if (value.includes('{{')) this.#visitor.template(path, value);
    } else if (typeof value === 'object' && value !== null) {
      const items = Array.isArray(value) ? value.entries() : Object.entries(value);
      for (const [key, item] of items) {
        if (isOfInterest(item)) this.#strings(item, joinPath(path, key));
      }
    }
  }
}

/** Paths are built only for values that may contain a template. */
function isOfInterest(value: JsonValue): boolean {
  return typeof value === 'string' ? value.includes('{{') : typeof value === 'object';
}

const NO_TEMPLATE = compileTemplate(null);
