/** The texts of actions. Pure. */

import type { Action } from 'durable-workflow-engine-client';
import { shortIdOf } from '../../lib/format.ts';

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** With the ids of the dashboard, which are short. */
export function shortSummaryOf({ summary }: Pick<Action, 'summary'>): string {
  return summary.replace(UUID, (id) => shortIdOf(id));
}

/** The sentence around what it calls the object. */
export function partsOf(action: Action): readonly [before: string, object: string, behind: string] {
  const text = shortSummaryOf(action);
  const { target, name, details } = action;
  const own = typeof details.name === 'string' ? details.name : '';
  const object = [shortSummaryOf({ summary: target }), name ?? '', own].find(
    (word) => word !== '' && text.includes(word),
  );
  if (object === undefined) return ['', text, ''];
  const at = text.indexOf(object);
  return [text.slice(0, at), object, text.slice(at + object.length)];
}
