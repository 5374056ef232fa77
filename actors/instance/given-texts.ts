/**
 * The sections of a creation as the caller wrote them. They are parsed for whoever looks into them, and
 * written to the row as they came: making the same text once more is a tenth of what a creation costs.
 */

import { JsonReader } from '../../src/base/json-texts.js';

export interface GivenTexts {
  data: string | undefined;
  config: string | undefined;
  metadata: string | undefined;
}

/** @param text the body of a creation, which was parsed; undefined where it has to be written anew */
export function givenTexts(text: string): GivenTexts | undefined {
  return creationTexts(new JsonReader(text));
}

/** @param text the body of a batch; one entry for each item, or none at all */
export function givenTextsOfItems(text: string): readonly GivenTexts[] {
  const reader = new JsonReader(text);
  let all: GivenTexts[] = [];
  const takeItem = () => {
    const texts = creationTexts(reader);
    if (texts !== undefined) all.push(texts);
    return texts !== undefined;
  };
  const isRead = reader.eachMember((name) => {
    if (name !== 'instances') return reader.skipValue();
    all = [];
    return reader.eachItem(takeItem);
  });
  return isRead ? all : [];
}

function creationTexts(reader: JsonReader): GivenTexts | undefined {
  const texts: GivenTexts = { data: undefined, config: undefined, metadata: undefined };
  const takeSection = (name: string) => {
    if (name !== 'data' && name !== 'config') return reader.skipValue();
    texts[name] = reader.value();
    return texts[name] !== undefined;
  };
  const isRead = reader.eachMember((name) => {
    if (name === 'metadata') {
      texts.metadata = reader.value();
      return texts.metadata !== undefined;
    }
    if (name !== 'context') return reader.skipValue();
    texts.data = undefined;
    texts.config = undefined;
    return reader.isObject ? reader.eachMember(takeSection) : reader.skipValue();
  });
  return isRead ? texts : undefined;
}
