/**
 * The raw text of a creation's sections, which is stored as it is: serializing it again is a tenth
 * of the cost. Bodies with white space are serialized, so that rows are not larger than values.
 */

import { JsonReader } from '../../src/base/json-members.js';
import { OPEN_OBJECT } from '../../src/base/json-text.js';

export interface RawSections {
  data: string | undefined;
  config: string | undefined;
  metadata: string | undefined;
}

/** @returns undefined when the sections have to be serialized */
export function rawSections(text: string): RawSections | undefined {
  return creationTexts(new JsonReader(text));
}

/** @returns an entry for each item, or none at all */
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

/** No white space before the value, and no escapes in the name. */
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
