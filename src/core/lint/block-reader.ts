/**
 * What the kinds of blocks are given when a definition is looked at instead of compiled: it notes the
 * places of what they read, and hands on what they find wrong.
 */

import { BLOCK_TYPES, type Block } from '../../../schema/blocks.js';
import { joinPath } from '../../../schema/finding.js';
import type { BlockPlace } from '../../../schema/members.js';
import type { JsonObject, JsonValue } from '../../base/json.js';
import { type BlockCompiler, type ExpressionUse, guardOf, NO_SECRETS } from '../block-compiler.js';
import type { NamedPart } from '../blocks/kind.js';
import { kindOf } from '../blocks/kinds.js';
import { type Condition, type Parsed, parseCondition } from '../condition.js';
import type { SchemaCheck } from '../plan-nodes.js';
import { compileTemplate, type Template } from '../template.js';

/** Told what a block has, each with its path in the definition. */
export interface BlockAudience {
  warn(path: string, message: string, suggestion?: string): void;
  refuse(path: string, message: string): void;
  condition(path: string, text: string, parsed: Parsed<Condition>, use: ExpressionUse): void;
  /** A string with braces in a value with templates. */
  template(path: string, text: string): void;
}

/** Looks at a block whose shape is valid, but for the blocks in it. */
export function readBlock({ block, path }: BlockPlace, audience: BlockAudience): void {
  const typed = block as unknown as Block;
  const reader = new BlockReader(path, audience);
  guardOf(typed, reader);
  kindOf(typed).compile(typed, reader);
}

/** What counts as an id in a block, whatever else is wrong with that. */
export function namesIn(block: JsonObject): readonly NamedPart[] {
  const typed = block as unknown as Block;
  return BLOCK_TYPES.includes(typed.type) ? kindOf(typed).names(typed) : [];
}

class BlockReader implements BlockCompiler {
  readonly #path: string;
  readonly #audience: BlockAudience;

  constructor(path: string, audience: BlockAudience) {
    this.#path = path;
    this.#audience = audience;
  }

  warn(member: string, message: string, suggestion?: string): void {
    this.#audience.warn(this.#at(member), message, suggestion);
  }

  refuse(member: string, message: string): void {
    this.#audience.refuse(this.#at(member), message);
  }

  expression(text: string, use: ExpressionUse): Parsed<Condition> {
    const parsed = parseCondition(text);
    this.#audience.condition(this.#at(use.member), text, parsed, use);
    return parsed;
  }

  template(value: JsonValue, member: string, use?: 'call'): Template {
    if (use !== 'call' && compileTemplate(value).hasSecrets) this.refuse(member, NO_SECRETS);
    this.#strings(value, this.#at(member));
    return NO_TEMPLATE;
  }

  /** The validators have looked at it. */
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
      if (value.includes('{{')) this.#audience.template(path, value);
    } else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) {
        if (isOfInterest(item)) this.#strings(item, joinPath(path, index));
      }
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        if (isOfInterest(item)) this.#strings(item, joinPath(path, key));
      }
    }
  }
}

/** A path is made only for what may have a string in it. */
function isOfInterest(value: JsonValue): boolean {
  return typeof value === 'string' ? value.includes('{{') : typeof value === 'object';
}

const NO_TEMPLATE = compileTemplate(null);
