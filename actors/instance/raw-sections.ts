/**
 * The sections of a creation as the caller wrote them. They are parsed for whoever looks into them, and
 * written to the row as they came: making the same text once more is a tenth of what a creation costs. Bodies
 * that are not compact are left alone: what is stored is as large as its value, whatever space a caller puts
 * between.
 */

import { JsonReader } from '../../src/base/json-members.js';
import { OPEN_OBJECT } from '../../src/base/json-text.js';

export interface RawSections {
  data: string | undefined;
  config: string | undefined;
  metadata: string | undefined;
}

/** @param text the body of a creation, which was parsed; undefined where it has to be written anew */
export function rawSections(text: string): RawSections | undefined {
  return creationTexts(new JsonReader(text));
}

/** @param text the body of a batch; one entry for each item, or none at all */
export function rawSectionsOfItems(text: string): readonly RawSections[] {
  const reader = new JsonReader(text);
  let all: RawSections[] = [];
  const takeItem = () => {
    const texts = creationTexts(reader);
    if (texts !== undefined) all.push(texts);
    return texts !== undefined;
  };
  const isRead = reader.eachMember((name) => {
    if (!isPlain(reader, name)) return false;
    if (name !== 'instances') return reader.skip();
    all = [];
    return reader.eachItem(takeItem);
  });
  return isRead && reader.isCompact ? all : [];
}

/** No white space came before the value, and the name has no escapes: with one it may be any name. */
function isPlain(reader: JsonReader, name: string): boolean {
  return reader.isCompact && !name.includes('\\');
}

function creationTexts(reader: JsonReader): RawSections | undefined {
  const texts: RawSections = { data: undefined, config: undefined, metadata: undefined };
  const takeSection = (name: string) => {
    if (!isPlain(reader, name)) return false;
    if (name !== 'data' && name !== 'config') return reader.skip();
    texts[name] = reader.value();
    return true;
  };
  const isRead = reader.eachMember((name) => {
    if (!isPlain(reader, name)) return false;
    if (name === 'metadata') {
      texts.metadata = reader.value();
      return true;
    }
    if (name !== 'context') return reader.skip();
    texts.data = undefined;
    texts.config = undefined;
    return reader.peek() === OPEN_OBJECT ? reader.eachMember(takeSection) : reader.skip();
  });
  return isRead && reader.isCompact ? texts : undefined;
}
